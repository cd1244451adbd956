"""Checks of functions without a row in the table: ``pad``, ``pack``, ``unpack``, ``merge_states``, ``finalize_state``."""

from typing import Any

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract import masks
from attnpool_ref.contract.shapes import check_broadcast, shape_text
from attnpool_ref.contract.text import suggested, type_of
from attnpool_ref.table import Variant
from attnpool_ref.table.language import Argument

_UNPACK = Variant(
    "unpack",
    family="segments",
    shapes="x[N, d] segment_ids:segments[N] -> [N, d]",
    source="reimers2019",
    equation="the tokens of each segment",
    options={"num_segments": "size"},
)

FINALIZED = Variant(
    "finalize_state",
    family="streaming",
    shapes="state[..., n, H, d] value_kernel?[d, H, c'] out_kernel?[H, c', o] value_bias?[H, c'] out_bias?[o] "
    "-> [..., n, o]",
    source="vaswani2017",
    equation="o = sum_h (z_h W_v^h + b_v^h) W_o^h + b_o, z the pooled tokens of each head and query",
)
"""Row of ``finalize_state`` with kernels. Its argument ``state`` is checked by the shape of the pooled tokens."""


_SINK = Argument("sink", True, "stretch", (("...",),))


def sequence_arrays(name, sequences, as_array) -> list[Any]:
    """Converts each sequence of a list by ``as_array(function name, argument name, value)``.

    Raises:
      TypeError: if ``sequences`` is text or not iterable, or if an element cannot be converted to an array.
      ValueError: if ``sequences`` is empty, or if an element is a masked array.
    """
    if isinstance(sequences, (str, bytes)) or not hasattr(sequences, "__iter__"):
        raise TypeError(f"{name}: `sequences` is {type_of(sequences)}, needs a list of [L, d]")
    sequences = list(sequences)
    if not sequences:
        raise ValueError(f"{name}: `sequences` is empty, needs at least one [L, d]")
    return [as_array(name, f"sequences[{i}]", sequence) for i, sequence in enumerate(sequences)]


def checked_sequences(name, arrays):
    """Returns the common floating dtype of arrays [L_i, d]; None if all are integers.

    Raises:
      ValueError: if an array has a rank other than 2, a width of 0, another width than the first one, or a dtype that
        no function takes.
      TypeError: if an element is not an array of numbers.
    """
    for i, array in enumerate(arrays):
        contract.refuse_non_numeric(name, f"sequences[{i}]", array)
        contract.check_dtype(name, f"sequences[{i}]", array)
        if array.ndim != 2:
            width = next((other.shape[1] for other in arrays if other.ndim == 2 and other.shape[1]), None)
            empty = array.size == 0 and width is not None  # an empty list has no width
            repair = f"`[np.reshape(each, (-1, {width})) for each in sequences]`"
            raise ValueError(
                f"{name}: {shape_text(f'sequences[{i}]', array)}, needs [L, d]{suggested([repair] if empty else [])}"
            )
        if array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"{name}: {shape_text(f'sequences[{i}]', array)} but `sequences[0]` has "
                f"{contract.axes_text(arrays[0].shape)}: `sequences[{i}]` needs [L, d] with d = {arrays[0].shape[1]}"
            )
    if not arrays[0].shape[1]:
        raise ValueError(f"{name}: {shape_text('sequences[0]', arrays[0])}, needs [L, d] with d at least 1")
    return contract.common_dtype(array.dtype for array in arrays if contract.kind_of(array.dtype) == "f")


def packed_sizes(name, arrays, length, num_segments):
    """Returns (number of packed tokens, number of segments): those given, or the actual ones of arrays [L_i, d].

    Raises:
      ValueError: if there are more tokens than ``length``, or more sequences than ``num_segments``.
    """
    tokens = sum(len(array) for array in arrays)
    length = tokens if length is None else contract.checked_static(name, "length", length, "size")
    if tokens > length:
        raise ValueError(f"{name}: `length` is {length}, but the sequences have {tokens} tokens together")
    if num_segments is None:
        return length, len(arrays)
    num_segments = contract.checked_static(name, "num_segments", num_segments, "size")
    if len(arrays) > num_segments:
        raise ValueError(f"{name}: `num_segments` is {num_segments}, but there are {len(arrays)} sequences")
    return length, num_segments


def checked_packed(x, segment_ids, num_segments):
    """Checks packed tokens ``x`` [N, d] and their segment numbers; returns ``num_segments`` as an integer.

    Raises:
      ValueError: if shapes disagree, or if a segment number on the host is out of range.
      TypeError: if an argument is not an array of numbers.
    """
    values = {"x": x, "segment_ids": segment_ids, "num_segments": num_segments}
    values["num_segments"] = contract.checked_static("unpack", "num_segments", num_segments, "size")
    contract.check_values(_UNPACK, values, contract.resolve(_UNPACK, values))
    return values["num_segments"]


def padded_length(name, arrays, length, side):
    """Returns (padded length, side) for arrays [L_i, d]; the length is that of the longest array if ``length`` is None.

    Raises:
      ValueError: if an array is longer than ``length``, if ``length`` is negative, or if the side is unknown.
    """
    side = contract.checked_static(name, "side", side, ("right", "left"))
    longest = max(len(array) for array in arrays)
    if length is None:
        return longest, side
    length = contract.checked_static(name, "length", length, "size")
    if longest > length:
        i = next(i for i, array in enumerate(arrays) if len(array) > length)
        raise ValueError(f"{name}: `sequences[{i}]` has {len(arrays[i])} tokens, needs at most `length` = {length}")
    return length, side


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


def resolve_finalize(state, kinds, multi_head, with_sink, sink=None, **parameters):
    """Checks the arguments of ``finalize_state``, and returns its :class:`~attnpool_ref.contract.Call`.

    Args:
      state: the state.
      kinds: the classes of states.
      multi_head: the class of states that takes kernels.
      with_sink: the classes of states that take a sink.
      sink: the sink as an array, or None.
      **parameters: the kernels and biases as arrays, or None.

    Raises:
      TypeError: if ``state`` is not a state, or a parameter is not an array of numbers.
      ValueError: if the parameters do not fit the state, or one another.
    """
    name = FINALIZED.name
    check_state(name, "state", state, kinds)
    if sink is not None:
        if not isinstance(state, with_sink):
            raise ValueError(f"{name}: `sink` is given but `state` is {type_of(state)}, needs a state of an attention")
        contract.refuse_non_numeric(name, "sink", sink)
        contract.check_dtype(name, "sink", sink)
        rows = state.shape[-2:-1] if isinstance(state, multi_head) else state.shape[:-1]
        check_broadcast(name, _SINK, sink, rows, {})
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
    stand_in = masks.with_shape(state, state.shape, np.dtype(int) if state.dtype is None else state.dtype)
    return contract.resolve(FINALIZED, {"state": stand_in} | parameters)
