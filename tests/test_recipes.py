"""Systems that are one call: each recipe against the system as its source writes it, by loops over real tokens."""

import math

import chex
import numpy as np
import pytest
from rounding import rounded

import attnpool_flax
import attnpool_ref

PACKAGES = pytest.mark.parametrize("package", [attnpool_ref, attnpool_flax], ids=lambda package: package.__name__)
BATCH, LENGTH, OTHER, WIDTH, HIDDEN = 2, 5, 4, 3, 6


@pytest.fixture
def rng(request):
    return np.random.default_rng(list(request.node.name.encode()))


def draw(rng, *shape):
    """In float64, so that the loops are exact; what float32 holds, so that JAX gets the same numbers."""
    return rng.normal(size=shape).astype(np.float32).astype(np.float64)


def lengths(rng, count, length):
    """A scattered mask, no row empty."""
    mask = rng.random((count, length)) < 0.6
    mask[:, 1] = True
    return mask


def softmax(scores):
    scores = np.exp(scores - np.max(scores, -1, keepdims=True))
    return scores / np.sum(scores, -1, keepdims=True)


def assert_same(actual, expected, terms=64, minuend=0):
    """To rounding; a difference rounds as what it was taken from."""
    expected = np.asarray(expected)
    chex.assert_shape(actual, expected.shape)
    atol = rounded([expected, minuend], terms)
    chex.assert_trees_all_close(np.float64(actual), np.float64(expected), atol=atol, rtol=0)


@PACKAGES
def test_dvqas_attention_over_image_regions(package, rng):
    """Scores are w tanh(W_i g + W_q f + b_q) + b_p; the outer bias cancels in the softmax."""
    regions, question, mask = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, BATCH, OTHER), lengths(rng, BATCH, LENGTH)
    of_question, of_image, bias, out = (
        draw(rng, OTHER, HIDDEN),
        draw(rng, WIDTH, HIDDEN),
        draw(rng, HIDDEN),
        draw(rng, HIDDEN),
    )
    actual = package.additive_attention(
        question[..., None, :], regions, regions, of_question, of_image, out, mask[..., None, :], bias=bias
    )
    expected = []
    for g, f, m in zip(regions, question, mask, strict=True):
        scores = np.tanh(g[m] @ of_image + (f @ of_question + bias)) @ out + 1.5
        expected.append([softmax(scores) @ g[m]])
    assert_same(actual, expected)


@PACKAGES
def test_ctms_case_encoder(package, rng):
    """score_j = u . (W k_j + b) / sqrt(F), once over words and once over sentences; the bias cancels."""
    words, mask = draw(rng, BATCH, OTHER, LENGTH, WIDTH), lengths(rng, BATCH * OTHER, LENGTH)
    mask = mask.reshape(BATCH, OTHER, LENGTH)
    kernel, bias, query = draw(rng, WIDTH, WIDTH), draw(rng, WIDTH), draw(rng, WIDTH)
    sentences = package.attention_pooling(words, mask, query, key_kernel=kernel)
    document = package.attention_pooling(sentences, None, query, key_kernel=kernel)

    def pool(k):
        return softmax((k @ kernel + bias) @ query / np.sqrt(WIDTH)) @ k

    expected = [[pool(s[m]) for s, m in zip(d, ms, strict=True)] for d, ms in zip(words, mask, strict=True)]
    assert_same(sentences, expected)
    assert_same(document, [pool(np.array(d)) for d in expected])


