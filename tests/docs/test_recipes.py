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


HEADS, HEAD_WIDTH = 2, 7


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
