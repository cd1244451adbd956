"""Python code that reproduces a failing case at a prompt."""

import numpy as np

from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.report.promises import ANSWER, DTYPE, MASKED, VALUES, WEIGHTS
from attnpool_ref.contract import signature_of
from attnpool_ref.contract.text import type_of

LONGEST = 512
"""Largest number of elements of a result that is printed in place of an implementation that cannot be imported."""

LARGEST = 2**13
"""Largest number of elements of a case that is printed."""


def reproduce(subject, finding, got=None):
    """Returns code that prints the results of the implementation and of the oracle for the case of a finding.

    ``got`` is the implementation's result, which the code repeats if no name leads to the implementation; None if it
    raises.
    """
    case, name, adapter, dtype = finding.case, subject.row.name, subject.adapter, subject.dtype
    if case.size() > LARGEST:
        return f"# {case.title}: an input too long to print"
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
    lines += subject.named or [without_name(subject.function, _answer(finding, got, dtype))]
    lines += [f"{key} = {_literal(value, dtypes[key])}" for key, value in ours.items()]
    lines += [f"their_{k} = {_literal(v, dtype)}" for k, v in theirs.items() if isinstance(v, np.ndarray)]
    dtype_of = ".dtype" if finding.check == DTYPE and hasattr(subject.raw(case, weights), "dtype") else ""
    lines += [f"print('candidate:', candidate({_call(*subject.calling.arrange(code))}){dtype_of})"]
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


def _literal(value, dtype):
    if not isinstance(value, np.ndarray):
        return value.__name__ if callable(value) else repr(value)
    text = np.array2string(value, separator=", ", threshold=10**9, floatmode="unique", max_line_width=110)
    for word in ("nan", "inf"):
        text = text.replace(word, f"np.{word}")
    kind = value.dtype.kind
    if kind in "biu":
        name = {"bool": "bool", "int64": "int"}.get(value.dtype.name, f"np.{value.dtype.name}")
    else:
        name = f"np.{dtype}" if dtype != "bfloat16" else "ml_dtypes.bfloat16"
    return f"np.array({text}, {name}).reshape{value.shape}" if value.size == 0 else f"np.array({text}, {name})"
