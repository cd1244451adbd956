"""The `@compiled` decorator, which turns the body of a function into the public function.

A call checks its arguments in Python, before tracing, and raises the errors of :mod:`attnpool_ref`: shapes and dtypes
once for each specialization (shapes, dtypes, options), values of NumPy arrays and Python numbers in each call. The
compiled function computes in float32, or in float64 for such arguments, and rounds at the end (exception: ``one_pass``).
"""

import functools
import types
import weakref
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from attnpool_flax.call.documentation import composed
from attnpool_flax.call.example_blocks import in_blocks_of_examples
from attnpool_flax.call.prepare import (
    SETTINGS,
    as_array,
    convert_host_array,
    finish,
    prepare,
    resolve_precision,
    result_dtype,
    with_tokens,
)
from attnpool_flax.call.sharding import check_split, explicit_mesh, over_explicit_axes
from attnpool_flax.call.states import broadcast_state, with_host_options
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_ref import contract, table
from attnpool_ref.contract.packed_definition import packed_signature

CACHE_SIZE = 4096
"""The largest number of specializations of a function; at this number, its cache is cleared."""

_MISSING, _NUMBER, _DEFAULT = object(), object(), object()
_PYTHON_NUMBERS = (float, int)


def compiled(
    function=None, *, tokens=(), as_they_come=(), one_pass=False, queries=None
) -> Any:  # typed in __init__.pyi
    """Turns the body of a function into the public function; without ``function``, returns a decorator that does so.

    Args:
      function: the body, named as its row in :mod:`attnpool_ref.table`. It gets the arrays as
        :func:`~attnpool_flax.call.prepare.prepare` returns them, numbers as arrays of shape (), and a resolved
        ``precision``.
      tokens: the arguments, "x" or "x" and "y", that the body receives as tokens objects in place of arrays:
        :class:`~attnpool_flax.tokens.Dense`, or :class:`~attnpool_flax.tokens.Packed` in the packed function.
        They hold masks and ``axis_name``, which the body does not get.
      as_they_come: names of floating arrays that stay in the caller's dtype, except in calls that compute in float64,
        and of masks whose axes of size 1 stay.
      one_pass: whether the body multiplies by :func:`~attnpool_flax.numerics.products.einsum`, with its precision.
      queries: a :class:`~attnpool_flax.tokens.queries.ForQueries`, which says how many scores a call has;
        :func:`in_blocks_of_examples` divides them into blocks. None for other functions.
    """
    options = {"tokens": tokens, "as_they_come": as_they_come, "one_pass": one_pass, "queries": queries}
    if function is None:
        return functools.partial(compiled, **options)
    own = CompiledFunction(table.get(function.__name__), contract.signature_of(function), function, options)
    return _public(own, function)


def packed(dense, without=()):
    """Derives the public function of packed tokens from that of dense tokens: the same body gets ``Packed`` tokens.

    Args:
      dense: the public function; the section ``Packed`` of its body's docstring has the packed function's example.
      without: names of arguments that the packed function lacks.
    """
    own = FUNCTIONS[dense.__name__]
    row = table.get(f"segment_{dense.__name__}")
    signature = packed_signature(own.signature, own.tokens, without)
    return _public(CompiledFunction(row, signature, own.body, own.options))


def _public(own, body=None):
    """Returns the public function of a :class:`CompiledFunction`, named as ``body``, or without it as its row."""

    def checked_implementation(*args, **kwargs):
        try:
            specialization, arrays, values = own.specialize(args, kwargs)
        except (TypeError, ValueError) as error:
            raise contract.without_frames(error) from None
        result = specialization.program(*arrays)
        return with_host_options(result, values) if own.row.state else result

    FUNCTIONS[own.row.name] = own
    made: Any = checked_implementation
    if body is None:
        made.__name__ = made.__qualname__ = own.row.name
        made.__module__, made.__signature__ = f"attnpool_flax.{own.row.family}", own.signature
    else:
        functools.update_wrapper(made, body)
    made.__doc__ = composed(own.body, own.row.name, own.row.family, own.signature.parameters)
    return contract.with_frame_name(made, made)


FUNCTIONS = {}
"""The :class:`CompiledFunction` of each public function, by its name."""


@dataclass
class Specialization:
    """Resolved signature and program of all calls of a function with the same shapes, dtypes and options.

    Attributes:
      call: the resolved signature.
      names: the names of the given arrays, in the order in which the program takes them.
      program: the jitted function.
      defaults: for numbers with a default: (index in ``names``, the default).
      dtype: the computing dtype.
      placed: by the sharding of the other arrays and the index, a default as an array on their device.
    """

    call: contract.Call
    names: tuple[str, ...]
    program: Any
    defaults: list[tuple[int, Any]]
    dtype: np.dtype
    placed: dict[Any, Any] = field(default_factory=dict)


class CompiledFunction:
    """A public function: its row in :mod:`attnpool_ref.table`, its body, its signature and its cache.

    ``specializations`` has an entry, with a program of its own, for each set of shapes, dtypes and options.
    """

    def __init__(self, row, signature, body, options):
        self.row, self.signature, self.body, self.options = row, signature, body, options
        self.packed, self.batched = row.packed, row.batched
        self.tokens, self.as_they_come = options["tokens"], options["as_they_come"]
        self.one_pass, self.queries = options["one_pass"], options["queries"]
        parameters = self.signature.parameters.values()
        self.positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.defaults = {p.name: _MISSING if p.default is p.empty else p.default for p in parameters}
        self.arrays = tuple((name, a.numeric) for name, a in self.row.arguments.items())
        self.static = {name: d for name, d in self.defaults.items() if name not in self.row.arguments}
        self.specializations = {}

    def specialize(self, args, kwargs):
        """Returns (the call's specialization, the arrays that its program takes, the arguments by name).

        Raises:
          TypeError: an argument is no array of numbers, or there is no such argument.
          ValueError: the call is invalid for another reason.
        """
        values = self.defaults | kwargs
        if len(values) > len(self.defaults) or len(args) > len(self.positional):
            contract.bind(self.row, self.signature, args, kwargs)  # raises
        if args:
            if kwargs and not kwargs.keys().isdisjoint(self.positional[: len(args)]):
                contract.bind(self.row, self.signature, args, kwargs)  # raises
            values.update(zip(self.positional, args, strict=False))
        if values.get("result_dtype") is not None:  # one key for all names of a dtype
            values["result_dtype"] = contract.checked_static(
                self.row.name, "result_dtype", values["result_dtype"], self.row.options["result_dtype"]
            )
        key, on_host = self._key(values)
        try:
            specialization = self.specializations.get(key)
        except TypeError:  # a static array has no hash
            specialization = None
        if specialization is None:
            values = contract.bind(self.row, self.signature, args, kwargs)
            key, on_host = self._key(values)
            specialization = self._specialization(values)
            if len(self.specializations) >= CACHE_SIZE:
                self.specializations.clear()
            specialization = self.specializations.setdefault(key, specialization)
            forget_with_functions(self.specializations, key)
        if on_host:
            integers = np.int64 if SETTINGS.jax_enable_x64 else np.int32
            contract.check_values(self.row, values, specialization.call, np.iinfo(integers).max)
        arrays = [values[name] for name in specialization.names]
        if specialization.defaults:
            _place_defaults(arrays, specialization)
        if on_host:
            self._convert_host_values(arrays, specialization)
        return specialization, arrays, values

    def _key(self, values):
        """Returns (the specialization's key, whether a value is on the host); puts arrays into ``values`` in place.

        Numbers in all forms, such as the default, another Python number or an array of shape (), have the same key.
        """
        key: list[Any] = [SETTINGS.jax_enable_x64, SETTINGS.jax_default_matmul_precision]
        on_host = False
        for name, is_number in self.arrays:
            value = values[name]
            if value is None:
                key.append(None)
            elif is_number and type(value) in _PYTHON_NUMBERS:
                on_host = on_host or value is not self.defaults[name]
                key.append(_NUMBER)
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
                if is_number and not value.shape and value.dtype.kind in "fiu" and value.dtype.itemsize <= 8:
                    key.append(_NUMBER)
                else:
                    key.append(value.shape)
                    key.append(value.dtype)
        if "axis_name" in self.static:
            check_split(self.row, values)
        for name, default in self.static.items():
            value = values[name]
            key.append(_DEFAULT if value is default else static_key(value))
        return tuple(key), on_host

    def _specialization(self, values):
        """Checks the arguments by name, and returns their :class:`Specialization`."""
        numbers = {name: values[name] for name, _ in self.arrays if type(values[name]) in _PYTHON_NUMBERS}
        values = values | {name: np.asarray(number) for name, number in numbers.items()}
        call = contract.resolve(self.row, values)
        wanted = values.get("result_dtype")
        dtype = result_dtype(wanted if wanted == np.float64 else call.dtype)
        names = tuple([name for name, _ in self.arrays if values[name] is not None])
        static = {name: values[name] for name in self.static}
        if "precision" in static:
            static["precision"] = resolve_precision(self.row.name, static["precision"], dtype, self.one_pass)
        held = {name: static_key(value) for name, value in static.items()}

        def program(*arrays):
            given = dict(zip(names, arrays, strict=True))
            static = {name: value_of(key) for name, key in held.items()}
            run = functools.partial(self.run, call=call, dtype=dtype, static=static)
            mesh = explicit_mesh(given)
            if mesh is None:
                return run(given)
            return over_explicit_axes(run, given, mesh, self.row, call, static.get("return_weights"))

        program.__name__ = program.__qualname__ = self.row.name
        defaults = [(i, self.defaults[name]) for i, name in enumerate(names)]
        defaults = [(i, default) for i, default in defaults if type(default) in _PYTHON_NUMBERS]
        return Specialization(call, names, jax.jit(program), defaults, computing_dtype(dtype))

    def run(self, given, call, dtype, static):
        """Runs the body while JAX traces it, with the conversions of arguments and results that all bodies share."""
        values = prepare(given, call, dtype, static, self.as_they_come) | static
        values = with_tokens(values, self.tokens, self.packed) if self.tokens else values
        if self.queries is not None:
            result = in_blocks_of_examples(self.body, self.queries, call, given, dtype, values)
        else:
            result = self.body(**values)
        batch = call.batch if self.batched else ()
        if self.row.state:
            return broadcast_state(result, batch, None if call.dtype is None else dtype)
        return finish(result, batch, result_dtype(static["result_dtype"]) if static.get("result_dtype") else dtype)

    def _convert_host_values(self, arrays, specialization):
        """Replaces NumPy arrays and Python numbers in the list ``arrays`` by converted copies for JAX."""
        for i, name in enumerate(specialization.names):
            argument = self.row.arguments[name]
            if type(arrays[i]) is np.ndarray:
                arrays[i] = convert_host_array(arrays[i], argument, specialization.dtype)
            elif argument.numeric and type(arrays[i]) in _PYTHON_NUMBERS:
                arrays[i] = np.asarray(arrays[i], specialization.dtype)


