"""Base of the NNX modules: constructors from fields, parameters by the table of specs, their values in a call."""

import contextlib
import functools
import inspect
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from flax import errors, nnx
from flax.typing import Dtype, Initializer, PrecisionLike
from jax.core import Tracer

from attnpool_flax import segments
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.call.documentation import definition_of
from attnpool_flax.call.sharding import check_axis_name, device_key
from attnpool_flax.modules.parameters import (
    BIAS_INIT,
    KERNEL_INIT,
    QUERY_INIT,
    Shaped,
    cast,
    check_options,
    initialize,
    initializer,
    multiplier_shapes,
    resolved,
    shaped_parameters,
    sizes_of_data,
)
from attnpool_flax.modules.specs import SPECS, UNDRAWN
from attnpool_ref import contract
from attnpool_ref.contract import docstrings
from attnpool_ref.contract.text import type_of

Kind = TypeVar("Kind", bound=type)

_PLAIN = (nnx.Param, nnx.BatchStat)
"""Classes of variables whose raw value is the value to use."""

_SYMBOL = re.compile(r",? (the paper's [^:.]*)?:math:`[^`]*`")
"""A symbol of the equation in a function's docstring, which that of a module lacks."""

_ARRAYS = set()
"""Classes of arrays that earlier calls found to need no conversion."""


class CommonFields:
    """Fields of many modules, the last ones of a constructor, in this order.

    A module has those that its function and its parameters need (:func:`_add_common_fields`); its class does not list them.
    """

    dropout_rate: float = 0.0
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    axis_name: str | tuple[str, ...] | None = None
    kernel_init: InitVar[Initializer] = KERNEL_INIT
    out_kernel_init: InitVar[Initializer | None] = None
    bias_init: InitVar[Initializer] = BIAS_INIT
    query_init: InitVar[Initializer] = QUERY_INIT
    latents_init: InitVar[Initializer] = QUERY_INIT
    centers_init: InitVar[Initializer] = QUERY_INIT
    rngs: InitVar[nnx.Rngs]


OPTIONS = {
    "in_features": "d, the width of the tokens.",
    "query_features": "d, the width of the queries.",
    "key_features": "e, the width of the keys.",
    "hidden_features": "h, the width of the hidden layer.",
    "qkv_features": "H·c, the width of all heads together; None is the tokens' width.",
    "out_features": "o, the width of the result; None is the tokens' width.",
    "num_features": "d, the width of the tokens, to learn a value for each feature; None learns one for all features.",
    "num_heads": "H, the number of heads.",
    "use_bias": "whether there is a bias.",
    "dropout_rate": "the dropout rate of the attention weights, in [0, 1].",
    "axis_name": "the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit.",
    "dtype": "the dtype to which data and parameters are cast first; None uses their promoted dtype.",
    "param_dtype": "the dtype of the parameters.",
    "precision": "the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless "
    "``jax_default_matmul_precision`` is set.",
    "kernel_init": "initializer of the kernels.",
    "out_kernel_init": "initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.",
    "bias_init": "initializer of the biases.",
    "rngs": 'random keys (``nnx.Rngs``); the stream "params" initializes the parameters.',
}
"""Descriptions of arguments of constructors that do not stand in the docstring of a class."""

RNGS_WITH_DROPOUT = (
    'random keys (``nnx.Rngs``): the stream "params" for the parameters, and "dropout" (or the default stream) if there is '
    "dropout."
)
"""Description of ``rngs`` of a constructor that has ``dropout_rate``."""

OPTIONS_OF_CALL = {
    "x": "[..., L, d] tokens.",
    "mask": "bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.",
    "lengths": "number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.",
    "segment_ids": "int [N], the segment id of each token, for packed tokens x [N, d]; needs ``num_segments``, and excludes "
    "``lengths`` and the module's ``axis_name``.",
    "x_segment_ids": "int [N], the segment id of each token, for packed x [N, d]; needs ``y_segment_ids`` and ``num_segments``, "
    "and excludes lengths and the module's ``axis_name``.",
    "y_segment_ids": "int [M], the segment id of each token, for packed y [M, e].",
    "num_segments": "the number of segments, an integer: the size of the batch axis of the result.",
    "deterministic": "True turns dropout off, False on; None follows the module's ``train()`` or ``eval()`` mode, "
    "``train()`` by default.",
    "rngs": "random keys for dropout (``nnx.Rngs``, a stream or a key), in place of the module's own stream.",
    "return_weights": "also return the weights.",
}
"""Descriptions of arguments of calls that stand neither in the docstring of the call nor in that of the function."""


