"""Systems that are one call: each recipe against the system as its source writes it, by loops over real tokens."""

import math

import head_formulas
import numpy as np
import pytest
from packages import the_definition
from rounding import assert_close

BATCH, LENGTH, OTHER, WIDTH, HIDDEN = 2, 5, 4, 3, 6


def draw(rng, *shape):
    """In float64, so that the loops are exact; what float32 holds, so that JAX gets the same numbers."""
    return rng.normal(size=shape).astype(np.float32).astype(np.float64)


def masks(rng, count, length):
    """A scattered mask, no row empty."""
    mask = rng.random((count, length)) < 0.6
    mask[:, 1] = True
    return mask


def sequences(rng, length=LENGTH, width=WIDTH):
    """A batch of sequences, and its mask."""
    return draw(rng, BATCH, length, width), masks(rng, BATCH, length)


def real_tokens(x, mask):
    """The real tokens of each sequence."""
    return [tokens[own] for tokens, own in zip(x, mask, strict=True)]


def softmax(scores):
    scores = np.exp(scores - np.max(scores, -1, keepdims=True))
    return scores / np.sum(scores, -1, keepdims=True)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@the_definition
def test_dvqas_attention_over_image_regions(package, rng):
    """Scores are w tanh(W_i g + W_q f + b_q) + b_p; the outer bias cancels in the softmax."""
    (regions, mask), question = sequences(rng), draw(rng, BATCH, OTHER)
    of_question, of_image = draw(rng, OTHER, HIDDEN), draw(rng, WIDTH, HIDDEN)
    bias, out = draw(rng, HIDDEN), draw(rng, HIDDEN)
    actual = package.additive_attention(
        question[..., None, :], regions, regions, of_question, of_image, out, mask[..., None, :], bias=bias
    )
    expected = []
    for g, f in zip(real_tokens(regions, mask), question, strict=True):
        scores = np.tanh(g @ of_image + (f @ of_question + bias)) @ out + 1.5
        expected.append([softmax(scores) @ g])
    assert_close(actual, expected)


@the_definition
def test_bags_hops_and_frames_by_a_perceptron(package, rng):
    """ABMIL, gated with a column for each class (CLAM), Lin's hops; HAN's projections; a linear score.

    And what they are of each other: hops are calls of their own, a gate of zeros halves, a query of 0 adds nothing.
    """
    bags, mask = sequences(rng)
    layer = {"kernel": draw(rng, WIDTH, HIDDEN), "bias": draw(rng, HIDDEN)}
    gate = {"gate_kernel": draw(rng, WIDTH, HIDDEN), "gate_bias": draw(rng, HIDDEN)}
    out = draw(rng, HIDDEN, OTHER)

    def pool(column, gated, values=lambda h: h):
        pooled = []
        for bag in real_tokens(bags, mask):
            units = np.tanh(bag @ layer["kernel"] + layer["bias"])
            if gated:
                units = units / (1 + np.exp(-(bag @ gate["gate_kernel"] + gate["gate_bias"])))
            pooled.append(softmax(units @ column) @ values(bag))
        return np.array(pooled)

    def additive(out_kernel, **more):
        return package.additive_attention_pooling(bags, mask, **layer, out_kernel=out_kernel, **more)

    def projected(bag):
        return np.tanh(bag @ layer["kernel"] + layer["bias"])

    assert_close(additive(out[:, 0]), pool(out[:, 0], False))
    assert_close(additive(out, **gate), np.stack([pool(column, True) for column in out.T], 1))
    assert_close(additive(out[:, 0], value=projected(bags)), pool(out[:, 0], False, projected))
    assert_close(additive(2 * out, gate_kernel=np.zeros((WIDTH, HIDDEN))), np.asarray(additive(out)))
    zero, kernels = np.zeros((1, 1)), (np.ones((1, HIDDEN)), layer["kernel"], out[:, 0])
    by_query = package.additive_attention(zero, bags, bags, *kernels, mask[..., None, :], bias=layer["bias"])
    assert_close(additive(out[:, 0]), np.asarray(by_query)[:, 0])
    scores = [softmax(bag @ out[0, :WIDTH]) @ bag for bag in real_tokens(bags, mask)]
    assert_close(package.attention_pooling(bags, mask, out[0, :WIDTH], scale=1.0), scores)


