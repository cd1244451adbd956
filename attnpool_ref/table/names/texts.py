"""Entries of the index of names (``attnpool find``): sentence encoders, text classifiers, spans."""

from attnpool_ref.table.names.entry import entries

SENTENCES = entries("""
CLS | CLS token | first token | class token
  call: first_pooling(x, mask)
  source: Devlin et al. 2019 (BERT); sentence-transformers' mode cls
  differs: `x[:, 0]` is padding if the padding is on the left. attnpool takes the first real token.
mean pooling | masked mean | average pooling | global average pooling (GAP) | temporal average pooling (TAP)
  call: mean_pooling(x, mask)
  source: Reimers, Gurevych 2019; sentence-transformers' mode mean
  differs: NaN in padding has no effect. A fully masked row gives 0, with gradient 0.
max pooling | masked max | max over time | global max pooling | max MIL
  call: max_pooling(x, mask)
  source: Reimers, Gurevych 2019; sentence-transformers' mode max
  differs: A fully masked row gives 0. Tied tokens share the gradient evenly.
last token | last-token pooling | lasttoken | EOS pooling of decoders | left padding
  call: last_pooling(x, mask)
  source: sentence-transformers' mode lasttoken (reimers2019)
  differs: The last real token of each row is found, on whichever side the padding is.
E5-mistral | GTE-Qwen | Qwen3-Embedding | last_token_pool
  call: l2_normalize(last_pooling(x, mask))
  source: Wang et al. 2024; `last_token_pool` of the model cards
  differs: The cards' function detects the side of the padding once for a batch, attnpool for each row.
SGPT | weighted mean | weightedmean | position-weighted mean
  call: weighted_pooling(x, token_positions(mask) + 1, mask)
  source: Muennighoff 2022; sentence-transformers' mode weightedmean
  differs: Positions count only real tokens. sentence-transformers also counts padding between tokens.
  module: none
mean_sqrt_len_tokens | sum over square root of the length
  call: sum_pooling(x, mask) / sqrt(n)[..., None]
  source: sentence-transformers' mode of that name
  differs: `n` is the number of real tokens of each row, or 1 if there are none.
sentence-transformers' modes | several pooling modes together | Pooling module
  call: concatenate([first_pooling(x, mask), max_pooling(x, mask), mean_pooling(x, mask)], -1)
  source: Reimers, Gurevych 2019; sentence-transformers' `Pooling`
  differs: In the library the maximum of a fully masked row is -inf. `attnpool_flax.load` reads a model's folder.
special tokens | register tokens | special_tokens_mask | num_prefix_tokens | without CLS and SEP
  call: mean_pooling(x, mask & ~special)
  source: transformers' special_tokens_mask; timm's num_prefix_tokens
  differs: `special` [..., L] is True at the tokens to leave out. For `k` registers at the beginning it is `arange(L) <
    k`.
BGE-M3 | BGE | FlagEmbedding
  call: l2_normalize(first_pooling(x, mask))
  source: FlagEmbedding's model cards
  differs: This is the dense vector. Multi-vectors: `maxsim_score`. Lexical weights: `segment_max_pooling(relu(x @ w),
    ids, V)`.
include_prompt=False | INSTRUCTOR | excluding the prompt | instruction tokens
  call: mean_pooling(x, mask & (token_positions(mask) >= k))
  source: Su et al. 2023; sentence-transformers' include_prompt
  differs: `k` is the number of tokens of the prompt, which begins at the first real token.
CLIP text encoder | EOS token | PromptBERT | [MASK] token | entity marker
  call: first_pooling(x, mask & (ids == token))
  source: Radford et al. 2021; Jiang et al. 2022
  differs: `ids` [..., L] are token ids; `token` is the id to select. A text without this token gives 0, not its first
    token.
BERT pooler | ALBERT pooler | CLS pooler | pooler_output
  call: tanh(first_pooling(x, mask) @ W + b)
  source: Devlin et al. 2019; transformers' BertPooler
  differs: `W` [d, d] is the transpose of the torch layer's weight. BertPooler takes position 0, attnpool the first real
    token.
SimKGC | _pool_output | normalized sentence embedding
  call: l2_normalize(mean_pooling(x, mask))
  source: Wang et al. 2022 (wang2022)
  differs: In SimKGC, NaN in padding reaches the mean. The maximum of a fully masked row is -1e4 before its
    normalization.
first-last average | avg_first_last
  call: mean_pooling((first_layer + last_layer) / 2, mask)
  source: Gao, Yao, Chen 2021; SimCSE's avg_first_last
  differs: `first_layer` and `last_layer` [..., L, d] are the token vectors that the encoder returns for these layers.
WeightedLayerPooling | weighted layers
  call: weighted_pooling(layers, w)
  source: sentence-transformers' `WeightedLayerPooling`
  differs: Pass K layers [..., K, d] as the tokens. If the weights sum to 0, the library divides by 0; attnpool returns
    0.
  module: none
ScalarMix | ELMo layer mixing | SUPERB featurizer
  call: weighted_pooling(layers, masked_softmax(w)) * scale
  source: Peters et al. 2018; AllenNLP's ScalarMix
  differs: Pass K layers [..., K, d] as the tokens. `scale` is ScalarMix's gamma, which SUPERB does not have.
  module: none
SPLADE
  call: max_pooling(log1p(relu(logits)), mask)
  source: Formal et al. 2021; sentence-transformers' `SpladePooling`
  differs: `logits` [..., L, V] are scores of V words for each token. SPLADE's older form takes their sum:
    `sum_pooling`.
mean-max pooling | AdaptiveConcatPool | mean and max side by side
  call: mean_max_pooling(x, mask)
  source: Howard, Ruder 2018; fastai's `AdaptiveConcatPool1d` and `AdaptiveConcatPool2d`
  differs: fastai puts the maximum first, and also pools padding.
ULMFiT concat pooling | concat pooling
  call: concatenate([last_pooling(x, mask), max_pooling(x, mask), mean_pooling(x, mask)], -1)
  source: Howard, Ruder 2018; fastai's text classifier
  differs: Three poolings side by side. Each ignores padding, wherever it is.
NV-Embed | latent attention pooling
  call: latent_attention_pooling(x, mask, latents=r, query_kernel=Q, key_kernel=K, value_kernel=V, out_kernel=O,
    mlp_kernel=W1, mlp_out_kernel=W2)
  source: Lee et al. 2025; modeling_nvembed.py
  differs: As in the original, tokens are queries, latents are keys; most copies exchange them. The original then
    divides by the norm.
IDF-weighted mean | TF-IDF | inverse document frequency | SIF | weighted average | weights for each token
  call: weighted_pooling(x, weights, mask)
  source: Arora et al. 2017
  differs: attnpool divides by the sum of `weights` [..., L]; SIF by the number of tokens, then it subtracts a principal
    component.
recency | exponential decay
  call: weighted_pooling(x, decay ** (n - 1 - token_positions(mask)), mask)
  source: a recipe; `n` = `mask.sum(-1, keepdims=True)`, the number of real tokens
  differs: `decay` is between 0 and 1. The last real token has the largest weight, on whichever side the padding is.
  module: none
ALiBi pooling | attention with a linear bias
  call: attention_pooling(x, mask, q, bias=-slope * (n - 1 - token_positions(mask)))
  source: after Press et al. 2022; `n` = `mask.sum(-1, keepdims=True)`, the number of real tokens
  differs: `slope` is positive: the farther a token is from the last real token, the lower its bias.
  module: none
""")