class Shapes(NamedTuple):
    """Names and shapes of a module's parameters, stored at construction so that eager calls need not derive them.

    Attributes:
      parameters: (name, shape) of each parameter. The shape is that of the zeros that the function gets if the module
        has no such parameter, else None.
      widths: (argument, axis, size) of the data for which the module was made.
    """

    parameters: tuple[tuple[str, tuple[int, ...] | None], ...]
    widths: tuple[tuple[str, int, int], ...]


class PoolingModule(nnx.Module):
    """Base of the NNX modules. Its fields are the arguments of the constructor; an ``InitVar`` is not stored.

    A call passes data, fields and the values of the parameters to one function. Besides the fields, the code of a call
    uses only ``_arguments``, ``_multipliers``, ``_mesh_axes`` and ``_pooling``. The Linen classes have these as well, so
    that both kinds share the code of their calls (:mod:`attnpool_flax.linen.deriving`).
    """

    dtype: Dtype | None
    """The dtype to which data and parameters are cast, a field of each module."""

    _pooling: str
    """The module's name in the table of specs; a user's subclass has its parent's."""

    _passed: ClassVar[tuple[str, ...]] = ()
    """The fields that are arguments of the function, except ``axis_name``, which packed tokens exclude."""

    _initial: tuple[str, ...]
    """Arguments of the constructor that are not stored."""

    _omitted: ClassVar[Mapping[str, str]] = {}
    """Messages for arguments that the constructors of similar modules take and this one does not."""

    _of_call: ClassVar[Mapping[str, str]] = {}
    """Descriptions of arguments of the call that differ from those of the function."""

    _shapes = Shapes((), ())
    """The module's :class:`Shapes`; none if a user's subclass does not call ``super().__init__``."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            show_signature(cls)
        refuse_in_own_name(cls, "__call__")

    def __post_init__(self, *initial):
        given = vars(self) | dict(zip(self._initial, initial, strict=True))
        _create(self, given, given.pop("rngs"))

    @classmethod
    def _check(cls, given):
        """Raises a ValueError for arguments of the constructor (``given``, by name) with which no call could work."""
        check_axis_name(cls._pooling, given.get("axis_name"))
        check_options(cls._pooling, given)

    @classmethod
    def _resolved(cls, given) -> dict[str, Any]:
        """Returns the constructor's arguments, with None replaced where the value follows from other arguments."""
        return resolved(cls._pooling, given)

    @classmethod
    def _shaped(cls, given) -> dict[str, Shaped | None]:
        """Returns the parameters by name, as :func:`shaped_parameters` does for these arguments of the constructor."""
        return shaped_parameters(cls._pooling, given)

    def _arguments(self: Any, **data):
        """Returns the function's arguments that each call has: the data, the fields of their names, and the parameters.

        ``data`` are the call's arrays by name; they and the parameters are cast to ``dtype``, unless it is None.
        """
        given = self._values(**data)
        for name, value in data.items():
            given[name] = value if self.dtype is None else cast(value, self.dtype)
        for name in self._passed:
            if name not in given:  # a learned sink is a parameter, whose field is the name of its kind
                given[name] = getattr(self, name)
        return given

    def _values(self: Any, **data):
        """Returns the parameters by name, as the function takes them: zeros for one that it needs and the module lacks.

        ``data`` has the call's arrays by the names of the function's arguments.

        Raises:
          ValueError: data of another size than the module was made for.
        """
        attributes, shapes = vars(self), self._shapes
        for key, axis, size in shapes.widths:
            shape = getattr(data[key], "shape", ())
            if len(shape) >= -axis and shape[axis] != size:
                argument = next(each[-1] for each in sizes_of_data(self._pooling) if each[:2] == (key, axis))
                raise ValueError(
                    f"{self._pooling}: `{argument}` is {size}, but `{key}` has {shape[axis]}: its shape is "
                    f"{tuple(shape)}{contract.symbol_suggestion(shape[axis], size)}"
                )
        dtype, passed = self.dtype, {}
        for name, absent in shapes.parameters:
            variable = attributes[name]
            if variable is None:
                passed[name] = None if absent is None else jnp.zeros(absent, dtype or self.param_dtype)
                continue
            value = variable.get_raw_value() if type(variable) in _PLAIN else None
            if type(value) not in _ARRAYS or variable.has_metadata("on_get_value"):
                value = variable[...]  # Flax's access takes 3 µs; for other kinds of variables and references
                if isinstance(value, jax.Array) and not isinstance(value, Tracer):
                    _ARRAYS.add(type(value))
            passed[name] = value if dtype is None else cast(value, dtype)
        return passed

    def _multipliers(self: Any, deterministic, rngs, **data):
        """Draws the function's dropout multipliers, 0 or 1 / (1 - rate) for each weight, by :class:`flax.nnx.Dropout`.

        Returns them by the names of the function's arguments; none if the module has no dropout, or if it is off.
        """
        dropout = self.dropout
        if dropout is None or (dropout.deterministic if deterministic is None else deterministic):
            return {}
        shapes = multiplier_shapes(self._pooling, data, vars(self))
        rngs = dropout.rngs if rngs is None else rngs
        return {
            key: dropout(jnp.ones(shape), deterministic=False, rngs=_dropout_key(self, rngs))
            for key, shape in shapes.items()
        }

    def _mesh_axes(self):
        """Returns ``axis_name``, the mesh axes over which sequences are split; None if they are whole."""
        return getattr(self, "axis_name", None)


