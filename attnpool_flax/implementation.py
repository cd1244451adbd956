"""What every JAX function has in common: checked arguments, one compiled program a shape, the rules of dtype.

The checks run in Python, before JAX sees anything, and raise what the oracle raises. What is compiled computes in
float32, or in float64 where the arguments are, and rounds once, at the end.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnpool_ref import contract, variants

NARROW = ("float16", "bfloat16")


def implementation(function=None, *, weights_apart=False) -> Any:  # the public types stand in __init__.pyi
    """Turns the body of an implementation into the public function.

    The body sees arrays of the computing dtype whose batch axes are in place (1 where an array is shared), masks that
    are None or boolean of their full shape, numbers as arrays of shape (), and a ``precision`` that is settled.

    Args:
      function: the body; its name is that of its row.
      weights_apart: the weights cost more than the pooled result and are computed by a program of their own. The
        others always compute both, so that asking for the weights cannot change a bit of the result.
    """
    if function is None:
        return functools.partial(implementation, weights_apart=weights_apart)
    row = variants.get(function.__name__)
    arguments = contract.arguments_of(row.shapes)
    signature = contract.signature_of(function)
    numbers = {key: signature.parameters[key].default for key, a in arguments.items() if a.kind == "number"}
    compiled = _compile(function, row, arguments)

    @functools.wraps(function)
    def checked_implementation(*args, **kwargs):
        values = contract.bind(row, signature, args, kwargs)
        defaults = [key for key, default in numbers.items() if values[key] is default is not None]
        for key in arguments:
            values[key] = _as_array(row.name, key, values[key])
        checked = contract.check(row, values)
        dtype = _result_dtype(checked.dtype)
        arrays = {key: values.pop(key) for key in arguments}
        for key, value in arrays.items():
            if isinstance(value, np.ndarray):
                arrays[key] = _for_jax(value, arguments[key], dtype)
        if defaults and (device := _device(arrays.values())) is not None:
            for key in defaults:
                arrays[key] = _default_on(device, numbers[key], _computing(dtype))
        if "precision" in values:
            values["precision"] = _precision(row.name, values["precision"], dtype)
        wants_weights = values.get("return_weights", False)

        def run(return_weights):
            static = values | ({"return_weights": return_weights} if row.weights else {})
            return compiled(arrays, dtype=dtype, static=tuple(sorted(static.items(), key=lambda item: item[0])))

        if not row.weights:
            return run(None)
        if weights_apart:
            return (run(False), run(True)[1]) if wants_weights else run(False)
        pooled, weights = run(True)
        return (pooled, weights) if wants_weights else pooled

    return checked_implementation


def _compile(function, row, arguments):
    @functools.partial(jax.jit, static_argnames=("dtype", "static"))
    def program(arrays, *, dtype, static):
        static = dict(static)
        checked = contract.check(row, arrays | static)
        prepared = {key: _prepare(arrays[key], argument, checked, dtype) for key, argument in arguments.items()}
        result = function(**prepared, **static)
        return jax.tree.map(lambda part: _finish(part, checked.batch if "..." in row.shapes else (), dtype), result)

    program.__wrapped__.__name__ = row.name  # pyright: ignore[reportAttributeAccessIssue]
    return program


def _as_array(name, key, value):
    """Python numbers as NumPy arrays; what holds an array (a module's parameter) as that array; no other class."""
    if value is None or isinstance(value, jax.Array):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        value = np.asarray(value)
    elif not isinstance(value, np.ndarray):
        if not hasattr(value, "__jax_array__"):
            raise TypeError(f"{name}: `{key}` is a {type(value).__name__}, needs an array of numbers")
        return jnp.asarray(value)
    return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))


def _for_jax(value, argument, dtype):
    """A NumPy array as JAX can take it: without x64 it would keep the lower half of a 64-bit integer."""
    if argument.kind in ("data", "parameter", "stretch", "number"):
        if value.dtype.kind in "ui" or not value.ndim:  # 2 and 2.0 are one program
            return value.astype(_computing(dtype))
    elif argument.kind == "int" and value.dtype.itemsize == 8 and not _setting("jax_enable_x64"):
        limits = np.iinfo(np.int32)
        return np.clip(value, limits.min, limits.max).astype(np.int32)
    return value


def _device(arrays):
    """The device on which the first JAX array lies; None while JAX traces, for NumPy arrays and for several devices."""
    found = None
    for value in arrays:
        if value is not None and isinstance(value, jax.Array):
            if isinstance(value, Tracer):
                return None
            found = found or value.device
    return found if isinstance(found, jax.Device) else None


@functools.lru_cache(maxsize=256)
def _default_on(device, number, dtype):
    """A default on its device: a call with device arrays alone transfers nothing. Not committed to it, as a number."""
    with jax.ensure_compile_time_eval(), jax.default_device(device):
        return jax.device_put(np.asarray(number, dtype))


def _result_dtype(decided):
    if decided is None:
        return np.dtype(jnp.result_type(float))
    if decided == np.float64 and not _setting("jax_enable_x64"):
        return np.dtype(np.float32)
    return decided


def _setting(name):
    """What JAX's configuration says here and now, contexts included."""
    return getattr(jax.config, name)


def _computing(dtype):
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _precision(name, precision, dtype):
    """The caller's own choice, else full float32 products; narrow inputs are exact in one pass."""
    if precision is not None:
        return _checked_precision(name, precision)
    if _setting("jax_default_matmul_precision") is not None:
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


def _prepare(value, argument, checked, dtype):
    if value is None:
        return None
    if argument.kind in ("mask", "bool"):
        value = jnp.asarray(value).astype(bool)
    elif argument.kind != "int":
        value = jnp.asarray(value, _computing(dtype))
    if argument.kind in ("mask", "stretch"):
        return jnp.broadcast_to(value, checked.targets[argument.name])
    if argument.kind == "data" and "..." in argument.shapes[0]:
        missing = len(checked.targets[argument.name]) - value.ndim
        return jnp.reshape(value, (1,) * missing + value.shape)
    return value


def _finish(part, batch, dtype):
    if jnp.issubdtype(part.dtype, jnp.floating):
        part = part.astype(dtype)
    return jnp.broadcast_to(part, batch + part.shape[len(batch) :])
