"""What public code of poolings computes where it goes wrong, as short NumPy formulas; ``traps`` prints their numbers.

Each function is one source's arithmetic, in the source's dtype, written again without what does not bear on the mistake.
None of it is for use: attnpool does each of these things right.
"""

import math

import numpy as np
from notebooks import softmax


def power_mean_of_pyg(x, p, learn=True):
    """PyG clamps the tokens, and the mean of their powers as well; with a p of 1 that is not learned, nothing."""
    if p == 1 and not learn:
        return x.mean(0)
    powers = np.clip(x, 1e-4, 100) ** p
    mean = powers.mean(0) if len(x) else np.zeros(x.shape[1:])
    return np.clip(mean, 1e-4, 100) ** (1 / p)


def variance_of_pyg(x):
    """The mean of the squares, less the square of the mean."""
    return (x * x).mean(0) - x.mean(0) ** 2


def std_of_pyg(x):
    """What is no larger than the floor of the root becomes 0."""
    root = np.sqrt(np.maximum(variance_of_pyg(x), 1e-5))
    return np.where(root <= np.sqrt(1e-5), 0, root)


def std_by_moments(x, floor):
    """The same difference for attentive statistics, here with equal weights, and a floor below the root."""
    weights = np.full_like(x, 1 / len(x))
    squares, mean = (weights * x * x).sum(0), (weights * x).sum(0)
    return np.sqrt(np.maximum(squares - mean * mean, np.array(floor, x.dtype)))


def unbiased_std(x):
    """PyTorch's default: divides by n - 1."""
    return np.sqrt(np.float64(np.square(x - x.mean(0)).sum()) / (len(x) - 1))


def noisy_mean(x, noise):
    """SpeechBrain adds noise to the mean, scaled by the range of the whole batch's noise."""
    noise = noise - noise.min()
    noise = noise / noise.max()
    return x.mean(1) + 1e-5 * ((1 - 9) * noise + 9)


def filled_scores(scores, mask):
    """SpeechBrain's attentive statistics: -inf where nothing is real."""
    return softmax(np.where(mask, scores, -np.inf))


def simpool_power(v, weights, gamma):
    """The least value of the whole batch is subtracted before the power."""
    return np.einsum("bl,bld->bd", weights, (v - v.min() + 1e-6) ** gamma) ** (1 / gamma)


def power_mean_of_cirtorch(x, p):
    """GeM as it stands: in the dtype of x, after the floor."""
    return (np.maximum(x, x.dtype.type(1e-6)) ** p).mean(0, dtype=x.dtype) ** x.dtype.type(1 / p)


def lp_pool(x, p):
    """PyTorch's ``lp_pool2d`` over all tokens: the mean times their number, with its sign."""
    mean = (x**p).mean(0)
    return (np.sign(mean) * np.maximum(np.abs(mean), 0) * len(x)) ** (1 / p)


def auto_pool(x, alpha):
    """The default axis of Keras' AutoPool is the first, which is the batch."""
    weights = softmax(alpha * x, axis=0)
    return (x * weights).sum(0)


def windows_with_padding(x, width):
    """An average over windows of a row with one zero on either side, which count."""
    return np.pad(x, 1)[: len(x) + 2 - len(x) % 2].reshape(-1, width).mean(-1)


def last_token_pool(x, mask):
    """The cards of E5-mistral and GTE-Qwen: whether the whole batch ends in real tokens decides."""
    if mask[:, -1].sum() == len(mask):
        return x[:, -1]
    return x[np.arange(len(x)), mask.sum(1) - 1]


def max_of_sentence_transformers(x, mask):
    """-inf at padding."""
    return np.where(mask[:, None], x, -np.inf).max(0)


def cls_of_sentence_transformers(x, mask):
    """The first place with the largest mask, which is the first of all where nothing is real."""
    return x[np.argmax(mask)]


def mean_of_sentence_transformers(x, mask):
    """Products with the mask."""
    return (x * mask[:, None]).sum(0) / np.maximum(mask.sum(), 1e-9)


def slot_weighted_mean(x, mask):
    """Weights are counted by slots, from the first real one."""
    weights = mask * (np.arange(1, len(x) + 1) - np.argmax(mask))
    return (x * weights[:, None]).sum(0) / weights.sum()


