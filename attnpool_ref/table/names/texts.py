"""Entries of the index of names (``attnpool find``): sentence encoders, text classifiers, spans."""

from attnpool_ref.table.names.entry import Entry

SENTENCES = (
    Entry(
        ("CLS", "CLS token", "first token", "class token"),
        "first_pooling(x, mask)",
        "Devlin et al. 2019 (BERT); sentence-transformers' mode cls",
        "`x[:, 0]` is padding if the padding is on the left. attnpool takes the first real token.",
    ),
    Entry(
        (
            "mean pooling",
            "masked mean",
            "average pooling",
            "global average pooling (GAP)",
            "temporal average pooling (TAP)",
        ),
        "mean_pooling(x, mask)",
        "Reimers, Gurevych 2019; sentence-transformers' mode mean",
        "NaN in padding has no effect. A fully masked row gives 0, with gradient 0.",
    ),
    Entry(
        ("max pooling", "masked max", "max over time", "global max pooling", "max MIL"),
        "max_pooling(x, mask)",
        "Reimers, Gurevych 2019; sentence-transformers' mode max",
        "A fully masked row gives 0. Tied tokens share the gradient evenly.",
    ),
    Entry(
        ("last token", "last-token pooling", "lasttoken", "EOS pooling of decoders", "left padding"),
        "last_pooling(x, mask)",
        "sentence-transformers' mode lasttoken (reimers2019)",
        "The last real token of each row is found, on whichever side the padding is.",
    ),
    Entry(
        ("E5-mistral", "GTE-Qwen", "Qwen3-Embedding", "last_token_pool"),
        "l2_normalize(last_pooling(x, mask))",
        "Wang et al. 2024; `last_token_pool` of the model cards",
        "The cards' function detects the side of the padding once for a batch, attnpool for each row.",
    ),
    Entry(
        ("SGPT", "weighted mean", "weightedmean", "position-weighted mean"),
        "weighted_pooling(x, token_positions(mask) + 1, mask)",
        "Muennighoff 2022; sentence-transformers' mode weightedmean",
        "Positions count only real tokens. sentence-transformers also counts padding between tokens.",
    ),
    Entry(
        ("mean_sqrt_len_tokens", "sum over square root of the length"),
        "sum_pooling(x, mask) / sqrt(n)[..., None]",
        "sentence-transformers' mode of that name",
        "`n` is the number of real tokens of each row, or 1 if there are none.",
    ),
    Entry(
        ("sentence-transformers' modes", "several pooling modes together", "Pooling module"),
        "concatenate([first_pooling(x, mask), max_pooling(x, mask), mean_pooling(x, mask)], -1)",
        "Reimers, Gurevych 2019; sentence-transformers' `Pooling`",
        "In the library the maximum of a fully masked row is -inf. `attnpool_flax.load` reads a model's folder.",
    ),
    Entry(
        ("special tokens", "register tokens", "special_tokens_mask", "num_prefix_tokens", "without CLS and SEP"),
        "mean_pooling(x, mask & ~special)",
        "transformers' special_tokens_mask; timm's num_prefix_tokens",
        "`special` [..., L] is True at the tokens to leave out. For `k` registers at the beginning it is `arange(L) < k`.",
    ),
    Entry(
        ("BGE-M3", "BGE", "FlagEmbedding"),
        "l2_normalize(first_pooling(x, mask))",
        "FlagEmbedding's model cards",
        "This is the dense vector. Multi-vectors: `maxsim_score`. Lexical weights: `segment_max_pooling(relu(x @ w), ids, V)`.",
    ),
    Entry(
        ("include_prompt=False", "INSTRUCTOR", "excluding the prompt", "instruction tokens"),
        "mean_pooling(x, mask & (token_positions(mask) >= k))",
        "Su et al. 2023; sentence-transformers' include_prompt",
        "`k` is the number of tokens of the prompt, which begins at the first real token.",
    ),
    Entry(
        ("CLIP text encoder", "EOS token", "PromptBERT", "[MASK] token", "entity marker"),
        "first_pooling(x, mask & (ids == token))",
        "Radford et al. 2021; Jiang et al. 2022",
        "`ids` [..., L] are token ids; `token` is the id to select. A text without this token gives 0, not its first token.",
    ),
    Entry(
        ("BERT pooler", "ALBERT pooler", "CLS pooler", "pooler_output"),
        "tanh(first_pooling(x, mask) @ W + b)",
        "Devlin et al. 2019; transformers' BertPooler",
        "`W` [d, d] is the transpose of the torch layer's weight. BertPooler takes position 0, attnpool the first real token.",
    ),
    Entry(
        ("SimKGC", "_pool_output", "normalized sentence embedding"),
        "l2_normalize(mean_pooling(x, mask))",
        "Wang et al. 2022 (wang2022)",
        "In SimKGC, NaN in padding reaches the mean. The maximum of a fully masked row is -1e4 before its "
        "normalization.",
    ),
    Entry(
        ("first-last average", "avg_first_last"),
        "mean_pooling((first_layer + last_layer) / 2, mask)",
        "Gao, Yao, Chen 2021; SimCSE's avg_first_last",
        "`first_layer` and `last_layer` [..., L, d] are the token vectors that the encoder returns for these layers.",
    ),
    Entry(
        ("WeightedLayerPooling", "weighted layers"),
        "weighted_pooling(layers, w)",
        "sentence-transformers' `WeightedLayerPooling`",
        "Pass K layers [..., K, d] as the tokens. If the weights sum to 0, the library divides by 0; attnpool returns 0.",
    ),
    Entry(
        ("ScalarMix", "ELMo layer mixing", "SUPERB featurizer"),
        "weighted_pooling(layers, masked_softmax(w)) * scale",
        "Peters et al. 2018; AllenNLP's ScalarMix",
        "Pass K layers [..., K, d] as the tokens. `scale` is ScalarMix's gamma, which SUPERB does not have.",
    ),
    Entry(
        ("SPLADE",),
        "max_pooling(log1p(relu(logits)), mask)",
        "Formal et al. 2021; sentence-transformers' `SpladePooling`",
        "`logits` [..., L, V] are scores of V words for each token. SPLADE's older form takes their sum: `sum_pooling`.",
    ),
    Entry(
        ("mean-max pooling", "AdaptiveConcatPool", "mean and max side by side"),
        "mean_max_pooling(x, mask)",
        "Howard, Ruder 2018; fastai's `AdaptiveConcatPool1d` and `AdaptiveConcatPool2d`",
        "fastai puts the maximum first, and also pools padding.",
    ),
    Entry(
        ("ULMFiT concat pooling", "concat pooling"),
        "concatenate([last_pooling(x, mask), max_pooling(x, mask), mean_pooling(x, mask)], -1)",
        "Howard, Ruder 2018; fastai's text classifier",
        "Three poolings side by side. Each ignores padding, wherever it is.",
    ),
    Entry(
        ("NV-Embed", "latent attention pooling"),
        "latent_attention_pooling(x, mask, latents=r, query_kernel=Q, key_kernel=K, value_kernel=V, out_kernel=O, "
        "mlp_kernel=W1, mlp_out_kernel=W2)",
        "Lee et al. 2025; modeling_nvembed.py",
        "As in the original, tokens are queries, latents are keys; most copies exchange them. The original then divides by the norm.",
        "LatentAttentionPool",
    ),
    Entry(
        (
            "IDF-weighted mean",
            "TF-IDF",
            "inverse document frequency",
            "SIF",
            "weighted average",
            "weights for each token",
        ),
        "weighted_pooling(x, weights, mask)",
        "Arora et al. 2017",
        "attnpool divides by the sum of `weights` [..., L]; SIF by the number of tokens, then it subtracts a principal component.",
        "WeightedPool",
    ),
    Entry(
        ("recency", "exponential decay"),
        "weighted_pooling(x, decay ** (n - 1 - token_positions(mask)), mask)",
        "a recipe; `n` = `mask.sum(-1, keepdims=True)`, the number of real tokens",
        "`decay` is between 0 and 1. The last real token has the largest weight, on whichever side the padding is.",
    ),
    Entry(
        ("ALiBi pooling", "attention with a linear bias"),
        "attention_pooling(x, mask, q, bias=-slope * (n - 1 - token_positions(mask)))",
        "after Press et al. 2022; `n` = `mask.sum(-1, keepdims=True)`, the number of real tokens",
        "`slope` is positive: the farther a token is from the last real token, the lower its bias.",
    ),
)

