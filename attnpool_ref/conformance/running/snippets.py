"""Python code that reproduces a failing case at a prompt."""

import base64
import types
import zlib
from collections.abc import Mapping

import numpy as np

from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import held_parameters
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.report.guarantees import ANSWER, DTYPE, MASKED, VALUES, WEIGHTS
from attnpool_ref.contract import signature_of
from attnpool_ref.contract.text import type_of

LONGEST = 512
"""Largest number of elements of a result that is printed in place of an implementation that cannot be imported."""

DIGITS = 48
"""Largest number of elements of an array that is printed in digits."""


def reproduce(subject, finding, got=None):
    """Returns code that prints the results of the implementation and of the oracle for the case of a finding.

    For a program it is a shell command.

    ``got`` is the implementation's result, which the code repeats if no name leads to the implementation; None if it
    raises.
    """
    case, name, adapter, dtype = finding.case, subject.row.name, subject.adapter, subject.dtype
    if adapter.prompt == "shell":
        return adapter.reproduce(subject, finding)
    weights = finding.with_weights or WEIGHTS in (finding.check, finding.aspect)
    ours = {k: v for k, v in subject.values(case).items() if v is not None} | case.options
    ours |= {k: float(ours[k]) for k in case.given("number") if k not in case.dtypes}
    defaults = signature_of(subject.oracle).parameters
    lacking = {k for k, v in ours.items() if not isinstance(v, np.ndarray) and v == defaults[k].default}
    ours = {k: v for k, v in ours.items() if k not in lacking or subject.calling.takes(k)}
    ours |= {"return_weights": True} if weights else {}
    dtypes = {k: case.dtypes.get(k, dtype) for k in ours}
    theirs, code = {}, {}
    for key, value in subject.passed(case, weights).items():
        if key in ours and _same(value, ours[key]):
            code[key] = adapter.code(key, dtypes[key]) if isinstance(value, np.ndarray) else key
        else:
            theirs[key] = value
            code[key] = adapter.code(f"their_{key}", dtype) if isinstance(value, np.ndarray) else repr(value)
    lines = ["import numpy as np", "import attnpool_ref", *adapter.imports(dtype)]
    functions = [value for value in ours.values() if callable(value)]
    lines += [f"from {function.__module__} import {function.__name__}" for function in functions]
    lines += ["import ml_dtypes"] if "bfloat16" in (dtype, *dtypes.values()) else []
    lines += ["from attnpool_ref.conformance.candidates import chunks"] if subject.row.state else []
    if not weights and got is not None:
        got = got[: len(subject.row.results)]
    lines += subject.named or [without_name(subject.candidate.target, _answer(finding, got, dtype))]
    held = _redrawn(subject, case, lines) | _held(subject, ours)
    lines += [f"{k} = {held.get(k) or _literal(v, dtypes[k], seed_of(subject.row, k))}" for k, v in ours.items()]
    lines += [f"their_{k} = {_literal(v, dtype)}" for k, v in theirs.items() if isinstance(v, np.ndarray)]
    lines[1:1] = ["import base64, zlib"] if any("zlib.decompress" in line for line in lines) else []
    dtype_of = ".dtype" if finding.check == DTYPE and hasattr(subject.raw(case, weights), "dtype") else ""
    picked = "" if subject.candidate.result is None else f"[{subject.candidate.result}]"
    lines += [f"print('candidate:', candidate({_call(*subject.calling.arrange(code))}){picked}{dtype_of})"]
    args, kwargs = arrange(subject.oracle, {key: key for key in ours})
    oracle = f"chunks.oracle_of({name!r})" if subject.row.state else f"attnpool_ref.{name}"
    lines += [f"print('oracle:', {oracle}({_call(args, kwargs)}){dtype_of})"]
    if finding.check not in (VALUES, MASKED, ANSWER):
        lines += [f"# {finding.check}: {' '.join(finding.message.split())}"]
    return "\n".join(lines)


def without_name(target, answer):
    """Returns a line of code for an implementation that cannot be imported by a name.

    The line uses the variable ``candidate`` if the reader has assigned it; otherwise it repeats the judged result,
    of which ``answer`` is a Python expression.
    """
    return (
        f"candidate = globals().get('candidate', lambda *args, **kwargs: {answer})  # {_described(target)} has no name "
        "to import it by: call yours `candidate` before this line; without it, its answer is repeated"
    )


def _answer(finding, got, dtype):
    """Returns a Python expression of a result, or of a text that says why it is not shown."""
    if got is None or not all(isinstance(part, np.ndarray) for part in got):
        return repr(finding.message)
    if sum(part.size for part in got) > LONGEST:
        return "'an answer that is too long to print'"
    parts = [" ".join(_literal(part, part.dtype.name if part.dtype.kind in "fV" else dtype).split()) for part in got]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _same(theirs, ours):
    """Returns whether an argument is passed unchanged."""
    if not isinstance(theirs, np.ndarray) or not isinstance(ours, np.ndarray):
        return type(theirs) is type(ours) and theirs == ours
    same = theirs.shape == ours.shape and theirs.dtype == ours.dtype
    return same and np.array_equal(theirs, ours, equal_nan=theirs.dtype.kind == "f")


