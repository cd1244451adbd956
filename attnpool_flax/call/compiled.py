"""Dispatch of the JAX functions: checked arguments, one compiled function for each signature, dtype promotion.

The checks run in Python, before tracing, and raise the same errors as the oracle. Shapes and dtypes are checked once for
each signature, the values of host arrays at each call. Compiled functions compute in float32, or in float64 if an argument
is float64, and round once, at the end.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnpool_flax.call.documentation import composed
from attnpool_flax.call.sharding import check_split, over_explicit_axes
from attnpool_flax.numerics.prefix_mask import prefix
from attnpool_flax.numerics.sizes import as_limit
from attnpool_flax.reductions import IMPLEMENTATIONS, in_forward_mode, logged_dispatches
from attnpool_flax.reductions.dispatch import KERNEL, KernelRefusal
from attnpool_flax.reductions.rules import REFUSAL, is_forward_refusal
from attnpool_flax.reductions.state_base import broadcast_state, with_host_options
from attnpool_ref import contract, table
from attnpool_ref.contract.conversion_errors import refuse, refuse_masked

NARROW = ("float16", "bfloat16")
KEPT = 4096
"""Signatures of a function that are remembered."""

_SETTINGS: Any = jax.config
"""JAX's configuration as it is now, context managers included."""

_MISSING, _NUMBER, _DEFAULT = object(), object(), object()
_PYTHON_NUMBERS = (float, int)


def compiled(function=None, *, as_they_come=(), weights_apart=False) -> Any:  # public types stand in __init__.pyi
    """Turns the body of an implementation into the public function.

    The body sees arrays of the computing dtype whose batch axes are in place (1 where an array is shared), masks that
    are None or boolean of their full shape (also where lengths say what is real), segment numbers as int32 (those out of
    range are padding), numbers as arrays of shape (), and a ``precision`` that is settled.

    Args:
      function: the body; its name is that of its row.
      as_they_come: floating arrays that the body receives in the caller's dtype, and masks whose axes of 1 stay.
      weights_apart: the weights cost more than the pooled result and are computed by a program of their own. The
        others always compute both, so that asking for the weights cannot change a bit of the result.
    """
    if function is None:
        return functools.partial(compiled, as_they_come=as_they_come, weights_apart=weights_apart)
    frame = _Frame(function, as_they_come, weights_apart)

    @functools.wraps(function)
    def checked_implementation(*args, **kwargs):
        try:
            plan, arrays, values = frame.prepare(args, kwargs)
        except (TypeError, ValueError) as error:
            raise contract.without_frames(error) from None
        try:
            result = plan.programs[0](*arrays)
        except TypeError as error:
            if frame.has_rules and is_forward_refusal(error):
                raise TypeError(f"{frame.row.name}: {REFUSAL}") from error
            raise
        if not frame.row.weights:
            return with_host_options(result, values) if frame.row.state else result
        if weights_apart:
            return (result, plan.programs[1](*arrays)[1]) if plan.wants_weights else result
        return result if plan.wants_weights or plan.without_weights else result[0]

    checked_implementation.__doc__ = composed(function)
    FRAMES[frame.row.name] = frame
    return contract.with_frame_name(checked_implementation, function)


FRAMES = {}
"""The frame of each public function, by its name."""


@contract.with_short_traceback
def chosen_implementation(name, *args, **kwargs):
    """Returns the implementation that a call would use, without computing anything.

    Args:
      name: the function's name, such as "attention_pooling".
      *args: the call's arguments; arrays, or what only has ``shape`` and ``dtype`` (:class:`jax.ShapeDtypeStruct`).
      **kwargs: the call's keywords.

    Returns:
      "einsum" or "tiles".

    Raises:
      ValueError: there is no such function, it does not walk over tokens, or the call is refused.
      TypeError: the call is refused.

    >>> import jax.numpy as jnp
    >>> chosen_implementation("attention_pooling", jnp.ones((2, 3, 4)), implementation="einsum")
    'einsum'
    """
    frame = FRAMES[table.get(name).name]
    if "implementation" not in frame.statics:
        walkers = ", ".join(key for key, other in FRAMES.items() if "implementation" in other.statics)
        raise ValueError(f"{name}: does not walk over tokens; these do: {walkers}")
    bound = contract.bind(frame.row, frame.signature, args, kwargs)
    abstract = {k: v for k, v in bound.items() if isinstance(v, jax.ShapeDtypeStruct)}
    with logged_dispatches() as heard:
        jax.eval_shape(lambda given: frame.traced(bound | given), abstract)
    return heard[0]