@the_definition
def test_ctms_case_encoder(package, rng):
    """score_j = u . (W k_j + b) / sqrt(F), once over words and once over sentences; the bias cancels."""
    words, mask = draw(rng, BATCH, OTHER, LENGTH, WIDTH), masks(rng, BATCH * OTHER, LENGTH)
    mask = mask.reshape(BATCH, OTHER, LENGTH)
    kernel, bias, query = draw(rng, WIDTH, WIDTH), draw(rng, WIDTH), draw(rng, WIDTH)
    sentences = package.attention_pooling(words, mask, query, key_kernel=kernel)
    document = package.attention_pooling(sentences, None, query, key_kernel=kernel)

    def pool(k):
        return softmax((k @ kernel + bias) @ query / np.sqrt(WIDTH)) @ k

    expected = [[pool(s[m]) for s, m in zip(d, ms, strict=True)] for d, ms in zip(words, mask, strict=True)]
    assert_close(sentences, expected)
    assert_close(document, [pool(np.array(d)) for d in expected])


@the_definition
@pytest.mark.parametrize("shared", [False, True])
def test_mians_interactions_of_an_item_with_its_fields(package, rng, shared):
    """V_j = [e; f_j], weights softmax(tanh(V_j . W_j + b_j)), the values are V_j; globally a target of width 0."""
    item, fields, mask = draw(rng, BATCH, WIDTH), draw(rng, BATCH, LENGTH, 2), masks(rng, BATCH, LENGTH)
    kernel, bias = draw(rng, *[LENGTH][: not shared], WIDTH + 2), draw(rng, *[LENGTH][: not shared])
    actual = package.field_attention_pooling(item, fields, kernel, bias, mask)
    every_kernel, every_bias = np.broadcast_to(kernel, (LENGTH, WIDTH + 2)), np.broadcast_to(bias, LENGTH)
    expected = []
    for e, f, m in zip(item, fields, mask, strict=True):
        joined = np.array([[*e, *other] for other in f[m]])
        expected.append(softmax(np.tanh(np.sum(joined * every_kernel[m], -1) + every_bias[m])) @ joined)
    assert_close(actual, expected)
    r, kernel, bias = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, LENGTH, WIDTH), draw(rng, LENGTH)
    actual = package.field_attention_pooling(r[..., 0, :0], r, kernel, bias)
    assert_close(actual, [softmax(np.tanh(np.sum(v * kernel, -1) + bias)) @ v for v in r])


def without_direction(x, reference):
    """The parts of x along and across the reference."""
    along = (x @ reference) / (reference @ reference) * reference
    return along, x - along


@the_definition
def test_neurjudges_fact_separation(package, rng):
    (facts, fact_mask), (verdict, verdict_mask) = sequences(rng), sequences(rng, OTHER)
    chosen = package.mask_attention(verdict, facts, verdict_mask, fact_mask)
    similar, dissimilar = (np.asarray(part) for part in package.orthogonal_decomposition(facts, chosen))
    for b in range(BATCH):
        real = verdict[b][verdict_mask[b]]
        for i in np.flatnonzero(fact_mask[b]):
            along, across = without_direction(facts[b, i], softmax(real @ facts[b, i]) @ real)
            assert_close(similar[b, i], along)
            assert_close(dissimilar[b, i], across, size=facts[b, i])


