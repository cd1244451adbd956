"""Checks of lists of sequences, and of packed sequences, for ``pad``, ``pack`` and ``unpack`` of both packages."""

from typing import Any

from attnpool_ref import contract
from attnpool_ref.contract.shapes import shape_text
from attnpool_ref.contract.text import type_of
from attnpool_ref.table import Variant

_UNPACK = Variant(
    "unpack",
    family="segments",
    shapes="x[N, d] segment_ids:segments[N] -> [N, d]",
    source="reimers2019",
    equation="the tokens of each segment",
    options={"num_segments": "size"},
)


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
            raise ValueError(f"{name}: {shape_text(f'sequences[{i}]', array)}, needs [L, d]")
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
