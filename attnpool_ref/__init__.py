"""Attention pooling in NumPy, by its definitions: the reference implementation, which computes in float64.

Mean, maximum and attention pooling take no longer than NumPy lines such as ``(x * w).sum(1)`` in float32; lines with a
matrix product, such as ``w[:, None] @ x``, or without a mask take half of the time or less. Functions with projections or
scores of pairs take up to 2.5 times as long as such lines. All allocate little beside their results. From about 100,000
numbers in `x` on, a second call of cross, additive or multi-head pooling in `attnpool_flax` with the same NumPy arrays
takes at most half of the time; a mean, a maximum or one query gains nothing there, because JAX copies the arrays.
"""

from importlib import import_module

from attnpool_ref.masks import pad
from attnpool_ref.segments import pack, unpack
from attnpool_ref.streaming import finalize_state, merge_states
from attnpool_ref.table import BY_NAME, overview

__version__ = "0.1.0"

for _row in BY_NAME.values():  # from the file of its family; __init__.pyi has the types
    globals()[_row.name] = getattr(import_module(f"attnpool_ref.{_row.family}"), _row.name)

__all__ = [*BY_NAME, "merge_states", "finalize_state", "formats", "pad", "pack", "unpack"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name):
    """Imports the formats of trained heads where they are first named."""
    if name == "formats":
        return import_module("attnpool_ref.formats")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), "formats"]


if __doc__:  # Python strips it with -OO
    __doc__ += f"""

In a shell, ``attnpool find ABMIL`` finds a function by its name in a paper or another library. Functions by family:

{overview(masks=["pad"], segments=["pack", "unpack"], streaming=["merge_states", "finalize_state"])}
"""