@the_definition
@pytest.mark.parametrize("method", ["max", "global", "local"])
def test_wangs_decomposition(package, rng, method):
    x, y = np.abs(draw(rng, LENGTH, WIDTH)), np.abs(draw(rng, 7, WIDTH))
    mask = np.array([True, True, False, True, False, True, True])
    match = package.semantic_match(x, y, y_mask=mask, method=method)
    splits = {n: getattr(package, f"{n}_decomposition")(x, match) for n in ("orthogonal", "linear", "rigid")}
    real = y[mask]
    for i, s in enumerate(x):
        cosines = unit(real) @ unit(s)
        k = int(np.argmax(cosines))
        window = {"max": slice(k, k + 1), "global": slice(None), "local": slice(max(k - 1, 0), k + 2)}[method]
        found = cosines[window] @ real[window] / np.sum(cosines[window])
        assert_close(match[i], found)
        along, across = without_direction(s, found)
        cosine = unit(s) @ unit(found)
        assert_close(splits["orthogonal"][0][i], along)
        assert_close(splits["orthogonal"][1][i], across, size=s)
        assert_close(splits["linear"][0][i], cosine * s)
        assert_close(splits["linear"][1][i], s - cosine * s, size=s)
        assert_close(splits["rigid"][0][i], np.zeros(WIDTH))
        assert_close(splits["rigid"][1][i], s)


@the_definition
def test_a_vector_for_each_label_then_attention_among_labels(package, rng):
    (tokens, mask), labels = sequences(rng), draw(rng, OTHER, WIDTH)
    widths = {"query_kernel": 2, "key_kernel": 2, "value_kernel": 7}
    kernels = {name: draw(rng, WIDTH, width) for name, width in widths.items()}
    of_labels = package.dot_product_attention(labels, tokens, tokens, mask[..., None, :])
    expected = []
    for x in real_tokens(tokens, mask):
        r = softmax(labels @ x.T / np.sqrt(WIDTH)) @ x
        weights = softmax((r @ kernels["query_kernel"]) @ (r @ kernels["key_kernel"]).T / np.sqrt(2))
        expected.append(weights @ (r @ kernels["value_kernel"]))
    assert_close(package.label_attention(of_labels, **kernels), expected)


@the_definition
def test_simkgcs_poolings_end_in_unit_vectors(package, rng):
    (hr, hr_mask), (tail, tail_mask) = sequences(rng), sequences(rng, OTHER)
    for name, reduce in (("mean", lambda x: x.mean(0)), ("max", lambda x: x.max(0)), ("first", lambda x: x[0])):
        actual = package.l2_normalize(getattr(package, f"{name}_pooling")(hr, hr_mask))
        assert_close(actual, [unit(reduce(x)) for x in real_tokens(hr, hr_mask)])
    sides = real_tokens(hr, hr_mask), real_tokens(tail, tail_mask)
    pooled = package.cross_attention_pooling(hr, tail, hr_mask, tail_mask)
    for side, own, other in zip(pooled, sides, sides[::-1], strict=True):
        expected = [unit(softmax((x @ y.T).sum(-1)) @ x) for x, y in zip(own, other, strict=True)]
        assert_close(package.l2_normalize(side), expected)


HEADS, HEAD_WIDTH = 2, 7


def head_kernels(rng):
    shapes = {"query": (WIDTH, HEADS, HEAD_WIDTH), "key": (WIDTH, HEADS, HEAD_WIDTH), "value": (WIDTH, HEADS, 8)}
    return {f"{name}_kernel": draw(rng, *shape) for name, shape in (shapes | {"out": (HEADS, 8, 9)}).items()}


def heads_by_loops(query, keys, query_kernel, key_kernel, value_kernel, out_kernel):
    """One query over the keys that it sees."""
    total = np.zeros(out_kernel.shape[-1])
    for h in range(HEADS):
        scores = (keys @ key_kernel[:, h]) @ (query @ query_kernel[:, h]) / np.sqrt(HEAD_WIDTH)
        total += (softmax(scores) @ (keys @ value_kernel[:, h])) @ out_kernel[h]
    return total


@the_definition
@pytest.mark.parametrize("kind", ["self", "encoder-decoder", "causal"])
def test_the_transformers_three_attentions(package, rng, kind):
    (x, mask), kernels = sequences(rng), head_kernels(rng)
    queries = draw(rng, BATCH, OTHER, WIDTH) if kind == "encoder-decoder" else x
    pairs = mask[..., None, :]
    if kind == "causal":
        pairs = pairs & np.tril(np.ones((LENGTH, LENGTH), bool))
    actual = package.multi_head_attention(queries, x, x, pairs, **kernels)
    sees = np.broadcast_to(pairs, (BATCH, queries.shape[1], LENGTH))
    expected = [
        [heads_by_loops(q, x[b][sees[b, i]], **kernels) if sees[b, i].any() else np.zeros(9) for i, q in enumerate(qs)]
        for b, qs in enumerate(queries)
    ]
    assert_close(actual, expected, 128)


@the_definition
def test_d2ls_masked_softmax_and_sequence_mask(package, rng):
    scores, valid = draw(rng, BATCH, OTHER, LENGTH), np.array([2, 0])
    actual = package.masked_softmax(scores, lengths=valid)
    expected = np.zeros(scores.shape)
    expected[0, :, :2] = softmax(scores[0, :, :2])
    assert_close(actual, expected)
    mask = package.lengths_to_mask(valid, LENGTH)
    assert np.array_equal(mask, [[True, True, False, False, False], [False] * 5])


@the_definition
def test_the_entropy_of_weights(package, rng):
    scores, mask = draw(rng, BATCH, OTHER, LENGTH), masks(rng, BATCH, LENGTH)[:, None]
    scores[0, 0] = [0, -2000, 1000, -2000, -1000]  # weights that underflow
    weights, logarithms = package.masked_softmax(scores, mask), package.masked_log_softmax(scores, mask)
    shares = [[softmax(row[m]) for row in rows] for rows, (m,) in zip(scores, mask, strict=True)]
    expected = [[-sum(w * math.log(w) for w in row if w) for row in rows] for rows in shares]
    assert_close((weights * np.where(weights > 0, -logarithms, 0)).sum(-1), expected)


@the_definition
def test_bags_of_embeddings_by_offsets_and_lexical_weights(package, rng):
    """Torch's EmbeddingBag, of which the second bag is empty; BGE-M3's largest weight of each word of a text."""
    table, ids, offsets = draw(rng, 4, WIDTH), np.array([2, 0, 3, 3, 1]), np.array([0, 2, 2])
    segment_ids = np.repeat(np.arange(3), np.diff(offsets, append=len(ids)))
    actual = package.segment_mean_pooling(table[ids], segment_ids, 3, ids != 0)  # padding_idx=0
    assert_close(actual, [table[2], np.zeros(WIDTH), (2 * table[3] + table[1]) / 3])
    weights = relu(draw(rng, 5, 1))
    expected = [[max(weights[ids == word, 0], default=0)] for word in range(6)]
    assert_close(package.segment_max_pooling(weights, ids, 6), expected)


@the_definition
def test_x_vectors_statistics(package, rng):
    """Kaldi's deviation is biased, that of the torch ports is not; both of the real frames alone."""
    x, mask = draw(rng, BATCH, LENGTH, WIDTH), np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 0]], bool)
    for ddof in (0, 1):
        expected = [np.concatenate([t.mean(0), t.std(0, ddof=ddof)]) for t in real_tokens(x, mask)]
        assert_close(package.statistics_pooling(x, mask, ddof=ddof), expected)


def attentive_statistics(x, weights):
    """Mean and deviation of one sequence under weights that sum to 1 for each feature."""
    mean = (weights * x).sum(0)
    return np.concatenate([mean, np.sqrt((weights * (x - mean) ** 2).sum(0))])


def relu(x):
    return np.maximum(x, 0)


