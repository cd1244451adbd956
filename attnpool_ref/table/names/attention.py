"""Attention, its scores and its normalisers."""

from attnpool_ref.table.names.entry import Entry

ATTENTION = (
    Entry(
        ("scaled dot-product attention", "SDPA", "F.scaled_dot_product_attention", "jax.nn.dot_product_attention"),
        "dot_product_attention(q, k, v, mask[..., None, :])",
        "Vaswani et al. 2017 (vaswani2017)",
        "A query without a real key gives 0, where JAX and Flax average what is masked.",
    ),
    Entry(
        ("multi-head attention", "nn.MultiheadAttention", "MultiHeadDotProductAttention"),
        "multi_head_attention(q, k, v, ~padding[..., None, :], query_kernel=Q, key_kernel=K, value_kernel=V, "
        "out_kernel=O)",
        "Vaswani et al. 2017 (vaswani2017)",
        "torch's key_padding_mask is True at padding. Kernels have Flax's layout.",
        "MultiHeadAttention",
    ),
    Entry(
        ("causal attention", "self-attention"),
        "multi_head_attention(x, x, x, mask[..., None, :] & tril, query_kernel=Q, key_kernel=K, value_kernel=V, "
        "out_kernel=O)",
        "Vaswani et al. 2017 (vaswani2017)",
        "With left padding, the first tokens see no key: their result is the output bias.",
        "MultiHeadAttention",
    ),
    Entry(
        ("Bahdanau attention", "additive attention", "concat attention of seq2seq"),
        "additive_attention(q, k, v, W_q, W_k, w, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015)",
        "As d2l's AdditiveAttention, without its dropout. `additive_score` computes only the scores.",
        "AdditiveAttention",
    ),
    Entry(
        ("additive score",),
        "attend(additive_score(q, k, W_q, W_k, w), v, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015)",
        "In JAX `additive_attention` never holds the hidden layer of all pairs at once.",
        "AdditiveScore",
    ),
    Entry(
        ("Luong attention", "multiplicative attention", "Luong general", "bilinear attention"),
        "attend(bilinear_score(q, k, W), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "W is [d, e], the transpose of a torch layer's weight.",
        "BilinearScore",
    ),
    Entry(
        ("Luong dot", "dot-product attention without a scale"),
        "attend(dot_score(q, k), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "With the scale it is `scaled_dot_score`.",
    ),
    Entry(
        ("scaled dot-product score", "soft cap", "logit cap"),
        "attend(cap * tanh(scaled_dot_score(q, k) / cap), v, mask[..., None, :])",
        "Vaswani et al. 2017 (vaswani2017); ONNX's softcap",
        "Without the cap it is `dot_product_attention`.",
    ),
    Entry(
        ("Luong concat",),
        "attend(concat_score(q, k, W, w), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "One kernel over [query; key].",
        "ConcatScore",
    ),
    Entry(
        ("trilinear score", "BiDAF similarity"),
        "attend(trilinear_score(q, k, w), v, mask[..., None, :])",
        "Seo et al. 2017 (seo2017)",
        "The concatenation [q; k; q * k] is never made.",
        "TrilinearScore",
    ),
    Entry(
        ("cosine attention", "content-based addressing", "NTM attention"),
        "attend(sharpness * cosine_score(q, k), v, mask[..., None, :])",
        "Graves, Wayne, Danihelka 2014; Wang et al. 2016 (wang2016)",
        "A zero vector has cosine 0, with a finite gradient.",
    ),
    Entry(
        ("Attn class", "location-based attention"),
        "location_attention(q, state, v, W, b, W_o, b_o, mask)",
        "Luong, Pham, Manning 2015 (luong2015); PyTorch's translation tutorial",
        "Scores depend on the position and the query, not on the values. Luong's score is `location_score`.",
        "LocationAttention",
    ),
    Entry(
        ("location score", "Luong location"),
        "attend(location_score(q, state, W), v, mask[..., None, :])",
        "Luong, Pham, Manning 2015 (luong2015)",
        "Luong's scores depend on the query only: set the rows of W for the state to 0.",
        "LocationScore",
    ),
    Entry(
        ("tanh sum attention",),
        "tanh_sum_attention(q, k, v, W, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015), with ones for v",
        "Scores are unweighted sums of the hidden layer. `tanh_sum_score` computes only the scores.",
        "TanhSumAttention",
    ),
    Entry(
        ("tanh sum score",),
        "attend(tanh_sum_score(q, k, W), v, mask[..., None, :])",
        "Bahdanau, Cho, Bengio 2015 (bahdanau2015), with ones for v",
        "In JAX `tanh_sum_attention` never holds the hidden layer of all pairs at once.",
        "TanhSumScore",
    ),
    Entry(
        ("Nadaraya-Watson", "kernel regression", "attention pooling by similarity"),
        "kernel_regression(q, k, v, mask[..., None, :])",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "Gaussian by default (`kernel=`). Where no key is in range, the result is 0.",
    ),
    Entry(
        ("Gaussian attention", "RBF attention", "Gaussian score"),
        "attend(gaussian_score(q, k, bandwidth=1.0), v, mask[..., None, :])",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "The same as `kernel_regression` with its Gaussian.",
    ),
    Entry(
        ("d2l DotProductAttention", "valid_lens"),
        "dot_product_attention(q, k, v, lengths=valid_lens)",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "Lengths [B] or [B, n], as there; a length of 0 gives 0, not the mean.",
    ),
    Entry(
        ("attention pooling", "attn", "attn pooling", "attention with a learned query", "注意力池化"),
        "attention_pooling(x, mask, q)",
        "Raffel, Ellis 2016, with a dot product as the score",
        "Scores are divided by sqrt(d) unless `scale` is given; an empty row is 0.",
        "AttentionPool",
    ),
    Entry(
        ("attention weights", "attn weights", "heat map", "attention map", "注意力权重", "权重"),
        "pooled, weights = attention_pooling(x, mask, q, return_weights=True)",
        "`attnpool_ref.plot`; d2l's show_heatmaps (d2l)",
        "`attnpool_ref.plot.show_weights` draws them over tokens, and `show_heatmaps` draws matrices.",
        "AttentionPool",
    ),
    Entry(
        ("Hopfield pooling", "HopfieldPooling", "modern Hopfield network"),
        "attention_pooling(x, mask, q, scale=beta)",
        "Ramsauer et al. 2021",
        "One update step, without the layer's projections. For the next step pass the result as the query; with kernels "
        "pass it with the key kernel as `query_kernel` too, because the state is in the space of the keys.",
        "AttentionPool",
    ),
    Entry(
        ("mean query", "attention pooling without parameters", "self-weighted mean"),
        "attention_pooling(x, mask)",
        "attnpool",
        "The query is the masked mean of each x, so nothing is learned.",
        "AttentionPool",
    ),
)

