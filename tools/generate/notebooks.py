"""What the notebooks and the public code behind them compute, mistakes included, as short NumPy formulas.

Each function is one source's arithmetic, written again for one example (a batch where the mistake is in the batch), so
that ``bugs/`` can print its number. None of it is for use: attnpool does each of these things right.
"""

import numpy as np


def softmax(scores, axis=-1):
    """The plain softmax that all of them start from."""
    powers = np.exp(scores - np.max(scores, axis, keepdims=True))
    return powers / np.sum(powers, axis, keepdims=True)


def unit(x):
    """PyTorch's ``normalize``: divides by the norm, but by no less than 1e-12."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


# Masks that are no masks.


def mask_by_product(scores, mask):
    """Scores of padding become 0 and take part."""
    return softmax(scores * mask)


def mask_by_sum(scores, mask, penalty):
    """Scores of padding are lowered by a constant of their own dtype."""
    return softmax(scores + (1 - np.asarray(mask, scores.dtype)) * np.array(penalty).astype(scores.dtype))


def mask_by_fill(scores, mask, fill):
    """Scores of padding become a finite number."""
    return softmax(np.where(mask, scores, np.array(fill).astype(scores.dtype)))


def mask_twice(scores, mask):
    """Zeroes the scores, then the weights, then divides by what is left."""
    weights = softmax(scores * mask) * mask
    return weights / (np.sum(weights) + np.array(1e-13).astype(scores.dtype))


def zero_is_padding(scores):
    """Guesses the mask from the scores, and calls NaN empty."""
    weights = softmax(np.where(scores == 0, -np.inf, scores))
    return np.where(np.isnan(weights), 0, weights)


# Seed 000, and SimKGC whose function it replaces.


def cross_pooling(h, t, h_mask, t_mask):
    """Pads are multiplied by 0 and then scored like tokens."""
    h, t = h * h_mask[..., None], t * t_mask[..., None]
    scores = h @ np.swapaxes(t, -1, -2)
    h_weights, t_weights = softmax(scores.sum(-1)), softmax(scores.sum(-2))
    return (h_weights[..., None] * h).sum(-2), (t_weights[..., None] * t).sum(-2), h_weights, t_weights


def simkgc_max(x, mask):
    """Overwrites the padding of the caller's array, then takes the maximum."""
    x[~mask] = -1e4
    return unit(x.max(0))


def simkgc_mean(x, mask):
    """Sums the products with the mask."""
    return unit((x * mask[:, None]).sum(0) / np.maximum(mask.sum(), 1e-4))


def simkgc_first(x, mask):
    """Takes position 0 whatever the mask says."""
    return unit(x[0])


# Seed 001.


def softmax_with_epsilon(scores):
    """10e-5 stands in the denominator, and the rank is fixed."""
    assert scores.ndim == 2
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / (powers.sum(1, keepdims=True) + 10e-5)


def fixed_pooling(x, weight=None, random=None):
    """Random weights over their sum, or the caller's as they are; then every axis of size 1 goes."""
    if weight is None:
        weight = random.normal(size=(1, x.shape[1]))
        weight = weight / weight.sum()
    return np.squeeze(weight @ x)


def learned_pooling(x, input_mask=None, weight=None, random=None):
    """Draws its query and kernels at every call and never reads ``weight``."""
    width = x.shape[2]
    query, of_query, of_key = random.normal(size=(1, width)), *random.normal(size=(2, width, width))
    query = query / query.sum() @ of_query
    scores = ((x @ of_key) @ query.T)[..., 0] / np.sqrt(width)
    if input_mask is not None:
        scores = scores + (1 - np.cast(input_mask, np.float32)) * -10000.0
    return (softmax_with_epsilon(scores)[:, None] @ x)[:, 0]


# Seed 002.


