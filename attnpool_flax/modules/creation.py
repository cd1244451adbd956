"""Creation of NNX parameters from the table :data:`~attnpool_flax.modules.specs.OWNERS`, and their values in a call."""

import jax.numpy as jnp
from flax import nnx

from attnpool_flax.call.compiled import check_implementation
from attnpool_flax.call.sharding import check_axis_name
from attnpool_flax.modules.parameters import (
    cast,
    check_options,
    check_rate,
    check_sizes,
    initialize,
    multiplier_shape,
    refuse_in_own_name,
    shaped_parameters,
    show_signature,
)
from attnpool_flax.modules.specs import FIXED, UNDRAWN


class PoolingModule(nnx.Module):
    """Base of the NNX modules: the traceback of an error shows one frame of the package, that of the module."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            show_signature(cls)
        refuse_in_own_name(cls, "__init__", "__call__")


def create(module, name, rngs, given=None, **initializers):
    """Gives a module its parameters; those that it does not have are None.

    Args:
      module: the module, whose sizes and options are attributes.
      name: its key in the table; a subclass has its parent's.
      rngs: where keys come from; may be None if no parameter is drawn.
      given: arguments of the constructor that are no attributes, by name.
      **initializers: by the kinds that the table names.
    """
    if rngs is not None and not isinstance(rngs, nnx.Rngs):  # a seed or a key
        raise TypeError(f"{name}: `rngs` is a {type(rngs).__name__}, needs an nnx.Rngs, such as `nnx.Rngs(0)`")
    check_implementation(name, vars(module).get("implementation"))
    check_axis_name(name, vars(module).get("axis_name"))
    check_options(name, vars(module) | (given or {}))
    for key, shaped in shaped_parameters(name, vars(module)).items():
        setattr(module, key, nnx.data(None))
        if shaped is None or not shaped.owned:
            continue
        kind, random = shaped.parameter.init, None
        if kind not in UNDRAWN:
            if rngs is None:
                raise ValueError(f"{name}: `{key}` needs `rngs`")
            random = rngs.params()
        value = initialize(random, shaped, (FIXED | initializers)[kind], module.param_dtype)
        setattr(module, key, (nnx.BatchStat if shaped.parameter.frozen else nnx.Param)(value))


def values(module, name, **data):
    """Returns the parameters by name, as the function takes them: zeros for one that it needs and the module lacks.

    Raises:
      ValueError: data of another size than the module was made for.
    """
    check_sizes(name, vars(module), data)
    passed = {}
    for key, shaped in shaped_parameters(name, vars(module)).items():
        if shaped is None:
            passed[key] = None
        elif shaped.owned:
            passed[key] = cast(getattr(module, key)[...], module.dtype)
        else:
            passed[key] = jnp.zeros(shaped.shape, module.dtype or module.param_dtype)
    return passed


def create_dropout(name, rate, rngs):
    """Makes a :class:`flax.nnx.Dropout` with its own stream of keys; None without dropout."""
    check_rate(name, rate)
    if not rate:
        return nnx.data(None)
    try:
        return nnx.Dropout(rate, rngs=rngs)
    except (AttributeError, KeyError):
        raise ValueError(
            f'{name}: `dropout_rate` needs `rngs` with a stream "dropout", such as `nnx.Rngs(0, dropout=1)`'
        ) from None


def multiplier(module, name, deterministic, rngs, **data):
    """Draws the dropout multiplier with :class:`flax.nnx.Dropout`: 0 or 1 / (1 - rate). Returns None without dropout."""
    dropout = module.dropout
    if dropout is None or (dropout.deterministic if deterministic is None else deterministic):
        return None
    return dropout(jnp.ones(multiplier_shape(name, data, vars(module))), deterministic=deterministic, rngs=rngs)
