"""Entries of the index of names (``attnpool find``): attention, its scores and its normalizers."""

from attnpool_ref.table.names.entry import Entry

ATTENTION = (
    Entry(
        ("scaled dot-product attention", "SDPA", "F.scaled_dot_product_attention", "jax.nn.dot_product_attention"),
        "dot_product_attention(q, k, v, mask[..., None, :])",
        "Vaswani et al. 2017 (vaswani2017)",
        "A query without a real key gives 0. For such a query, JAX and Flax return the mean of all values.",
    ),
    Entry(
        ("attn_mask", "key_padding_mask", "mask of several heads"),
        "multi_head_attention(q, k, v, ~attn_mask & ~padding[..., None, :], **maps)",
        "PyTorch's nn.MultiheadAttention",
        "In this layer True hides a key; F.scaled_dot_product_attention is as attnpool. [B * H, n, m]: `reshape(B, H, n, m)`.",
        "MultiHeadAttention",
    ),
    Entry(
        ("multiple queries", "several queries", "one head with several queries"),
        "dot_product_attention(q, x, x, mask[..., None, :])",
        "Vaswani et al. 2017 (vaswani2017)",
        "q [n, d] gives [..., n, d]; `attention_pooling` has one query. With heads: `multi_head_attention_pooling`.",
    ),
    Entry(
        ("multi-head attention", "nn.MultiheadAttention", "MultiHeadDotProductAttention"),
        "multi_head_attention(q, k, v, ~padding[..., None, :], query_kernel=Q, key_kernel=K, value_kernel=V, "
        "out_kernel=O)",
        "Vaswani et al. 2017 (vaswani2017)",
        "`padding` is torch's `key_padding_mask`. Flax's shapes: Q, K, V [width, heads, head width], O [heads, head "
        "width, out width].",
        "MultiHeadAttention",
    ),
    Entry(
        ("causal attention", "self-attention"),
        "multi_head_attention(x, x, x, mask[..., None, :] & tril, query_kernel=Q, key_kernel=K, value_kernel=V, "
        "out_kernel=O)",
        "Vaswani et al. 2017 (vaswani2017)",
        "`tril` [L, L] is True on and below the diagonal. With left padding, padding sees no key, and gives 0 plus "
        "any output bias.",
        "MultiHeadAttention",
    ),
    Entry(
        ("Bahdanau attention", "additive attention", "concat attention of seq2seq"),
        "additive_attention(q, k, v, W_q, W_k, w, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015)",
        "It is d2l's `AdditiveAttention` without dropout. `additive_score` computes only the scores.",
        "AdditiveAttention",
    ),
    Entry(
        ("additive score",),
        "attend(additive_score(q, k, W_q, W_k, w), v, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015)",
        "`additive_attention` does the same in one call. In JAX neither has the hidden layer of all pairs [..., n, m, h].",
        "AdditiveScore",
    ),
    Entry(
        ("Luong attention", "multiplicative attention", "Luong general", "bilinear attention"),
        "attend(bilinear_score(q, k, W), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "W [d, e] (widths of q and k) is the paper's W_a; a torch layer that maps q to width e has its transpose as weight.",
        "BilinearScore",
    ),
    Entry(
        ("Luong dot", "dot-product attention without a scale"),
        "attend(dot_score(q, k), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "`scaled_dot_score` is the same score, divided by sqrt(d).",
    ),
    Entry(
        ("scaled dot-product score", "soft cap", "logit cap"),
        "attend(cap * tanh(scaled_dot_score(q, k) / cap), v, mask[..., None, :])",
        "Vaswani et al. 2017 (vaswani2017); ONNX's softcap",
        "`cap` is a positive number. Without a cap, write `dot_product_attention`.",
    ),
    Entry(
        ("Luong concat",),
        "attend(concat_score(q, k, W, w), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "W [d+e, h] has the query's rows first and is the transpose of a torch layer's weight; w [h] is the paper's v_a.",
        "ConcatScore",
    ),
    Entry(
        ("trilinear score", "BiDAF similarity"),
        "attend(trilinear_score(q, k, w), v, mask[..., None, :])",
        "Seo et al. 2017 (seo2017)",
        "q is BiDAF's context, k its query. w [3d] has the parts for q, k and q * k; their concatenation is never computed.",
        "TrilinearScore",
    ),
    Entry(
        ("cosine attention", "content-based addressing", "NTM attention"),
        "attend(sharpness * cosine_score(q, k), v, mask[..., None, :])",
        "Graves, Wayne, Danihelka 2014; Wang et al. 2016 (wang2016)",
        "`sharpness` is a positive number. A zero vector has cosine 0, with a finite gradient.",
    ),
    Entry(
        ("Attn class", "location-based attention"),
        "location_attention(q, state, v, W, b, W_o, b_o, mask)",
        "Luong, Pham, Manning 2015 (luong2015); PyTorch's translation tutorial",
        "Scores depend on a query and its `state` [n, e], not on the values. W [d+e, m] has one column for each of m positions.",
        "LocationAttention",
    ),
    Entry(
        ("location score", "Luong location"),
        "attend(location_score(q, state, W), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "Luong's scores depend only on the query. For them, set the rows of W for the state to 0.",
        "LocationScore",
    ),
    Entry(
        ("tanh sum attention",),
        "tanh_sum_attention(q, k, v, W, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015), with ones for v",
        "Scores are sums of the hidden layer, without learned weights v. `tanh_sum_score` computes only the scores.",
        "TanhSumAttention",
    ),
    Entry(
        ("tanh sum score",),
        "attend(tanh_sum_score(q, k, W), v, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015), with ones for v",
        "`tanh_sum_attention` does the same in one call. In JAX neither has the hidden layer of all pairs [..., n, m, h].",
        "TanhSumScore",
    ),
    Entry(
        ("Nadaraya-Watson", "kernel regression", "attention pooling by similarity"),
        "kernel_regression(q, k, v, mask[..., None, :])",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "The default `kernel=` is Gaussian. If no key is in the kernel's range, the result is 0.",
    ),
    Entry(
        ("Gaussian attention", "RBF attention", "Gaussian score"),
        "attend(gaussian_score(q, k, bandwidth=1.0), v, mask[..., None, :])",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "The result equals `kernel_regression` with the Gaussian kernel.",
    ),
    Entry(
        ("d2l DotProductAttention", "valid_lens"),
        "dot_product_attention(q, k, v, lengths=valid_lens)",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "Lengths are [B] or [B, n queries], as in d2l. A length of 0 gives 0, not the mean.",
    ),
    Entry(
        ("attention pooling", "attn", "attn pooling", "attention with a learned query", "注意力池化"),
        "attention_pooling(x, mask, q)",
        "Raffel, Ellis 2016, with a dot product as the score",
        "Scores are divided by sqrt(d) unless you pass `scale`. A fully masked row gives 0.",
        "AttentionPool",
    ),
    Entry(
        ("attention weights", "attn weights", "heat map", "attention map", "注意力权重", "权重"),
        "pooled, weights = attention_pooling(x, mask, q, return_weights=True)",
        "`attnpool_ref.plot`; d2l's show_heatmaps (d2l)",
        "`attnpool_ref.plot.show_weights` draws the weights over tokens, and `show_heatmaps` draws matrices.",
        "AttentionPool",
    ),
    Entry(
        ("Hopfield pooling", "HopfieldPooling", "modern Hopfield network"),
        "attention_pooling(x, mask, q, scale=beta)",
        "Ramsauer et al. 2021",
        "One step, without norms and projections. For a second, pass the result as query, and a key kernel also as "
        "`query_kernel`.",
        "AttentionPool",
    ),
    Entry(
        ("attention dropout", "dropout", "attn_drop"),
        "attend(scores, value, mask, dropout_multiplier=kept / (1 - rate))",
        "a recipe; torch's `dropout_p`",
        "You draw `kept`, such as `rng.random(scores.shape) >= rate`. Modules of attention have a `dropout_rate`.",
    ),
    Entry(
        ("mean query", "attention pooling without parameters", "self-weighted mean"),
        "attention_pooling(x, mask)",
        "attnpool",
        "The query is the masked mean of each sequence, so no parameter is learned.",
        "AttentionPool",
    ),
)