@dataclass
class _Plan:
    """Specialization of a function for one signature.

    Attributes:
      call: the resolved signature.
      names: the arrays that are given, in the order in which the programs take them.
      programs: the compiled program, and where the weights stand apart that of the weights.
      wants_weights: whether the caller asked for the weights.
      numbers: the defaults among the numbers, with their places among the names.
      dtype: the computing dtype.
      without_weights: whether the program leaves out the weights, which a kernel computes apart, with the same bits.
      placed: the defaults on the devices that were met.
    """

    call: contract.Call
    names: tuple[str, ...]
    programs: tuple[Any, ...]
    wants_weights: bool
    numbers: list[tuple[int, np.ndarray]]
    dtype: np.dtype
    without_weights: bool = False
    placed: dict[Any, list[tuple[int, Any]]] = field(default_factory=dict)


class _Frame:
    """State shared by all calls of one function: its row, signature and specializations."""

    def __init__(self, function, as_they_come, weights_apart):
        self.function, self.as_they_come, self.weights_apart = function, as_they_come, weights_apart
        self.row = table.get(function.__name__)
        self.signature = contract.signature_of(function)
        parameters = self.signature.parameters.values()
        self.positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.defaults = {p.name: _MISSING if p.default is p.empty else p.default for p in parameters}
        self.arrays = tuple((name, a.numeric) for name, a in self.row.arguments.items())
        self.statics = {name: d for name, d in self.defaults.items() if name not in self.row.arguments}
        # tokens that come as they are go through tiles, whose rule for gradients forward mode cannot pass
        self.has_rules = "implementation" in self.statics and "x" in as_they_come
        self.plans, self.programs = {}, {}

    def prepare(self, args, kwargs):
        """Returns (plan, the arrays that its programs take, the arguments by name) of a call.

        Raises:
          TypeError: an argument is no array of numbers, or there is no such argument.
          ValueError: the call is refused for any other reason.
        """
        values = self.defaults | kwargs
        if len(values) > len(self.defaults) or len(args) > len(self.positional):
            contract.bind(self.row, self.signature, args, kwargs)  # raises
        if args:
            if kwargs and not kwargs.keys().isdisjoint(self.positional[: len(args)]):
                contract.bind(self.row, self.signature, args, kwargs)  # raises
            values.update(zip(self.positional, args, strict=False))
        key, on_host = self._key(values)
        plan = self._known_plan(key)
        if plan is None:
            values = contract.bind(self.row, self.signature, args, kwargs)
            key, on_host = self._key(values)
            plan = self._new_plan(values)
            if len(self.plans) >= KEPT:
                self.plans.clear()
                self.programs.clear()
            self.plans[key] = plan
        if on_host:
            integers = np.int64 if _SETTINGS.jax_enable_x64 else np.int32
            contract.check_values(self.row, values, plan.call, np.iinfo(integers).max)
        arrays = [values[name] for name in plan.names]
        if plan.numbers:
            _place_defaults(arrays, plan)
        if on_host:
            self._settle(arrays, plan)
        return plan, arrays, values

    def _key(self, values):
        """Returns (the key of the specialization, whether an array is on the host); host arrays become NumPy arrays."""
        key: list[Any] = [_SETTINGS.jax_enable_x64, _SETTINGS.jax_default_matmul_precision]
        on_host = traced = False
        for name, is_number in self.arrays:
            value = values[name]
            if value is None:
                key.append(None)
            elif is_number and type(value) in _PYTHON_NUMBERS:
                at_default = value is self.defaults[name]
                on_host = on_host or not at_default
                key.append(_DEFAULT if at_default else _NUMBER)
            else:
                if type(value) not in _JAX_TYPES:
                    if value is _MISSING:
                        return None, False
                    value: Any = as_array(self.row.name, name, value)
                    values[name] = value
                    if type(value) is np.ndarray:
                        on_host = True
                    else:
                        _JAX_TYPES.add(type(value))
                        if isinstance(value, Tracer):
                            _TRACERS.add(type(value))
                traced = traced or type(value) in _TRACERS
                key.append(value.shape)
                key.append(value.dtype)
        unasked = traced and self.has_rules and values["implementation"] is None
        if unasked and any(in_forward_mode(values[name]) for name, _ in self.arrays):
            values["implementation"] = "einsum"
        if "axis_name" in self.statics:
            check_split(self.row, values)
        for name, default in self.statics.items():
            value = values[name]
            key.append(_DEFAULT if value is default else (type(value), value))
        return tuple(key), on_host

    def _known_plan(self, key):
        """Returns the cached specialization of a key, or None."""
        try:
            return self.plans.get(key)
        except TypeError:  # a static array, which has no hash
            return None

    def _new_plan(self, values):
        values = dict(values)
        numbers = {}
        for name, is_number in self.arrays:
            if is_number and type(values[name]) in _PYTHON_NUMBERS:
                if values[name] is self.defaults[name]:
                    numbers[name] = values[name]
                values[name] = np.asarray(values[name])
        call = contract.resolve(self.row, values)
        dtype = result_dtype(call.dtype)
        computing = _computing(dtype)
        static = {name: values[name] for name in self.statics}
        if "precision" in static:
            static["precision"] = settled_precision(self.row.name, static["precision"], dtype)
        if "implementation" in static:
            check_implementation(self.row.name, static["implementation"])
        wants = static.get("return_weights", False)
        names = tuple(name for name, _ in self.arrays if values[name] is not None)
        each = (False, True)[: 1 + wants] if self.weights_apart else (True,) if self.row.weights else (None,)
        without_weights = each == (True,) and not wants and static.get("implementation") == KERNEL
        each = (False,) if without_weights else each
        programs = tuple(self._program(values, names, call, dtype, static, weights) for weights in each)
        numbers = [(names.index(name), np.asarray(number, computing)) for name, number in numbers.items()]
        return _Plan(call, names, programs, wants, numbers, computing, without_weights)

    def _program(self, values, names, call, dtype, static, weights):
        """Returns the compiled function; one for all values of a number, its default included."""
        static = static if weights is None else static | {"return_weights": weights}
        computing = _computing(dtype)
        given = [values[name] for name in names if self.row.arguments[name].kind != "number"]
        shapes = tuple((array.shape, array.dtype if array.ndim else computing) for array in given)
        key = names, shapes, dtype, tuple((type(value), value) for value in static.values())
        if key not in self.programs:

            def program(*arrays):
                given = dict(zip(names, arrays, strict=True))
                body = functools.partial(self.run, call=call, dtype=dtype, static=static)
                return over_explicit_axes(body, given, self.row, call, weights, self.weights_apart)

            program.__name__ = program.__qualname__ = self.row.name
            self.programs.setdefault(key, jax.jit(program))
        return self.programs[key]

    def _is_number(self, name):
        return self.row.arguments[name].numeric

    def run(self, given, call, dtype, static):
        """Runs the body, with the conversions before and after it that all bodies share."""
        prepared = {
            key: self._prepared(self._told(given, argument, call), argument, call, dtype, static)
            for key, argument in call.arguments.items()
        }
        run = self._with_kernel if static.get("implementation") == KERNEL else self.function
        result = run(**prepared, **static)
        batch = call.batch if self.row.batched else ()
        if self.row.state:
            return broadcast_state(result, batch, None if call.dtype is None else dtype)
        return jax.tree.map(lambda part: _finish(part, batch, dtype), result)

    def _with_kernel(self, **arguments):
        """Runs the body, and refuses in its name what no kernel takes."""
        try:
            with logged_dispatches() as heard:
                result = self.function(**arguments)
        except KernelRefusal as refusal:
            raise ValueError(f"{self.row.name}: {refusal}") from None
        if KERNEL not in heard:
            names = " or ".join(map(repr, IMPLEMENTATIONS))
            raise ValueError(
                f"{self.row.name}: `implementation` is 'pallas', which averages dense tokens under the softmax of "
                f"their products with queries; this call does not; pass None, {names}"
            )
        return result

    def traced(self, values):
        """Runs a call without compilation or cache, to trace it."""
        for name, _ in self.arrays:
            values[name] = as_array(self.row.name, name, values[name])
        call = contract.resolve(self.row, values)
        dtype = result_dtype(call.dtype)
        static = {name: values[name] for name in self.statics}
        check_implementation(self.row.name, static["implementation"])
        if "axis_name" in static:
            check_split(self.row, values)
        return self.run({name: values[name] for name, _ in self.arrays}, call, dtype, static)

    def _told(self, given, argument, call):
        """Returns the given value of an argument; for a mask that is given as lengths, that mask."""
        lengths = given.get(argument.lengths) if argument.kind == "mask" else None
        if lengths is None or argument.lengths not in call.targets:
            return given.get(argument.name)
        lengths = jnp.reshape(lengths, contract.with_all_axes(lengths.shape, call.targets[argument.lengths]))
        return prefix(lengths, call.targets[argument.name][-1])

    def _prepared(self, value, argument, call, dtype, static):
        if value is None or argument.kind == "lengths":  # the mask says it
            return None
        if argument.kind in ("mask", "bool"):
            value = jnp.asarray(value).astype(bool)
        elif argument.kind == "segments":
            return _in_32_bits(jnp.asarray(value), call.sizes["num_segments"])
        elif argument.kind == "index":
            value = _in_32_bits(jnp.asarray(value), static["max_length"])
        elif not argument.integers:
            computing = _computing(dtype)
            own = argument.name in self.as_they_come and contract.kind_of(value.dtype) == "f"
            # beside a float64 array a narrower one is widened before it is summed, not after
            value = jnp.asarray(value, None if own and computing == np.float32 else computing)
        if argument.kind in ("mask", "stretch"):
            target = call.targets[argument.name]
            if argument.name in self.as_they_come:
                return jnp.reshape(value, (1,) * (len(target) - value.ndim) + value.shape)
            return jnp.broadcast_to(value, target)
        if argument.kind in ("data", "index") and argument.batched:
            missing = len(call.targets[argument.name]) - value.ndim
            return jnp.reshape(value, (1,) * missing + value.shape)
        return value

    def _settle(self, arrays, plan):
        """Converts host arrays and Python numbers for JAX."""
        for i, name in enumerate(plan.names):
            if type(arrays[i]) is np.ndarray:
                arrays[i] = _for_jax(arrays[i], self.row.arguments[name], plan.dtype)
            elif self._is_number(name) and type(arrays[i]) in _PYTHON_NUMBERS:
                arrays[i] = np.asarray(arrays[i], plan.dtype)


