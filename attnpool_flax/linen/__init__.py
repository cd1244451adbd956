"""The modules of :mod:`attnpool_flax.modules` for Flax Linen: same names, same parameters, same layouts.

``init`` reads sizes of the data, as usual in Linen, except ``num_slots`` of AttentionPool2d and optional ones such as
``num_features``. The other arguments of the constructors are those of NNX, without ``rngs``, and modules with dropout
also have ``deterministic``. Each class is derived from the NNX class of the same name
(:mod:`attnpool_flax.linen.deriving`).

>>> import jax
>>> pool, x = AttentionPool(), jnp.ones((2, 3, 4))
>>> variables = pool.init(jax.random.key(0), x)
>>> pool.apply(variables, x).shape
(2, 4)
"""

from attnpool_flax import modules
from attnpool_flax.linen.deriving import derived
from attnpool_flax.linen.formats import load, save
from attnpool_flax.modules import sentences


def _projected_sides(module):
    """Returns the names of the widths that are read from the data: both, if ``qk_features`` is given alone, else none.

    To project only one side, the caller gives the width of this side.
    """
    both = module.x_features is None and module.y_features is None
    return ("x_features", "y_features") if both and module.qk_features is not None else ()


for _name in modules.__all__:  # the types are in __init__.pyi
    globals()[_name] = derived(getattr(modules, _name))
CrossAttentionPool = derived(
    modules.CrossAttentionPool,
    _projected_sides,
    x_features="d; needed only to project x and not y: give it without ``y_features``.",
    y_features="e; needed only to project y and not x: give it without ``x_features``.",
)
SentencePool = derived(sentences.SentencePool)

__all__ = [*modules.__all__, "load", "save"]  # pyright: ignore[reportUnsupportedDunderAll]