NORMALIZERS = (
    Entry(
        ("masked softmax", "additive mask", "masked_fill(-1e9)"),
        "masked_softmax(scores, mask)",
        "every library's `softmax(scores + mask)`",
        "The weights of a fully masked row are 0, not uniform and not NaN.",
    ),
    Entry(
        ("d2l masked_softmax",),
        "masked_softmax(scores, lengths=valid_lens)",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "A length of 0 gives weights of 0. In d2l they are uniform.",
    ),
    Entry(
        ("log softmax", "masked log softmax", "F.log_softmax", "log weights", "entropy of attention weights"),
        "masked_log_softmax(scores, mask)",
        "ONNX's `LogSoftmax`; F.log_softmax; jax.nn.log_softmax",
        "It is -inf, with gradient 0, at padding and in a fully masked row. [recipes.md](recipes.md) has the entropy.",
    ),
    Entry(
        ("missing values", "per-feature mask", "mask for each feature", "nanmean"),
        "mean_pooling(swapaxes(x, -1, -2)[..., None], swapaxes(mask, -1, -2))[..., 0]",
        "a recipe; [masks.md](masks.md#a-mask-for-each-feature-or-for-each-speaker)",
        "`mask` is [..., L, d], such as `~isnan(x)`. Each feature becomes a sequence of its own. Other poolings work too.",
    ),
    Entry(
        ("ONNX", "ONNX export", "jax.export", "TorchScript"),
        "",
        "[deploying.md](deploying.md#onnx-runtime)",
        "`examples/export_onnx.py` exports by jax2onnx; `jax.export` makes StableHLO for any batch and length. Both are tested.",
    ),
    Entry(
        ("sequence_mask", "lengths to mask", "attention mask of lengths"),
        "lengths_to_mask(lengths, L)",
        "Zhang et al., Dive into Deep Learning (d2l); tf.sequence_mask",
        'The mask is [..., L]. A length above L is an error; in a JAX array it is clipped to L. `side="left"` is for '
        "left padding.",
    ),
    Entry(
        ("sparsemax",),
        "sparsemax(scores, mask)",
        "Martins, Astudillo 2016 (martins2016); entmax",
        "Unlike the package entmax, it takes a mask. Weights are 0 at padding and for scores up to a threshold.",
    ),
    Entry(
        ("entmax", "entmax15", "1.5-entmax"),
        "entmax15(scores, mask)",
        "Peters, Niculae, Martins 2019 (peters2019); entmax",
        "Unlike the package entmax, it takes a mask. A fully masked row gives 0.",
    ),
    Entry(
        ("alpha-entmax", "entmax_bisect"),
        "entmax(scores, mask, alpha=1.3)",
        "Peters, Niculae, Martins 2019 (peters2019); entmax",
        "Unlike the package entmax, it takes a mask. alpha = 1, 1.5 and 2 are softmax, entmax15 and sparsemax.",
    ),
    Entry(
        ("sigmoid attention",),
        "masked_sigmoid(scores, mask)",
        "Ramapuram et al. 2025",
        "Weights need not sum to 1, except with `normalize=True`. The paper adds a bias, -log n for n keys, to the scores.",
    ),
    Entry(
        ("hardmax", "hard attention", "ONNX Hardmax"),
        "hardmax(scores, mask)",
        "ONNX's `Hardmax`",
        "The first of tied scores has the weight 1. The gradient is 0.",
    ),
    Entry(
        ("top-k attention", "sparse top-k softmax", "topk attention of x-transformers"),
        "top_k_softmax(scores, mask, k=8)",
        "Shazeer et al. 2017; Gupta et al. 2021; x-transformers",
        "All scores that equal the k-th largest have weights, so there may be more than k.",
    ),
    Entry(
        ("Gumbel softmax", "straight-through"),
        "gumbel_softmax(scores, mask, noise, temperature=0.5, hard=True)",
        "Jang, Gu, Poole 2017; F.gumbel_softmax",
        "You draw the noise, such as `rng.gumbel(size=scores.shape)`. torch draws it inside the function.",
    ),
    Entry(
        ("your own normalizer", "custom softmax", "normalizer"),
        "attend(scores, v, mask[..., None, :], normalizer=f)",
        "attnpool",
        'f(scores, mask) returns weights. Names work, too: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax".',
        takes=("attend normalizer=sigmoid",),
    ),
    Entry(
        ("l2 normalize", "F.normalize", "unit vectors"),
        "l2_normalize(x)",
        "Wang et al. 2022 (wang2022)",
        "A zero vector stays 0, with gradient 0. Norms of 1e-30 and 1e30 neither underflow nor overflow.",
    ),
    Entry(
        ("layer norm", "LayerNorm"),
        "layer_norm(x, s, b, epsilon=1e-6)",
        "Ba, Kiros, Hinton 2016",
        "The default epsilon is 1e-6, as in Flax. torch's is 1e-5.",
    ),
    Entry(
        ("feed-forward block", "MLP block of a pooling head", "GEGLU"),
        'residual_feed_forward(x, W1, b1, W2, b2, norm_scale=s, norm_bias=t, activation="gelu")',
        "Vaswani et al. 2017 (vaswani2017); Shazeer 2020",
        '"gelu" is exact. Flax\'s default is the approximation "gelu_tanh".',
    ),
)
