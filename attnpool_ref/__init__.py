"""Attention pooling in NumPy, by its definitions: the reference implementation, which computes in float64."""

from importlib import import_module

from attnpool_ref import formats
from attnpool_ref.masks import pad
from attnpool_ref.segments import pack, unpack
from attnpool_ref.streaming import finalize_state, merge_states
from attnpool_ref.table import BY_NAME
from attnpool_ref.table.overview import overview

__version__ = "0.1.0"

for _row in BY_NAME.values():  # from the file of its family; __init__.pyi has the types
    globals()[_row.name] = getattr(import_module(f"attnpool_ref.{_row.family}"), _row.name)

__all__ = [*BY_NAME, "merge_states", "finalize_state", "formats", "pad", "pack", "unpack"]  # pyright: ignore[reportUnsupportedDunderAll]

if __doc__:  # Python strips it with -OO
    __doc__ += f"""

Functions by family:

{overview(BY_NAME.values(), masks=["pad"], segments=["pack", "unpack"], streaming=["merge_states", "finalize_state"])}
"""