@the_definition
@pytest.mark.parametrize("system", ["Okabe", "ECAPA as WeSpeaker", "ECAPA as SpeechBrain", "voxceleb_trainer"])
def test_attentive_statistics_of_speaker_embedders(package, rng, system):
    """Scores by the source's layers, batch normalisations with their statistics, as they are after training."""
    x, mask, ecapa = draw(rng, BATCH, LENGTH, 4), np.ones((BATCH, LENGTH), bool), "ECAPA" in system
    mask[1, [0, 3]] = False
    kernel, bias = draw(rng, 12 if ecapa else 4, HIDDEN), draw(rng, HIDDEN)
    out, out_bias = draw(rng, HIDDEN, 4), draw(rng, 4)
    gamma, beta, mean, variance = draw(rng, HIDDEN), draw(rng, HIDDEN), draw(rng, HIDDEN), 1 + draw(rng, HIDDEN) ** 2
    norm_scale = np.float32(gamma / np.sqrt(variance)).astype(np.float64)
    norm_bias = np.float32(beta - mean * norm_scale).astype(np.float64)
    options = {
        "Okabe": {"out_kernel": out[:, 0], "out_bias": out_bias[0]},
        "ECAPA as WeSpeaker": {"context_ddof": 1},
        "ECAPA as SpeechBrain": {"context_ddof": 0, "epsilon": 1e-12, "norm_scale": norm_scale, "norm_bias": norm_bias},
        "voxceleb_trainer": {"activation": "relu", "out_kernel": norm_scale[:, None] * out},
    }[system] | ({"global_context": True} if ecapa else {})

    def hidden(t):
        if ecapa:
            whole = [t.mean(0), t.std(0, ddof=options["context_ddof"])]
            t = np.concatenate([t, *(np.broadcast_to(part, t.shape) for part in whole)], -1)
        if system == "ECAPA as SpeechBrain":
            return np.tanh(norm_scale * relu(t @ kernel + bias) + norm_bias)
        if system == "voxceleb_trainer":
            return norm_scale * relu(t @ kernel + bias) + norm_bias
        return np.tanh(t @ kernel + bias)

    expected = []
    for t in real_tokens(x, mask):
        scores = hidden(t) @ out + out_bias
        expected.append(attentive_statistics(t, softmax((scores[:, :1] if system == "Okabe" else scores).T).T))
    parameters = {"kernel": kernel, "bias": bias, "out_kernel": out, "out_bias": out_bias} | options
    assert_close(package.attentive_statistics_pooling(x, mask, **parameters), expected, 256)


@the_definition
def test_mhastps_heads_have_columns_of_their_own(package, rng):
    x, mask = sequences(rng, width=4)
    kernel, bias, out = draw(rng, 4, HIDDEN), draw(rng, HIDDEN), draw(rng, HIDDEN, 4)
    for own in (slice(0, 2), slice(2, 4)):
        layers = {"kernel": kernel[own], "bias": bias, "out_kernel": np.ascontiguousarray(out[:, own])}
        scores = [np.tanh(t @ kernel[own] + bias) @ out[:, own] for t in real_tokens(x[..., own], mask)]
        weights = [softmax(of_head.T).T for of_head in scores]
        expected = [attentive_statistics(t, w) for t, w in zip(real_tokens(x[..., own], mask), weights, strict=True)]
        assert_close(package.attentive_statistics_pooling(x[..., own], mask, **layers), expected, 256)