_JAX_TYPES, _TRACERS = set(), set()
"""The classes of JAX's arrays that were met, and the tracers among them: asking each time would cost more than the rest."""


def _place_defaults(arrays, plan):
    """Fills in the default numbers, as arrays on the devices of the other arguments."""
    where = _place(arrays)
    placed = plan.placed.get(where)
    if placed is None:
        placed = plan.placed[where] = [(i, _on(where, number)) for i, number in plan.numbers]
    for i, number in placed:
        arrays[i] = number


def _place(arrays):
    """Returns the sharding of the first JAX array; None while JAX traces, and for NumPy arrays."""
    for array in arrays:
        if type(array) in _JAX_TYPES:
            return None if isinstance(array, Tracer) else array.sharding
    return None


def _on(sharding, number):
    """Puts a number on the arrays' devices, uncommitted: a call with only device arrays then transfers nothing."""
    if not isinstance(sharding, jax.sharding.SingleDeviceSharding):
        return number  # while JAX traces, for NumPy arrays and for several devices
    (device,) = sharding.device_set
    with jax.ensure_compile_time_eval(), jax.default_device(device):
        return jax.device_put(number)


def as_array(name, key, value):
    """Converts Python numbers to NumPy arrays, unwraps modules' parameters, and refuses other classes."""
    if value is None or isinstance(value, jax.Array):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        value = np.asarray(value)
    elif not isinstance(value, np.ndarray):
        if not hasattr(value, "__jax_array__"):
            refuse(name, key, value)
        return jnp.asarray(value)
    elif type(value) is not np.ndarray:
        refuse_masked(name, key, value)
    value = np.asarray(value)  # of a memmap too
    return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))


