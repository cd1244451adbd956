"""Attention pooling in JAX: compiled twins of the functions of ``attnpool_ref``, and Flax modules that call them."""

from importlib import import_module

try:
    from attnpool_flax import modules
except ModuleNotFoundError as error:
    name = str(error.name).partition(".")[0]
    if name not in ("jax", "flax"):
        raise
    raise ModuleNotFoundError(
        f"attnpool_flax: {name} is not installed; in a clone: pip install -e '.[flax]'", name=name
    ) from None
from attnpool_flax.masks import pad
from attnpool_flax.segments import pack, unpack
from attnpool_flax.streaming import finalize_state, merge_states
from attnpool_ref import __version__
from attnpool_ref.table import BY_NAME, overview

for _row in BY_NAME.values():  # each from the file of its family; __init__.pyi has the types
    globals()[_row.name] = getattr(import_module(f"attnpool_flax.{_row.family}"), _row.name)
for _name in modules.__all__:
    globals()[_name] = getattr(modules, _name)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "__version__",
    *BY_NAME,
    "merge_states",
    "finalize_state",
    *modules.__all__,  # NNX; Linen's are attnpool_flax.linen
    "linen",  # pyright: ignore[reportUnsupportedDunderAll]
    "load",  # pyright: ignore[reportUnsupportedDunderAll]
    "save",  # pyright: ignore[reportUnsupportedDunderAll]
    "pad",
    "pack",
    "unpack",
]


def __getattr__(name):
    """Imports the Linen modules and the formats of trained heads where they are first named: most programs need neither."""
    if name == "linen":
        return import_module("attnpool_flax.linen")
    if name in ("load", "save"):
        return getattr(import_module("attnpool_flax.modules.formats"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), "linen", "load", "save"]


if __doc__:  # Python strips it with -OO
    _OTHERS = {
        "masks": ["pad"],
        "segments": ["pack", "unpack"],
        "streaming": ["merge_states", "finalize_state"],
        "modules": [name for name in __all__ if name[0].isupper()],
        "formats": ["load", "save"],
    }
    __doc__ += f"""

In a shell, ``attnpool find ABMIL`` finds a function by its name in a paper or another library. Functions by family, and
modules (NNX; those of Linen, of the same names, are in ``attnpool_flax.linen``):

{overview(**_OTHERS)}
"""
