"""Entries of the index of names (``attnpool find``): attention, its scores and its normalizers."""

from attnpool_ref.table.names.entry import entries

ATTENTION = entries("""
scaled dot-product attention | SDPA | F.scaled_dot_product_attention | jax.nn.dot_product_attention
  call: dot_product_attention(q, k, v, mask[..., None, :])
  source: Vaswani et al. 2017 (vaswani2017)
  differs: A query without a real key gives 0. For such a query, JAX and Flax return the mean of all values.
attn_mask | key_padding_mask | mask of several heads
  call: multi_head_attention(q, k, v, ~attn_mask & ~padding[..., None, :], **maps)
  source: PyTorch's nn.MultiheadAttention
  differs: In this layer True hides a key; F.scaled_dot_product_attention is as attnpool. [B * H, n, m]: `reshape(B, H,
    n, m)`.
multiple queries | several queries | one head with several queries
  call: dot_product_attention(q, x, x, mask[..., None, :])
  source: Vaswani et al. 2017 (vaswani2017)
  differs: q [n, d] gives [..., n, d]; `attention_pooling` has one query. With heads: `multi_head_attention_pooling`.
multi-head attention | nn.MultiheadAttention | MultiHeadDotProductAttention
  call: multi_head_attention(q, k, v, ~padding[..., None, :], query_kernel=Q, key_kernel=K, value_kernel=V,
    out_kernel=O)
  source: Vaswani et al. 2017 (vaswani2017)
  differs: `padding` is torch's `key_padding_mask`. Flax's shapes: Q, K, V [width, heads, head width], O [heads, head
    width, out width].
causal attention | self-attention
  call: multi_head_attention(x, x, x, mask[..., None, :] & tril, query_kernel=Q, key_kernel=K, value_kernel=V,
    out_kernel=O)
  source: Vaswani et al. 2017 (vaswani2017)
  differs: `tril` [L, L] is True on and below the diagonal. With left padding, padding sees no key, and gives 0 plus any
    output bias.
Bahdanau attention | additive attention | concat attention of seq2seq
  call: additive_attention(q, k, v, W_q, W_k, w, mask[..., None, :])
  source: Bahdanau, Cho, Bengio 2015 (bahdanau2015)
  differs: It is d2l's `AdditiveAttention` without dropout. `additive_score` computes only the scores.
additive score
  call: attend(additive_score(q, k, W_q, W_k, w), v, mask[..., None, :])
  source: Bahdanau, Cho, Bengio 2015 (bahdanau2015)
  differs: `additive_attention` does the same in one call. In JAX neither has the hidden layer of all pairs [..., n, m,
    h].
Luong attention | multiplicative attention | Luong general | bilinear attention
  call: attend(bilinear_score(q, k, W), v, mask[..., None, :])
  source: Luong, Pham, Manning 2015 (luong2015)
  differs: W [d, e] (widths of q and k) is the paper's W_a; a torch layer that maps q to width e has its transpose as
    weight.
Luong dot | dot-product attention without a scale
  call: attend(dot_score(q, k), v, mask[..., None, :])
  source: Luong, Pham, Manning 2015 (luong2015)
  differs: `scaled_dot_score` is the same score, divided by sqrt(d).
scaled dot-product score | soft cap | logit cap
  call: attend(cap * tanh(scaled_dot_score(q, k) / cap), v, mask[..., None, :])
  source: Vaswani et al. 2017 (vaswani2017); ONNX's softcap
  differs: `cap` is a positive number. Without a cap, write `dot_product_attention`.
Luong concat
  call: attend(concat_score(q, k, W, w), v, mask[..., None, :])
  source: Luong, Pham, Manning 2015 (luong2015)
  differs: W [d+e, h] has the query's rows first and is the transpose of a torch layer's weight; w [h] is the paper's
    v_a.
trilinear score | BiDAF similarity
  call: attend(trilinear_score(q, k, w), v, mask[..., None, :])
  source: Seo et al. 2017 (seo2017)
  differs: q is BiDAF's context, k its query. w [3d] has the parts for q, k and q * k; their concatenation is never
    computed.
cosine attention | content-based addressing | NTM attention
  call: attend(sharpness * cosine_score(q, k), v, mask[..., None, :])
  source: Graves, Wayne, Danihelka 2014; Wang et al. 2016 (wang2016)
  differs: `sharpness` is a positive number. A zero vector has cosine 0, with a finite gradient.
Attn class | location-based attention
  call: location_attention(q, state, v, W, b, W_o, b_o, mask)
  source: Luong, Pham, Manning 2015 (luong2015); PyTorch's translation tutorial
  differs: Scores depend on a query and its `state` [n, e], not on the values. W [d+e, m] has one column for each of m
    positions.
location score | Luong location
  call: attend(location_score(q, state, W), v, mask[..., None, :])
  source: Luong, Pham, Manning 2015 (luong2015)
  differs: Luong's scores depend only on the query. For them, set the rows of W for the state to 0.
tanh sum attention
  call: tanh_sum_attention(q, k, v, W, mask[..., None, :])
  source: Bahdanau, Cho, Bengio 2015 (bahdanau2015), with ones for v
  differs: Scores are sums of the hidden layer, without learned weights v. `tanh_sum_score` computes only the scores.
tanh sum score
  call: attend(tanh_sum_score(q, k, W), v, mask[..., None, :])
  source: Bahdanau, Cho, Bengio 2015 (bahdanau2015), with ones for v
  differs: `tanh_sum_attention` does the same in one call. In JAX neither has the hidden layer of all pairs [..., n, m,
    h].
Nadaraya-Watson | kernel regression | attention pooling by similarity
  call: kernel_regression(q, k, v, mask[..., None, :])
  source: Zhang et al., Dive into Deep Learning (d2l)
  differs: The default `kernel=` is Gaussian. If no key is in the kernel's range, the result is 0.
Gaussian attention | RBF attention | Gaussian score
  call: attend(gaussian_score(q, k, bandwidth=1.0), v, mask[..., None, :])
  source: Zhang et al., Dive into Deep Learning (d2l)
  differs: The result equals `kernel_regression` with the Gaussian kernel.
d2l DotProductAttention | valid_lens
  call: dot_product_attention(q, k, v, lengths=valid_lens)
  source: Zhang et al., Dive into Deep Learning (d2l)
  differs: Lengths are [B] or [B, n queries], as in d2l. A length of 0 gives 0, not the mean.
attention pooling | attn | attn pooling | attention with a learned query | 注意力池化
  call: attention_pooling(x, mask, q)
  source: Raffel, Ellis 2016, with a dot product as the score
  differs: Scores are divided by sqrt(d) unless you pass `scale`. A fully masked row gives 0.
attention weights | attn weights | heat map | attention map | 注意力权重 | 权重
  call: pooled, weights = attention_pooling(x, mask, q, return_weights=True)
  source: `attnpool_ref.plot`; d2l's show_heatmaps (d2l)
  differs: `attnpool_ref.plot.show_weights` draws the weights over tokens, and `show_heatmaps` draws matrices.
Hopfield pooling | HopfieldPooling | modern Hopfield network
  call: attention_pooling(x, mask, q, scale=beta)
  source: Ramsauer et al. 2021
  differs: One step, without norms and projections. For a second, pass the result as query, and a key kernel also as
    `query_kernel`.
attention dropout | dropout | attn_drop
  call: attend(scores, value, mask, dropout_multiplier=kept / (1 - rate))
  source: a recipe; torch's `dropout_p`
  differs: You draw `kept`, such as `rng.random(scores.shape) >= rate`. Modules of attention have a `dropout_rate`.
mean query | attention pooling without parameters | self-weighted mean
  call: attention_pooling(x, mask)
  source: attnpool
  differs: The query is the masked mean of each sequence, so no parameter is learned.
""")