_JAX_TYPES = set()
"""Classes of JAX arrays met so far: a check in each call would cost more than the rest."""


def _place_defaults(arrays, specialization):
    """Replaces default numbers in the list ``arrays`` by arrays on the device of the first JAX array, if it has one."""
    sharding, placed = _sharding_of(arrays), specialization.placed
    for i, default in specialization.defaults:
        if arrays[i] is default:
            if (sharding, i) not in placed:
                placed[sharding, i] = _on(sharding, np.asarray(default, specialization.dtype))
            arrays[i] = placed[sharding, i]


def _sharding_of(arrays):
    """Returns the sharding of the first JAX array; None if there is none, or during tracing."""
    for array in arrays:
        if type(array) in _JAX_TYPES:
            return None if isinstance(array, Tracer) else array.sharding
    return None


def _on(sharding, number):
    """Puts a number on the arrays' device, uncommitted, so that a call with only device arrays transfers nothing."""
    if not isinstance(sharding, jax.sharding.SingleDeviceSharding):
        return number  # while JAX traces, for NumPy arrays and for several devices
    (device,) = sharding.device_set
    with jax.ensure_compile_time_eval(), jax.default_device(device):
        return jax.device_put(number)


# --------------------------------------------------------------------------------------------------------------
# Static arguments in the keys of a cache, which references a caller's function weakly: it does not keep it alive


def static_key(value):
    """Returns (type, value) of a static argument, for a function or method with a weak reference in place of the value.

    A callable object whose class compares by value, such as a frozen dataclass, is referenced strongly: another object
    that equals it shares its compiled program.
    """
    if callable(value):
        owner = _owner(value)
        if type(owner).__eq__ is object.__eq__ and getattr(type(owner), "__weakrefoffset__", 0):
            return type(value), (weakref.ref if owner is value else weakref.WeakMethod)(value)
    return type(value), value


def value_of(key):
    """Returns the static argument of a :func:`static_key`, which must still exist."""
    return key[1]() if isinstance(key[1], weakref.ref) else key[1]


def forget_with_functions(cache, key):
    """Removes an entry of a cache when a function is deleted to which its key, a tuple, has a :func:`static_key`."""
    for part in key:
        if isinstance(part, tuple) and part and isinstance(part[-1], weakref.ref):
            weakref.finalize(_owner(part[-1]()), cache.pop, key, None).atexit = False


def _owner(function):
    """Returns the object of a method, which lives as long as the method can be called; else the function itself."""
    return function.__self__ if isinstance(function, types.MethodType) else function
