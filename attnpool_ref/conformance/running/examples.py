"""Hypothesis strategies for the calls of a function.

``choose(values)`` is an argument of most functions here: it draws one of the values. The simplest value comes first,
because hypothesis shrinks a failing example towards it.
"""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.checks import situation_of
from attnpool_ref.table.language import Excludes, Needs, Shaped, terms

BATCHES = ((), (1,), (2,), (3,), (2, 3), (1, 2, 2), (0,))
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 0)
WIDTHS = (1, 2, 3, 4, 5, 7, 8)
LONG = (16, 33, 65, 128)
"""Large sizes, which at most one axis of an example has."""

DENSITIES = (1.0, 0.75, 0.5, 0.25, 0.0)
SOMETIMES = (False, True, True, True)
RARELY = (False, False, False, True)

PLAIN = "as drawn"
KINDS = {"small integers": "exact", "equal tokens": "exact", "scores of -inf": "extreme"}
"""The kind of case for each form of the numbers; for other forms it is "main"."""


def examples_of(subject, traced):
    """Returns a hypothesis strategy of (case, situation), for calls of the subject.

    Args:
      subject: the implementation under test, in one dtype.
      traced: whether gradients are judged, too, but only in about an eighth of the examples.
    """
    from hypothesis import reject, strategies

    @strategies.composite
    def examples(draw):
        def choose(values):
            # Booleans, because among integers hypothesis mixes constants of all imported modules, which it also writes
            # to a folder. So the examples are the same in every environment.
            bits = [draw(strategies.booleans()) for _ in range((len(values) - 1).bit_length())]
            return values[sum(bit << place for place, bit in enumerate(bits)) % len(values)]

        case, form = _drawn(subject, choose)
        try:
            case = subject.fit(case)
            subject.forget()
            subject.passed(case)
            exact = subject.exact(case)
        except (NotApplicable, ValueError):  # excluded by a rule of the function, or not taken by the implementation
            reject()
        if any(_underflows(result, subject.dtype) for result in exact):
            reject()
        kind = KINDS.get(form, "main")
        gradients = traced and form == PLAIN and choose(RARELY)
        return case, situation_of(subject, case, kind, True, gradients, False, None)

    return examples()


def _underflows(result, dtype):
    """Returns whether a result is not 0, but all its elements are smaller than the normal numbers of the dtype."""
    largest = float(np.max(np.abs(result), initial=0, where=np.isfinite(result)))
    return 0 < largest < float(np.finfo("float32" if dtype == "bfloat16" else dtype).tiny)


def _drawn(subject, choose):
    """Returns (case, the form of its numbers)."""
    row, calling = subject.row, subject.calling
    names, options = calling.restrict(*_way(row, choose))
    batches = [b for b in BATCHES if len(b) == 1] if subject.candidate.batched else BATCHES
    batch = choose(batches) if row.batched else ()
    data = [k for k, a in row.arguments.items() if a.kind == "data" and (not a.optional or k in names)]
    data = [k for k in data if k not in row.shared]
    shared = (
        choose(((), *((k,) for k in data))) if len(data) > 1 and len(batch) and not subject.candidate.batched else ()
    )
    case = drawing.draw(row, "an example", names, options, batch, _sizes(row, choose), shared)
    form = choose(_forms(case, subject.dtype)) if choose((False, True)) else PLAIN
    case = replace(case, title=f"example {choose(range(100))}, {form}")
    return _formed(_masked(case, choose), form, choose), form


def _way(row, choose):
    """Returns (names of the optional arguments that are given, options)."""
    names, options = [], {}
    chosen = {rule.argument for rule in row.relations if isinstance(rule, Shaped)}
    for key, allowed in row.options.items():
        if key == "axis":
            options[key] = choose((-1, -2))
        elif isinstance(allowed, tuple):
            options[key] = choose(drawing.values_of(allowed))
        elif allowed == "flag" and not row.takes(key, True):
            options[key] = False
        else:
            options[key] = choose(
                {"flag": (False, True), "size": (6, 1, 9, 0), "count": (2, 1, 3), "positive": (2, 1, 5)}[allowed]
            )
    for key, argument in row.arguments.items():
        if argument.optional and choose(SOMETIMES):
            names.append(key)
        if len(argument.shapes) > 1 and key not in chosen and (not argument.optional or key in names):
            names += choose(((), *((f"{key}#{i}",) for i in range(1, len(argument.shapes)))))
    for rule in row.relations:
        if isinstance(rule, Excludes) and {rule.first, rule.second} <= set(names):
            names.remove(choose((rule.second, rule.first)))
        if isinstance(rule, Needs) and rule.argument in names and row.options.get(rule.option) == "flag":
            options[rule.option] = True
    return drawing.legal(row, names, options), options


