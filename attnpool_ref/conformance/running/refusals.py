"""Judging of bad input, which must raise an error."""

import numpy as np

from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks import BAD_INPUT
from attnpool_ref.conformance.report import BROKEN, HELD, Failure
from attnpool_ref.conformance.report.promises import REFUSALS
from attnpool_ref.conformance.running import snippets
from attnpool_ref.contract.type_names import type_of


def judge(report, subject):
    """Calls the implementation with bad input, and reports each call that raises no suitable error."""
    kept = report.promises[REFUSALS]
    for refusal in BAD_INPUT.run(subject):
        subject.watch.title = refusal.title
        try:
            did = outcome(subject, refusal)
        except NotApplicable:
            continue
        kept.cases += 1
        if did:
            needs = "a TypeError" if refusal.error is TypeError else "a ValueError"
            message = f"{refusal.title}: {did}, needs {needs}"
            size = sum(int(np.size(value)) for value in refusal.values.values())
            code = _code(subject, refusal, message)
            kept.failures.append(Failure(report.name, REFUSALS, subject.dtype, message, code, size))
    if kept.cases:
        kept.status, kept.dtypes = BROKEN if kept.failures else HELD, [subject.dtype]


def outcome(subject, refusal):
    """Describes what the implementation did instead of raising the expected error.

    The text is "" if it raised this error and did not change its inputs before.

    Raises:
      NotApplicable: the framework cannot make the arrays of the call.
    """
    with subject.adapter.context(subject.dtype), np.errstate(all="ignore"):
        try:
            args, kwargs, arrays = _arranged(subject, refusal)
        except Exception as error:
            raise NotApplicable(str(error)) from error
        before = [subject.adapter.read(array).copy() for array in arrays]
        try:
            result = subject.watch.call(getattr(subject.function, "whole", subject.function), *args, **kwargs)
        except refusal.error:
            after = [subject.adapter.read(array) for array in arrays]
            same = all(a.tobytes() == b.tobytes() for a, b in zip(before, after, strict=True))
            return "" if same else "changed its inputs before it raised"
        except Exception as error:  # any other error is the finding
            return f"raised {said(error).partition(chr(10))[0][:140]}"
        return f"returned {_described(result)}"


def _arranged(subject, refusal):
    """Returns (args, kwargs, the arrays among them that belong to the implementation's family)."""
    values, arrays = {}, []
    for key, value in refusal.values.items():
        if isinstance(value, (np.ndarray, np.generic)) and key not in refusal.as_it_is:
            value = subject.adapter.array(np.asarray(value), subject.dtype)
            arrays.append(value)
        values[key] = value
    args, kwargs = subject.calling.arrange(values)
    return args, kwargs | dict.fromkeys(refusal.more, 1), arrays


def _described(result):
    """Describes a returned value in a few words."""
    if isinstance(result, (tuple, list)):
        return f"{len(result)} things, the first {_described(result[0])}" if result else "nothing"
    shape = getattr(result, "shape", None)
    return type_of(result) if shape is None else f"an array of shape {tuple(shape)}"


def _code(subject, refusal, message):
    """Returns Python code that makes the call."""
    adapter, dtype = subject.adapter, subject.dtype
    code = {}
    for key, value in refusal.values.items():
        text = _short(value) if isinstance(value, (np.ndarray, np.generic)) else repr(value)
        own = isinstance(value, (np.ndarray, np.generic)) and key not in refusal.as_it_is
        code[key] = adapter.code(text, dtype) if own else text
    args, kwargs = subject.calling.arrange(code)
    call = ", ".join([*map(str, args), *(f"{k}={v}" for k, v in (kwargs | dict.fromkeys(refusal.more, 1)).items())])
    lines = ["import numpy as np", *adapter.imports(dtype)]
    lines += ["import ml_dtypes"] if dtype == "bfloat16" else []
    lines += subject.named or [snippets.without_name(subject.function, repr(message))]
    return "\n".join([*lines, f"print(candidate({call}))  # {message}"])


def _short(value):
    """Returns a short Python expression of an array, in which usually all numbers are equal."""
    value = np.asarray(value)
    names = {"b": "bool", "O": "object", "i": "int", "u": "int"}
    name = "ml_dtypes.bfloat16" if value.dtype.name == "bfloat16" else f"np.{value.dtype.name}"
    name = names.get(value.dtype.kind, name)
    first = value.reshape(-1)[0] if value.size else None
    if value.size == 0 or (value.dtype.kind != "O" and np.all(value == 1)):
        return f"np.ones({value.shape}, {name})"
    if value.dtype.kind == "O" or np.all(value == first):
        return f"np.full({value.shape}, {np.asarray(first).item()!r}, {name})"
    return f"np.array({value.tolist()}, {name})"
