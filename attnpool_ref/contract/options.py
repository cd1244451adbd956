"""Checks of options (static arguments), and of the weights that a caller's normalizer returns."""

import operator
from typing import Any

import numpy as np

from attnpool_ref.contract.dtypes import kind_of, refuse_non_numeric
from attnpool_ref.contract.shapes import COUNTS, axes_text, is_symbol, shape_text
from attnpool_ref.contract.text import type_of
from attnpool_ref.table.language import OrFunction

LARGEST_SIZE = 2**31 - 1
"""The largest size that an option may give an axis, because JAX's default integers have 32 bits."""


def checked_static(name, key, value, allowed, refused=()) -> Any:
    """Returns a static argument as a Python value; raises a ValueError if the row does not allow it.

    Args:
      name: the function's name, for messages.
      key: the argument's name.
      value: the argument.
      allowed: a tuple of names, or an :class:`OrFunction` (names, or any hashable function); "flag" for True or False;
        or for integers "size" (0 to :data:`LARGEST_SIZE`, or, unless ``key`` is in ``COUNTS``, a symbol of
        ``jax.export``), "count" (at least 0), "positive" (at least 1), or any other text for every integer.
      refused: (argument, value, reason) for values that other functions allow; the message has the reason.

    Raises:
      ValueError: if ``allowed`` or ``refused`` excludes the value.
    """
    if isinstance(allowed, OrFunction) and callable(value):
        if getattr(type(value), "__hash__", None) is None:
            raise ValueError(f"{name}: `{key}` is {type_of(value)} without a hash, needs a function that has one")
        return value
    if isinstance(allowed, tuple):
        if not isinstance(value, str) or value not in allowed:
            kind = "a function" if callable(value) else value
            reasons = [f": {reason}" for option, unlike, reason in refused if (option, unlike) == (key, kind)]
            or_function = ", or a function (scores, mask) -> weights" if isinstance(allowed, OrFunction) else ""
            names = ", ".join(map(repr, allowed))
            raise ValueError(f"{name}: `{key}` is {value!r}, needs one of {names}{or_function}{''.join(reasons)}")
        return value
    if allowed == "size" and key not in COUNTS and is_symbol(value):
        return value
    needs = "True or False" if allowed == "flag" else "an integer"
    if getattr(value, "shape", None) == () and kind_of(getattr(value, "dtype", None)):
        try:
            value = np.asarray(value).item()
        except TypeError:  # a tracer
            raise ValueError(
                f"{name}: `{key}` is traced, needs {needs} whose value is known while JAX traces; "
                f"did you mean `static_argnames`?"
            ) from None
    if allowed == "flag":
        if not isinstance(value, bool):
            raise ValueError(f"{name}: `{key}` is {value!r}, needs {needs}")
        for option, unlike, reason in refused:
            if (option, unlike) == (key, value):
                raise ValueError(f"{name}: `{key}` is {value!r}, needs {not value!r}: {reason}")
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: `{key}` is {value!r}, needs {needs}") from None
    least = {"size": 0, "count": 0, "positive": 1}.get(allowed)
    if isinstance(value, bool) or (least is not None and number < least):
        raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer of at least {least or 0}")
    if allowed == "size" and number > LARGEST_SIZE:
        raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer of at most {LARGEST_SIZE}")
    return number


def check_weights(normalizer, weights, shape):
    """Checks that the caller's normalizer returned an array of numbers of the scores' shape.

    Raises:
      TypeError: if it returned anything but an array of numbers.
      ValueError: if the numbers are complex, or if the shape is another.
    """
    name = getattr(normalizer, "__name__", type(normalizer).__name__)
    refuse_non_numeric(name, "weights", weights)
    if kind_of(weights.dtype) == "c":
        raise ValueError(f"{name}: `weights` has dtype {weights.dtype}, needs real numbers")
    if tuple(weights.shape) != tuple(shape):
        raise ValueError(f"{name}: {shape_text('weights', weights)}, needs that of the scores, {axes_text(shape)}")
