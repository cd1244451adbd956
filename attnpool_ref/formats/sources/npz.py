"""Reader and writer of .npz archives, without pickle; the sizes in their headers are checked.

``numpy.load`` allocates the memory that a header asks for before it reads the data. Here the size in a header must
agree with the size of its archive member first.
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from functools import partial

import numpy as np

from attnpool_ref.contract.text import brief
from attnpool_ref.formats.sources.files import Regular, Stored, replacing

LONGEST_NAME = 2**16 - 1
"""Largest number of bytes of a name in a ZIP archive."""

LONGEST_HEADER = 10_000
"""Largest header in bytes: NumPy's own limit for untrusted files."""

MOST_COMPRESSED = 1_100
"""The largest compression ratio that deflate can reach, rounded up."""

UNSOUND = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error, OSError)
"""Exceptions of ``zipfile`` for corrupt archives; OSError for an offset before the file's beginning."""


def tensors_of(path):
    """Returns the arrays of an archive by name, without reading their data.

    Raises:
      ValueError: if the file is not an archive of arrays, is truncated, holds Python objects, or has an impossible
        header.
    """
    file, tensors = Regular(path), {}
    try:
        archive = zipfile.ZipFile(file.stream)
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                raise _refused(file, f"it holds {brief(member.filename)}, which is no array")
            name = member.filename.removesuffix(".npy")
            if name in tensors:
                raise _refused(file, f"it holds {brief(name)} twice")
            shape, dtype, fortran, begin = _header(file, archive, member)
            read = partial(_read, file, archive, member, shape, dtype, fortran, begin)
            tensors[name] = Stored(shape, read)
    except UNSOUND as error:
        raise _refused(file, str(error) or type(error).__name__) from None
    return tensors


def save(tensors, target):
    """Writes arrays by name into an uncompressed archive, as :func:`attnpool_ref.formats.sources.save` does.

    Raises:
      ValueError: also if an array has a dtype that is not NumPy's own, such as bfloat16, or if a name is too long.
    """
    odd = [name for name, array in tensors.items() if array.dtype.type.__module__ != "numpy" or array.dtype.hasobject]
    if odd:
        raise ValueError(
            f"{odd[0]!r} has dtype {tensors[odd[0]].dtype}, which .npz files do not have; take .safetensors"
        )
    for name in tensors:
        if len(f"{name}.npy".encode()) > LONGEST_NAME:
            raise ValueError(f"{brief(name)} has {len(name)} letters, too many for .npz files; take .safetensors")
    with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _header(file, archive, member):
    """Returns (shape, dtype, whether it is in Fortran order, offset of the data) of one array."""
    if member.flag_bits & 1:
        raise _refused(file, f"{brief(member.filename)} is encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # NumPy writes no other
        raise _refused(file, f"{brief(member.filename)} is compressed in the way {member.compress_type}")
    if member.file_size > MOST_COMPRESSED * member.compress_size + 1_000:
        raise _refused(
            file, f"{brief(member.filename)} would grow from {member.compress_size} bytes to {member.file_size}"
        )
    with archive.open(member) as opened:
        first = opened.read(8)
        if first[:6] != b"\x93NUMPY" or first[6:7] not in (b"\1", b"\2", b"\3"):
            raise _refused(file, f"{brief(member.filename)} is no array")
        wide = 2 if first[6] == 1 else 4
        raw = opened.read(wide)
        length = int.from_bytes(raw, "little")
        if length > LONGEST_HEADER:
            raise _refused(file, f"the header of {brief(member.filename)} would have {length} bytes")
        header = io.BytesIO(raw + opened.read(length))
    try:
        read = np.lib.format.read_array_header_1_0 if first[6] == 1 else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(header, max_header_size=LONGEST_HEADER)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise _refused(file, f"the header of {brief(member.filename)} is unreadable: {error}") from None
    if dtype.hasobject:
        raise _refused(file, f"{brief(member.filename)} holds Python objects, which need pickle")
    if any(type(size) is not int or not 0 <= size < 2**63 for size in shape):
        raise _refused(file, f"{brief(member.filename)} has the shape {brief(shape)}")
    begin = 8 + wide + length
    needed = math.prod(shape) * dtype.itemsize
    if member.file_size - begin != needed:
        raise _refused(
            file,
            f"{brief(member.filename)} needs {brief(needed)} bytes for {brief(shape)}, and has {member.file_size - begin}",
        )
    return shape, dtype, fortran, begin


def _read(file, archive, member, shape, dtype, fortran, begin):
    """Reads an array; ``zipfile`` decompresses in pieces, so false sizes take no more memory than the contents."""
    try:
        with archive.open(member) as opened:
            opened.read(begin)
            raw = bytearray(opened.read())  # bytes would make the array read-only
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _refused(file, f"{brief(member.filename)}: {error}") from None
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise _refused(file, f"{brief(member.filename)} is cut off")
    array = np.frombuffer(raw, dtype) if raw else np.empty(0, dtype)
    array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _refused(file, reason):
    return ValueError(f"{file.name} is no sound .npz file: {reason}")
