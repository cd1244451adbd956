"""Packed sequences. Twin of :mod:`attnpool_ref.segments`.

``segment_NAME`` runs the body of the function NAME for padded tokens on :class:`~attnpool_flax.tokens.Packed`
tokens. It exists for each row of :mod:`attnpool_ref.table` with the layout "segments".
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnpool_flax.call.compiled import packed
from attnpool_flax.segments.packing import pack, unpack
from attnpool_ref import table

WITHOUT = {"weighted_pooling": ("precision",)}
"""Arguments of dense functions, besides lengths and ``axis_name``, that packed ones lack.

Weighted sums of segments are no matrix products.
"""

for _row in table.VARIANTS:
    if "segments" in _row.layouts:
        _dense = getattr(import_module(f"attnpool_flax.{_row.family}"), _row.name)
        globals()[f"segment_{_row.name}"] = packed(_dense, WITHOUT.get(_row.name, ()))

__all__ = ["pack", "unpack", *sorted(name for name in vars() if name.startswith("segment_"))]  # pyright: ignore[reportUnsupportedDunderAll]

__test__ = {name: made.__doc__ for name, made in list(vars().items()) if name.startswith("segment_")}
"""The docstrings of the derived functions, where doctest finds their examples."""

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Declares the ``segment_`` functions for type checkers; attnpool_flax/__init__.pyi has their exact types."""