NORMALIZERS = (
    Entry(
        ("masked softmax", "additive mask", "masked_fill(-1e9)"),
        "masked_softmax(scores, mask)",
        "every library's `softmax(scores + mask)`",
        "A row without a real score is 0, not uniform and not NaN.",
    ),
    Entry(
        ("d2l masked_softmax",),
        "masked_softmax(scores, lengths=valid_lens)",
        "Zhang et al., Dive into Deep Learning (d2l)",
        "A length of 0 gives 0; there, a uniform row.",
    ),
    Entry(
        ("sequence_mask", "lengths to mask", "attention mask of lengths"),
        "lengths_to_mask(lengths, L)",
        "Zhang et al., Dive into Deep Learning (d2l); tf.sequence_mask",
        'A length beyond L is an error; `side="left"` is for left padding.',
    ),
    Entry(
        ("sparsemax",),
        "sparsemax(scores, mask)",
        "Martins, Astudillo 2016 (martins2016); entmax",
        "Takes a mask. Weights are exactly 0 at padding and below the threshold.",
    ),
    Entry(
        ("entmax", "entmax15", "1.5-entmax"),
        "entmax15(scores, mask)",
        "Peters, Niculae, Martins 2019 (peters2019); entmax",
        "Takes a mask; an empty row is 0.",
    ),
    Entry(
        ("alpha-entmax", "entmax_bisect"),
        "entmax(scores, mask, alpha=1.3)",
        "Peters, Niculae, Martins 2019 (peters2019); entmax",
        "Takes a mask; alpha of 1, 1.5 and 2 are softmax, entmax15 and sparsemax.",
    ),
    Entry(
        ("sigmoid attention",),
        "masked_sigmoid(scores, mask)",
        "Ramapuram et al. 2025",
        "Weights need not sum to 1; `normalize=True` divides by their sum.",
    ),
    Entry(
        ("hardmax", "hard attention", "ONNX Hardmax"),
        "hardmax(scores, mask)",
        "ONNX's `Hardmax`",
        "The first of tied scores; its gradient is 0.",
    ),
    Entry(
        ("top-k attention", "sparse top-k softmax", "topk attention of x-transformers"),
        "top_k_softmax(scores, mask, k=8)",
        "Shazeer et al. 2017; Gupta et al. 2021; x-transformers",
        "All scores that equal the k-th largest are kept.",
    ),
    Entry(
        ("Gumbel softmax", "straight-through"),
        "gumbel_softmax(scores, mask, noise, temperature=0.5, hard=True)",
        "Jang, Gu, Poole 2017; F.gumbel_softmax",
        "You pass the noise as an array, not a key or a generator.",
    ),
    Entry(
        ("your own normalizer", "custom softmax", "normalizer"),
        "attend(scores, v, mask[..., None, :], normalizer=f)",
        "attnpool",
        'f(scores, mask) returns weights. Or pass a name: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax".',
        takes=("attend normalizer=sigmoid",),
    ),
    Entry(
        ("l2 normalise", "F.normalize", "unit vectors"),
        "l2_normalize(x)",
        "Wang et al. 2022 (wang2022)",
        "A zero vector stays 0 with gradient 0; norms of 1e-30 and 1e30 are ordinary.",
    ),
    Entry(
        ("layer norm", "LayerNorm"),
        "layer_norm(x, s, b, epsilon=1e-6)",
        "Ba, Kiros, Hinton 2016",
        "Epsilon is 1e-6, as in Flax; torch's is 1e-5.",
    ),
    Entry(
        ("feed-forward block", "MLP block of a pooling head", "GEGLU"),
        'residual_feed_forward(x, W1, b1, W2, b2, norm_scale=s, norm_bias=t, activation="gelu")',
        "Vaswani et al. 2017 (vaswani2017); Shazeer 2020",
        "gelu is the exact one; Flax's default is gelu_tanh.",
    ),
)
