"""attnpool_ref: every attention pooling as its definition says, in NumPy, float64 inside."""

from importlib import import_module

from attnpool_ref import formats
from attnpool_ref.masks import pad
from attnpool_ref.segments import pack, unpack
from attnpool_ref.streaming import finalize_state, merge_states
from attnpool_ref.table import BY_NAME

__version__ = "0.1.0"

for _row in BY_NAME.values():  # each from the file of its family; the types stand in __init__.pyi
    globals()[_row.name] = getattr(import_module(f"attnpool_ref.{_row.family}"), _row.name)

__all__ = [*BY_NAME, "merge_states", "finalize_state", "formats", "pad", "pack", "unpack"]  # pyright: ignore[reportUnsupportedDunderAll]