@PACKAGES
@pytest.mark.parametrize("shared", [False, True])
def test_mians_interactions_of_an_item_with_its_fields(package, rng, shared):
    """V_j = [e; f_j], weights softmax(tanh(V_j . W_j + b_j)), the values are V_j."""
    item, fields, mask = draw(rng, BATCH, WIDTH), draw(rng, BATCH, LENGTH, 2), lengths(rng, BATCH, LENGTH)
    kernel, bias = draw(rng, *[LENGTH][: not shared], WIDTH + 2), draw(rng, *[LENGTH][: not shared])
    actual = package.field_attention_pooling(item, fields, kernel, bias, mask)
    every_kernel, every_bias = np.broadcast_to(kernel, (LENGTH, WIDTH + 2)), np.broadcast_to(bias, LENGTH)
    expected = []
    for e, f, m in zip(item, fields, mask, strict=True):
        joined = np.array([[*e, *other] for other in f[m]])
        scores = np.array([np.tanh(v @ w + b) for v, w, b in zip(joined, every_kernel[m], every_bias[m], strict=True)])
        expected.append(softmax(scores) @ joined)
    assert_same(actual, expected)


@PACKAGES
def test_mians_global_interaction(package, rng):
    """Over the vectors r_l themselves: a target of width 0."""
    r, kernel, bias = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, LENGTH, WIDTH), draw(rng, LENGTH)
    actual = package.field_attention_pooling(r[..., 0, :0], r, kernel, bias)
    assert_same(actual, [softmax(np.tanh(np.sum(v * kernel, -1) + bias)) @ v for v in r])


def without_direction(x, reference):
    """The parts of x along and across the reference."""
    along = (x @ reference) / (reference @ reference) * reference
    return along, x - along


@PACKAGES
def test_neurjudges_fact_separation(package, rng):
    facts, verdict = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, BATCH, OTHER, WIDTH)
    fact_mask, verdict_mask = lengths(rng, BATCH, LENGTH), lengths(rng, BATCH, OTHER)
    chosen = package.mask_attention(verdict, facts, verdict_mask, fact_mask)
    similar, dissimilar = (np.asarray(part) for part in package.orthogonal_decomposition(facts, chosen))
    for b in range(BATCH):
        real = verdict[b][verdict_mask[b]]
        for i in np.flatnonzero(fact_mask[b]):
            along, across = without_direction(facts[b, i], softmax(real @ facts[b, i]) @ real)
            assert_same(similar[b, i], along)
            assert_same(dissimilar[b, i], across, minuend=facts[b, i])


@PACKAGES
@pytest.mark.parametrize("method", ["max", "global", "local"])
def test_wangs_decomposition(package, rng, method):
    x, y = np.abs(draw(rng, LENGTH, WIDTH)), np.abs(draw(rng, 7, WIDTH))
    mask = np.array([True, True, False, True, False, True, True])
    match = package.semantic_match(x, y, y_mask=mask, method=method)
    splits = {n: getattr(package, f"{n}_decomposition")(x, match) for n in ("orthogonal", "linear", "rigid")}
    real = y[mask]
    for i, s in enumerate(x):
        cosines = real @ s / np.linalg.norm(real, axis=-1) / np.linalg.norm(s)
        k = int(np.argmax(cosines))
        window = {"max": slice(k, k + 1), "global": slice(None), "local": slice(max(k - 1, 0), k + 2)}[method]
        found = cosines[window] @ real[window] / np.sum(cosines[window])
        assert_same(match[i], found)
        along, across = without_direction(s, found)
        cosine = s @ found / np.linalg.norm(s) / np.linalg.norm(found)
        assert_same(splits["orthogonal"][0][i], along)
        assert_same(splits["orthogonal"][1][i], across, minuend=s)
        assert_same(splits["linear"][0][i], cosine * s)
        assert_same(splits["linear"][1][i], s - cosine * s, minuend=s)
        assert_same(splits["rigid"][0][i], np.zeros(WIDTH))
        assert_same(splits["rigid"][1][i], s)