def layers_by_weights(layers, weights):
    """sentence-transformers' WeightedLayerPooling."""
    return np.einsum("k,kd->d", weights, layers) / weights.sum()


def maxsim_of_pylate(x, y, mask):
    """Similarities to padding become 0 and take part."""
    return (x @ y.T * mask).max(-1).sum()


def maxsim_of_colbert(x, y):
    """The loop of the CPU starts its maxima at 0."""
    return np.maximum(0, (x @ y.T).max(-1)).sum()


def latents_ask(x, latents, query_kernel, key_kernel, value_kernel, out_kernel, mlp_kernel, mlp_out_kernel):
    """NV-Embed with the roles exchanged: the latents are the queries, so that their number is what is averaged."""

    def normalized(u):
        u = u - u.mean(-1, keepdims=True)
        return u / np.sqrt((u * u).mean(-1, keepdims=True) + 1e-5)

    q, k, v = normalized(latents) @ query_kernel, normalized(x) @ key_kernel, normalized(x) @ value_kernel
    hidden = latents + softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v @ out_kernel
    up, gate = np.split(normalized(hidden) @ mlp_kernel, 2, -1)
    return (hidden + up * gelu(gate) @ mlp_out_kernel).mean(0)


def gelu(x):
    """By the error function."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def penalty_by_ones(weights):
    """chaycao's port: 1 is subtracted everywhere, not on the diagonal alone."""
    return np.sum((weights @ weights.T - 1) ** 2)


def penalty_without_square(weights):
    """kaushalshetty's port: the norm itself."""
    return np.linalg.norm(weights @ weights.T - np.eye(len(weights)))


def dsmil_weights(x, c):
    """DSMIL before its fix: each class sorts the features again, by the order of those that were not sorted."""
    rows, queries = x, []
    for scores in c.T:
        rows = rows[np.argsort(-scores, kind="stable")]
        queries.append(rows[0])
    return softmax(np.array(queries) @ x.T / np.sqrt(x.shape[-1]))


def han_weights(scores):
    """textClassifier: exponentials without their maximum, and 1e-7 beside their sum."""
    powers = np.exp(scores)
    return powers / (powers.sum() + scores.dtype.type(1e-7))


def entmax_by_bisection(scores, alpha):
    """The threshold between two bounds that follow from the largest score, which has to be a number."""
    power, top = alpha - 1, scores.max()
    scores, top = scores * power, top * power
    low, width = top - 1, 1 - (1 / len(scores)) ** power
    for _ in range(50):
        width = width / 2
        weights = np.maximum(scores - low - width, 0) ** np.divide(1.0, power)
        low = low + width * (weights.sum() >= 1)
    return weights / weights.sum()


def span_weights_of_allennlp(scores, spans):
    """Self-attentive spans know the span's mask, not the sequence's."""
    slots = np.arange(len(scores))
    return softmax(np.where((spans[:, :1] <= slots) & (slots <= spans[:, 1:]), scores, -np.inf))


def vlad_with_padding(x, kernel, bias, centers):
    """Every token is assigned, padding as well."""
    weights = softmax(x @ kernel + bias)
    return np.einsum("tk,tkd->kd", weights, x[:, None] - centers)


def vlad_assignment(x, centers, alpha, norm_power):
    """The port's kernel and bias from the centres: 2 alpha c, and -alpha times a power of their norms."""
    norms = np.linalg.norm(centers, axis=-1)
    return softmax(2 * alpha * x @ centers.T - alpha * norms**norm_power)


def clamped_weights(scores):
    """PANNs' AttBlock: scores stay within 10."""
    return softmax(np.clip(scores, -10, 10))


def output_map_applied(x, out_kernel):
    """V-JEPA's probe of one token, whose value is the token, and then the ``proj`` that its checkpoints hold."""
    return x.mean(0) @ out_kernel


def clam_instances(x, k):
    """The k instances with the highest attention; of fewer than k there is no such thing."""
    return np.partition(x, -k, axis=0)[-k:].mean(0)


def latent_of_timm(x, kernel):
    """The map of keys and values has the width of the embedding, not that of the tokens."""
    return x @ kernel