def _call(args, kwargs):
    return ", ".join([*map(str, args), *(f"{key}={value}" for key, value in kwargs.items())])


def _described(target):
    module, name = getattr(target, "__module__", ""), getattr(target, "__qualname__", "")
    return f"{module}.{name}" if module and name else type_of(target)


def seed_of(row, key):
    """Returns the seed with which large data are drawn in place of an argument."""
    return list(row.arguments).index(key) if key in row.arguments else 0


def drawn(shape, seed):
    """Returns random numbers that every dtype holds, which one line of code draws again."""
    return np.random.default_rng(seed).integers(-16, 17, shape) / 8


def _redrawn(subject, case, lines):
    """Returns code for the large arrays of a case of long sums, and adds to ``lines`` those that draw the case again."""
    name, size = subject.row.name, max(case.sizes.values(), default=0)
    if size < drawing.LONG_NARROW:
        return {}
    source = f"[case for case, _ in cases.long_rows(row, {size})], *cases.long_narrow_rows(row)"
    row, key = table.get(name), case.title
    cases = [*(case for case, _ in drawing.long_rows(row, size)), *drawing.long_narrow_rows(row)]
    found = next((each for each in cases if each.title == key), None)
    keys = [k for k, v in case.values.items() if v is not None and v.size > DIGITS]
    if found is None or not all(np.array_equal(found.values[k], case.values[k]) for k in keys):
        return {}
    seed = drawing.SEED.get()
    lines += ["from attnpool_ref import table", "from attnpool_ref.conformance import cases"]
    lines += [f"cases.SEED.set({seed!r})"] if seed else []
    lines += [f"row = table.get({name!r})", f"case = next(case for case in [*{source}] if case.title == {key!r})"]
    types = {k: _type(case.values[k], subject.dtype) for k in keys}
    return {k: f"case.values[{k!r}].astype({types[k]})" for k in keys}


def _held(subject, ours):
    """Returns code for the arguments that the implementation holds, by the names that ``Candidate.parameters`` gives."""
    given, target = subject.candidate.parameters, subject.candidate.target
    if not isinstance(given, Mapping) or not subject.named:
        return {}
    expression = subject.named[-1].removeprefix("candidate = ")
    root = expression if expression.replace(".", "").isidentifier() else "candidate"
    root = f"{root}.__self__" if isinstance(target, types.MethodType) else root
    return {
        key: subject.adapter.held_code(held_parameters.code_of(target, path, root))
        for key, path in given.items()
        if key in ours
    }


def _literal(value, dtype, seed=0):
    if not isinstance(value, np.ndarray):
        return value.__name__ if callable(value) else repr(value)
    if value.size > DIGITS:
        return _long_literal(value, dtype, seed)
    text = np.array2string(value, separator=", ", threshold=10**9, floatmode="unique", max_line_width=110)
    for word in ("nan", "inf"):
        text = text.replace(word, f"np.{word}")
    name = _type(value, dtype)
    return f"np.array({text}, {name}).reshape{value.shape}" if value.size == 0 else f"np.array({text}, {name})"


def _type(value, dtype):
    if value.dtype.kind in "biu":
        return {"bool": "bool", "int64": "int"}.get(value.dtype.name, f"np.{value.dtype.name}")
    return f"np.{dtype}" if dtype != "bfloat16" else "ml_dtypes.bfloat16"


def _long_literal(value, dtype, seed):
    """Returns an expression of a large array in one line: a draw by a seed, a repeated part, or compressed bytes."""
    shape, kind = value.shape, _type(value, dtype)
    if np.array_equal(value, drawn(shape, seed)):
        return f"(np.random.default_rng({seed}).integers(-16, 17, {shape}) / 8).astype({kind})"
    for axis, size in enumerate(shape):
        first = value.take([0], axis)
        if size > 1 and np.array_equal(np.broadcast_to(first, shape), value, equal_nan=value.dtype.kind == "f"):
            return f"np.repeat({_literal(first, dtype)}, {size}, {axis})"
    stored = value.astype(np.float32) if np.array_equal(value.astype(np.float32), value, equal_nan=True) else value
    stored = stored if value.dtype.kind == "f" else value
    text = base64.b85encode(zlib.compress(np.ascontiguousarray(stored).tobytes(), 9)).decode()
    data = (
        f"np.frombuffer(zlib.decompress(base64.b85decode({text!r})), np.{stored.dtype.name.replace('bool', 'bool_')})"
    )
    return f"{data}.reshape({shape}).astype({kind})"
