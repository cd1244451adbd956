"""Mistakes about masks."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes(
    spans_to_mask={
        "spans: the last slot is not in them": lambda a: a.oracle() & (np.arange(a.max_length) != a.spans[..., 1:]),
        "spans: a span that ends before it begins is turned round": lambda a: a.oracle(spans=np.sort(a.spans, -1)),
        "spans: padded spans are marked": lambda a: a.oracle(span_mask=None),
    },
    token_positions={
        "positions: counted in slots": lambda a: np.where(a.mask, np.arange(a.mask.shape[-1]), -1),
        "positions: counted from the first real slot": lambda a: np.where(
            a.mask, np.arange(a.mask.shape[-1]) - np.argmax(a.mask, -1)[..., None], -1
        ),
        "positions: counted on through padding": lambda a: np.cumsum(a.mask, -1) - 1,
    },
    lengths_to_mask={
        "lengths: counted from the end": lambda lengths, max_length, *, side="right": ref.lengths_to_mask(
            lengths, max_length, side={"right": "left", "left": "right"}[side]
        ),
        "lengths: the side is not read": lambda lengths, max_length, *, side="right": ref.lengths_to_mask(
            lengths, max_length
        ),
    },
)


@MUTANTS.of("lengths_to_mask", "lengths: one position too many")
def one_position_too_many(lengths, max_length, *, side="right"):
    mask = np.arange(max_length) <= np.expand_dims(lengths, -1)
    return mask if side == "right" else np.flip(mask, -1)


@MUTANTS.of("lengths_to_mask", "lengths: on the left, one position too far")
def shifts_on_the_left(lengths, max_length, *, side="right"):
    mask = ref.lengths_to_mask(lengths, max_length, side=side)
    return mask if side == "right" else np.roll(mask, -1, -1)


@MUTANTS.of("lengths_to_mask", "lengths: a side says what is real")
def counts_the_padding(lengths, max_length, *, side="right"):
    return ref.lengths_to_mask(lengths if side == "right" else max_length - np.asarray(lengths), max_length, side=side)