@PACKAGES
def test_a_vector_for_each_label_then_attention_among_labels(package, rng):
    tokens, mask, labels = draw(rng, BATCH, LENGTH, WIDTH), lengths(rng, BATCH, LENGTH), draw(rng, OTHER, WIDTH)
    kernels = {
        "query_kernel": draw(rng, WIDTH, 2),
        "key_kernel": draw(rng, WIDTH, 2),
        "value_kernel": draw(rng, WIDTH, 7),
    }
    of_labels = package.dot_product_attention(labels, tokens, tokens, mask[..., None, :])
    actual = package.label_attention(of_labels, **kernels)
    expected = []
    for x, m in zip(tokens, mask, strict=True):
        r = softmax(labels @ x[m].T / np.sqrt(WIDTH)) @ x[m]
        weights = softmax((r @ kernels["query_kernel"]) @ (r @ kernels["key_kernel"]).T / np.sqrt(2))
        expected.append(weights @ (r @ kernels["value_kernel"]))
    assert_same(actual, expected)


@PACKAGES
@pytest.mark.parametrize(
    ("pooling", "reduce"),
    [("mean_pooling", lambda x: x.mean(0)), ("max_pooling", lambda x: x.max(0)), ("first_pooling", lambda x: x[0])],
)
def test_simkgcs_poolings_end_in_a_unit_vector(package, rng, pooling, reduce):
    x, mask = draw(rng, BATCH, LENGTH, WIDTH), lengths(rng, BATCH, LENGTH)
    actual = package.l2_normalize(getattr(package, pooling)(x, mask))
    pooled = [reduce(t[m]) for t, m in zip(x, mask, strict=True)]
    assert_same(actual, [p / np.linalg.norm(p) for p in pooled])


@PACKAGES
def test_simkgcs_cross_pooling_ends_in_unit_vectors(package, rng):
    hr, tail = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, BATCH, OTHER, WIDTH)
    hr_mask, tail_mask = lengths(rng, BATCH, LENGTH), lengths(rng, BATCH, OTHER)
    pooled = package.cross_attention_pooling(hr, tail, hr_mask, tail_mask)
    for side, (own, m), (other, k) in zip(
        pooled, ((hr, hr_mask), (tail, tail_mask)), ((tail, tail_mask), (hr, hr_mask)), strict=True
    ):
        expected = [softmax((x[i] @ y[j].T).sum(-1)) @ x[i] for x, i, y, j in zip(own, m, other, k, strict=True)]
        assert_same(package.l2_normalize(side), [p / np.linalg.norm(p) for p in expected])


HEADS, HEAD_WIDTH = 2, 7


def head_kernels(rng):
    return {
        "query_kernel": draw(rng, WIDTH, HEADS, HEAD_WIDTH),
        "key_kernel": draw(rng, WIDTH, HEADS, HEAD_WIDTH),
        "value_kernel": draw(rng, WIDTH, HEADS, 8),
        "out_kernel": draw(rng, HEADS, 8, 9),
    }


def heads_by_loops(query, keys, query_kernel, key_kernel, value_kernel, out_kernel):
    """One query over the keys that it sees."""
    total = np.zeros(out_kernel.shape[-1])
    for h in range(HEADS):
        scores = (keys @ key_kernel[:, h]) @ (query @ query_kernel[:, h]) / np.sqrt(HEAD_WIDTH)
        total += (softmax(scores) @ (keys @ value_kernel[:, h])) @ out_kernel[h]
    return total


@PACKAGES
@pytest.mark.parametrize("kind", ["self", "encoder-decoder", "causal"])
def test_the_transformers_three_attentions(package, rng, kind):
    x, mask, kernels = draw(rng, BATCH, LENGTH, WIDTH), lengths(rng, BATCH, LENGTH), head_kernels(rng)
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
    assert_same(actual, expected, 128)


@PACKAGES
def test_d2ls_masked_softmax_and_sequence_mask(package, rng):
    scores, valid = draw(rng, BATCH, OTHER, LENGTH), np.array([2, 0])
    actual = package.masked_softmax(scores, lengths=valid)
    expected = np.zeros(scores.shape)
    expected[0, :, :2] = softmax(scores[0, :, :2])
    assert_same(actual, expected)
    mask = package.lengths_to_mask(valid, LENGTH)
    assert np.array_equal(mask, [[True, True, False, False, False], [False] * 5])


