"""Runs the checks over the rows, and makes of a failure the smallest case that still shows it."""

import os
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from attnpool_ref import variants
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import hazards, snippets
from attnpool_ref.conformance.adapters import NumpyArrays, adapter_for
from attnpool_ref.conformance.agreement import Finding, agreement, finite_gradients, gradient
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
from attnpool_ref.conformance.subject import Subject

DTYPES = ("float32", "bfloat16", "float16", "float64")

HAZARDS = (
    "empty rows",
    *(f"{name} in padding" for name in hazards.POISONS),
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
    "finite gradients",
    "inputs unchanged",
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
    for dtype in dtypes:
        subject = Subject(row, function, adapter, dtype, exact)
        first = dtype == dtypes[0]
        _judge_dtype(report, subject, shapes if first else (), gradients, laws and first, partial and first)
        if long and dtype == "float32" and report.cases:
            _judge_long_sums(report, subject)
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
    dtypes=("float32",),
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


def _judge_dtype(report, subject, shapes, gradients, laws, partial):
    """The cases of a row in one dtype."""
    row, adapter = subject.row, subject.adapter
    cell = report.cells[subject.dtype] = Cell()
    if not adapter.supports(subject.dtype) or _lacks(subject):
        return
    gradients = gradients and adapter.gradient is not None
    for case, kind in drawing.cases_of(row, subject.accepts, shapes, partial):
        if kind == "extreme" and subject.dtype == "float16":
            continue  # 1e10 is inf there
        names = case.given(*KINDS)
        weights = bool(row.weights) and subject.accepts(names, case.options, return_weights=True)
        run = _Runner(report, subject, case)
        found = run(lambda s, c, w=weights: agreement(s, c, w))
        if found is None:
            continue
        report.cases += 1
        if kind == "main":
            cell.forward = _worst(cell.forward, found)
        else:
            run.hazard(HAZARD_OF[kind], found)
        if kind in ("extreme", "exact"):
            if gradients and case.given("data", "parameter"):
                run.hazard("finite gradients", run(lambda s, c, w=weights: finite_gradients(s, c, w)))
            continue
        run.hazard("empty rows", run(lambda s, c, w=weights: hazards.empty_rows(s, c, w)))
        if gradients and case.given("data", "parameter") and (kind == "main" or case.title.endswith(GRADIENT_SHAPES)):
            try:
                found = run(lambda s, c, w=weights: gradient(s, c, w))
            except NotImplementedError:
                gradients = False
                found = None
            if found is not None:
                cell.gradient = _worst(cell.gradient, found)
        if kind == "main" and drawing.masked_axes(case):
            for poison in hazards.POISONS:
                run.hazard(
                    f"{poison} in padding",
                    run(lambda s, c, p=poison, w=weights, g=gradients: hazards.poison_in_padding(s, c, p, w, g)),
                )
        if laws:
            for hazard, judged in _laws(weights, kind, case.title).items():
                run.hazard(hazard, run(judged))


def _judge_long_sums(report, subject):
    """Sums over a million tokens, which no smaller case shows: their failure is kept as it is."""
    try:
        found = hazards.long_sums(subject)
    except Exception as error:  # the candidate's own: whatever it is, it is the finding
        case = next(iter(drawing.long_rows(subject.row)))[0]
        found = Finding("long sums", case, np.inf, 0, f"raises {type(error).__name__}: {error}")
    if found is None:
        return
    report.hazards["long sums"] = FAILED if found.message else HELD
    if found.message:
        size = sum(int(np.size(v)) for v in found.case.values.values() if v is not None)
        snippet = f"# {found.case.title}: an input too long to print"
        report.failures.append(Failure(report.name, found.check, subject.dtype, found.message, snippet, size))


def _lacks(subject):
    """Whether a NumPy function does not know bfloat16, which is no dtype of NumPy's own: n/a, not a failure."""
    if subject.adapter.name != "numpy" or subject.dtype != "bfloat16":
        return False
    try:
        for case, _ in drawing.cases_of(subject.row, subject.accepts, shapes=()):
            subject.outputs(case)
            break
    except TypeError:
        return True
    return False


GRADIENT_SHAPES = ("length 0", "shared")
"""Other shapes than the mixed batch whose gradient is judged: where there is nothing, and where examples add up."""

HAZARD_OF = {"extreme": "extreme scores", "exact": "ties and edges", "shape": "shapes"}
"""What the report calls the kinds of cases beside the main ones."""

KINDS = ("data", "parameter", "mask", "stretch", "number", "int", "bool")


def _laws(weights, kind, title):
    """The checks of one case; laws that bring a shape of their own, and so a compilation, run where they say most."""
    if kind == "shape":
        return {
            "padding side": lambda s, c: siding(s, c, weights),
            "deleting is masking": lambda s, c: deleting(s, c, weights),
        }
    found = {
        "permuting": lambda s, c: permuting(s, c, weights),
        "shifting the scores": lambda s, c: shifting(s, c, weights),
        "batch mates": hazards.batch_mates,
        "NaN at a real token": hazards.nan_stays_in_its_example,
        "inputs unchanged": hazards.inputs_unchanged,
    }
    if title in ("smallest", "fullest"):
        found["padding amount"] = lambda s, c: appending(s, c, weights)
    return found | ({"return_weights": hazards.weights_change_nothing} if weights else {})


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
                found_small = self._try(judged, small)
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

    def _try(self, judged, case):
        try:
            return judged(self.subject, case)
        except NotImplementedError:
            raise
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
