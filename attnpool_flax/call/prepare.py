"""The arguments of a call for the body (arrays, dtypes, masks, tokens objects, precision), and its results for the caller."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnpool_flax.numerics.products import exact_tokens, one_pass_of
from attnpool_flax.numerics.sizes import as_limit, prefix
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.tokens import Dense, Packed
from attnpool_ref import contract
from attnpool_ref.contract.dtypes import refuse, refuse_masked

SETTINGS: Any = jax.config
"""JAX's configuration at this moment, context managers included."""

NARROW = ("float16", "bfloat16")
"""Dtypes whose products take one pass of a matrix unit, and are exact in it, except those of float16 on TPUs."""


HELD = ("axis_name", "num_segments", "indices_are_sorted")
"""Arguments that only the tokens objects hold. The body does not get them."""


def as_array(name, key, value):
    """Returns an argument as an array: a Python number as a NumPy array, a parameter of a module as its JAX array.

    None, NumPy arrays of native byte order and JAX arrays are returned as they are.

    Raises:
      TypeError: the argument is of another class, such as a list.
      ValueError: it is one of NumPy's masked arrays.
    """
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
    value = np.asarray(value)  # a memmap becomes an array
    return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))


def result_dtype(promoted):
    """Returns the dtype of a result from the promoted dtype of the floating arguments; float64 needs x64.

    For None, which stands for calls with integers only, it is JAX's default floating dtype.
    """
    if promoted is None:
        return np.dtype(jnp.result_type(float))
    if promoted == np.float64 and not SETTINGS.jax_enable_x64:
        return np.dtype(np.float32)
    return promoted


def convert_host_array(value, argument, computing):
    """Converts a NumPy array for JAX, which itself would keep the lower half of 64-bit integers without x64.

    Integer data, and numbers of shape (), become floats. Other 64-bit integers, such as lengths and segment ids, are
    clipped to int32 without x64. Other arrays are returned unchanged.

    Args:
      value: the array.
      argument: its description in the function's row of the table.
      computing: the dtype of the computation, float32 or float64.
    """
    if argument.kind in ("data", "parameter", "stretch", "number", "constant"):
        if value.dtype.kind in "ui" or not value.ndim:  # so that 2 and 2.0 share a program
            return value.astype(computing)
    elif argument.integers and value.dtype.itemsize == 8 and not SETTINGS.jax_enable_x64:
        limits = np.iinfo(np.int32)
        return np.clip(value, limits.min, limits.max).astype(np.int32)
    return value


def prepare(given, call, dtype, static, as_they_come):
    """Prepares the arrays of a call for its body, during tracing.

    Args:
      given: the arrays by name, without those that are None.
      call: the resolved signature (:class:`attnpool_ref.contract.Call`).
      dtype: the result's dtype.
      static: the static arguments by name.
      as_they_come: the names of arrays that stay in the caller's dtype, and of masks whose axes of size 1 stay.

    Returns:
      Every argument by name: arrays of the computing dtype with all batch axes (size 1 where an array is shared), masks
      that are None or boolean of their full shape, segment ids and indices as int32, and None in place of lengths.
    """
    values: dict[str, Any] = dict.fromkeys(call.arguments)
    for key, argument in call.arguments.items():
        value = given.get(key)
        if argument.kind == "mask" and argument.lengths in given and argument.lengths in call.targets:
            lengths = given[argument.lengths]
            lengths = jnp.reshape(lengths, contract.with_all_axes(lengths.shape, call.targets[argument.lengths]))
            value = prefix(lengths, call.targets[key][-1])
        if value is not None and argument.kind != "lengths":  # the mask holds them
            values[key] = _prepared(value, argument, call, dtype, static, key in as_they_come)
    return values


def _prepared(value, argument, call, dtype, static, as_it_comes):
    if argument.kind in ("mask", "bool"):
        value = jnp.asarray(value).astype(bool)
    elif argument.kind == "segments":
        return _in_32_bits(jnp.asarray(value), call.sizes["num_segments"])
    elif argument.kind == "index":
        value = _in_32_bits(jnp.asarray(value), static["max_length"])
    elif not argument.integers:
        computing = computing_dtype(dtype)
        own = as_it_comes and contract.kind_of(value.dtype) == "f"
        # if another array is float64, a narrower one is widened before it is summed, not after
        value = jnp.asarray(value, None if own and computing == np.float32 else computing)
    if argument.kind in ("mask", "stretch"):
        target = call.targets[argument.name]
        if as_it_comes:
            return jnp.reshape(value, (1,) * (len(target) - value.ndim) + value.shape)
        return jnp.broadcast_to(value, target)
    if argument.kind in ("data", "index") and argument.batched:
        missing = len(call.targets[argument.name]) - value.ndim
        return jnp.reshape(value, (1,) * missing + value.shape)
    return value


def _in_32_bits(numbers, count):
    """Converts segment numbers and indices to int32, clipped to -1 and ``count``: both are out of the valid range."""
    own, info = numbers.dtype.type, jnp.iinfo(numbers.dtype)
    return jnp.clip(numbers, own(max(-1, info.min)), as_limit(count, own)).astype(jnp.int32)


def with_tokens(values, names, packed):
    """Replaces arrays of tokens by tokens objects, which have their mask and layout.

    Args:
      values: the prepared arrays and the static arguments by name.
      names: the arguments that hold tokens: "x", or "x" and "y". With two, masks and segment ids are named
        after them, such as "x_mask".
      packed: whether the tokens are packed.

    Returns:
      The arguments of the body by name.
    """
    values = dict(values)
    precision = exact_tokens(values.get("precision"))
    for name in names:
        prefix = "" if len(names) == 1 else f"{name}_"
        x, mask = values[name], values.pop(f"{prefix}mask")
        if packed:
            segments = values.pop(f"{prefix}segment_ids"), values["num_segments"]
            values[name] = Packed(x, *segments, mask, values["indices_are_sorted"], precision)
        else:
            values.pop(f"{prefix}lengths")  # the mask holds them
            values[name] = Dense(x, mask, precision, values.get("axis_name"))
    return {name: value for name, value in values.items() if name not in HELD}


def finish(result, batch, dtype):
    """Returns a body's arrays with all batch axes, floats in the result's dtype, others in their own."""

    def finished(part):
        if jnp.issubdtype(part.dtype, jnp.floating):
            part = part.astype(dtype)
        return jnp.broadcast_to(part, batch + part.shape[len(batch) :])

    return jax.tree.map(finished, result)


def resolve_precision(name, precision, dtype, one_pass=False):
    """Returns the precision of matrix products: the requested one, or by default HIGHEST, which is full float32.

    If JAX's setting ``jax_default_matmul_precision`` is set, it decides instead of the default, and the result is None.
    For float16 and bfloat16 the default is JAX's DEFAULT, at which their products are exact (not those of float16 on
    TPUs); for bfloat16 with ``one_pass`` it is :class:`~attnpool_flax.numerics.products.OnePass`.

    Args:
      name: the function or module whose argument it is.
      precision: the caller's argument, in any form that :func:`jax.lax.dot` takes, or None.
      dtype: the result's dtype.
      one_pass: whether the products are those of :mod:`attnpool_flax.numerics.products`.

    Raises:
      ValueError: ``precision`` is not a precision.
    """
    if precision is not None:
        return _checked_precision(name, precision)
    if SETTINGS.jax_default_matmul_precision is not None:
        return None
    default = jax.lax.Precision.DEFAULT if dtype.name in NARROW else jax.lax.Precision.HIGHEST
    return one_pass_of(default, dtype) if one_pass else default


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
