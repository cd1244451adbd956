"""Derivation of a Linen class from the NNX class of the same name.

The constructor's arguments become fields, except ``rngs`` and the sizes that ``init`` reads from the data. The code of
the call is that of the NNX class: besides the fields it uses only ``_arguments``, ``_multipliers``, ``_mesh_axes`` and
``_pooling``, which the Linen class has, too. Docstrings are those of the NNX class, without its example.
"""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp

from attnpool_flax.call.sharding import device_key
from attnpool_flax.modules import creation
from attnpool_flax.modules.creation import check_constructor, refuse_in_own_name, show_signature
from attnpool_flax.modules.parameters import (
    cast,
    initialize,
    initializer,
    multiplier_shapes,
    read_sizes,
    sizes_of_data,
)
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import contract
from attnpool_ref.contract import docstrings

NOTES = {
    "deterministic": 'True drops no weights, False draws with the key "dropout"; here or in the call, not in both.',
}
"""Descriptions of fields that no NNX constructor has."""

NOTES_OF_CALL = {
    "deterministic": 'True drops no weights, False draws with the key "dropout"; needed, here or in the constructor, if there '
    "is dropout.",
}
"""Descriptions of arguments of a call that mean something else in Linen."""


class PoolingModule(nn.Module):
    """Base of the Linen modules: ``init`` creates the parameters, and each call passes their values to the function."""

    _arguments = nn.nowrap(creation.PoolingModule._arguments)
    _nnx: ClassVar[Any] = None
    _passed: ClassVar[Any] = ()
    _reads: ClassVar[Any]
    _omitted: ClassVar[Any] = {}

    def __init_subclass__(cls, **kwargs):
        refuse_in_own_name(cls, "__call__")
        super().__init_subclass__(**kwargs)
        if cls.__module__ == "attnpool_flax.linen":
            check_constructor(cls)
        else:  # a user's subclass
            show_signature(cls)

    @contract.with_short_traceback
    def __post_init__(self):
        super().__post_init__()
        self._nnx._check(_fields(self))

    @nn.nowrap
    def _values(self: Any, **data):
        """Returns the parameters by name, as the function takes them; ``init`` creates them."""
        given = _fields(self)
        reads = self._reads(self)
        if reads:
            sizes = read_sizes(self._nnx._pooling, data)
            given |= {name: sizes[name] for name in reads}
        given = self._nnx._resolved(given)
        passed, start = {}, functools.partial(initialize, self._nnx._pooling)
        for key, shaped in self._nnx._shaped(given).items():
            if shaped is None:
                if key not in self._passed:  # else the field has the value, as of a fixed sink
                    passed[key] = None
            elif not shaped.present:  # the function needs one, and gets zeros
                passed[key] = jnp.zeros(shaped.shape, self.dtype or self.param_dtype)
            else:
                init = initializer(shaped.parameter, given)
                if shaped.parameter.frozen:
                    made = functools.partial(start, None, shaped, init, self.param_dtype)
                    value = self.variable("batch_stats", key, made).value
                else:
                    value = self.param(key, start, shaped, init, self.param_dtype)
                passed[key] = cast(value, self.dtype)
        return passed

    @nn.nowrap
    def _multipliers(self: Any, deterministic, rngs, **data):
        """Draws the dropout multipliers by name, 0 or 1 / (1 - rate), by :class:`flax.linen.Dropout`, if there are any.

        Unless ``deterministic`` is False, ``init`` drops nothing and needs no key "dropout". Keys come from ``apply``;
        the argument ``rngs``, which only NNX modules use, is ignored.
        """
        if self.deterministic is not None:  # Flax raises an error if both are given
            deterministic = nn.merge_param("deterministic", self.deterministic, deterministic)
        if not self.dropout_rate or deterministic or (deterministic is None and self.is_initializing()):
            return {}
        name, axis_name = self._nnx._pooling, self._mesh_axes()
        if deterministic is None:
            raise ValueError(
                f"{name}: `deterministic` is needed, as the module has dropout: True drops nothing, False needs "
                '`rngs={"dropout": key}` in `apply`'
            )
        multipliers = {}
        for argument, shape in multiplier_shapes(name, data, _fields(self)).items():
            key = None if axis_name is None else device_key(name, self.make_rng("dropout"), axis_name)
            multipliers[argument] = nn.Dropout(self.dropout_rate, deterministic=False)(jnp.ones(shape), rng=key)
        return multipliers

    @nn.nowrap
    def _mesh_axes(self: Any):
        """Returns the mesh axes that split sequences; None in ``init``, which runs outside of ``jax.shard_map``."""
        return None if self.is_initializing() else getattr(self, "axis_name", None)