def sums(p, x, m):
    """Yields, for each system, what attnpool computes and its source's formula for one sequence."""
    count, positive, low = m.sum(-1)[:, None], np.maximum(x, 0), np.asarray(p.min_pooling(x, m))[:, None]
    rates = np.float64([0, 1.5, -0.5])
    yield np.asarray(p.sum_pooling(x, m)) / np.sqrt(count), lambda x: x.sum(0) / np.sqrt(len(x))  # mean_sqrt_len_tokens
    yield p.max_pooling(np.log1p(positive), m), lambda x: np.log1p(np.maximum(x, 0)).max(0)  # SPLADE
    of_weldon = np.asarray(p.top_k_pooling(x, m, k=2)) - np.asarray(p.top_k_pooling(-x, m, k=1))
    yield of_weldon, lambda x: np.sort(x, 0)[-2:].mean(0) + x.min(0)
    yield p.sum_pooling(np.tanh(x) / (1 + np.exp(-x)), m), lambda x: (np.tanh(x) / (1 + np.exp(-x))).sum(0)  # GGNN
    yield p.softmax_pooling(x, m, rates), lambda x: (x * (e := np.exp(x * rates)) / e.sum(0)).sum(0)  # AutoPool
    of_deeper_gcn = p.power_mean_pooling(x, m, 2.0, epsilon=1e-7)
    yield of_deeper_gcn, lambda x: (np.clip(x, 1e-7, 100) ** 2).mean(0) ** 0.5
    of_pna = np.concatenate([getattr(p, f"{name}_pooling")(x, m) for name in ("mean", "max", "min")], -1)
    yield of_pna, lambda x: np.concatenate([x.mean(0), x.max(0), x.min(0)])
    p_norm = count ** (1 / 3) * np.asarray(p.power_mean_pooling(np.abs(x), m, 3.0))
    yield p_norm, lambda x: np.linalg.norm(x, 3, 0)
    of_simpool = p.power_mean_pooling(x - low, m, 1.25, epsilon=0)
    yield of_simpool, lambda x: ((x - x.min(0)) ** 1.25).mean(0) ** (1 / 1.25)


@the_definition
def test_sums_means_and_maxima_under_other_names(package, rng):
    """Each system by its source's formula; and the linear softmax, of one channel."""
    x, mask = sequences(rng)
    mask[:, 2:4] = True
    found = list(sums(package, x, mask))
    assert len(found) == 9
    for actual, formula in found:
        assert_close(actual, [formula(tokens) for tokens in real_tokens(x, mask)])
    chances = np.abs(x[0, :, :1])
    expected = (chances[mask[0]] ** 2).sum(0) / chances[mask[0]].sum(0)
    assert_close(package.weighted_pooling(chances, chances[:, 0], mask[0]), expected)


@the_definition
def test_capis_probe(package, rng):
    """Queries given to the heads, biases of keys and values, no output map, the mean over the queries."""
    x, mask = sequences(rng)
    query, kernels = draw(rng, OTHER, HEADS, HEAD_WIDTH), [draw(rng, WIDTH, HEADS, HEAD_WIDTH) for _ in range(2)]
    biases = [draw(rng, HEADS, HEAD_WIDTH) for _ in range(2)]
    names = {"query": query, "key_kernel": kernels[0], "value_kernel": kernels[1]}
    actual = head_formulas.capi(package, x, mask, **names, key_bias=biases[0], value_bias=biases[1])
    expected = np.zeros((BATCH, HEADS, HEAD_WIDTH))
    for b, h in np.ndindex(BATCH, HEADS):
        keys, values = (x[b][mask[b]] @ k[:, h] + bias[h] for k, bias in zip(kernels, biases, strict=True))
        expected[b, h] = np.mean(softmax(query[:, h] @ keys.T / np.sqrt(HEAD_WIDTH)) @ values, 0)
    assert_close(actual, expected.reshape(BATCH, -1), 128)


