"""Functions of the five notebooks in NumPy, with all of their mistakes (docs/mistakes-of-the-notebooks.md)."""

from dataclasses import dataclass

import numpy as np

from attnpool_ref.conformance import Candidate


@dataclass(frozen=True)
class OfNotebook:
    """A notebook's function and what the judge must say of it.

    Attributes:
      row: the function of attnpool that it should be.
      candidate: the function, with its calling convention.
      broken: the guarantees that it breaks by itself, not as a consequence of another.
      cause: the beginning of a cause that is named, "" if none is.
    """

    row: str
    candidate: Candidate
    broken: tuple[str, ...]
    cause: str = ""


def softmax(scores):
    powers = np.exp(scores - np.max(scores, -1, keepdims=True))
    return powers / np.sum(powers, -1, keepdims=True)


def cross_pooling(x, y, x_mask, y_mask):
    x, y = x * x_mask[..., None].astype(x.dtype), y * y_mask[..., None].astype(y.dtype)
    scores = x @ np.swapaxes(y, -1, -2)
    return (softmax(scores.sum(-1))[..., None] * x).sum(-2), (softmax(scores.sum(-2))[..., None] * y).sum(-2)


def normal_pooling(x, weights=None):
    if weights is None:
        weights = np.random.normal(size=(1, x.shape[1]))
        weights = weights / weights.sum()
    else:
        weights = weights[..., None, :]
    return np.squeeze(weights @ x)


def learned_pooling(x, input_mask=None):
    width = x.shape[2]
    query, of_query, of_key = np.random.normal(size=(1, width)), *np.random.normal(size=(2, width, width))
    scores = (x @ of_key @ (query / query.sum() @ of_query).T)[..., 0] / np.sqrt(width)
    if input_mask is not None:
        scores = scores + (1 - np.cast(input_mask, np.float32)) * -10000.0
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return (powers / (powers.sum(1, keepdims=True) + 10e-5))[:, None] @ x


def attn(query, state, value, kernel, bias, out_kernel, out_bias, *, return_weights=False):
    weights = softmax(np.concatenate([query[0], state[0]], 1) @ kernel + bias)
    result = (np.concatenate([query[0], (weights[None] @ value)[0]], 1) @ out_kernel + out_bias)[None]
    return (result, weights) if return_weights else result


def d2l_masked_softmax(scores, lengths=None):
    if lengths is None:
        return softmax(scores)
    shape = scores.shape
    lengths = np.repeat(lengths, shape[1]) if np.ndim(lengths) == 1 else np.reshape(lengths, -1)
    real = np.arange(shape[-1]) < lengths[:, None]
    return softmax(np.where(real, scores.reshape(-1, shape[-1]), scores.dtype.type(-1e6))).reshape(shape)


def code_wise_attention(query, context):
    scores = context @ np.swapaxes(query, -1, -2)
    return (softmax(scores.max(-1))[:, None] @ context)[:, 0]


def mask_attention(query, context):
    scores = context @ np.swapaxes(query, -1, -2)
    weights = softmax(np.where(scores == 0, -np.inf, scores))
    return np.where(np.isnan(weights), 0, weights) @ query


def called(function, **convention):
    return Candidate(function, arrays="numpy", batched=True, **convention)


OF_NOTEBOOKS = {
    "cross pooling": OfNotebook(
        "cross_attention_pooling",
        called(cross_pooling, mask_form="integer"),
        ("values under masks",),
        "multiplies scores by the mask",
    ),
    "fixed weights": OfNotebook(
        "weighted_pooling", called(normal_pooling), ("an answer",), "random: equal calls have different results"
    ),
    "one learned query": OfNotebook(
        "attention_pooling",
        called(learned_pooling, mask_form="integer", arguments={"input_mask": "mask"}),
        ("an answer",),
    ),
    "the class Attn": OfNotebook("location_attention", called(attn), ("shape",)),
    "d2l's masked softmax": OfNotebook(
        "masked_softmax",
        called(d2l_masked_softmax),
        ("empty rows", "extreme scores"),
        "averages the padding of a fully masked row, as a finite number in place of -inf does",
    ),
    "NeurJudge's code-wise attention": OfNotebook(
        "code_wise_attention", called(code_wise_attention), ("empty rows", "mixed dtypes")
    ),
    "NeurJudge's mask attention": OfNotebook(
        "mask_attention",
        called(mask_attention),
        ("empty rows", "mixed dtypes", "NaN at a real token"),
        "takes scores of exactly 0 for padding",
    ),
}
