"""From a failing case to the smallest one, and to Python code that shows it at a prompt."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing


def shrink(case, fails):
    """The case with fewer examples and shorter axes, as long as it fails.

    Args:
      case: a failing case.
      fails: from a case to whether it fails.
    """
    if case.row.batched and case.batch:
        for index in np.ndindex(*case.batch):
            single = drawing.example_of(case, index)
            if fails(single):
                case = single
                break
    for axis in sorted(case.sizes):
        if any(axis in a and axis != a for own in case.axes.values() for a in own):
            continue  # part of a sum of axes
        for position in reversed(range(case.sizes[axis])):
            if case.sizes[axis] == 1:
                break
            others = [i for i in range(case.sizes[axis]) if i != position]
            smaller = drawing.take(case, f"{axis} without {position}", axis, others)
            if fails(smaller):
                case = smaller
    return case


def reproduce(subject, finding):
    """Code for a Python prompt: the arguments, the candidate's result, the oracle's."""
    case, name = finding.case, subject.row.name
    args, kwargs = subject.call_arguments(case, False)
    kwargs = subject._leave_defaults(kwargs)
    keys = [k for k in contract.signature_of(subject.oracle).parameters][: len(args)]
    jax = subject.adapter.name == "jax"
    narrow = subject.dtype == "bfloat16"
    lines = ["import numpy as np", "import attnpool_ref"]
    lines += ["import jax, jax.numpy as jnp"] if jax else []
    lines += ["import ml_dtypes"] if narrow else []
    lines += ["jax.config.update('jax_enable_x64', True)"] if jax and subject.dtype == "float64" else []
    lines += [_import(subject.function, name)]
    for key, value in [*zip(keys, args, strict=True), *kwargs.items()]:
        lines.append(f"{key} = {_literal(value, subject.dtype)}")
    call = ", ".join([*keys, *(f"{k}={k}" for k in kwargs)])
    lines += [f"print('candidate:', candidate({call}))", f"print('oracle:', attnpool_ref.{name}({call}))"]
    if finding.check == "gradient" or finding.check not in ("agreement with the oracle", "raises"):
        lines += [f"# {finding.check}: {finding.message}"]
    return "\n".join(lines)


def _import(function, name):
    module = getattr(function, "__module__", "") or ""
    qualified = getattr(function, "__qualname__", name)
    if module in ("", "__main__") or "<" in qualified or not qualified.isidentifier():
        return f"# candidate = {module}.{qualified}, as you defined it".replace(" = .", " = ")
    return f"from {module} import {qualified} as candidate"


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
