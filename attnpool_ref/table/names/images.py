"""Entries of the index of names (``attnpool find``): images and video: means, heads, clusters."""

from attnpool_ref.table.names.entry import Entry

MEANS = (
    Entry(
        ("GeM", "generalized mean pooling", "power mean"),
        "power_mean_pooling(x, mask, p)",
        "Radenović, Tolias, Chum 2019; cnnimageretrieval-pytorch",
        "x is [..., height * width, d]. attnpool uses logarithms: in float16 50 with p = 3 gives 50, not inf.",
        "PowerMeanPool",
    ),
    Entry(
        ("lp pooling", "p-norm pooling", "lp_pool2d"),
        "n ** (1 / p) * power_mean_pooling(abs(x), mask, p)",
        "a recipe; `n` [..., 1] is the number of real tokens",
        "`p` is the exponent. torch's `lp_pool2d` is also the root of a sum, but without abs: a negative token can make it NaN.",
    ),
)

HEADS = (
    Entry(
        ("learned query", "learned queries", "attention pooling head", "MultiHeadAttentionPool"),
        "multi_head_attention_pooling(x, mask, query=q, query_kernel=Q, key_kernel=K, value_kernel=V, out_kernel=O)",
        "Vaswani et al. 2017 (vaswani2017)",
        "`q` is [n, d] (n queries). For few queries, attnpool_flax folds the key kernel into them, and projects no "
        "tokens.",
        "MultiHeadAttentionPool",
    ),
    Entry(
        ("MAP head", "MAPHead", "SigLIP head", "multihead attention pooling"),
        "pooled = multi_head_attention_pooling(x, mask, query=probe, **maps)\n"
        'residual_feed_forward(pooled, W1, b1, W2, b2, norm_scale=s, norm_bias=t, activation="gelu_tanh")',
        "Zhai et al. 2022; Zhai et al. 2023; big_vision's `MAPHead`",
        "`probe` is the learned query. timm's default gelu is exact, not the tanh form. `attnpool_flax.load` reads a "
        "trained head.",
        "MAPHead",
    ),
    Entry(
        ("AttentionPoolLatent", "timm attention pooling"),
        "pooled = multi_head_attention_pooling(x, mask, query=latent, **maps)\n"
        'residual_feed_forward(pooled, W1, b1, W2, b2, normalize=False, activation="gelu")',
        "timm's `AttentionPoolLatent`",
        "timm normalizes before the MLP only with `norm_layer`. timm's layer fails if `embed_dim` is not `in_features`.",
    ),
    Entry(
        ("CoCa pooler", "AttentionalPooler", "CONCH"),
        "clean = layer_norm(where(mask[..., None], x, 0), s, t, epsilon=1e-5)\n"
        "multi_head_attention_pooling(clean, mask, query=layer_norm(q, u, v, epsilon=1e-5), **maps)",
        "Yu et al. 2022; open_clip's `AttentionalPooler`",
        "Padding is set to 0 before the norm, so that NaN in padding cannot reach the gradients of its parameters.",
        "AttentionalPooler",
    ),
    Entry(
        ("CLIP AttentionPool2d", "AttentionPool2d", "CLIP ResNet head", "timm AttentionPool2d"),
        "clean = where(mask[..., None], x, 0)\n"
        "tokens = concatenate([mean_pooling(clean, mask)[..., None, :], clean], -2) + position\n"
        "token_mask = concatenate([mask.any(-1, keepdims=True), mask], -1)\n"
        "multi_head_attention(tokens[..., :1, :], tokens, tokens, token_mask[..., None, :], **maps)",
        "Radford et al. 2021; openai/CLIP",
        "`position` are position embeddings. The query, also a key, is the mean of real tokens; timm can learn it instead.",
        "AttentionPool2d",
    ),
    Entry(
        ("V-JEPA probe", "attentive probe", "AttentivePooler"),
        "clean = layer_norm(where(mask[..., None], x, 0), s, t, epsilon=1e-5)\n"
        "pooled = q + multi_head_attention_pooling(clean, mask, query=q, query_kernel=Q, key_kernel=K, value_kernel=V)\n"
        'residual_feed_forward(pooled, W1, b1, W2, b2, norm_scale=u, norm_bias=v, activation="gelu", epsilon=1e-5)',
        "Bardes et al. 2024; jepa's `AttentivePooler`",
        "The checkpoint's `xattn.proj` is not applied, as in jepa's code.",
        "AttentiveProbe",
    ),
    Entry(
        ("AIM probe", "CAPI probe", "attention probe without a query projection"),
        "multi_head_attention_pooling(f(x), mask, query=q, key_kernel=K, value_kernel=V)",
        "El-Nouby et al. 2024; ml-aim; Darcet et al. 2025",
        "q is [n, H, c] (queries, heads, width of a head). f is AIM's batch norm. CAPI has key and value biases instead.",
        "AttentiveProbe",
        takes=("multi_head_attention_pooling query[n, H, c]",),
    ),
    Entry(
        ("SimPool",),
        "keys = layer_norm(where(mask[..., None], x, 0))\n"
        "multi_head_attention(mean_pooling(x, mask)[..., None, :], keys, keys, mask[..., None, :], query_kernel=Q, "
        "key_kernel=K, value_kernel=identity, out_kernel=identity)",
        "Psomas et al. 2023; billpsomas/simpool",
        "SimPool's power gamma is left out: it needs the minimum of the whole batch. `identity` are kernels that change nothing.",
    ),
    Entry(
        ("Perceiver resampler", "Flamingo resampler", "token merging (ToMe)"),
        "",
        "Alayrac et al. 2022; Bolya et al. 2023",
        "These have several layers or return a sequence. For one layer, use `multi_head_attention_pooling`.",
    ),
)

CLUSTERS = (
    Entry(
        ("NetVLAD", "VLAD"),
        "vlad_pooling(l2_normalize(x), mask, assign_kernel=W, assign_bias=b, centers=c)",
        "Arandjelović et al. 2016; pytorch-NetVlad",
        "Returns [..., K clusters, d]: reshape it for the flat vector. pytorch-NetVlad also assigns padding of zeros.",
        "VLADPool",
    ),
    Entry(
        ("GhostVLAD", "ghost clusters"),
        "vlad_pooling(l2_normalize(x), mask, assign_kernel=W, assign_bias=b, centers=c)",
        "Zhong, Arandjelović, Zisserman 2018",
        "W [d, K + G] has G more columns than there are centers [K, d]. The last G columns are the ghost clusters.",
        "VLADPool",
    ),
)