CLASSIFIERS = (
    Entry(
        ("Lin's self-attentive embedding", "structured self-attention", "multi-hop attention", "sentence matrix"),
        "additive_attention_pooling(x, mask, kernel=W, out_kernel=V)",
        "Lin et al. 2017",
        "V [h, r] (hidden width, hops) gives [..., r, d]. Reshape it for the paper's flat vector.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("Lin's penalty", "Frobenius penalty", "diversity of hops"),
        "attention_penalty(weights)",
        "Lin et al. 2017",
        "Sum of squares of A A^T - I, for `weights` A [..., hops, L]. Some ports omit the square, or subtract 1 from all entries.",
    ),
    Entry(
        ("HAN word attention", "hierarchical attention network", "sentence attention", "AttentionWithContext"),
        "additive_attention_pooling(x, mask, kernel=W, bias=b, out_kernel=u)",
        "Yang et al. 2016",
        "Write one call for words, one for sentences. Some ports overflow, because they do not subtract the maximum score.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("CTM case encoder", "attention with a context vector, no hidden layer"),
        "attention_pooling(x, mask, u, key_kernel=W)",
        "Liu et al. 2022 (liu2022)",
        "Write one call for words, one for sentences. CTM's bias cancels in the softmax. The default scale, 1/sqrt(d), is CTM's.",
        "AttentionPool",
    ),
)

