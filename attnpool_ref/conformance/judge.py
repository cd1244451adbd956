"""Runs the checks over the rows, and makes of a failure the smallest case that still shows it."""

import os
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from attnpool_ref import variants
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import hazards, purity, snippets, transformations
from attnpool_ref.conformance.adapters import NumpyArrays, adapter_for
from attnpool_ref.conformance.agreement import Finding, agreement
from attnpool_ref.conformance.gradients import finite_gradients, gradient
from attnpool_ref.conformance.laws import appending, deleting, permuting, shifting, siding
from attnpool_ref.conformance.report import (
    FAILED,
    HELD,
    NOT_APPLICABLE,
    Cell,
    Failure,
    Measure,
    Report,
    RowReport,
)
from attnpool_ref.conformance.stated import stated_gradients
from attnpool_ref.conformance.subject import Subject

DTYPES = ("float32", "bfloat16", "float16", "float64")

HAZARDS = (
    "empty rows",
    *(f"{name} in padding" for name in hazards.POISONS),
    "poison in shared arrays",
    "padding amount",
    "padding side",
    "deleting is masking",
    "permuting",
    "shifting the scores",
    "batch mates",
    "NaN at a real token",
    "return_weights",
    "extreme scores",
    "ties and edges",
    "long sums",
    "far from 0",
    "sums that cancel",
    "finite gradients",
    "stated gradients",
    "inputs unchanged",
    "random state unchanged",
    "same answer twice",
    "no warnings",
    "jit and vmap",
    "one program for all values",
    "one argument alone",
    "arguments that broadcast",
    "mixed dtypes",
    "shapes",
)
"""What the report lists beside the errors, in its order."""


def judge(
    candidate,
    *,
    name="",
    only=(),
    dtypes=DTYPES,
    strict=False,
    progress=None,
    shapes=drawing.SHAPES,
    gradients=True,
    laws=True,
    partial=True,
    long=True,
):
    """Judges a namespace against the oracle.

    Args:
      candidate: a module, or any object with functions named as in the table.
      name: what the report calls it; the module's own name if empty.
      only: names of rows; all rows if empty.
      dtypes: names of dtypes.
      strict: a row that the candidate lacks fails; rows in ``only`` always do.
      progress: called as ``progress(done, total, label)``.
      shapes: names of the shapes (``cases.SHAPES``) that the first dtype is judged on beside the mixed batch.
      gradients: judge gradients as well, where the candidate's arrays have them.
      laws: judge the candidate against itself as well (permuting, deleting, batch mates ...), in the first dtype.
      partial: in the first dtype also the calls that leave some arguments away, and ties and edges.
      long: sums over a million tokens as well, in float32.

    Returns:
      A :class:`~attnpool_ref.conformance.report.Report`.

    Raises:
      ValueError: no row or no dtype has such a name.
    """
    rows = [variants.get(n) for n in only] or list(variants.VARIANTS)
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"no dtype is called {dtype!r}, needs one of {', '.join(DTYPES)}")
    steps = _Steps(progress, len(rows) * len(dtypes))

    def judge_one(row):
        function = getattr(candidate, row.name, None)
        if function is None:
            steps.take(row.name, len(dtypes))
            return _missing(row, strict or bool(only))
        return _judge_row(row, function, dtypes, steps, shapes, gradients, laws, partial, long)

    # Compiling leaves Python's lock: two rows at a time take little more than half of the time.
    with ThreadPoolExecutor(min(len(rows), os.cpu_count() or 1, 4)) as pool:
        judged = list(pool.map(judge_one, rows))
    adapters = [adapter for _, adapter in judged if adapter is not None]
    adapter = adapters[0] if adapters else NumpyArrays()
    title = name or getattr(candidate, "__name__", type(candidate).__name__)
    return Report(title, adapter.device(), adapter.versions(), [report for report, _ in judged])


class _Steps:
    """Counts what is done, whichever thread did it."""

    def __init__(self, progress, total):
        self.progress, self.total, self.done, self.lock = progress, total, 0, threading.Lock()

    def take(self, label, count=1):
        """Reports ``count`` more steps."""
        with self.lock:
            self.done += count
            if self.progress is not None:
                self.progress(self.done, self.total, label)


def _missing(row, fails):
    """The report of a row that the candidate lacks."""
    report = RowReport(row.name, "missing", hazards=dict.fromkeys(HAZARDS, NOT_APPLICABLE))
    if fails:
        report.status = "fail"
        report.failures.append(Failure(row.name, "missing", "", f"there is no `{row.name}`", "", 0))
    return report, None


