"""Formulas of the notebooks and of the public code behind them, mistakes included, in NumPy.

Each function repeats the arithmetic of one source, for one example (or for a batch, if the mistake is in the batch), so
that ``bugs/`` can print its wrong number. Do not use them: attnpool does each of these things right.
"""

import numpy as np


def softmax(scores, axis=-1):
    """Computes the unmasked softmax that the other formulas start from."""
    powers = np.exp(scores - np.max(scores, axis, keepdims=True))
    return powers / np.sum(powers, axis, keepdims=True)


def unit(x):
    """Normalizes vectors like PyTorch's ``normalize``: divides by the norm, or by 1e-12 if that is greater."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


# Masks that give weight to padding.


def mask_by_product(scores, mask):
    """Computes a softmax in which scores of padding are 0."""
    return softmax(scores * mask)


def mask_by_sum(scores, mask, penalty):
    """Computes a softmax after adding ``penalty``, cast to the scores' dtype, to scores of padding."""
    return softmax(scores + (1 - np.asarray(mask, scores.dtype)) * np.array(penalty).astype(scores.dtype))


def mask_by_fill(scores, mask, fill):
    """Computes a softmax in which scores of padding are the number ``fill``, cast to the scores' dtype."""
    return softmax(np.where(mask, scores, np.array(fill).astype(scores.dtype)))


def mask_twice(scores, mask):
    """Multiplies scores and weights by the mask, then divides the weights by their sum plus 1e-13."""
    weights = softmax(scores * mask) * mask
    return weights / (np.sum(weights) + np.array(1e-13).astype(scores.dtype))


def zero_is_padding(scores):
    """Computes a softmax that treats scores of 0 as padding, and replaces NaN weights by 0."""
    weights = softmax(np.where(scores == 0, -np.inf, scores))
    return np.where(np.isnan(weights), 0, weights)


# Seed 000, and SimKGC, whose function it replaces.


def cross_pooling(h, t, h_mask, t_mask):
    """Pools two sequences by attention; embeddings of padding become 0 and are scored like tokens."""
    h, t = h * h_mask[..., None], t * t_mask[..., None]
    scores = h @ np.swapaxes(t, -1, -2)
    h_weights, t_weights = softmax(scores.sum(-1)), softmax(scores.sum(-2))
    return (h_weights[..., None] * h).sum(-2), (t_weights[..., None] * t).sum(-2), h_weights, t_weights


def simkgc_max(x, mask):
    """Takes the maximum after writing -1e4 into the padding of the caller's array."""
    x[~mask] = -1e4
    return unit(x.max(0))


def simkgc_mean(x, mask):
    """Computes the mean of products with the mask."""
    return unit((x * mask[:, None]).sum(0) / np.maximum(mask.sum(), 1e-4))


def simkgc_first(x, mask):
    """Takes the token at position 0, also if the mask marks it as padding."""
    return unit(x[0])


# Seed 001.


def softmax_with_epsilon(scores):
    """Computes a softmax with 10e-5 added to the denominator, for exactly two axes."""
    assert scores.ndim == 2
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / (powers.sum(1, keepdims=True) + 10e-5)


def fixed_pooling(x, weight=None, random=None):
    """Pools by random weights, divided by their sum, or by the caller's, as given; removes every axis of size 1."""
    if weight is None:
        weight = random.normal(size=(1, x.shape[1]))
        weight = weight / weight.sum()
    return np.squeeze(weight @ x)


def learned_pooling(x, input_mask=None, weight=None, random=None):
    """Pools by attention; draws its query and kernels at every call, and ignores ``weight``."""
    width = x.shape[2]
    query, of_query, of_key = random.normal(size=(1, width)), *random.normal(size=(2, width, width))
    query = query / query.sum() @ of_query
    scores = ((x @ of_key) @ query.T)[..., 0] / np.sqrt(width)
    if input_mask is not None:
        scores = scores + (1 - np.cast(input_mask, np.float32)) * -10000.0
    return (softmax_with_epsilon(scores)[:, None] @ x)[:, 0]


# Seed 002.


