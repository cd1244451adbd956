"""attnpool_flax: every attention pooling in JAX, jit-compiled, and Flax modules over them."""

from importlib import import_module

try:
    from attnpool_flax import linen, modules
except ModuleNotFoundError as error:
    name = str(error.name).partition(".")[0]
    if name not in ("jax", "flax"):
        raise
    raise ModuleNotFoundError(
        f"attnpool_flax: {name} is not installed; pip install 'attnpool[flax]'", name=name
    ) from None
from attnpool_flax.call.compiled import chosen_implementation
from attnpool_flax.masks import pad
from attnpool_flax.modules.formats import load, save
from attnpool_flax.segments import pack, unpack
from attnpool_flax.streaming import finalize_state, merge_states
from attnpool_ref import __version__
from attnpool_ref.table import BY_NAME

for _row in BY_NAME.values():  # each from the file of its family; the types stand in __init__.pyi
    globals()[_row.name] = getattr(import_module(f"attnpool_flax.{_row.family}"), _row.name)
for _name in modules.__all__:
    globals()[_name] = getattr(modules, _name)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "__version__",
    *BY_NAME,
    "merge_states",
    "finalize_state",
    *modules.__all__,  # NNX; Linen's are attnpool_flax.linen
    "linen",
    "load",
    "save",
    "pad",
    "pack",
    "unpack",
    "chosen_implementation",
]