def _judge_row(row, function, dtypes, steps, shapes, gradients, laws, partial, long):
    """(report, adapter) of one row in all dtypes."""
    report = RowReport(row.name, hazards=dict.fromkeys(HAZARDS, NOT_APPLICABLE))
    adapter, began, exact = _adapter(row, function), time.perf_counter(), {}
    wide = Subject(row, function, adapter, "float64", exact)
    reference = wide if "float64" in dtypes and adapter.supports("float64") else None
    for dtype in dtypes:
        subject = wide if dtype == "float64" else Subject(row, function, adapter, dtype, exact)
        first = dtype == dtypes[0]
        _judge_dtype(report, subject, reference, shapes if first else (), gradients, laws and first, partial and first)
        judged = report.cells[dtype].forward is not None
        if long and judged and dtype != "float64":
            _judge_long_sums(report, subject)
        if judged and dtype == "float64":
            _judge_mixed_dtypes(report, subject)
        steps.take(f"{row.name} {dtype}")
    report.seconds = time.perf_counter() - began
    if report.failures:
        report.status = "fail"
    elif any(cell.forward for cell in report.cells.values()):
        report.status = "pass"
    return report, adapter


def check(
    function,
    name,
    *,
    dtypes=("float32", "float64"),
    shapes=drawing.SHAPES,
    gradients=True,
    laws=True,
    partial=True,
    long=True,
):
    """Asserts that one function is the row called ``name``; for one's own tests.

    Args:
      function: the candidate, on NumPy or JAX arrays; its own name does not matter.
      name: the row.
      dtypes: dtypes to judge.
      shapes: as in :func:`judge`.
      gradients: as in :func:`judge`.
      laws: as in :func:`judge`.
      partial: as in :func:`judge`.
      long: as in :func:`judge`.

    Raises:
      AssertionError: with the smallest failing case, as code.
      ValueError: no row has such a name.
    """
    candidate = types.SimpleNamespace(**{name: function})
    report = judge(
        candidate,
        only=(name,),
        dtypes=dtypes,
        shapes=shapes,
        gradients=gradients,
        laws=laws,
        partial=partial,
        long=long,
    )
    failure = report.smallest_failure
    if failure is not None:
        raise AssertionError(f"{name}, {failure.check} ({failure.dtype}): {failure.message}\n\n{failure.snippet}")
    if not report.passed:
        raise AssertionError(f"{name}: no case could be judged: the function takes none of the row's arguments")


def _adapter(row, function):
    """The adapter of the array family that the function returns."""
    case = next(iter(drawing.cases_of(row)))[0]
    subject = Subject(row, function, NumpyArrays(), "float32")
    args, kwargs = subject.call_arguments(case, False)
    convert = [np.float32(a) if getattr(a, "dtype", None) == np.float64 else a for a in args]
    kwargs = {k: np.float32(v) if getattr(v, "dtype", None) == np.float64 else v for k, v in kwargs.items()}
    return adapter_for(function, (convert, kwargs))


def _judge_dtype(report, subject, reference, shapes, gradients, laws, partial):
    """The cases of a row in one dtype."""
    row, adapter = subject.row, subject.adapter
    cell = report.cells[subject.dtype] = Cell()
    if not adapter.supports(subject.dtype) or _lacks(subject):
        return
    gradients = gradients and adapter.gradient is not None
    fullest = drawing.fullest_way(row, subject.accepts)
    for case, kind in drawing.cases_of(row, subject.accepts, shapes, partial):
        if kind == "extreme" and subject.dtype == "float16":
            continue  # 1e10 is inf there
        if kind == "far" and subject.is_narrow:
            continue  # nothing is left beside 1000
        way = case.title.split(", ")[0]
        weights = bool(row.weights) and subject.accepts(case.given(*KINDS), case.options, return_weights=True)
        own_program = weights and way == fullest  # whose gradients with the weights are judged as well
        differentiable = gradients and bool(case.given("data", "parameter"))
        run = _Runner(report, subject, case)
        asked = {"way": (False,), "form": (weights,)}.get(kind, (False, True) if weights else (False,))
        judged = [run(lambda s, c, w=w: agreement(s, c, w)) for w in asked]
        if judged[0] is None:
            continue
        report.cases += 1
        for found in judged:
            if kind == "main":
                cell.forward = _worst(cell.forward, found)
            else:
                run.hazard(HAZARD_OF[kind], found)
        if kind == "form":
            run.hazard("NaN in padding", run(lambda s, c, w=weights: hazards.poison_in_padding(s, c, "NaN", w, None)))
        if kind in ("extreme", "exact") and differentiable:
            run.hazard("finite gradients", run(lambda s, c, w=own_program: finite_gradients(s, c, w)))
        if kind in ("main", "shape"):
            run.hazard("empty rows", run(lambda s, c, w=weights: hazards.empty_rows(s, c, w)))
            if weights:
                run.hazard("return_weights", run(hazards.weights_change_nothing))
        if differentiable and _is_differentiated(case, kind, laws):
            measure = reference if kind in ("main", "cancelling") and not way.startswith("with") else None
            for w in (False, True) if own_program and kind == "main" else (False,):
                found = run(lambda s, c, w=w, m=measure: gradient(s, c, w, m))
                if found is not None:
                    cell.gradient = _worst(cell.gradient, found)
        if kind == "main":
            _judge_purity(run, way, weights)
            poisoned = own_program if differentiable and _is_differentiated(case, kind, laws) else None
            for poison in hazards.POISONS if drawing.masked_axes(case) else ():
                run.hazard(
                    f"{poison} in padding",
                    run(lambda s, c, p=poison, w=weights, g=poisoned: hazards.poison_in_padding(s, c, p, w, g)),
                )
        if laws and kind in ("main", "shape"):
            for hazard, judged in _laws(weights, kind, case.title).items():
                run.hazard(hazard, run(judged))
        if laws and kind == "main" and adapter.name == "jax":
            _judge_transformations(run, case, weights, fullest)
    if gradients and laws:
        _judge_stated_gradients(report, subject)


