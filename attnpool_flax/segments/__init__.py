"""Packed sequences. Twin of :mod:`attnpool_ref.segments`.

Each function is the dense one's body on :class:`~attnpool_flax.reductions.Packed` tokens, for the rows whose layouts
have "segments".
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnpool_flax.call.compiled import packed
from attnpool_flax.segments.packing import pack, unpack
from attnpool_ref import table

WITHOUT = {"weighted_pooling": ("precision",)}
"""Arguments of dense functions that the packed ones lack: weighted segment sums are no matrix products, so have no precision."""

for _row in table.VARIANTS:
    if "segments" in _row.layouts:
        _dense = getattr(import_module(f"attnpool_flax.{_row.family}"), _row.name)
        globals()[f"segment_{_row.name}"] = packed(_dense, WITHOUT.get(_row.name, ()))

__all__ = ["pack", "unpack", *sorted(name for name in vars() if name.startswith("segment_"))]  # pyright: ignore[reportUnsupportedDunderAll]

__test__ = {name: made.__doc__ for name, made in list(vars().items()) if name.startswith("segment_")}
"""The examples of the derived functions, where doctest finds them."""

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Describes the functions above to type checkers; the types of the public ones are in attnpool_flax/__init__.pyi."""