CLASSIFIERS = entries("""
Lin's self-attentive embedding | structured self-attention | multi-hop attention | sentence matrix
  call: additive_attention_pooling(x, mask, kernel=W, out_kernel=V)
  source: Lin et al. 2017
  differs: V [h, r] (hidden width, hops) gives [..., r, d]. Reshape it for the paper's flat vector.
Lin's penalty | Frobenius penalty | diversity of hops
  call: attention_penalty(weights)
  source: Lin et al. 2017
  differs: Sum of squares of A A^T - I, for `weights` A [..., hops, L]. Some ports omit the square, or subtract 1 from
    all entries.
HAN word attention | hierarchical attention network | sentence attention | AttentionWithContext
  call: additive_attention_pooling(x, mask, kernel=W, bias=b, out_kernel=u)
  source: Yang et al. 2016
  differs: Write one call for words, one for sentences. Some ports overflow, because they do not subtract the maximum
    score.
CTM case encoder | attention with a context vector, no hidden layer
  call: attention_pooling(x, mask, u, key_kernel=W)
  source: Liu et al. 2022 (liu2022)
  differs: Write one call for words, one for sentences. CTM's bias cancels in the softmax. The default scale, 1/sqrt(d),
    is CTM's.
""")

SPANS = entries("""
word vectors | subword | word pieces | word_ids | first subword | vmap
  call: jax.vmap(lambda x, ids, mask: segment_mean_pooling(x, ids, num_words, mask))(x, word_ids, mask)
  source: transformers' word_ids; Devlin et al. 2019, who take the first piece (`segment_first_pooling`)
  differs: Replace None in `word_ids` by `num_words`, which is no word. Code:
    [guide](guides/sentence-embeddings.md#vectors-of-words).
span pooling | mean span | mention pooling | coreference spans
  call: spans = spans_to_mask(ends, L) & mask[..., None, :]
    attend(zeros(spans.shape), x, spans)
  source: AllenNLP's span extractors
  differs: `ends` [..., S, 2] are the first and last token of S spans, both included. Padding inside a span does not
    count.
SelfAttentiveSpanExtractor | self-attentive span
  call: spans = spans_to_mask(ends, L) & mask[..., None, :]
    attend(broadcast_to((x @ w)[..., None, :], spans.shape), x, spans)
  source: Lee et al. 2017; AllenNLP's extractor of that name
  differs: `ends` [..., S, 2] are the first and last token of S spans. AllenNLP gives weight to padding in a span,
    attnpool 0.
EndpointSpanExtractor | span ends | first and last token of a span
  call: spans = spans_to_mask(ends, L) & mask[..., None, :]
    slots = broadcast_to(arange(L), spans.shape)
    concatenate([attend(sign * slots, x, spans, normalizer="hardmax") for sign in (-1.0, 1.0)], -1)
  source: AllenNLP's extractor of that name, combination x,y
  differs: The result has the first and last real token of each span. AllenNLP's embedding of the span's width is left
    out.
windows | strided average | late chunking | AvgPool1d with a mask
  call: p = token_positions(mask)[..., None, :]
    windows = (p >= starts) & (p < starts + width)
    attend(zeros(windows.shape), x, windows)
  source: a recipe; `starts` [W, 1] are the first positions of W windows, counted in real tokens from 0
  differs: `starts` counts real tokens. A short last window is divided by its number of real tokens. torch and Flax take
    no mask.
""")