def _is_differentiated(case, kind, laws):
    """Whether the gradients of a case are judged."""
    if kind == "shape":
        degenerate = case.row.norms and "widths of 1" in case.title  # directions on a line have no gradient to compare
        return case.title.endswith(GRADIENT_SHAPES) and not degenerate
    if kind == "main":
        return laws or case.title != "everything but masks"
    return kind in ("cancelling", "tied")


def _judge_purity(run, way, weights):
    """What a call must leave as it was; asked with and without the weights."""
    if way not in ("smallest", "fullest", "everything but masks"):
        return
    for hazard, judged in {
        "inputs unchanged": purity.inputs_unchanged,
        "random state unchanged": purity.random_state_unchanged,
        "same answer twice": purity.same_answer_twice,
        "no warnings": purity.no_warnings,
    }.items():
        for w in (False, True) if weights else (False,):
            run.hazard(hazard, run(lambda s, c, j=judged, w=w: j(s, c, w)))


def _judge_transformations(run, case, weights, fullest):
    """The fullest call under jit and vmap, and with other values."""
    if case.title == fullest:
        run.hazard("jit and vmap", run(lambda s, c: transformations.traced(s, c, weights)))
    if case.title in ("smallest", "fullest"):
        run.hazard("one program for all values", run(transformations.compiles_once))


def _judge_stated_gradients(report, subject):
    """Gradients at points where the contract decides them."""
    run = _Runner(report, subject, next(iter(drawing.cases_of(subject.row)))[0])
    run.hazard("stated gradients", run.as_it_is("stated gradients", stated_gradients))


def _judge_mixed_dtypes(report, subject):
    """Arguments of several dtypes, judged where float64 exists."""
    for case in drawing.mixed_cases(subject.row, subject.accepts):
        if not all(subject.adapter.supports(dtype) for dtype in case.dtypes.values() if dtype != "int32"):
            continue
        run = _Runner(report, subject, case)
        run.hazard("mixed dtypes", run(_mixed_dtypes))


def _mixed_dtypes(subject, case):
    """Agreement; a NumPy function need not know bfloat16."""
    try:
        found = agreement(subject, case)
    except Exception:
        if subject.adapter.name == "numpy" and "bfloat16" in case.dtypes.values():
            return None
        raise
    return replace(found, check="mixed dtypes")


def _judge_long_sums(report, subject):
    """Sums over very many tokens, which no smaller case shows: their failure is kept as it is."""
    judged = hazards.long_sums if subject.dtype == "float32" else hazards.long_narrow_sums
    case = next((case for case, _ in drawing.long_rows(subject.row)), None)
    if case is not None:
        run = _Runner(report, subject, case)
        run.hazard("long sums", run.as_it_is("long sums", judged))


def _lacks(subject):
    """Whether a NumPy function does not know a narrow dtype, which many of NumPy's own do not: n/a, not a failure."""
    if subject.adapter.name != "numpy" or not subject.is_narrow:
        return False
    for case, _ in drawing.cases_of(subject.row, subject.accepts, shapes=()):
        try:
            subject.outputs(case)
        except Exception as error:  # refuses, in whatever way
            return subject.dtype in str(error) or isinstance(error, TypeError) or subject.dtype == "bfloat16"
        break
    return False