@dataclass_transform(eq_default=False)
def constructor_from_fields(kind: Kind) -> Kind:
    """Gives a module's class its :class:`CommonFields` and a constructor that takes all fields, and returns the class.

    A dataclass leaves defaults of arguments that are not stored, such as ``kernel_init``, as attributes of the class.
    These attributes are deleted here, because a module with another ``kernel_init`` would show the default.
    """
    if kind.__name__ in SPECS:
        _add_common_fields(kind, SPECS[kind.__name__])
    annotations = inspect.get_annotations(kind)
    own = {"rngs": RNGS_WITH_DROPOUT} if "dropout_rate" in annotations else {}
    kind.__doc__ = _with_options(kind, annotations, OPTIONS | own)
    made: Any = nnx.dataclass(eq=False)(kind)
    made._pooling = made.__name__
    made._initial = tuple(name for name, annotation in annotations.items() if isinstance(annotation, InitVar))
    if made.__name__ in SPECS:
        _derive_call(made, FUNCTIONS[SPECS[made.__name__].function])
    for name in made._initial:
        made.__init__.__annotations__[name] = annotations[name].type
        if name in vars(made):
            delattr(made, name)
    check_constructor(made)
    return made


def _add_common_fields(kind, spec):
    """Adds to a class those of the :class:`CommonFields` that its function and its parameters need, by keyword only.

    ``rngs`` is required if a parameter that every such module has is drawn at random.
    """
    arguments, parameters = FUNCTIONS[spec.function].defaults.keys(), spec.parameters
    needed = {"dtype", "rngs", *(f"{parameter.init}_init" for parameter in parameters)}
    needed |= {"out_kernel_init" for parameter in parameters if parameter.name == "out_kernel"}
    needed |= arguments & {"precision"}
    if "L" not in spec.sizes:  # parameters for each token cannot be split over a mesh
        needed |= arguments & {"axis_name"}
    if parameters:
        needed.add("param_dtype")
    if any(name.endswith("dropout_multiplier") for name in arguments):
        needed.add("dropout_rate")
    annotations = inspect.get_annotations(kind)
    if KW_ONLY not in annotations.values():
        annotations["_"] = KW_ONLY
    for name, annotation in inspect.get_annotations(CommonFields).items():
        if name in needed:
            annotations[name] = annotation
            if hasattr(CommonFields, name):
                setattr(kind, name, getattr(CommonFields, name))
    if all(parameter.when or parameter.init in UNDRAWN for parameter in parameters):
        annotations["rngs"], kind.rngs = InitVar[nnx.Rngs | None], None
    kind.__annotations__ = annotations


def _derive_call(kind, function):
    """Gives a class the names of the fields that its calls pass to the function, and its call the function's descriptions."""
    stored = inspect.get_annotations(kind).keys() - {*kind._initial, "axis_name"}
    kind._passed = tuple(name for name in function.defaults if name in stored)
    call, definition = inspect.unwrap(kind.__call__), definition_of(function.row.name, function.row.family)
    described = {name: _SYMBOL.sub("", text) for name, text in definition.entries("Args").items()}
    described = OPTIONS_OF_CALL | described | kind._of_call
    call.__doc__ = kind.__call__.__doc__ = _with_options(call, inspect.signature(call).parameters, described)