def _for_jax(value, argument, computing):
    """Converts a NumPy array for JAX: without x64, JAX would keep the lower half of a 64-bit integer."""
    if argument.kind in ("data", "parameter", "stretch", "number"):
        if value.dtype.kind in "ui" or not value.ndim:  # 2 and 2.0 are one program
            return value.astype(computing)
    elif argument.integers and value.dtype.itemsize == 8 and not _SETTINGS.jax_enable_x64:
        limits = np.iinfo(np.int32)
        return np.clip(value, limits.min, limits.max).astype(np.int32)
    return value


def _in_32_bits(numbers, count):
    """Converts segment numbers and indices to int32; keeps their order, and numbers out of range out of range."""
    own, info = numbers.dtype.type, jnp.iinfo(numbers.dtype)
    return jnp.clip(numbers, own(max(-1, info.min)), as_limit(count, own)).astype(jnp.int32)


def result_dtype(decided):
    """Returns the dtype of a result, from the arguments' promoted dtype (or None) and JAX's settings."""
    if decided is None:
        return np.dtype(jnp.result_type(float))
    if decided == np.float64 and not _SETTINGS.jax_enable_x64:
        return np.dtype(np.float32)
    return decided


def _computing(dtype):
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def check_implementation(name, asked):
    """Refuses what is no implementation, in the name of a function or a module."""
    if asked is not None and (not isinstance(asked, str) or asked not in (*IMPLEMENTATIONS, KERNEL)):
        names = ", ".join(map(repr, (*IMPLEMENTATIONS, KERNEL)))
        raise ValueError(f"{name}: `implementation` is {asked!r}, needs None or one of {names}")