def _fields(module):
    return {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}


def derived(kind: type, read_fields: Callable[[Any], tuple[str, ...]] | None = None, **notes: str) -> Any:
    """Makes the Linen class of an NNX class, which lacks as fields the sizes that ``init`` reads from the data.

    Args:
      kind: the NNX class.
      read_fields: a function from a Linen module to those of its fields that its calls read from the data, or None.
      **notes: descriptions of fields that mean something else than in the NNX class.
    """
    reads = _required_sizes(kind.__name__)
    omitted = {name: f"takes `{name}` from the first input in Linen: leave it out" for name in reads}
    omitted["rngs"] = "takes keys in `init` and `apply` in Linen: leave `rngs` out"
    parameters = [each for each in inspect.signature(kind.__init__).parameters.values() if each.name != "self"]
    by_position = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    taken_by_position = bool(by_position) and by_position[0] not in omitted
    annotations, defaults = {}, {}
    for parameter in parameters:
        if taken_by_position and parameter.name not in by_position:
            annotations.setdefault("_", dataclasses.KW_ONLY)
        if parameter.name not in omitted:
            annotations[parameter.name] = parameter.annotation
            if parameter.default is not parameter.empty:
                defaults[parameter.name] = parameter.default
        if parameter.name == "dropout_rate":
            annotations["deterministic"], defaults["deterministic"] = bool | None, None
    namespace = {
        "__module__": "attnpool_flax.linen",
        "__qualname__": kind.__qualname__,
        "__doc__": _documentation(kind, reads, annotations, notes),
        "__annotations__": annotations,
        "__call__": nn.compact(_call(kind)),
        "_nnx": kind,
        "_passed": kind._passed,
        "_pooling": kind.__name__,
        "_omitted": omitted | kind._omitted,
        "_reads": staticmethod(read_fields or (lambda module: reads)),
        **defaults,
    }
    options = {"kw_only": True} if not taken_by_position else {}
    return types.new_class(kind.__name__, (PoolingModule,), options, lambda body: body.update(namespace))


def _required_sizes(module):
    """Returns the sizes of the data that an NNX constructor takes, without those that may be None."""
    found = {size: None for _, _, size in sizes_of_data(module)}
    for parameter in SPECS[module].parameters if found else ():
        optional = {SPECS[module].sizes[axis[:-1]] for axis in parameter.axes if axis[-1] == "?"}
        for size in found.keys() & optional.union(parameter.when):
            del found[size]
    return tuple(found)


def _call(kind):
    """Returns the call of the NNX class without ``rngs``: in Linen, keys are passed to ``apply``."""
    body = inspect.unwrap(kind.__call__)
    shown = inspect.signature(body)

    @functools.wraps(body)
    def __call__(self, *args, **kwargs):
        if "rngs" in kwargs:
            raise TypeError(f"{body.__qualname__}() got an unexpected keyword argument 'rngs'; give it to `apply`")
        return body(self, *args, **kwargs)

    without_rngs = [parameter for parameter in shown.parameters.values() if parameter.name != "rngs"]
    vars(__call__)["__signature__"] = shown.replace(parameters=without_rngs)
    text = docstrings.of(body)
    if text.paragraphs:  # Python strips docstrings (``-OO``)
        arguments = {name: each for name, each in text.entries("Args").items() if name != "rngs"}
        arguments |= {name: NOTES_OF_CALL[name] for name in NOTES_OF_CALL.keys() & arguments.keys()}
        __call__.__doc__ = str(text.with_section("Args", "").with_entries("Args", arguments))
    return __call__


def _documentation(kind, reads, fields, notes):
    """Returns the docstring of the NNX class with the Linen class's fields, without an example."""
    text = docstrings.of(kind)
    arguments = text.entries("Args")
    if not arguments:  # Python strips docstrings (``-OO``)
        return None
    if "axis_name" in arguments:
        arguments["axis_name"] = f"{arguments['axis_name'].removesuffix('.')}; not used by ``init``."
    paragraphs = [*text.paragraphs]
    if reads:
        sizes = "; ".join(arguments[name].partition(";")[0].removesuffix(".") for name in reads)
        paragraphs.append(docstrings.filled(f"``init`` reads these sizes from the data: {sizes}."))
    fields = {name: (arguments | NOTES | notes)[name] for name in fields if name != "_"}
    listed = docstrings.Docstring(tuple(paragraphs), {}).with_entries("Args", fields)
    return str(listed).replace("\n\nArgs:\n", "\n\nAttributes:\n")
