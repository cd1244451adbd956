"""Creation of Linen parameters from the table :data:`~attnpool_flax.modules.specs.OWNERS`, and their values in a call."""

import dataclasses
import functools

import flax.linen as nn
import jax.numpy as jnp

from attnpool_flax.call.compiled import check_implementation
from attnpool_flax.call.sharding import check_axis_name
from attnpool_flax.modules.parameters import (
    cast,
    check_options,
    check_rate,
    initialize,
    multiplier_shape,
    name_of,
    refuse_in_own_name,
    shaped_parameters,
    show_signature,
)
from attnpool_flax.modules.specs import FIXED


class PoolingModule(nn.Module):
    """Base of the Linen modules: the traceback of an error shows one frame of the package, that of the module."""

    def __init_subclass__(cls, **kwargs):
        refuse_in_own_name(cls, "__post_init__", "__call__")
        super().__init_subclass__(**kwargs)
        show_signature(cls)


class TokenWalker(PoolingModule):
    """Base of Linen modules that check ``implementation``, ``axis_name`` and options in the constructor, as NNX does."""

    def __post_init__(self):
        super().__post_init__()
        name = name_of(self)
        check_implementation(name, _fields(self).get("implementation"))
        check_axis_name(name, _fields(self).get("axis_name"))
        check_options(name, _fields(self))


def values(module, name, sizes, **initializers):
    """Returns the parameters by name, created on the first call, as the function takes them.

    Args:
      module: the module, whose sizes and options are fields.
      name: its key in the table; a subclass has its parent's.
      sizes: what was read off the data, or follows from it.
      **initializers: by the kinds that the table names.
    """
    passed = {}
    for key, shaped in shaped_parameters(name, _fields(module) | sizes).items():
        if shaped is None:
            passed[key] = None
        elif shaped.owned:
            init = (FIXED | initializers)[shaped.parameter.init]
            if shaped.parameter.frozen:
                made = functools.partial(initialize, None, shaped, init, module.param_dtype)
                value = module.variable("batch_stats", key, made).value
            else:
                value = module.param(key, initialize, shaped, init, module.param_dtype)
            passed[key] = cast(value, module.dtype)
        else:  # the function needs one, and gets zeros
            passed[key] = jnp.zeros(shaped.shape, module.dtype or module.param_dtype)
    return passed


def _fields(module):
    return {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}


def multiplier(module, name, deterministic, **data):
    """Draws the dropout multiplier with :class:`flax.linen.Dropout`: 0 or 1 / (1 - rate). Returns None without dropout.

    ``init`` drops nothing by default, and then needs no key for dropout.
    """
    check_rate(name, module.dropout_rate)
    if module.deterministic is not None:  # Flax refuses, in its words, that both say it
        deterministic = nn.merge_param("deterministic", module.deterministic, deterministic)
    if not module.dropout_rate or deterministic or (deterministic is None and module.is_initializing()):
        return None
    ones = jnp.ones(multiplier_shape(name, data, _fields(module)))
    return nn.Dropout(module.dropout_rate)(ones, deterministic=deterministic)