def settled_precision(name, precision, dtype):
    """Resolves the precision: the given one, else full float32 products; narrow inputs are exact in one pass."""
    if precision is not None:
        return _checked_precision(name, precision)
    if _SETTINGS.jax_default_matmul_precision is not None:
        return None
    return jax.lax.Precision.DEFAULT if dtype.name in NARROW else jax.lax.Precision.HIGHEST


def _checked_precision(name, precision):
    if isinstance(precision, (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in jax.lax.DotAlgorithmPreset.__members__:
        return precision
    pair = isinstance(precision, tuple) and len(precision) == 2 and type(precision[0]) is type(precision[1])
    if all(_names_a_precision(part) for part in (precision if pair else (precision,))):
        return precision
    raise ValueError(
        f"{name}: `precision` is {precision!r}, needs None, a name such as 'highest', a jax.lax.Precision or a pair "
        "of names or of these"
    )


def _names_a_precision(value):
    if not isinstance(value, str):
        return isinstance(value, jax.lax.Precision)
    try:
        jax.lax.Precision(value)
    except ValueError:
        return False
    return True


def _finish(part, batch, dtype):
    if jnp.issubdtype(part.dtype, jnp.floating):
        part = part.astype(dtype)
    return jnp.broadcast_to(part, batch + part.shape[len(batch) :])
