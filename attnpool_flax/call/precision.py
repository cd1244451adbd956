"""The ``precision`` argument: its check, and its default."""

from typing import Any

import jax

from attnpool_flax.numerics.products import one_pass_of

NARROW = ("float16", "bfloat16")
"""Dtypes whose products take one pass of a matrix unit, and are exact in it, except those of float16 on TPUs."""

_SETTINGS: Any = jax.config


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
    if _SETTINGS.jax_default_matmul_precision is not None:
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