@PACKAGES
def test_colberts_late_interaction(package, rng):
    """Unit tokens; the sum of the best cosines, and sentence-transformers' mean of them."""
    query, document = draw(rng, BATCH, OTHER, WIDTH), draw(rng, 3, LENGTH, WIDTH)
    query_mask, document_mask = lengths(rng, BATCH, OTHER), lengths(rng, 3, LENGTH)
    units = [package.l2_normalize(side) for side in (query, document)]
    scores = package.maxsim_score_all_pairs(*units, query_mask, document_mask)
    means = package.maxsim_score_all_pairs(*units, query_mask, document_mask, mean=True)
    for b in range(BATCH):
        for c in range(3):
            x, y = query[b][query_mask[b]], document[c][document_mask[c]]
            best = [max(t @ u / np.linalg.norm(t) / np.linalg.norm(u) for u in y) for t in x]
            assert_same(scores[b, c], sum(best))
            assert_same(means[b, c], np.mean(best))


@PACKAGES
def test_netvlad_over_unit_descriptors(package, rng):
    x, mask, centers = draw(rng, BATCH, LENGTH, WIDTH), lengths(rng, BATCH, LENGTH), draw(rng, OTHER, WIDTH)
    alpha = 3.0  # so that the kernel and the bias are those of a soft assignment by distance
    kernel, bias = 2 * alpha * centers.T, -alpha * np.sum(centers**2, -1)
    units = np.asarray(package.l2_normalize(x))
    actual = package.vlad_pooling(units, mask, assign_kernel=kernel, assign_bias=bias, centers=centers)
    expected = []
    for tokens, m in zip(x, mask, strict=True):
        tokens = tokens[m] / np.linalg.norm(tokens[m], axis=-1, keepdims=True)
        shares = softmax(-alpha * np.sum((tokens[:, None] - centers) ** 2, -1))
        rows = [sum(s[k] * (t - c) for s, t in zip(shares, tokens, strict=True)) for k, c in enumerate(centers)]
        rows = np.array([row / np.linalg.norm(row) for row in rows])
        expected.append(rows / np.linalg.norm(rows))
    assert_same(actual, expected, 256)


@PACKAGES
def test_nv_embeds_head(package, rng):
    """Tokens ask the latents; the mean of what they become, as a unit vector."""
    x, mask, latents = draw(rng, BATCH, LENGTH, WIDTH), lengths(rng, BATCH, LENGTH), draw(rng, OTHER, WIDTH)
    kernels = {name: draw(rng, WIDTH, 1, WIDTH) for name in ("query_kernel", "key_kernel", "value_kernel")}
    out, inner, outer = draw(rng, 1, WIDTH, WIDTH), draw(rng, WIDTH, 2 * HIDDEN), draw(rng, HIDDEN, WIDTH)
    pooled = package.latent_attention_pooling(
        x, mask, latents=latents, **kernels, out_kernel=out, mlp_kernel=inner, mlp_out_kernel=outer
    )
    expected = []
    for tokens, m in zip(x, mask, strict=True):
        mapped = []
        for t in tokens[m]:
            known = np.array([layer_norm(z) for z in latents])
            keys, values = known @ kernels["key_kernel"][:, 0], known @ kernels["value_kernel"][:, 0]
            weights = softmax(keys @ (layer_norm(t) @ kernels["query_kernel"][:, 0]) / np.sqrt(WIDTH))
            h = t + weights @ values @ out[0]
            u, g = np.split(layer_norm(h) @ inner, 2)
            mapped.append(h + (u * np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in g])) @ outer)
        mean = np.mean(mapped, 0)
        expected.append(mean / np.linalg.norm(mean))
    assert_same(package.l2_normalize(pooled), expected, 256)


def layer_norm(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)
