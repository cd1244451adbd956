"""Formulas of public code of poolings, mistakes included, in NumPy; ``traps`` prints their numbers.

Each function repeats the arithmetic of one source, in the source's dtype, without the parts that have no effect on the
mistake. Do not use them: attnpool does each of these things right.
"""

import math

import numpy as np
from notebooks import softmax


def power_mean_of_pyg(x, p, learn=True):
    """Computes PyG's power mean: clamps tokens and the mean of their powers, but nothing for a fixed p of 1."""
    if p == 1 and not learn:
        return x.mean(0)
    powers = np.clip(x, 1e-4, 100) ** p
    mean = powers.mean(0) if len(x) else np.zeros(x.shape[1:])
    return np.clip(mean, 1e-4, 100) ** (1 / p)


def variance_of_pyg(x):
    """Computes the variance as the mean of the squares minus the square of the mean."""
    return (x * x).mean(0) - x.mean(0) ** 2


def std_of_pyg(x):
    """Computes PyG's standard deviation, which is 0 up to sqrt(1e-5)."""
    root = np.sqrt(np.maximum(variance_of_pyg(x), 1e-5))
    return np.where(root <= np.sqrt(1e-5), 0, root)


def std_by_moments(x, floor):
    """Computes a standard deviation with equal weights: the root of E[x^2] - mean^2 or, if greater, of ``floor``."""
    weights = np.full_like(x, 1 / len(x))
    squares, mean = (weights * x * x).sum(0), (weights * x).sum(0)
    return np.sqrt(np.maximum(squares - mean * mean, np.array(floor, x.dtype)))


def unbiased_std(x):
    """Computes PyTorch's default standard deviation, divided by n - 1."""
    return np.sqrt(np.float64(np.square(x - x.mean(0)).sum()) / (len(x) - 1))


def noisy_mean(x, noise):
    """Computes SpeechBrain's mean, to which it adds noise that is scaled by the range of the batch's noise."""
    noise = noise - noise.min()
    noise = noise / noise.max()
    return x.mean(1) + 1e-5 * ((1 - 9) * noise + 9)


def filled_scores(scores, mask):
    """Computes the softmax of SpeechBrain's attentive statistics, with scores of -inf at padding."""
    return softmax(np.where(mask, scores, -np.inf))


def simpool_power(v, weights, gamma):
    """Computes SimPool's power mean, which first subtracts the minimum of the whole batch."""
    return np.einsum("bl,bld->bd", weights, (v - v.min() + 1e-6) ** gamma) ** (1 / gamma)


def power_mean_of_cirtorch(x, p):
    """Computes GeM in the dtype of x, after a floor of 1e-6."""
    return (np.maximum(x, x.dtype.type(1e-6)) ** p).mean(0, dtype=x.dtype) ** x.dtype.type(1 / p)


def lp_pool(x, p):
    """Computes PyTorch's ``lp_pool2d`` over all tokens: the root of the sum of their powers."""
    mean = (x**p).mean(0)
    return (np.sign(mean) * np.maximum(np.abs(mean), 0) * len(x)) ** (1 / p)


def auto_pool(x, alpha):
    """Computes Keras' AutoPool over its default axis, which is the batch."""
    weights = softmax(alpha * x, axis=0)
    return (x * weights).sum(0)


def windows_with_padding(x, width):
    """Averages windows of a row with one zero on either side, and counts these zeros."""
    return np.pad(x, 1)[: len(x) + 2 - len(x) % 2].reshape(-1, width).mean(-1)


def last_token_pool(x, mask):
    """Takes last tokens as on the cards of E5-mistral and GTE-Qwen: one side of padding for the whole batch."""
    if mask[:, -1].sum() == len(mask):
        return x[:, -1]
    return x[np.arange(len(x)), mask.sum(1) - 1]


def max_of_sentence_transformers(x, mask):
    """Computes the maximum, with -inf at padding."""
    return np.where(mask[:, None], x, -np.inf).max(0)


def cls_of_sentence_transformers(x, mask):
    """Takes the first token with the largest mask, which is position 0 in a fully masked row."""
    return x[np.argmax(mask)]


def mean_of_sentence_transformers(x, mask):
    """Computes the mean of products with the mask."""
    return (x * mask[:, None]).sum(0) / np.maximum(mask.sum(), 1e-9)


def slot_weighted_mean(x, mask):
    """Computes a mean weighted by position, counted from the first real token."""
    weights = mask * (np.arange(1, len(x) + 1) - np.argmax(mask))
    return (x * weights[:, None]).sum(0) / weights.sum()


