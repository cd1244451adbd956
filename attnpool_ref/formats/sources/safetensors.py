"""Reader and writer of safetensors files, which checks every entry of their headers.

A file consists of 8 bytes with the length of the header, the header, and the bytes of the tensors. The header is JSON
and has the place of each tensor; the tensors fill the rest of the file without gap or overlap. Source: the description
of the format at https://huggingface.co/docs/safetensors.
"""

import importlib.util
import json
import math
from functools import partial

import numpy as np

from attnpool_ref.contract.text import brief, printable
from attnpool_ref.formats.sources.files import Regular, Stored, replacing

LONGEST_HEADER = 100_000_000
"""Largest header in bytes: the limit of the reference implementation."""

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
}
"""NumPy's names of dtypes by those of the format; bfloat16 is read as uint16 with the same bits."""

FLOAT8 = {
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
"""Names in ml_dtypes of the dtypes of 8 bits, which are read as float32 of the same values if it is installed."""

BITS = {kind: 8 * np.dtype(dtype).itemsize for kind, dtype in DTYPES.items()} | {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    "C64": 64,
}
"""Bits per element of these dtypes, and of those that a head does not have, but other parts of its model may have."""


def tensors_of(path):
    """Returns the tensors of a file by name, without reading their data.

    Raises:
      ValueError: if the file is not a safetensors file, is truncated, or has an impossible header.
    """
    file = Regular(path)
    first = file.read(0, 8)
    length = int.from_bytes(first, "little")
    if len(first) < 8 or length > file.size - 8:
        raise _refused(file, f"its header would have {length} bytes, and the file has {file.size}")
    if length > LONGEST_HEADER:
        raise _refused(file, f"its header would have {length} bytes; {LONGEST_HEADER} are allowed")
    start = 8 + length
    header = _parsed(file, file.read(8, length))
    _check_tiling(file, header, file.size - start)
    return {
        name: Stored(tuple(entry["shape"]), partial(_read, file, name, entry, start)) for name, entry in header.items()
    }


def save(tensors, target, framework=""):
    """Writes arrays by name into a file, as :func:`attnpool_ref.formats.sources.save` does."""
    with replacing(target) as file:
        write(file, tensors, framework)


def write(file, tensors, framework="", metadata=None):
    """Writes arrays by name into an open file; raises a ValueError for a dtype that the format lacks.

    ``framework`` is the entry ``format`` of the header's metadata, such as "pt", "" for none; ``metadata`` has more
    entries, texts by name.
    """
    known = ({"format": framework} if framework else {}) | (metadata or {})
    entries, parts, offset = {"__metadata__": known} if known else {}, [], 0
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        kind, stored = _as_stored(name, array)
        entries[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + stored.nbytes]}
        parts.append(stored)
        offset += stored.nbytes
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for part in parts:
        file.write(part.tobytes())


def bfloat16(bits):
    """Returns a bfloat16 array from its bits, or float32 of the same values if ml_dtypes is not installed."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    import ml_dtypes

    return bits.view(ml_dtypes.bfloat16)


def _parsed(file, raw):
    def once(pairs):
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError("a name stands twice")
        return dict(pairs)

    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON
        raise _refused(file, f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise _refused(file, "its header is no JSON object")
    header.pop("__metadata__", None)
    for name, entry in header.items():
        problem = _problem(entry)
        if problem:
            raise _refused(file, f"of {brief(name)} it says {problem}")
    return header


def _problem(entry):
    """Describes the invalid part of a tensor's entry in the header; returns None if the entry is valid."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return "other things than dtype, shape and data_offsets"
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str):
        return f"the dtype {brief(kind)}"
    said = f"shape {brief(shape)}, data_offsets {brief(offsets)}"
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            return said
    if len(offsets) != 2 or len(shape) > 32:  # NumPy's own limit was 32 axes
        return said
    if kind not in BITS:  # its size is unknown; reading it is an error
        return None if offsets[0] <= offsets[1] else said
    needed = math.prod(shape) * BITS[kind]
    if (offsets[1] - offsets[0]) * 8 != needed:
        return f"shape {brief(shape)} of {kind}, {brief(needed // 8)} bytes, and data_offsets {brief(offsets)}"
    return None


def _check_tiling(file, header, length):
    """Raises a ValueError for tensors that overlap, leave gaps, or reach beyond the file."""
    at = 0
    for begin, end, name in sorted((*entry["data_offsets"], name) for name, entry in header.items()):
        if begin != at:
            raise _refused(file, f"{brief(name)} begins at {begin}, where the tensor before it ends at {at}")
        at = end
    if at != length:
        raise _refused(file, f"its tensors need {at} bytes, and it has {length}")


def _read(file, name, entry, start):
    kind, (begin, end) = entry["dtype"], entry["data_offsets"]
    narrow = kind in FLOAT8 and importlib.util.find_spec("ml_dtypes") is not None
    if kind not in DTYPES and not narrow:
        repair = "install ml_dtypes" if kind in FLOAT8 else "store it as float32"
        raise ValueError(f"{file.name}: {brief(name)} has dtype {printable(kind)}, which NumPy does not have; {repair}")
    raw = file.read(start + begin, end - begin)
    if len(raw) != end - begin:
        raise _refused(file, f"{brief(name)} is cut off")
    if narrow:
        import ml_dtypes

        return np.frombuffer(raw, getattr(ml_dtypes, FLOAT8[kind])).astype(np.float32).reshape(entry["shape"])
    array = np.frombuffer(bytearray(raw), DTYPES[kind]).reshape(entry["shape"])  # bytes would make it read-only
    return bfloat16(array) if kind == "BF16" else array.astype(array.dtype.newbyteorder("="), copy=False)


def _as_stored(name, array):
    """Returns the name of an array's dtype in the format, and the array in little-endian byte order."""
    if array.dtype.name == "bfloat16":
        return "BF16", array
    little = array.dtype.newbyteorder("<")
    for kind, dtype in DTYPES.items():
        if kind != "BF16" and np.dtype(dtype) == little:
            return kind, array.astype(little, copy=False)
    raise ValueError(f"{name!r} has dtype {array.dtype}, which safetensors files do not have")


def _refused(file, reason):
    return ValueError(f"{file.name} is no sound safetensors file: {reason}")
