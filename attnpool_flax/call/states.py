"""Base class and decorator of the states of chunked pooling, and their host options.

Host options are options of a pooling, such as a scale, whose values Python knows when the state is made: Python numbers
and NumPy arrays, not arrays on a device. A state stores them, so that merging states with different options is an
error. Options on a device are not compared, because that would read them back.
"""

import inspect
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

Kind = TypeVar("Kind", bound="State")


class State:
    """Base class of the states of chunked pooling.

    ``merge_states`` and ``finalize_state`` call the methods ``merged(other)`` and ``finalized()`` of the subclasses, in
    which ``decided`` is the name of the result's dtype, or "" if all data are integers. ``merged`` gets states of one
    floating dtype (:func:`promote`), and leaves ``decided`` and the host options for ``merge_states`` to set.
    ``finalized`` returns the result in the dtype of the leaves; ``finalize_state`` casts it.
    """

    decided: str
    """The name of the result's dtype; empty if all data are integers, whose result has JAX's default floating dtype.

    It is a name, because NumPy's dtype float64 equals None.
    """

    options = ()
    """Names of the fields that hold options. Merging states whose options differ is an error."""

    @property
    def dtype(self):
        """The dtype of the result; None if all data are integers."""
        return jnp.dtype(self.decided) if self.decided else None

    shaped_as = "sum"
    """The field that has the shape of the result."""

    @property
    def shape(self):
        """The shape of the result."""
        return getattr(self, self.shaped_as).shape


_KINDS = []


@dataclass_transform(eq_default=False, frozen_default=True)
def kind(state: type[Kind]) -> type[Kind]:
    """Makes a class of states a frozen dataclass and a pytree, adds it to :func:`kinds`, and returns it.

    Its last field is ``decided``; before it, a state with options that are leaves has the field ``known``: pairs (name,
    numbers or None) of the host options that merging compares, None for a value on a device. Fields with the type Any
    are leaves, the others are static.
    ``jax.tree_util.register_dataclass`` is not used: the tree structures of two classes with equally many leaves would
    compare equal, and JAX could call a function that it compiled for the other class.
    """
    made: Any = state
    annotations = inspect.get_annotations(state)
    if any(annotations.get(option) is Any for option in state.options):
        annotations["known"], made.known = tuple, ()
    annotations["decided"], made.decided = str, ""
    made.__annotations__ = annotations
    made = dataclass(frozen=True, eq=False)(made)
    leaves = [field.name for field in fields(made) if field.type is Any]
    static = [field.name for field in fields(made) if field.type is not Any]
    keys = [jax.tree_util.GetAttrKey(leaf) for leaf in leaves]

    def flatten(state):
        return [getattr(state, leaf) for leaf in leaves], tuple(getattr(state, name) for name in static)

    def flatten_with_keys(state):
        values, settings = flatten(state)
        return list(zip(keys, values, strict=True)), settings

    def unflatten(settings, values):
        return made(**dict(zip(leaves, values, strict=True)), **dict(zip(static, settings, strict=True)))

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    _KINDS.append(made)
    return made


def kinds():
    """Returns all classes of states as a tuple."""
    return tuple(_KINDS)


def with_host_options(state, values):
    """Returns the state with its field ``known`` set to the host options of the call that made it.

    States without options, such as MeanState, are returned unchanged.

    Args:
      state: the state.
      values: the arguments of the call by name: Python numbers, NumPy or JAX arrays.
    """
    if not hasattr(state, "known"):
        return state
    return replace(state, known=tuple((key, _on_host(values[key])) for key in state.options if _is_array(state, key)))


def option(state, key):
    """Returns the value of a state's option, of numbers as a tuple; None if it is known only on a device, or NaN."""
    return dict(state.known).get(key) if _is_array(state, key) else getattr(state, key)


def without_host_options(state):
    """Returns the state without its host options.

    Host options are static: with them, a jitted function would compile again for each new value.
    """
    return replace(state, known=()) if hasattr(state, "known") else state


def common_host_options(a, b):
    """Returns the host options of two merged states of one class; None for an option whose numbers are not equal."""
    both = zip(a.known, b.known, strict=False)
    return tuple((key, own if own == other else None) for (key, own), (_, other) in both)


def _is_array(state, key):
    return isinstance(getattr(state, key), (jax.Array, np.ndarray))


def _on_host(value):
    """Returns the numbers of a host value as a tuple; None for a device array, and for NaN (unequal to itself)."""
    if isinstance(value, jax.Array):
        return None
    numbers = tuple(np.ravel(np.asarray(value, float)).tolist())
    return numbers if all(number == number for number in numbers) else None


def broadcast_state(state, batch, dtype):
    """Broadcasts the leaves of a state to all batch axes, and sets the dtype of its result; None is for integers."""
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[len(batch) :]), state)
    return replace(state, decided="" if dtype is None else dtype.name)


def promote(a, b):
    """Casts the floating leaves of two states to float64 if one of them has that dtype, else to float32."""
    wide = jnp.float64 if any(leaf.dtype == np.float64 for leaf in jax.tree.leaves((a, b))) else jnp.float32

    def widened(leaf):
        return leaf.astype(wide) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(widened, a), jax.tree.map(widened, b)