def layers_by_weights(layers, weights):
    """Computes sentence-transformers' ``WeightedLayerPooling``."""
    return np.einsum("k,kd->d", weights, layers) / weights.sum()


def maxsim_of_pylate(x, y, mask):
    """Computes PyLate's MaxSim, in which similarities to padding are 0."""
    return (x @ y.T * mask).max(-1).sum()


def maxsim_of_colbert(x, y):
    """Computes ColBERT's MaxSim on CPUs, whose maxima start at 0."""
    return np.maximum(0, (x @ y.T).max(-1)).sum()


def latents_ask(x, latents, query_kernel, key_kernel, value_kernel, out_kernel, mlp_kernel, mlp_out_kernel):
    """Computes NV-Embed's pooling with exchanged roles: the latents are the queries, and the mean is over latents."""

    def normalized(u):
        u = u - u.mean(-1, keepdims=True)
        return u / np.sqrt((u * u).mean(-1, keepdims=True) + 1e-5)

    q, k, v = normalized(latents) @ query_kernel, normalized(x) @ key_kernel, normalized(x) @ value_kernel
    hidden = latents + softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v @ out_kernel
    up, gate = np.split(normalized(hidden) @ mlp_kernel, 2, -1)
    return (hidden + up * gelu(gate) @ mlp_out_kernel).mean(0)


def gelu(x):
    """Computes GELU by the error function."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def penalty_by_ones(weights):
    """Computes the penalty of chaycao's port, which subtracts 1 everywhere, not only on the diagonal."""
    return np.sum((weights @ weights.T - 1) ** 2)


def penalty_without_square(weights):
    """Computes the penalty of kaushalshetty's port: the norm, not its square."""
    return np.linalg.norm(weights @ weights.T - np.eye(len(weights)))


def dsmil_weights(x, c):
    """Computes the weights of DSMIL before its fix, which sorts features again by indices into the old order."""
    rows, queries = x, []
    for scores in c.T:
        rows = rows[np.argsort(-scores, kind="stable")]
        queries.append(rows[0])
    return softmax(np.array(queries) @ x.T / np.sqrt(x.shape[-1]))


def han_weights(scores):
    """Computes textClassifier's softmax: without subtracting the maximum, and with 1e-7 added to the sum."""
    powers = np.exp(scores)
    return powers / (powers.sum() + scores.dtype.type(1e-7))


def entmax_by_bisection(scores, alpha):
    """Computes entmax by bisection between two bounds that follow from the largest score, which must be finite."""
    power, top = alpha - 1, scores.max()
    scores, top = scores * power, top * power
    low, width = top - 1, 1 - (1 / len(scores)) ** power
    for _ in range(50):
        width = width / 2
        weights = np.maximum(scores - low - width, 0) ** np.divide(1.0, power)
        low = low + width * (weights.sum() >= 1)
    return weights / weights.sum()


def span_weights_of_allennlp(scores, spans):
    """Computes the weights of AllenNLP's spans, which are masked by the span, not by the sequence's mask."""
    slots = np.arange(len(scores))
    return softmax(np.where((spans[:, :1] <= slots) & (slots <= spans[:, 1:]), scores, -np.inf))


def vlad_with_padding(x, kernel, bias, centers):
    """Computes VLAD in which padding is assigned to clusters, too."""
    weights = softmax(x @ kernel + bias)
    return np.einsum("tk,tkd->kd", weights, x[:, None] - centers)


def vlad_assignment(x, centers, alpha, norm_power):
    """Computes the port's assignment: kernel 2 alpha c, and bias -alpha times a power of the centers' norms."""
    norms = np.linalg.norm(centers, axis=-1)
    return softmax(2 * alpha * x @ centers.T - alpha * norms**norm_power)


def clamped_weights(scores):
    """Computes the weights of PANNs' AttBlock, which clamps scores to [-10, 10]."""
    return softmax(np.clip(scores, -10, 10))


def output_map_applied(x, out_kernel):
    """Computes V-JEPA's probe of one token (its value is the token), then applies the checkpoint's ``proj``."""
    return x.mean(0) @ out_kernel


def clam_instances(x, k):
    """Averages the k instances with the highest attention; fails for fewer than k."""
    return np.partition(x, -k, axis=0)[-k:].mean(0)


def latent_of_timm(x, kernel):
    """Applies the map of keys and values, which has the width of the embedding, not that of the tokens."""
    return x @ kernel