SPANS = (
    Entry(
        ("word vectors", "subword", "word pieces", "word_ids", "first subword", "vmap"),
        "jax.vmap(lambda x, ids, mask: segment_mean_pooling(x, ids, num_words, mask))(x, word_ids, mask)",
        "transformers' word_ids; Devlin et al. 2019, who take the first piece (`segment_first_pooling`)",
        "Replace None in `word_ids` by `num_words`, which is no word. Code: "
        "[guide](guides/sentence-embeddings.md#vectors-of-words).",
    ),
    Entry(
        ("span pooling", "mean span", "mention pooling", "coreference spans"),
        "spans = spans_to_mask(ends, L) & mask[..., None, :]\nattend(zeros(spans.shape), x, spans)",
        "AllenNLP's span extractors",
        "`ends` [..., S, 2] are the first and last token of S spans, both included. Padding inside a span does not count.",
    ),
    Entry(
        ("SelfAttentiveSpanExtractor", "self-attentive span"),
        "spans = spans_to_mask(ends, L) & mask[..., None, :]\n"
        "attend(broadcast_to((x @ w)[..., None, :], spans.shape), x, spans)",
        "Lee et al. 2017; AllenNLP's extractor of that name",
        "`ends` [..., S, 2] are the first and last token of S spans. AllenNLP gives weight to padding in a span, attnpool 0.",
    ),
    Entry(
        ("EndpointSpanExtractor", "span ends", "first and last token of a span"),
        "spans = spans_to_mask(ends, L) & mask[..., None, :]\n"
        "slots = broadcast_to(arange(L), spans.shape)\n"
        'concatenate([attend(sign * slots, x, spans, normalizer="hardmax") for sign in (-1.0, 1.0)], -1)',
        "AllenNLP's extractor of that name, combination x,y",
        "The result has the first and last real token of each span. AllenNLP's embedding of the span's width is left out.",
    ),
    Entry(
        ("windows", "strided average", "late chunking", "AvgPool1d with a mask"),
        "p = token_positions(mask)[..., None, :]\n"
        "windows = (p >= starts) & (p < starts + width)\n"
        "attend(zeros(windows.shape), x, windows)",
        "a recipe; `starts` [W, 1] are the first positions of W windows, counted in real tokens from 0",
        "`starts` counts real tokens. A short last window is divided by its number of real tokens. torch and Flax take no mask.",
    ),
)
