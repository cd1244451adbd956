"""Checks of the arguments of ``merge_states`` and ``finalize_state``, and their messages, shared by both packages."""

from types import SimpleNamespace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract.text import type_of
from attnpool_ref.table import Variant

FINALIZED = Variant(
    "finalize_state",
    family="streaming",
    shapes="state[..., n, H, d] value_kernel?[d, H, c'] out_kernel?[H, c', o] value_bias?[H, c'] out_bias?[o] "
    "-> [..., n, o]",
    source="vaswani2017",
    equation="o = sum_h (z_h W_v^h + b_v^h) W_o^h + b_o, z the pooled tokens of each head and query",
)
"""Row of ``finalize_state`` with kernels. Its argument ``state`` is checked by the shape of the pooled tokens."""


def check_state(name, key, value, kinds):
    """Raises a TypeError if ``value``, the argument ``key`` of the function ``name``, is of no class in ``kinds``."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name}: `{key}` is {type_of(value)}, needs a state, such as `attention_state` gives")


def check_mergeable(a, b, kinds, option=getattr):
    """Raises an error for two states that do not merge.

    Args:
      a: a state.
      b: another state.
      kinds: the classes of states.
      option: a function from a state and the name of an option to its value, or to None if the value is unknown, as on
        a device; such an option is not compared.

    Raises:
      TypeError: if an argument is not a state.
      ValueError: if the states differ in class, width, batch axes or options.
    """
    check_state("merge_states", "a", a, kinds)
    check_state("merge_states", "b", b, kinds)
    if type(a) is not type(b):
        raise ValueError(f"merge_states: `a` is {type_of(a)} but `b` is {type_of(b)}, needs states of one kind")
    if a.shape != b.shape:
        raise ValueError(
            f"merge_states: `a` has shape {a.shape} but `b` has {b.shape}, needs states of equal widths and batch axes"
        )
    for key in getattr(a, "options", ()):
        ours, theirs = option(a, key), option(b, key)
        if ours is None or theirs is None:
            continue
        ours, theirs = np.broadcast_arrays(ours, theirs)
        apart = (ours != theirs) & ((ours == ours) | (theirs == theirs))  # two NaN are equal
        if np.any(apart):
            one, other = ours[apart][0].item(), theirs[apart][0].item()
            raise ValueError(f"merge_states: `a` has `{key}` {one} but `b` has {other}, needs states of equal options")


def resolve_finalize(state, kinds, multi_head, **parameters):
    """Checks the arguments of ``finalize_state``, and returns its :class:`~attnpool_ref.contract.Call`.

    Args:
      state: the state.
      kinds: the classes of states.
      multi_head: the class of states that takes kernels.
      **parameters: the kernels and biases as arrays, or None.

    Raises:
      TypeError: if ``state`` is not a state, or a parameter is not an array of numbers.
      ValueError: if the parameters do not fit the state, or one another.
    """
    name = FINALIZED.name
    check_state(name, "state", state, kinds)
    given = [key for key, value in parameters.items() if value is not None]
    if given and not isinstance(state, multi_head):
        raise ValueError(
            f"{name}: `{given[0]}` is given but `state` is {type_of(state)}, needs a {multi_head.__name__}"
        )
    for key, other in (("out_kernel", "value_kernel"), ("value_bias", "value_kernel"), ("out_bias", "out_kernel")):
        if parameters[key] is not None and parameters[other] is None:
            raise ValueError(f"{name}: `{key}` is given without `{other}`, needs `{other}` as well")
    if not given:
        return contract.Call((), {}, state.dtype, {}, {})
    stand_in = SimpleNamespace(
        shape=state.shape, ndim=len(state.shape), dtype=np.dtype(int) if state.dtype is None else state.dtype
    )
    return contract.resolve(FINALIZED, {"state": stand_in} | parameters)
