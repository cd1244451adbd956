"""Mistakes about masks."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


@MUTANTS.plain("lengths_to_mask", "lengths: one position too many")
def one_position_too_many(lengths, max_length):
    return np.arange(max_length) <= np.expand_dims(lengths, -1)


@MUTANTS.plain("lengths_to_mask", "lengths: counted from the end")
def counts_from_the_end(lengths, max_length):
    return np.flip(ref.lengths_to_mask(lengths, max_length), -1)