def _sizes(row, choose):
    """Returns a size for each axis of the function, at most one of them large."""
    own = {
        a for argument in row.arguments.values() for axes in argument.shapes for axis in axes for _, a in terms(axis)
    }
    if any(axes == ("...",) for a in row.arguments.values() if a.kind != "lengths" for axes in a.shapes):
        own |= set(drawing.ANY_RANK[1:])
    axes = sorted(own)
    sizes = {axis: choose(LENGTHS if axis in drawing.SEQUENCES else WIDTHS) for axis in axes}
    if axes and choose(RARELY):
        sizes[choose(axes)] = choose(LONG)
    return sizes


def _masked(case, choose):
    """Returns the case with masks of other densities, some of them prefixes."""
    masks = {}
    for key in case.given("mask"):
        shape, density = case.values[key].shape, choose(DENSITIES)
        mask = case.rng(f" {key}").random(shape) < density
        masks[key] = -np.sort(-mask.astype(np.int8), -1) > 0 if choose((False, True)) else mask
    return case.with_values("", **masks)


def _forms(case, dtype):
    """Returns the forms that the numbers of a case may have."""
    data, forms = case.given("data"), [PLAIN]
    if not data or 0 in case.sizes.values() or case.row.unit:
        return forms
    forms += (
        ["small integers", "equal tokens", "scores of -inf"] if "scores" in data else ["small integers", "equal tokens"]
    )
    if dtype != "float16":  # their products are inf there
        forms += ["1000 away from 0", "64 times as large"]
    return [*forms, *(f"zeros in `{key}`" for key in data if key != "weights")]


def _formed(case, form, choose):
    """Returns the case with its numbers in one of the forms of :func:`_forms`."""
    data, rng = case.given("data"), case.rng(" numbers")
    if form == "small integers":  # vectors with one nonzero component: sums are exact, and there are ties and edges
        values = {}
        for key in data:
            shape = case.values[key].shape
            place, number = rng.integers(0, shape[-1], shape[:-1]), rng.choice([-1.0, 0.0, 1.0, 2.0], shape[:-1])
            values[key] = np.where(np.arange(shape[-1]) == place[..., None], number[..., None], 0)
        values |= {key: np.float64(1) for key in case.given("number")}
        return replace(case.with_values("", **values), exact=frozenset(values))
    if form == "equal tokens":  # marked as exact, so that sensitivities are measured without breaking the ties
        axes = [axis for axis in sorted(case.sizes) if axis in drawing.SEQUENCES]
        masks = {key: case.values[key] for key in case.given("mask")}
        for axis in axes[:1] and [choose(axes)]:
            case = drawing.take(case, "", axis, np.sort(rng.integers(0, case.sizes[axis], case.sizes[axis])))
        return replace(case.with_values("", **masks), exact=frozenset(case.given("data", "parameter")))
    if form == "scores of -inf":
        scores = case.values["scores"]
        return case.with_values("", scores=np.where(rng.random(scores.shape) < 0.4, -np.inf, scores))
    if form == PLAIN:
        return case
    zeros = form.removeprefix("zeros in ").strip("`")
    changes = {
        "1000 away from 0": lambda x: np.float32(x + 1000).astype(np.float64),
        "64 times as large": lambda x: 64 * x,
    }
    if form in changes:
        return case.with_values("", **{key: changes[form](case.values[key]) for key in data if key != "weights"})
    return case.with_values("", **{zeros: np.zeros_like(case.values[zeros])})
