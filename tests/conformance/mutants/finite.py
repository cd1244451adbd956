"""Mistakes of finite numbers in place of infinities."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

MUTANTS = Mistakes()

FILLS = (100.0, 1e4, 1e9, 1e30)
"""Numbers that stand for infinity."""


def _filled(a, fill):
    return np.where(a.mask[..., None], a.x, fill)


def _unless_empty(a, result):
    return np.where(np.any(a.mask, -1)[..., None], result, 0)


def _largest(x):
    return np.max(x, -2) if x.shape[-2] else np.zeros((*x.shape[:-2], x.shape[-1]))


for number in FILLS:

    @MUTANTS.of("max_pooling", f"max: padding is -{number:g}")
    def max_filled(a, fill=number):
        return _unless_empty(a, _largest(_filled(a, -fill)))

    @MUTANTS.of("min_pooling", f"min: padding is {number:g}")
    def min_filled(a, fill=number):
        return _unless_empty(a, -_largest(-_filled(a, fill)))

    @MUTANTS.of("mean_max_pooling", f"mean and max: padding is -{number:g} in the maximum")
    def mean_max_filled(a, fill=number):
        mean = np.sum(_filled(a, 0), -2) / np.maximum(np.sum(a.mask, -1), 1)[..., None]
        return np.concatenate([mean, _unless_empty(a, _largest(_filled(a, -fill)))], -1)

    @MUTANTS.of("max_pooling", f"max: starts at -{number:g}")
    def max_started(a, fill=number):
        return _unless_empty(a, np.max(_filled(a, -np.inf), -2, initial=-fill))

    @MUTANTS.of("segment_max_pooling", f"segment max: starts at -{number:g}")
    def segment_max_filled(a, fill=number):
        ids = a.segment_ids[..., None] == np.arange(a.num_segments)
        own = ids & a.mask[..., None]
        found = [np.max(np.where(real[..., None], a.x, -fill), -2, initial=-fill) for real in own.T]
        return np.where(np.any(own, 0)[:, None], np.stack(found), 0)
