"""Names for images and video: generalized means, heads with a learned query, clusters."""

from attnpool_ref.table.names.entry import Entry

MEANS = (
    Entry(
        ("GeM", "generalised mean pooling", "power mean"),
        "power_mean_pooling(x, mask, p)",
        "Radenović, Tolias, Chum 2019; cnnimageretrieval-pytorch",
        "x is [..., height * width, d]; computed in logarithms, so 50 in float16 with p = 3 is 50, not inf.",
        "PowerMeanPool",
    ),
    Entry(
        ("lp pooling", "p-norm pooling", "lp_pool2d"),
        "n ** (1 / p) * power_mean_pooling(abs(x), mask, p)",
        "a recipe; `n` [..., 1] is the number of real tokens",
        "torch's `lp_pool2d` is this sum, not the mean, and NaN where the sum is negative.",
    ),
)

HEADS = (
    Entry(
        ("learned query", "learned queries", "attention pooling head", "MultiHeadAttentionPool"),
        "multi_head_attention_pooling(x, mask, query=q, query_kernel=Q, key_kernel=K, value_kernel=V, out_kernel=O)",
        "Vaswani et al. 2017 (vaswani2017)",
        "In JAX the query is multiplied into the kernels first, so no token gets a key or a value.",
        "MultiHeadAttentionPool",
    ),
    Entry(
        ("MAP head", "MAPHead", "SigLIP head", "multihead attention pooling"),
        "pooled = multi_head_attention_pooling(x, mask, query=probe, **maps)\n"
        'residual_feed_forward(pooled, W1, b1, W2, b2, norm_scale=s, norm_bias=t, activation="gelu_tanh")',
        "Zhai et al. 2022; Zhai et al. 2023; big_vision's `MAPHead`",
        "gelu is approximated by tanh in big_vision, and exact in timm. `attnpool_flax.load` reads a trained head.",
        "MAPHead",
    ),
    Entry(
        ("AttentionPoolLatent", "timm attention pooling"),
        "pooled = multi_head_attention_pooling(x, mask, query=latent, **maps)\n"
        'residual_feed_forward(pooled, W1, b1, W2, b2, normalize=False, activation="gelu")',
        "timm's `AttentionPoolLatent`",
        "There is a norm before the MLP only with norm_layer. timm fails if embed_dim is not in_features.",
    ),
    Entry(
        ("CoCa pooler", "AttentionalPooler", "CONCH"),
        "clean = layer_norm(where(mask[..., None], x, 0), s, t, epsilon=1e-5)\n"
        "multi_head_attention_pooling(clean, mask, query=layer_norm(q, u, v, epsilon=1e-5), **maps)",
        "Yu et al. 2022; open_clip's `AttentionalPooler`",
        "Padding is set to 0 before the norm. Otherwise NaN in it would reach the gradients of the norm's parameters.",
        "AttentionalPooler",
    ),
    Entry(
        ("CLIP AttentionPool2d", "AttentionPool2d", "CLIP ResNet head", "timm AttentionPool2d"),
        "clean = where(mask[..., None], x, 0)\n"
        "tokens = concatenate([mean_pooling(clean, mask)[..., None, :], clean], -2) + position\n"
        "token_mask = concatenate([mask.any(-1, keepdims=True), mask], -1)\n"
        "multi_head_attention(tokens[..., :1, :], tokens, tokens, token_mask[..., None, :], **maps)",
        "Radford et al. 2021; openai/CLIP",
        "The query is the mean of the real tokens, and also a key. timm can have a learned one (`use_class_token`).",
        "AttentionPool2d",
    ),
    Entry(
        ("V-JEPA probe", "attentive probe", "AttentivePooler"),
        "clean = layer_norm(where(mask[..., None], x, 0), s, t, epsilon=1e-5)\n"
        "pooled = q + multi_head_attention_pooling(clean, mask, query=q, query_kernel=Q, key_kernel=K, value_kernel=V)\n"
        'residual_feed_forward(pooled, W1, b1, W2, b2, norm_scale=u, norm_bias=v, activation="gelu", epsilon=1e-5)',
        "Bardes et al. 2024; jepa's `AttentivePooler`",
        "The checkpoint's xattn.proj is never applied, neither by V-JEPA nor here.",
        "AttentiveProbe",
    ),
    Entry(
        ("AIM probe", "CAPI probe", "attention probe without a query projection"),
        "multi_head_attention_pooling(f(x), mask, query=q, key_kernel=K, value_kernel=V)",
        "El-Nouby et al. 2024; ml-aim; Darcet et al. 2025",
        "q is [n, H, c]. f is AIM's batch norm with stored statistics. CAPI has no norm, but biases of keys and values.",
        "AttentiveProbe",
        takes=("multi_head_attention_pooling query[n, H, c]",),
    ),
    Entry(
        ("SimPool",),
        "keys = layer_norm(where(mask[..., None], x, 0))\n"
        "multi_head_attention(mean_pooling(x, mask)[..., None, :], keys, keys, mask[..., None, :], query_kernel=Q, "
        "key_kernel=K, value_kernel=identity, out_kernel=identity)",
        "Psomas et al. 2023; billpsomas/simpool",
        "Without the power gamma, for which the authors' code subtracts the minimum over the whole batch.",
    ),
    Entry(
        ("Perceiver resampler", "Flamingo resampler", "token merging (ToMe)"),
        "",
        "Alayrac et al. 2022; Bolya et al. 2023",
        "It has several layers, or returns a sequence. One layer is `multi_head_attention_pooling`.",
    ),
)

CLUSTERS = (
    Entry(
        ("NetVLAD", "VLAD"),
        "vlad_pooling(l2_normalize(x), mask, assign_kernel=W, assign_bias=b, centers=c)",
        "Arandjelović et al. 2016; pytorch-NetVlad",
        "Returns [..., K, d]: reshape for a flat vector. In pytorch-NetVlad zero padding subtracts parts of centers.",
        "VLADPool",
    ),
    Entry(
        ("GhostVLAD", "ghost clusters"),
        "vlad_pooling(l2_normalize(x), mask, assign_kernel=W, assign_bias=b, centers=c)",
        "Zhong, Arandjelović, Zisserman 2018",
        "W [d, K + G] has more columns than there are centers [K, d]: the last G are the ghosts.",
        "VLADPool",
    ),
)