def _with_options(documented, names, descriptions):
    """Returns a docstring with an entry in ``Args`` for each of ``names``: its own entry, or that in ``descriptions``."""
    text = docstrings.of(documented)
    if not text.paragraphs:  # Python strips docstrings (``-OO``)
        return ""
    described = descriptions | text.entries("Args")
    entries = {name: described[name] for name in names if name != "self" and name[0] != "_"}
    return str(text.with_section("Args", "").with_entries("Args", entries))


def _create(module, given, rngs):
    """Gives a module its parameters; those that it does not have are None.

    Args:
      module: the module, whose stored arguments are attributes.
      given: all arguments of the constructor by name.
      rngs: the source of random keys; it may be None if no parameter is drawn at random.

    Raises:
      TypeError: ``rngs`` is not an ``nnx.Rngs``.
      ValueError: an argument is invalid, or ``rngs`` is needed and missing.
    """
    name = module._pooling
    if rngs is not None and not isinstance(rngs, nnx.Rngs):  # a seed or a key
        raise TypeError(f"{name}: `rngs` is {type_of(rngs)}, needs an nnx.Rngs, such as `nnx.Rngs(0)`")
    module._check(given)
    given = module._resolved(given)
    for key in vars(module).keys() - {"_pytree__nodes", "_pytree__state"}:
        setattr(module, key, given[key])
    shaped = module._shaped(given)
    for key in [key for key, one in shaped.items() if one is None and key in module._passed]:
        del shaped[key]  # the field has the value, as of a fixed sink
    for key, one in shaped.items():
        setattr(module, key, nnx.data(None))
        if one is None or not one.present:
            continue
        random = None
        if one.parameter.init not in UNDRAWN:
            if rngs is None:
                raise ValueError(f"{name}: `{key}` needs `rngs`, such as `rngs=nnx.Rngs(0)`")
            random = rngs.params()
        value = initialize(name, random, one, initializer(one.parameter, given), module.param_dtype)
        setattr(module, key, (nnx.BatchStat if one.parameter.frozen else nnx.Param)(value))
    parameters = tuple((key, None if one is None or one.present else one.shape) for key, one in shaped.items())
    sizes = ((key, axis, vars(module).get(size)) for key, axis, size in sizes_of_data(name))
    module._shapes = Shapes(parameters, tuple(width for width in sizes if width[-1] is not None))
    if "dropout_rate" in given:
        module.dropout = _create_dropout(name, given["dropout_rate"], rngs)


def _create_dropout(name, rate, rngs):
    """Returns a :class:`flax.nnx.Dropout` with a stream of keys from ``rngs``; None if the rate is 0.

    Raises a ValueError if ``rngs`` has neither a stream "dropout" nor a default stream.
    """
    if not rate:
        return nnx.data(None)
    with contextlib.suppress(AttributeError, KeyError):
        if rngs is not None:
            return nnx.Dropout(rate, rngs=rngs)
    raise ValueError(f'{name}: `dropout_rate` needs `rngs` with a stream "dropout", such as `nnx.Rngs(0, dropout=1)`')


def _dropout_key(module, rngs):
    """Returns the key of one dropout multiplier, from an ``nnx.Rngs``, a stream or a key; one for each device.

    Raises:
      TypeError: ``rngs`` is of another kind.
      ValueError: ``rngs`` has neither a stream "dropout" nor a default stream, or a mesh axis is not bound.
      flax.errors.TraceContextError: the stream is from outside of a transformation of JAX.
    """
    name = module._pooling
    if not isinstance(rngs, (nnx.Rngs, nnx.RngStream, jax.Array)):
        raise TypeError(f"{name}: `rngs` is {type_of(rngs)}, needs an nnx.Rngs, a stream of it or a key")
    try:
        stream = rngs["dropout"] if isinstance(rngs, nnx.Rngs) else rngs
        key = stream() if isinstance(stream, nnx.RngStream) else stream
    except (AttributeError, KeyError):
        raise ValueError(f'{name}: `rngs` needs a stream "dropout", such as `nnx.Rngs(dropout=1)`') from None
    except errors.TraceContextError as error:
        raise errors.TraceContextError(
            f"{name}: dropout cannot draw here from a stream of keys made outside of this jax.jit, grad, vmap or "
            "export; pass `rngs=key` in the call, or the module as an argument of nnx.jit, or call its `eval()` first"
        ) from error
    return device_key(name, key, module._mesh_axes())