def location_class(query, key, value, kernel, bias, out_kernel, out_bias):
    """Computes the class Attn: reads only the first example's query and key, and drops the weights' batch axis."""
    weights = softmax(np.concatenate([query[0], key[0]], 1) @ kernel + bias)
    context = weights[None] @ value
    return (np.concatenate([query[0], context[0]], 1) @ out_kernel + out_bias)[None], weights


def rule_two_in_the_class(query, key, kernel):
    """Computes rule 2 inside the class: the sum leaves one score for each query, whose softmax is 1."""
    return softmax(np.tanh(np.concatenate([query, key], 1) @ kernel).sum(-1, keepdims=True))


# Seed 003.


def d2l_softmax(scores, lengths):
    """Computes d2l's softmax: repeats lengths along axis 1 at any rank, and sets scores of padding to -1e6."""
    shape = scores.shape
    lengths = np.repeat(lengths, shape[1]) if np.ndim(lengths) == 1 else np.reshape(lengths, -1)
    flat = scores.reshape(-1, shape[-1])
    return mask_by_fill(flat, np.arange(shape[-1]) < lengths[:, None], -1e6).reshape(shape)


def d2l_softmax_in_place(scores, length):
    """Computes d2l's softmax; writes -1e6 into the caller's scores, because its reshape is a view."""
    scores[length:] = -1e6
    return softmax(scores)


def kernel_weights(query, key, kernel):
    """Returns a kernel's values at the distances, divided by their sum."""
    values = kernel(np.abs(query[:, None] - key))
    return values / values.sum(-1, keepdims=True)


def heatmap_limits(matrices):
    """Returns the limits of each panel's color scale; the only color bar shows those of the last panel."""
    return [(panel.min(), panel.max()) for row in matrices for panel in row]


# Seed 004.


def neurjudge_mask(query, context):
    """Computes mask attention: treats a score of 0 as padding, and NaN as a fully masked row."""
    weights = zero_is_padding(context @ query.T)
    return weights @ query, weights


def neurjudge_code_wise(query, context):
    """Computes code-wise attention, which masks neither sequence."""
    return softmax((context @ query.T).max(-1))


def neurjudge_projection(x, reference):
    """Projects ``x`` on ``reference``, with 1e-10 added to the denominator."""
    return (x @ reference) / (reference @ reference + 1e-10) * reference


def bidaf(context, query, kernel, context_mask, query_mask, penalty=-1e30):
    """Computes the weights of both of BiDAF's attentions, with one additive mask over all pairs."""
    pairs = query[None] * context[:, None]
    first, second, third = np.split(kernel, 3)
    scores = (context @ first)[:, None] + query @ second + pairs @ third
    mask = (context_mask[:, None] & query_mask).astype(scores.dtype)
    scores = scores + (1 - mask) * np.array(penalty).astype(scores.dtype)
    return softmax(scores), softmax(scores.max(1))


def cosine(x, y):
    """Computes cosines, which are 0/0 for a zero vector."""
    return x @ y.T / (np.linalg.norm(x, axis=-1)[:, None] * np.linalg.norm(y, axis=-1))


def mcrisc_local(x, y, window):
    """Matches each word locally; the window ends before its last word, and its weights are not normalized."""
    weights = cosine(x, y)
    best = weights.argmax(1)
    spans = [slice(max(0, k - window), min(k + window, len(y))) for k in best]
    return np.array([row[span] @ y[span] for row, span in zip(weights, spans, strict=True)])


def quaizarv_max(x, y, x_mask, y_mask):
    """Matches each word by its largest cosine, which is lowered by 2 for each padded word of the pair."""
    scores = cosine(x, y) - 2 * ~x_mask[:, None] - 2 * ~y_mask
    return y[scores.argmax(1)]


def ctm_encoder(states, scores, query_mask):
    """Pools by CTM's softmax; fails where it asks for the truth value of an array."""
    if query_mask:
        scores = np.where(query_mask, scores, scores.min())
    return softmax(scores) @ states


def ctm_weighted_sum(states, scores, query_mask):
    """Pools by CTM's softmax without that test; multiplies values of padding by weights of exactly 0."""
    powers = np.exp(np.where(query_mask, scores, scores.min()) - scores.max()) * query_mask
    return powers / (powers.sum() + 1e-9) @ states