@the_definition
def test_simpool_without_its_power(package, rng):
    """The mean of the raw tokens asks the normalised ones, each head for its own columns of them."""
    x, mask = draw(rng, BATCH, LENGTH, 2 * WIDTH), masks(rng, BATCH, LENGTH)
    kernels = {f"{part}_kernel": draw(rng, 2 * WIDTH, HEADS, WIDTH) for part in ("query", "key")}
    actual = head_formulas.simpool(package, x, mask, **kernels)
    expected = np.zeros((BATCH, HEADS, WIDTH))
    for b, h in np.ndindex(BATCH, HEADS):
        raw = x[b][mask[b]]
        tokens = (raw - np.mean(raw, -1, keepdims=True)) / np.sqrt(np.var(raw, -1, keepdims=True) + 1e-6)
        query = np.mean(raw, 0) @ kernels["query_kernel"][:, h]
        weights = softmax((tokens @ kernels["key_kernel"][:, h]) @ query / np.sqrt(WIDTH))
        expected[b, h] = weights @ tokens[:, h * WIDTH : (h + 1) * WIDTH]
    assert_close(actual, expected.reshape(BATCH, -1), 128)


@the_definition
def test_colberts_late_interaction(package, rng):
    """Unit tokens; the sum of the best cosines, and sentence-transformers' mean of them."""
    (query, query_mask), document = sequences(rng, OTHER), draw(rng, 3, LENGTH, WIDTH)
    document_mask = masks(rng, 3, LENGTH)
    units = [package.l2_normalize(side) for side in (query, document)]
    scores = package.maxsim_score_all_pairs(*units, query_mask, document_mask)
    means = package.maxsim_score_all_pairs(*units, query_mask, document_mask, mean=True)
    for b, x in enumerate(real_tokens(query, query_mask)):
        for c, y in enumerate(real_tokens(document, document_mask)):
            best = (unit(x) @ unit(y).T).max(-1)
            assert_close(scores[b, c], sum(best))
            assert_close(means[b, c], np.mean(best))


@the_definition
def test_netvlad_over_unit_descriptors(package, rng):
    (x, mask), centers = sequences(rng), draw(rng, OTHER, WIDTH)
    alpha = 3.0  # so that the kernel and the bias are those of a soft assignment by distance
    kernel, bias = 2 * alpha * centers.T, -alpha * np.sum(centers**2, -1)
    units = np.asarray(package.l2_normalize(x))
    actual = package.vlad_pooling(units, mask, assign_kernel=kernel, assign_bias=bias, centers=centers)
    expected = []
    for tokens in map(unit, real_tokens(x, mask)):
        shares = softmax(-alpha * np.sum((tokens[:, None] - centers) ** 2, -1))
        rows = unit(np.einsum("lk,lkd->kd", shares, tokens[:, None] - centers))
        expected.append(rows / np.linalg.norm(rows))
    assert_close(actual, expected, 256)


@the_definition
def test_nv_embeds_head(package, rng):
    """Tokens ask the latents; the mean of what they become, as a unit vector."""
    (x, mask), latents = sequences(rng), draw(rng, OTHER, WIDTH)
    kernels = {name: draw(rng, WIDTH, 1, WIDTH) for name in ("query_kernel", "key_kernel", "value_kernel")}
    out, inner, outer = draw(rng, 1, WIDTH, WIDTH), draw(rng, WIDTH, 2 * HIDDEN), draw(rng, HIDDEN, WIDTH)
    pooled = package.latent_attention_pooling(
        x, mask, latents=latents, **kernels, out_kernel=out, mlp_kernel=inner, mlp_out_kernel=outer
    )
    expected = []
    for tokens in real_tokens(x, mask):
        mapped = []
        for t in tokens:
            known = np.array([layer_norm(z) for z in latents])
            keys, values = known @ kernels["key_kernel"][:, 0], known @ kernels["value_kernel"][:, 0]
            weights = softmax(keys @ (layer_norm(t) @ kernels["query_kernel"][:, 0]) / np.sqrt(WIDTH))
            h = t + weights @ values @ out[0]
            u, g = np.split(layer_norm(h) @ inner, 2)
            mapped.append(h + (u * np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in g])) @ outer)
        expected.append(unit(np.mean(mapped, 0)))
    assert_close(package.l2_normalize(pooled), expected, 256)


def layer_norm(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)
