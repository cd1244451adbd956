"""Functions of the five notebooks that attnpool began with, in NumPy as in ``tools/generate/notebooks.py``.

They have no documentation, so each is judged by all guarantees of its row, with the arguments that it has.
"""

import notebooks
import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.table import Entry


def cross_pooling(dtype):
    """Pools two sequences, each weighted by its dot products with the other, with two masks of 0 and 1. It multiplies the
    tokens by the masks.
    """
    del dtype

    def pool(x, y, x_mask, y_mask):
        return notebooks.cross_pooling(x, y, x_mask.astype(x.dtype), y_mask.astype(y.dtype))[:2]

    return Candidate(pool, arrays="numpy", mask_form="integer", batched=True)


def fixed_pooling(dtype):
    """Pools with the caller's weights, one row for each example, or with random weights. It has no mask."""
    del dtype

    def pool(x, weights=None):
        given = None if weights is None else weights[..., None, :]
        return notebooks.fixed_pooling(x, given, np.random)

    return Candidate(pool, arrays="numpy", batched=True)


def learned_pooling(dtype):
    """Pools by one query, with an optional mask of 0 and 1. It takes no query and kernels, but draws them at random."""
    del dtype

    def pool(x, input_mask=None):
        return notebooks.learned_pooling(x, input_mask, random=np.random)

    return Candidate(pool, arrays="numpy", mask_form="integer", batched=True, arguments={"input_mask": "mask"})


def location_class(dtype):
    """Computes weights of positions from query and state, the weighted sum of the values, and an output map. It has no
    mask.
    """
    del dtype

    def attend(query, state, value, kernel, bias, out_kernel, out_bias, *, return_weights=False):
        parts = notebooks.location_class(query, state, value, kernel, bias, out_kernel, out_bias)
        return parts if return_weights else parts[0]

    return Candidate(attend, arrays="numpy", batched=True)


def masked_softmax(dtype):
    """Computes a softmax over the positions below the lengths on the last axis: one length for each example, or none."""
    del dtype

    def softmax(scores, lengths=None):
        return notebooks.softmax(scores) if lengths is None else notebooks.d2l_softmax(scores, lengths)

    return Candidate(softmax, arrays="numpy", batched=True)


def code_wise_attention(dtype):
    """Pools the context tokens, weighted by a softmax of their highest scores with any query token. It has no mask. The axis
    of size 1 in its result is removed before the comparison.
    """
    del dtype

    def attend(query, context):
        scores = context @ np.swapaxes(query, -1, -2)
        weights = notebooks.softmax(scores.max(-1))
        return (weights[:, None] @ context)[:, 0]

    return Candidate(attend, arrays="numpy", batched=True)


def mask_attention(dtype):
    """Computes for each context token an average of the query's tokens. It treats scores of exactly 0 as padding."""
    del dtype

    def attend(query, context):
        return notebooks.zero_is_padding(context @ np.swapaxes(query, -1, -2)) @ query

    return Candidate(attend, arrays="numpy", batched=True)


FLOATS = ("float32", "float64")
OURS = "Use `attnpool_ref.{0}` or `attnpool_flax.{0}`. [bugs.md](bugs.md) explains the mistakes of the notebooks."

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
