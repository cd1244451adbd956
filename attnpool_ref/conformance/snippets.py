"""From a failing case to Python code that shows it at a prompt, whatever the candidate is."""

import functools
import sys

import numpy as np

from attnpool_ref.conformance.calling import arrange
from attnpool_ref.conformance.promises import ANSWER, MASKED, VALUES, WEIGHTS


def reproduce(subject, finding):
    """Code: the arguments by the row's names, the candidate's result, the oracle's."""
    case, name, adapter, dtype = finding.case, subject.row.name, subject.adapter, subject.dtype
    weights = WEIGHTS in (finding.check, finding.aspect)
    ours = {k: v for k, v in subject.values(case).items() if v is not None} | case.options
    ours |= {k: float(ours[k]) for k in case.given("number")}
    ours |= {"return_weights": True} if weights else {}
    theirs, code = {}, {}
    for key, value in subject.passed(case, weights).items():
        if key in ours and _same(value, ours[key]):
            code[key] = adapter.code(key, dtype) if isinstance(value, np.ndarray) else key
        else:
            theirs[key] = value
            code[key] = adapter.code(f"their_{key}", dtype) if isinstance(value, np.ndarray) else repr(value)
    lines = ["import numpy as np", "import attnpool_ref", *adapter.imports(dtype)]
    lines += ["import ml_dtypes"] if dtype == "bfloat16" else []
    lines += found_as(subject.function)
    lines += [f"{key} = {_literal(value, dtype)}" for key, value in ours.items()]
    lines += [f"their_{k} = {_literal(v, dtype)}" for k, v in theirs.items() if isinstance(v, np.ndarray)]
    lines += [f"print('candidate:', candidate({_call(*subject.calling.arrange(code))}))"]
    args, kwargs = arrange(subject.oracle, {key: key for key in ours})
    lines += [f"print('oracle:', attnpool_ref.{name}({_call(args, kwargs)}))"]
    if finding.check not in (VALUES, MASKED, ANSWER):
        lines += [f"# {finding.check}: {' '.join(finding.message.split())}"]
    return "\n".join(lines)


def _same(theirs, ours):
    """Whether an argument is passed as it is."""
    if not isinstance(theirs, np.ndarray) or not isinstance(ours, np.ndarray):
        return type(theirs) is type(ours) and theirs == ours
    same = theirs.shape == ours.shape and theirs.dtype == ours.dtype
    return same and np.array_equal(theirs, ours, equal_nan=theirs.dtype.kind == "f")


def _call(args, kwargs):
    return ", ".join([*map(str, args), *(f"{key}={value}" for key, value in kwargs.items())])


def found_as(target):
    """Lines that make ``candidate`` the target: an import, a name at the prompt, or a comment that says what it was."""
    expression = _expression(target)
    if expression is None:
        return [f"# candidate = {_described(target)}, as you made it"]
    imports, text = expression
    return [*imports, f"candidate = {text}"]


def _expression(target):
    """(imports, expression) of an object that can be found again by a name, or None."""
    if isinstance(target, functools.partial):
        inner = _expression(target.func)
        simple = all(
            isinstance(v, (int, float, str, bool, type(None))) for v in (*target.args, *target.keywords.values())
        )
        if inner is not None and simple:
            given = [*map(repr, target.args), *(f"{k}={v!r}" for k, v in target.keywords.items())]
            return [*inner[0], "import functools"], f"functools.partial({', '.join([inner[1], *given])})"
    for module in _modules(target):
        found = _name_in(module, target)
        if found is None:
            continue
        if module.__name__ == "__main__":
            return [], found
        root = found.partition(".")[0]
        return [f"from {module.__name__} import {root}"], found
    owner = getattr(target, "__self__", None)
    name = getattr(target, "__name__", "")
    if owner is not None and name and not isinstance(owner, type(sys)):
        inner = _expression(owner)
        if inner is not None:
            return inner[0], f"{inner[1]}.{name}"
    return None


def _modules(target):
    """The imported modules in which a target may have a name."""
    inner = getattr(target, "func", None)
    names = [
        getattr(target, "__module__", None),
        type(target).__module__,
        getattr(inner, "__module__", None),
        "__main__",
    ]
    return [sys.modules[name] for name in dict.fromkeys(names) if isinstance(name, str) and name in sys.modules]


def _name_in(module, target):
    """The name of a target in a module: its own, or that of a variable that holds it."""
    qualified, found = getattr(target, "__qualname__", ""), module
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if qualified and found is target:
        return qualified
    return next((name for name, value in list(vars(module).items()) if value is target and name.isidentifier()), None)


def _described(target):
    module, name = getattr(target, "__module__", ""), getattr(target, "__qualname__", "")
    return f"{module}.{name}" if module and name else f"a {type(target).__name__}"


def _literal(value, dtype):
    if not isinstance(value, np.ndarray):
        return repr(value)
    text = np.array2string(value, separator=", ", threshold=10**9, floatmode="unique", max_line_width=110)
    for word in ("nan", "inf"):
        text = text.replace(word, f"np.{word}")
    kind = value.dtype.kind
    name = {"b": "bool", "i": "int", "u": "int"}.get(
        kind, f"np.{dtype}" if dtype != "bfloat16" else "ml_dtypes.bfloat16"
    )
    return f"np.array({text}, {name}).reshape{value.shape}" if value.size == 0 else f"np.array({text}, {name})"
