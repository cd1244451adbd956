"""Flax NNX modules: parameters and configuration; the arithmetic is in functions.

Each module calls one function of this package, or that for packed tokens, with its parameters;
:mod:`attnpool_flax.modules.specs` lists both. The same modules for Linen are in :mod:`attnpool_flax.linen`.
"""

from attnpool_flax.modules import (
    additive,
    attention,
    heads,
    means,
    pairs,
    pooling,
    probes,
    readouts,
    relations,
    scores,
    statistics,
)
from attnpool_flax.modules.specs import SPECS

_FILES = (scores, attention, pooling, means, statistics, heads, probes, additive, readouts, pairs, relations)

for _name in SPECS:  # each from the file that defines it; the types are in __init__.pyi
    globals()[_name] = next(getattr(file, _name) for file in _FILES if hasattr(file, _name))

__all__ = [*SPECS]  # pyright: ignore[reportUnsupportedDunderAll]
