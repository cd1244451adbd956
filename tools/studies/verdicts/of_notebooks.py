"""The functions of the five notebooks that attnpool began with, in the NumPy of ``tools/generate/notebooks.py``.

They come from no library: what is asked of them is what their row promises, through the arguments that they have.
"""

import notebooks
import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.table import Entry


def cross_pooling(dtype):
    """Pools two sequences by each other, with two masks of 0 and 1 by which the tokens are multiplied."""
    del dtype

    def pool(x, y, x_mask, y_mask):
        return notebooks.cross_pooling(x, y, x_mask.astype(x.dtype), y_mask.astype(y.dtype))[:2]

    return Candidate(pool, arrays="numpy", mask_form="integer", batched=True)


def fixed_pooling(dtype):
    """Pools with the caller's weights, one row of them for each example, or with random ones; it has no mask."""
    del dtype

    def pool(x, weights=None):
        given = None if weights is None else weights[..., None, :]
        return notebooks.fixed_pooling(x, given, np.random)

    return Candidate(pool, arrays="numpy", batched=True)


def learned_pooling(dtype):
    """Pools with one query, with an optional mask of 0 and 1. It takes no parameters: it draws them."""
    del dtype

    def pool(x, input_mask=None):
        return notebooks.learned_pooling(x, input_mask, random=np.random)

    return Candidate(pool, arrays="numpy", mask_form="integer", batched=True, arguments={"input_mask": "mask"})


def location_class(dtype):
    """Weights of slots from query and state, the weighted sum of the values, and an output map; it has no mask."""
    del dtype

    def attend(query, state, value, kernel, bias, out_kernel, out_bias, *, return_weights=False):
        parts = notebooks.location_class(query, state, value, kernel, bias, out_kernel, out_bias)
        return parts if return_weights else parts[0]

    return Candidate(attend, arrays="numpy", batched=True)


def masked_softmax(dtype):
    """A softmax over the last axis, where it is no longer than the lengths say: one length for each example, or none."""
    del dtype

    def softmax(scores, lengths=None):
        return notebooks.softmax(scores) if lengths is None else notebooks.d2l_softmax(scores, lengths)

    return Candidate(softmax, arrays="numpy", batched=True)


def code_wise_attention(dtype):
    """Pools the context by how well each token meets its best query token; it has no mask. The axis of size 1 that
    it keeps is taken off.
    """
    del dtype

    def attend(query, context):
        scores = context @ np.swapaxes(query, -1, -2)
        weights = notebooks.softmax(scores.max(-1))
        return (weights[:, None] @ context)[:, 0]

    return Candidate(attend, arrays="numpy", batched=True)


def mask_attention(dtype):
    """Each context token's soft choice among the query's tokens; what scores exactly 0 is taken for padding."""
    del dtype

    def attend(query, context):
        return notebooks.zero_is_padding(context @ np.swapaxes(query, -1, -2)) @ query

    return Candidate(attend, arrays="numpy", batched=True)


FLOATS = ("float32", "float64")
OURS = "Use `attnpool_ref.{0}` or `attnpool_flax.{0}`; [bugs.md](bugs.md) has each mistake by itself."

ENTRIES = tuple(
    Entry(f"notebook {number}: {what}", row, make, ("numpy",), OURS.format(row), FLOATS)
    for number, what, row, make in (
        ("000", "cross pooling", "cross_attention_pooling", cross_pooling),
        ("001", "fixed weights", "weighted_pooling", fixed_pooling),
        ("001", "one learned query", "attention_pooling", learned_pooling),
        ("002", "class Attn", "location_attention", location_class),
        ("003", "masked softmax", "masked_softmax", masked_softmax),
        ("004", "code-wise attention", "code_wise_attention", code_wise_attention),
        ("004", "mask attention", "mask_attention", mask_attention),
    )
)
