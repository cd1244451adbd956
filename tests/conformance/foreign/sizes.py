"""Kinds of mistakes that show in long rows, in large batches, or with arrays that are not contiguous."""

import numpy as np
from conformance.foreign.corners import KINDS
from conformance.foreign.wrapping import every
from conformance.foreign.wrong import batched, has, has_tokens, off

TOKENS, EXAMPLES, SEGMENTS = 300, 32, 62
"""Limits beyond which the functions here are wrong."""


def masked_tokens(row):
    """Whether vectors of the row stand along a sequence that a mask [..., L] hides."""
    return has_tokens(row) and any(a.kind == "mask" and a.own for a in row.arguments.values())


def with_masks(call, change):
    """The result with masks changed along their last axis: ``change(positions, mask)`` returns the mask."""
    keys = [k for k in call.keys("mask") if call.values[k].ndim and call.values[k].shape[-1] > 64]
    masks = {k: np.asarray(call.values[k]) != 0 for k in keys}
    return call.right(**{k: change(np.arange(mask.shape[-1]), mask) for k, mask in masks.items()})


@KINDS.of("wrong beyond 300 tokens", has_tokens)
def is_wrong_beyond_300(call):
    return off(call.right(), any(max(a.shape, default=0) > TOKENS for a in call.arrays("data")))


@KINDS.of("only the first 300 tokens", masked_tokens)
def reads_300_tokens(call):
    return with_masks(call, lambda position, mask: mask & (position < TOKENS))


@KINDS.of("a mask is ignored from token 300 on", masked_tokens)
def ignores_masks_from_300_on(call):
    return with_masks(call, lambda position, mask: mask | ((position >= TOKENS) & np.any(mask, -1, keepdims=True)))


@KINDS.of("the last token is lost in a full row of more than 64", masked_tokens)
def loses_a_token_of_full_rows(call):
    def lose(position, mask):
        return mask & ~(np.all(mask, -1, keepdims=True) & (position == mask.shape[-1] - 1))

    return with_masks(call, lose)


@KINDS.of("zeros from the 33rd example on", batched)
def forgets_examples(call):
    def zeroed(a):
        return a * (np.arange(len(a)) < EXAMPLES).reshape(-1, *(1,) * (a.ndim - 1)) if a.ndim else a

    return every(lambda a: zeroed(a).astype(a.dtype), call.right()) if call.batch_rank() == 1 else call.right()


@KINDS.of("zeros from the 33rd example on, of all pairs", lambda row: row.name.endswith("all_pairs"))
def forgets_pairs(call):
    def zeroed(a):
        return a * (np.arange(a.shape[1]) < EXAMPLES).reshape(-1, *(1,) * (a.ndim - 2))

    return every(lambda a: zeroed(a).astype(a.dtype), call.right())


@KINDS.of("all segments from the 63rd on are one", has("segments"))
def joins_segments(call):
    return call.right(**{k: np.minimum(call.values[k], SEGMENTS) for k in call.keys("segments")})


@KINDS.of("memory is read in its own order", has("data", "parameter"))
def reads_memory(call):
    arrays = {k: a for k, a in call.values.items() if isinstance(a, np.ndarray) and a.ndim}
    return call.right(**{k: a.ravel("K").reshape(a.shape) for k, a in arrays.items()})
