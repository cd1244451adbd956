"""Adapter for a program that the judge calls in lines of JSON: arrays as JSON, and the dtypes that the program takes."""

import base64
import binascii
import json
import math
import shlex

import numpy as np

from attnpool_ref.conformance.candidates.adapters import NumpyArrays, numpy_dtype

DTYPES = ("bool", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64")
NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # strings in place of the numbers that JSON lacks
LONGEST_LINE = 100_000  # characters of a call that is printed: shells take no longer arguments


class ProtocolError(Exception):
    """Exception for an answer that breaks the protocol; the message says what came and what is needed."""


class ProgramArrays(NumpyArrays):
    """Adapter of the arrays of a :class:`~attnpool_ref.conformance.candidates.program.Program`.

    The judge holds them as NumPy arrays; each call sends them as JSON. Integers are int32.
    """

    name = "program"
    promotes = False
    in_process = False
    prompt = "shell"

    def __init__(self, program):
        self.program = program

    def device(self):
        return "a program"

    def versions(self):
        return super().versions() | ({self.program.name: self.program.version} if self.program.version else {})

    def supports(self, dtype):
        return dtype in self.program.dtypes and super().supports(dtype)

    def array(self, value, dtype):
        return value.astype(np.int32) if value.dtype.kind in "iu" else super().array(value, dtype)

    def strided(self, value, dtype):
        return None

    def reproduce(self, subject, finding):
        """Returns a shell command that calls the program with the case of a finding, and the needed results."""
        _, arguments = subject.converted(finding.case, finding.with_weights)
        call = json.dumps(subject.candidate.target.request(1, arguments, readable=True))
        if len(call) > LONGEST_LINE:
            return f"# a call of {len(call)} characters, too long for a shell"
        lines = " ".join(shlex.quote(line) for line in (self.program.first_line, call))
        needed = [encoded(each) for each in subject.exact(finding.case, finding.with_weights)]
        return f"printf '%s\\n' {lines} | {self.program.command}\n# needed: {json.dumps({'id': 1, 'results': needed})}"


def numbers(array):
    """Returns the elements of an array in C order as a list for JSON: booleans as 0 and 1, NaN and infinities as strings.

    >>> numbers(np.array([[1.5, -np.inf], [np.nan, 0]]))
    [1.5, '-Infinity', 'NaN', 0.0]
    """
    flat = array.reshape(-1).astype(np.int64 if array.dtype.kind in "biu" else np.float64)
    return [each if math.isfinite(each) else json.dumps(each) for each in flat.tolist()]


def encoded(array, encoding="data"):
    """Returns an array as a JSON object, with its numbers ("data") or its little-endian bytes ("base64")."""
    array = np.asarray(array)
    stored = (
        numbers(array)
        if encoding == "data"
        else base64.b64encode(array.astype(_little(array.dtype)).tobytes()).decode()
    )
    return {"shape": list(array.shape), "dtype": array.dtype.name, encoding: stored}


def decoded(part):
    """Returns the NumPy array of a JSON object.

    Raises:
      ProtocolError: the object is no array, or its numbers are not as many as its shape needs.
    """
    if not isinstance(part, dict) or not {"shape", "dtype"} <= part.keys() or not {"data", "base64"} & part.keys():
        raise ProtocolError(f"a result is {brief(part)}, needs an object with `shape`, `dtype`, and `data` or `base64`")
    shape, name = part["shape"], part["dtype"]
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ProtocolError(f"a result has the shape {brief(shape)}, needs a list of integers from 0 on")
    if name not in DTYPES:
        raise ProtocolError(f"a result has the dtype {brief(name)}, needs one of {', '.join(DTYPES)}")
    dtype, size = numpy_dtype(name), math.prod(shape)
    if dtype is None:
        raise ProtocolError("a result has the dtype bfloat16, which NumPy reads with ml_dtypes: pip install ml_dtypes")
    if "base64" in part:
        raw = _bytes(part["base64"])
        if len(raw) != size * dtype.itemsize:
            raise ProtocolError(
                f"`base64` has {len(raw)} bytes, and shape {shape} of {name} needs {size * dtype.itemsize}"
            )
        return np.frombuffer(raw, _little(dtype)).astype(dtype).reshape(shape)
    data = part["data"]
    if not isinstance(data, list) or len(data) != size:
        count = f"{len(data)} numbers" if isinstance(data, list) else brief(data)
        raise ProtocolError(f"`data` has {count}, and shape {shape} needs {size} in one flat list")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array([_number(each) for each in data], np.float64).astype(dtype).reshape(shape)


def brief(value):
    """Returns the JSON of a value, cut if it is long."""
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."


def _number(value):
    if not isinstance(value, (int, float)) and value not in NOT_FINITE:
        null = " (JSON.stringify writes NaN as null)" if value is None else ""
        raise ProtocolError(f"`data` has {brief(value)}, needs numbers, {', '.join(map(repr, NOT_FINITE))}{null}")
    return float(value)


def _bytes(text):
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ProtocolError(f"`base64` is {brief(text)}, which cannot be decoded: {error}") from None


def _little(dtype):
    return dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype
