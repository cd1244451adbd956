"""Mistakes about masks."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


@MUTANTS.plain("lengths_to_mask", "lengths: one position too many")
def one_position_too_many(lengths, max_length, *, side="right"):
    mask = np.arange(max_length) <= np.expand_dims(lengths, -1)
    return mask if side == "right" else np.flip(mask, -1)


@MUTANTS.plain("lengths_to_mask", "lengths: counted from the end")
def counts_from_the_end(lengths, max_length, *, side="right"):
    return ref.lengths_to_mask(lengths, max_length, side={"right": "left", "left": "right"}[side])


@MUTANTS.plain("lengths_to_mask", "lengths: the side is not read")
def does_not_read_the_side(lengths, max_length, *, side="right"):
    return ref.lengths_to_mask(lengths, max_length)


@MUTANTS.plain("lengths_to_mask", "lengths: on the left, one position too far")
def shifts_on_the_left(lengths, max_length, *, side="right"):
    mask = ref.lengths_to_mask(lengths, max_length, side=side)
    return mask if side == "right" else np.roll(mask, -1, -1)


@MUTANTS.plain("lengths_to_mask", "lengths: a side says what is real")
def counts_the_padding(lengths, max_length, *, side="right"):
    return ref.lengths_to_mask(lengths if side == "right" else max_length - np.asarray(lengths), max_length, side=side)


@MUTANTS.of("spans_to_mask", "spans: the last slot is not in them")
def spans_without_their_end(a):
    return a.oracle() & (np.arange(a.max_length) != a.spans[..., 1:])


@MUTANTS.of("spans_to_mask", "spans: a span that ends before it begins is turned round")
def spans_turned_round(a):
    return a.oracle(spans=np.sort(a.spans, -1))


@MUTANTS.of("spans_to_mask", "spans: padded spans are marked")
def spans_that_are_padding(a):
    return a.oracle(span_mask=None)


@MUTANTS.of("token_positions", "positions: counted in slots")
def positions_are_slots(a):
    return np.where(a.mask, np.arange(a.mask.shape[-1]), -1)


@MUTANTS.of("token_positions", "positions: counted from the first real slot")
def positions_from_the_first_real_slot(a):
    return np.where(a.mask, np.arange(a.mask.shape[-1]) - np.argmax(a.mask, -1)[..., None], -1)


@MUTANTS.of("token_positions", "positions: counted on through padding")
def positions_at_padding(a):
    return np.cumsum(a.mask, -1) - 1
