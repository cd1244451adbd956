"""Entries of the index of names (``attnpool find``): images and video: means, heads, clusters."""

from attnpool_ref.table.names.entry import entries

MEANS = entries("""
GeM | generalized mean pooling | power mean
  call: power_mean_pooling(x, mask, p)
  source: Radenović, Tolias, Chum 2019; cnnimageretrieval-pytorch
  differs: x is [..., height * width, d]. attnpool uses logarithms: in float16 50 with p = 3 gives 50, not inf.
lp pooling | p-norm pooling | lp_pool2d
  call: n ** (1 / p) * power_mean_pooling(abs(x), mask, p)
  source: a recipe; `n` [..., 1] is the number of real tokens
  differs: `p` is the exponent. torch's `lp_pool2d` is also the root of a sum, but without abs: a negative token can
    make it NaN.
  module: none
""")

HEADS = entries("""
learned query | learned queries | attention pooling head | MultiHeadAttentionPool
  call: multi_head_attention_pooling(x, mask, query=q, query_kernel=Q, key_kernel=K, value_kernel=V, out_kernel=O)
  source: Vaswani et al. 2017 (vaswani2017)
  differs: `q` is [n, d] (n queries). For few queries, attnpool_flax folds the key kernel into them, and projects no
    tokens.
MAP head | MAPHead | SigLIP head | multihead attention pooling
  call: pooled = multi_head_attention_pooling(x, mask, query=probe, **maps)
    residual_feed_forward(pooled, W1, b1, W2, b2, norm_scale=s, norm_bias=t, activation="gelu_tanh")
  source: Zhai et al. 2022; Zhai et al. 2023; big_vision's `MAPHead`
  differs: `probe` is the learned query. timm's default gelu is exact, not the tanh form. `attnpool_flax.load` reads a
    trained head.
  module: MAPHead
AttentionPoolLatent | timm attention pooling
  call: pooled = multi_head_attention_pooling(x, mask, query=latent, **maps)
    residual_feed_forward(pooled, W1, b1, W2, b2, normalize=False, activation="gelu")
  source: timm's `AttentionPoolLatent`
  differs: timm normalizes before the MLP only with `norm_layer`. timm's layer fails if `embed_dim` is not
    `in_features`.
  module: none
CoCa pooler | AttentionalPooler | CONCH
  call: clean = layer_norm(where(mask[..., None], x, 0), s, t, epsilon=1e-5)
    multi_head_attention_pooling(clean, mask, query=layer_norm(q, u, v, epsilon=1e-5), **maps)
  source: Yu et al. 2022; open_clip's `AttentionalPooler`
  differs: Padding is set to 0 before the norm, so that NaN in padding cannot reach the gradients of its parameters.
  module: AttentionalPooler
CLIP AttentionPool2d | AttentionPool2d | CLIP ResNet head | timm AttentionPool2d
  call: clean = where(mask[..., None], x, 0)
    tokens = concatenate([mean_pooling(clean, mask)[..., None, :], clean], -2) + position
    token_mask = concatenate([mask.any(-1, keepdims=True), mask], -1)
    multi_head_attention(tokens[..., :1, :], tokens, tokens, token_mask[..., None, :], **maps)
  source: Radford et al. 2021; openai/CLIP
  differs: `position` are position embeddings. The query, also a key, is the mean of real tokens; timm can learn it
    instead.
  module: AttentionPool2d
V-JEPA probe | attentive probe | AttentivePooler
  call: clean = layer_norm(where(mask[..., None], x, 0), s, t, epsilon=1e-5)
    pooled = q + multi_head_attention_pooling(clean, mask, query=q, query_kernel=Q, key_kernel=K, value_kernel=V)
    residual_feed_forward(pooled, W1, b1, W2, b2, norm_scale=u, norm_bias=v, activation="gelu", epsilon=1e-5)
  source: Bardes et al. 2024; jepa's `AttentivePooler`
  differs: The checkpoint's `xattn.proj` is not applied, as in jepa's code.
  module: AttentiveProbe
AIM probe | CAPI probe | attention probe without a query projection
  call: multi_head_attention_pooling(f(x), mask, query=q, key_kernel=K, value_kernel=V)
  source: El-Nouby et al. 2024; ml-aim; Darcet et al. 2025
  differs: q is [n, H, c] (queries, heads, width of a head). f is AIM's batch norm. CAPI has key and value biases
    instead.
  module: AttentiveProbe
  takes: multi_head_attention_pooling query[n, H, c]
SimPool
  call: keys = layer_norm(where(mask[..., None], x, 0))
    multi_head_attention(mean_pooling(x, mask)[..., None, :], keys, keys, mask[..., None, :], query_kernel=Q,
    key_kernel=K, value_kernel=identity, out_kernel=identity)
  source: Psomas et al. 2023; billpsomas/simpool
  differs: SimPool's power gamma is left out: it needs the minimum of the whole batch. `identity` are kernels that
    change nothing.
  module: none
Perceiver resampler | Flamingo resampler | token merging (ToMe)
  source: Alayrac et al. 2022; Bolya et al. 2023
  differs: These have several layers or return a sequence. For one layer, use `multi_head_attention_pooling`.
""")

CLUSTERS = entries("""
NetVLAD | VLAD
  call: vlad_pooling(l2_normalize(x), mask, assign_kernel=W, assign_bias=b, centers=c)
  source: Arandjelović et al. 2016; pytorch-NetVlad
  differs: Returns [..., K clusters, d]: reshape it for the flat vector. pytorch-NetVlad also assigns padding of zeros.
GhostVLAD | ghost clusters
  call: vlad_pooling(l2_normalize(x), mask, assign_kernel=W, assign_bias=b, centers=c)
  source: Zhong, Arandjelović, Zisserman 2018
  differs: W [d, K + G] has G more columns than there are centers [K, d]. The last G columns are the ghost clusters.
""")