def location_class(query, key, value, kernel, bias, out_kernel, out_bias):
    """The class Attn: only the first example's query and key are read, and the weights lose the batch axis."""
    weights = softmax(np.concatenate([query[0], key[0]], 1) @ kernel + bias)
    context = weights[None] @ value
    return (np.concatenate([query[0], context[0]], 1) @ out_kernel + out_bias)[None], weights


def rule_two_in_the_class(query, key, kernel):
    """Rule 2 put literally into the class: the sum leaves one score for each query, of which softmax makes 1."""
    return softmax(np.tanh(np.concatenate([query, key], 1) @ kernel).sum(-1, keepdims=True))


# Seed 003.


def d2l_softmax(scores, lengths):
    """Lengths are repeated along axis 1 whatever the rank is; padding is filled with -1e6."""
    shape = scores.shape
    lengths = np.repeat(lengths, shape[1]) if np.ndim(lengths) == 1 else np.reshape(lengths, -1)
    flat = scores.reshape(-1, shape[-1])
    return mask_by_fill(flat, np.arange(shape[-1]) < lengths[:, None], -1e6).reshape(shape)


def d2l_softmax_in_place(scores, length):
    """A reshape is a view, so that the fill is written into the caller's scores."""
    scores[length:] = -1e6
    return softmax(scores)


def kernel_weights(query, key, kernel):
    """A kernel of the distances over its sum."""
    values = kernel(np.abs(query[:, None] - key))
    return values / values.sum(-1, keepdims=True)


def heatmap_limits(matrices):
    """Each panel has its own scale; the colour bar is drawn for the last."""
    return [(panel.min(), panel.max()) for row in matrices for panel in row]


# Seed 004.


def neurjudge_mask(query, context):
    """A score of 0 is padding, NaN is an empty row."""
    weights = zero_is_padding(context @ query.T)
    return weights @ query, weights


def neurjudge_code_wise(query, context):
    """No mask on either side."""
    return softmax((context @ query.T).max(-1))


def neurjudge_projection(x, reference):
    """1e-10 stands in the denominator."""
    return (x @ reference) / (reference @ reference + 1e-10) * reference


def bidaf(context, query, kernel, context_mask, query_mask, penalty=-1e30):
    """One additive mask over all pairs; gives both weights."""
    pairs = query[None] * context[:, None]
    first, second, third = np.split(kernel, 3)
    scores = (context @ first)[:, None] + query @ second + pairs @ third
    mask = (context_mask[:, None] & query_mask).astype(scores.dtype)
    scores = scores + (1 - mask) * np.array(penalty).astype(scores.dtype)
    return softmax(scores), softmax(scores.max(1))


def cosine(x, y):
    """0 over 0 for a zero vector."""
    return x @ y.T / (np.linalg.norm(x, axis=-1)[:, None] * np.linalg.norm(y, axis=-1))


def mcrisc_local(x, y, window):
    """The window ends before its last word, and nothing divides by the sum of its weights."""
    weights = cosine(x, y)
    best = weights.argmax(1)
    spans = [slice(max(0, k - window), min(k + window, len(y))) for k in best]
    return np.array([row[span] @ y[span] for row, span in zip(weights, spans, strict=True)])


def quaizarv_max(x, y, x_mask, y_mask):
    """2 less for each side that is padded; a row of padding still finds its largest."""
    scores = cosine(x, y) - 2 * ~x_mask[:, None] - 2 * ~y_mask
    return y[scores.argmax(1)]


def ctm_encoder(states, scores, query_mask):
    """CTM's padding-aware softmax: right in its weights, but the truth of an array is asked, and pads meet the sum."""
    if query_mask:
        scores = np.where(query_mask, scores, scores.min())
    return softmax(scores) @ states


def ctm_weighted_sum(states, scores, query_mask):
    """The same after that question: weights of exactly 0 times whatever stands in the padding."""
    powers = np.exp(np.where(query_mask, scores, scores.min()) - scores.max()) * query_mask
    return powers / (powers.sum() + 1e-9) @ states