GRADIENT_SHAPES = ("length 0", "shared", "no batch", "batch (2, 1, 3)")
"""Other shapes than the mixed batch whose gradient is judged: where there is nothing, where examples add up, ranks."""

HAZARD_OF = {
    "extreme": "extreme scores",
    "exact": "ties and edges",
    "tied": "ties and edges",
    "shape": "shapes",
    "way": "one argument alone",
    "form": "arguments that broadcast",
    "far": "far from 0",
    "cancelling": "sums that cancel",
}
"""What the report calls the kinds of cases beside the main ones."""

KINDS = ("data", "parameter", "mask", "stretch", "number", "int", "bool")


def _laws(weights, kind, title):
    """The checks of one case; laws that bring a shape of their own, and so a compilation, run where they say most."""
    if kind == "shape":
        return {
            "padding side": lambda s, c: siding(s, c, weights),
            "deleting is masking": lambda s, c: deleting(s, c, weights),
            "poison in shared arrays": hazards.poison_in_shared_arrays,
            "NaN in padding": lambda s, c: hazards.poison_in_padding(s, c, "NaN", weights, None),
        }
    found = {
        "permuting": lambda s, c: permuting(s, c, weights),
        "shifting the scores": lambda s, c: shifting(s, c, weights),
        "batch mates": hazards.batch_mates,
        "NaN at a real token": hazards.not_finite_stays_in_its_example,
    }
    if title in ("smallest", "fullest"):
        found["padding amount"] = lambda s, c: appending(s, c, weights)
    return found


def _worst(measure, finding):
    """The measure that is nearer to its limit."""
    new = Measure(finding.error, finding.allowed, finding.case.title)
    if measure is None:
        return new

    def ratio(m):
        return m.error / m.allowed if m.allowed else (np.inf if m.error else 0.0)

    return new if ratio(new) > ratio(measure) else measure


class _Runner:
    """Runs checks on one case; what fails is made smaller and kept, once for each check and dtype."""

    def __init__(self, report, subject, case):
        self.report, self.subject, self.case = report, subject, case

    def __call__(self, judged):
        found = self._try(judged, self.case)
        if found is not None and found.message:
            known = {(f.check, f.dtype) for f in self.report.failures}
            if (found.check, self.subject.dtype) not in known:
                small = snippets.shrink(self.case, lambda case: self._fails_alike(judged, case, found.check))
                found_small = self._try(judged, small) or found
                self.report.failures.append(
                    Failure(
                        self.report.name,
                        found_small.check,
                        self.subject.dtype,
                        found_small.message,
                        snippets.reproduce(self.subject, found_small),
                        sum(int(np.size(v)) for v in small.values.values() if v is not None),
                    )
                )
        return found

    def _fails_alike(self, judged, case, check):
        """Whether a smaller case, which its row must take, fails in the same check."""
        try:
            self.subject.exact(case)
        except ValueError:
            return False  # a rule ties an axis that was cut to one that was not
        found = self._try(judged, case)
        return found is not None and bool(found.message) and found.check == check

    def as_it_is(self, check, judged):
        """Runs a check that draws its own cases; what fails is kept as it is."""
        try:
            found = judged(self.subject)
        except NotImplementedError:
            return None
        except Exception as error:  # the candidate's own: whatever it is, it is the finding
            found = Finding(check, self.case, np.inf, 0, f"raises {type(error).__name__}: {error}")
        if found is not None and found.message:
            size = sum(int(np.size(v)) for v in found.case.values.values() if v is not None)
            snippet = f"# {found.case.title}: an input too long to print"
            if size < 200:
                snippet = snippets.reproduce(self.subject, found)
            failure = Failure(self.report.name, found.check, self.subject.dtype, found.message, snippet, size)
            self.report.failures.append(failure)
        return found

    def _try(self, judged, case):
        try:
            return judged(self.subject, case)
        except NotImplementedError:
            return None  # it has no gradient there, which the check of gradients says
        except Exception as error:  # the candidate's own: whatever it is, it is the finding
            return Finding("raises", case, np.inf, 0, f"{type(error).__name__}: {error}")

    def hazard(self, name, found):
        """Notes a hazard: failed once is failed, n/a until something was judged."""
        if found is None:
            return
        if found.message:
            self.report.hazards[name] = FAILED
        elif self.report.hazards.get(name) != FAILED:
            self.report.hazards[name] = HELD