NORMALIZERS = entries("""
masked softmax | additive mask | masked_fill(-1e9)
  call: masked_softmax(scores, mask)
  source: every library's `softmax(scores + mask)`
  differs: The weights of a fully masked row are 0, not uniform and not NaN.
d2l masked_softmax
  call: masked_softmax(scores, lengths=valid_lens)
  source: Zhang et al., Dive into Deep Learning (d2l)
  differs: A length of 0 gives weights of 0. In d2l they are uniform.
log softmax | masked log softmax | F.log_softmax | log weights | entropy of attention weights
  call: masked_log_softmax(scores, mask)
  source: ONNX's `LogSoftmax`; F.log_softmax; jax.nn.log_softmax
  differs: It is -inf, with gradient 0, at padding and in a fully masked row. [recipes.md](recipes.md) has the entropy.
missing values | per-feature mask | mask for each feature | nanmean
  call: mean_pooling(swapaxes(x, -1, -2)[..., None], swapaxes(mask, -1, -2))[..., 0]
  source: a recipe; [masks.md](masks.md#a-mask-for-each-feature-or-for-each-speaker)
  differs: `mask` is [..., L, d], such as `~isnan(x)`. Each feature becomes a sequence of its own. Other poolings work
    too.
ONNX | ONNX export | jax.export | TorchScript
  source: [deploying.md](deploying.md#onnx-runtime)
  differs: `examples/export_onnx.py` exports by jax2onnx; `jax.export` makes StableHLO for any batch and length. Both
    are tested.
sequence_mask | lengths to mask | attention mask of lengths
  call: lengths_to_mask(lengths, L)
  source: Zhang et al., Dive into Deep Learning (d2l); tf.sequence_mask
  differs: The mask is [..., L]. A length above L is an error; in a JAX array it is clipped to L. `side="left"` is for
    left padding.
sparsemax
  call: sparsemax(scores, mask)
  source: Martins, Astudillo 2016 (martins2016); entmax
  differs: Unlike the package entmax, it takes a mask. Weights are 0 at padding and for scores up to a threshold.
entmax | entmax15 | 1.5-entmax
  call: entmax15(scores, mask)
  source: Peters, Niculae, Martins 2019 (peters2019); entmax
  differs: Unlike the package entmax, it takes a mask. A fully masked row gives 0.
alpha-entmax | entmax_bisect
  call: entmax(scores, mask, alpha=1.3)
  source: Peters, Niculae, Martins 2019 (peters2019); entmax
  differs: Unlike the package entmax, it takes a mask. alpha = 1, 1.5 and 2 are softmax, entmax15 and sparsemax.
sigmoid attention
  call: masked_sigmoid(scores, mask)
  source: Ramapuram et al. 2025
  differs: Weights need not sum to 1, except with `normalize=True`. The paper adds a bias, -log n for n keys, to the
    scores.
hardmax | hard attention | ONNX Hardmax
  call: hardmax(scores, mask)
  source: ONNX's `Hardmax`
  differs: The first of tied scores has the weight 1. The gradient is 0.
top-k attention | sparse top-k softmax | topk attention of x-transformers
  call: top_k_softmax(scores, mask, k=8)
  source: Shazeer et al. 2017; Gupta et al. 2021; x-transformers
  differs: All scores that equal the k-th largest have weights, so there may be more than k.
Gumbel softmax | straight-through
  call: gumbel_softmax(scores, mask, noise, temperature=0.5, hard=True)
  source: Jang, Gu, Poole 2017; F.gumbel_softmax
  differs: You draw the noise, such as `rng.gumbel(size=scores.shape)`. torch draws it inside the function.
your own normalizer | custom softmax | normalizer
  call: attend(scores, v, mask[..., None, :], normalizer=f)
  source: attnpool
  differs: f(scores, mask) returns weights. Names work, too: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax".
  takes: attend normalizer=sigmoid
l2 normalize | F.normalize | unit vectors
  call: l2_normalize(x)
  source: Wang et al. 2022 (wang2022)
  differs: A zero vector stays 0, with gradient 0. Norms of 1e-30 and 1e30 neither underflow nor overflow.
layer norm | LayerNorm
  call: layer_norm(x, s, b, epsilon=1e-6)
  source: Ba, Kiros, Hinton 2016
  differs: The default epsilon is 1e-6, as in Flax. torch's is 1e-5.
feed-forward block | MLP block of a pooling head | GEGLU
  call: residual_feed_forward(x, W1, b1, W2, b2, norm_scale=s, norm_bias=t, activation="gelu")
  source: Vaswani et al. 2017 (vaswani2017); Shazeer 2020
  differs: "gelu" is exact. Flax's default is the approximation "gelu_tanh".
""")