def in_layout(module, dense, num_segments, **arrays):
    """Returns (function, its layout arguments as a dict): that of packed tokens if segment ids are given, else ``dense``.

    Args:
      module: the module.
      dense: the function of padded sequences.
      num_segments: the number of segments, or None.
      **arrays: lengths and segment ids by the names of the functions' arguments, or None; packed tokens have no lengths.

    Raises:
      ValueError: only some of the segment arguments are given, or lengths or mesh axes are given with them.
    """
    of_dense, of_packed = {}, {}
    for key, value in arrays.items():
        (of_dense if key.endswith("lengths") else of_packed)[key] = value
    of_dense["axis_name"], of_packed["num_segments"] = module._mesh_axes(), num_segments
    given = [key for key, value in of_packed.items() if value is not None]
    if not given:
        return dense, of_dense
    for key in of_packed:
        if key not in given:
            raise ValueError(f"{module._pooling}: `{given[0]}` is given without `{key}`")
    for key, value in of_dense.items():
        if value is not None:
            raise ValueError(
                f"{module._pooling}: `{key}` and `{next(iter(of_packed))}` are both given, needs at most one of them"
            )
    return getattr(segments, f"segment_{SPECS[module._pooling].function}"), of_packed


class _OfClass:
    """Attribute that a class has and its instances have not: the signature of an instance is that of its call."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner):
        if instance is not None:
            raise AttributeError("__signature__")
        return self.value


def show_signature(kind: Any):
    """Sets the signature that ``help`` shows for a module's class, without annotations and Linen's ``parent``."""
    parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
    parameters = [each for each in parameters if each.name not in ("self", "parent")]
    shown = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in parameters])
    kind.__signature__ = _OfClass(shown)


def refuse_in_own_name(kind: type, *methods: str):
    """Shortens the tracebacks of errors in these methods of a class; a class of another package is not changed."""
    if kind.__module__.partition(".")[0] == "attnpool_flax":
        for name in vars(kind).keys() & set(methods):
            method: Any = contract.with_short_traceback(getattr(kind, name))
            method.__code__ = method.__code__.replace(co_name=method.__qualname__)  # the frame names the class
            setattr(kind, name, method)


def check_constructor(kind: Any):
    """Shows the signature of a class of this package, and makes its constructor refuse arguments with clear messages.

    Keyword-only sizes that are passed by position are a TypeError with the call to write instead, because two sizes that
    no data can tell apart, such as ``num_heads`` and ``num_queries``, would otherwise be swapped silently. ``_omitted``
    of the class has the message for each argument that other constructors take and this one does not.
    """
    show_signature(kind)
    parameters = inspect.signature(kind).parameters.values()
    by_position = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
    required = [each.name for each in parameters if each.default is each.empty and each.name != "rngs"]
    init, name, omitted = kind.__init__, kind.__name__, kind._omitted
    elsewhere = any(key.endswith("_features") for key in omitted)  # Linen reads widths off the data
    optional = [each.name for each in parameters if each.name.startswith("num_") or each.name.endswith("_features")]

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        for key in kwargs.keys() & omitted.keys():
            raise TypeError(f"{name}: {omitted[key]}")
        sizes = [each for each in args if not isinstance(each, nnx.Rngs)]
        keywords = kwargs | ({"rngs": nnx.Rngs} if len(sizes) < len(args) else {})
        every = [name for name in dict.fromkeys([*required, *optional]) if name not in kwargs]
        fits = len(args) <= len(required)
        named = fits or not by_position or (len(sizes) <= len(every) and all(type(each) is int for each in sizes))
        if by_position < len(args) and named:
            missing = [name for name in required if name not in kwargs]
            values = args if fits else [kind] * len(missing)
            if not fits and len(sizes) <= len(every) and not elsewhere:
                missing, values = every, sizes
            given = dict(zip(missing, values, strict=False)) | keywords
            call = ", ".join(f"{name}={_shown(name, value)}" for name, value in given.items())
            notes = "" if fits else "".join(f"; {text}" for key, text in omitted.items() if key != "rngs")
            raise TypeError(f"{name}: sizes are passed by keyword: `{name}({call})`{notes}")
        init(self, *args, **kwargs)

    kind.__init__ = __init__
    refuse_in_own_name(kind, "__init__")


def _shown(name, value):
    """Returns a number, text or None as Python code, and for any other value the argument's name."""
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else name


def name_of(module: object) -> str:
    """Returns the name of a module's class, or of the class of this package of which it is a subclass."""
    return getattr(type(module), "_pooling", type(module).__name__)
