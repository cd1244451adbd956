"""Verdict of one function: which guarantees explain others, and which arguments and checks were not judged, and why."""

from dataclasses import dataclass, field

from attnpool_ref.conformance.checks import second_derivatives
from attnpool_ref.conformance.checks.hazards import POISONS
from attnpool_ref.conformance.report import BROKEN, NOT_APPLICABLE, Failure, Unasked, promises


@dataclass
class Coverage:
    """Coverage of one function by its cases.

    Attributes:
      masks: the masks that were given with padding in them.
      given: the arguments and options that were given.
      untraceable: the reason why a framework that has gradients cannot differentiate the function, or "".
    """

    masks: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    untraceable: str = ""


def conclude(report, subject, scope, coverage, ended=""):
    """Completes the report of a function from the findings of its cases.

    ``coverage`` is that of the cases that were judged, and ``ended`` the reason why the judging ended early, or "".
    """
    report.ended = ended
    broken = {kept.promise: {failure.dtype for failure in kept.failures} for kept in report.broken}
    for name, kept in report.promises.items():
        if kept.status == BROKEN:
            kept.follows_from = promises.explained_by(name, broken)
        elif kept.notes and promises.BY_NAME[name].asked not in ("", *scope.demands):
            kept.status, kept.why = NOT_APPLICABLE, kept.notes[0]
        elif kept.status == NOT_APPLICABLE and not kept.why:
            kept.why = kept.notes[0] if kept.notes else _why(name, report, subject, scope, broken)
    for key in subject.calling.not_taken():
        report.unasked.append(Unasked(f"`{key}`" + _default(subject.calling.default(key)), "it has no such argument"))
    report.partial = list(_partial(subject, scope, coverage, ended))
    report.set_status()


def unanswered(report, dtype, title, how):
    """Completes the report of a function whose judging ended without results, such as by the end of the process.

    ``dtype`` and ``title`` are those of the last call, or ""; ``how`` is the way in which the judging ended, as text.
    """
    for kept in report.promises.values():
        kept.why = "its process ended before it could report"
    kept = report.promises[promises.ANSWER]
    kept.status, kept.why, kept.cases = BROKEN, "", 1
    kept.dtypes = [dtype] if dtype else []
    finding = f"{title}: {how}" if title else how
    kept.failures.append(Failure(report.name, promises.ANSWER, dtype, finding, "", 10**9))
    report.ended = how
    report.partial.append(how)
    report.set_status()


def _default(value):
    return "" if value is None or callable(value) or isinstance(value, bool) else f" (default {value!r})"


def _partial(subject, scope, coverage, ended):
    """Yields the reasons why a function that broke no guarantee has not passed; arguments as in :func:`conclude`."""
    calling = subject.calling
    for key in calling.unjudged:
        yield (
            f"its argument `{key}` was never given: say what it is (arguments={{{key!r}: NAME}}, --arg {key}=NAME), "
            f"or that it may stay as it is (leave=({key!r},), --leave {key})"
        )
    for key, argument in subject.row.arguments.items():
        if key in subject.parameters:
            continue
        hides = calling.takes(key) or calling.takes(argument.lengths) or key in calling.candidate.leave
        if argument.kind == "mask" and not hides:
            yield (
                f"it takes no `{key}`, so its padding was never judged: if it is meant to have none, say so "
                f"(leave=({key!r},), --leave {key})"
            )
        if key not in calling.declared:
            continue
        if argument.kind == "mask" and key not in coverage.masks:
            yield f"its mask `{calling.names.get(key, key)}` was never given with padding in it"
        elif scope.partial and argument.kind != "mask" and key not in coverage.given:
            yield f"its argument `{calling.names[key]}` was never given"
    if coverage.untraceable:
        yield f"its gradient was never judged: {coverage.untraceable}"
    if ended:
        yield ended


def _why(name, report, subject, scope, broken):
    """Returns the reason why the guarantee ``name`` was not judged; ``broken`` has the broken guarantees."""
    row, calling = subject.row, subject.calling
    masks = [k for k, a in row.arguments.items() if a.kind == "mask"]
    if not report.cases:
        return "nothing was judged"
    if name == promises.WEIGHTS or name == "return_weights":
        if not row.weights:
            return "the row has no weights"
        if not calling.takes("return_weights"):
            return "it takes no `return_weights`"
    if name in _OF_MASKS:
        if not masks:
            return "the row has no mask"
        if not any(calling.takes(k) for k in masks):
            return "it takes no mask"
        if subject.candidate.mask_form == "segments":
            return "packed tokens hold no padding"
    if name in ("jit and vmap", "one program") and subject.adapter.name != "jax":
        return f"{subject.adapter.name} arrays know neither jit nor vmap"
    if name == promises.INTEGERS and not scope.integers:
        return "skipped without integers=True, --integers"
    if name in ("mixed dtypes", promises.INTEGERS) and "float64" not in scope.dtypes:
        return "judged only if float64 is"
    if name in (promises.GRADIENT, "finite gradients", second_derivatives.REVERSE, second_derivatives.FORWARD):
        if subject.adapter.gradient is None:
            return f"{subject.adapter.name} arrays have no gradients"
        if not scope.gradients:
            return "skipped with gradients=False"
        if name in (second_derivatives.REVERSE, second_derivatives.FORWARD) and not (
            "float64" in scope.dtypes and scope.differentiates("float64")
        ):
            return "judged only in float64, if gradients are"
    if name == "long sums" and not scope.long:
        return "skipped with long=False, --quick"
    if name in _OF_LAWS and not scope.laws:
        return "skipped with laws=False, --quick"
    if (name in _OF_SHAPES and not scope.shapes) or (name in _OF_PARTIAL_CALLS and not scope.partial):
        return "skipped with shapes=(), partial=False, --quick"
    if broken:
        return "its check was not reached"
    return "no case of this function applies"


_OF_MASKS = {promises.MASKED, promises.EMPTY, "padding amount", "padding side", "deleting is masking"}
_OF_MASKS |= {f"{name} in padding" for name in POISONS}
_OF_SHAPES = {"shapes", "arguments that broadcast", "padding side", "deleting is masking", "poison in shared arrays"}
_OF_PARTIAL_CALLS = {promises.VALUES, "ties and edges"}
_OF_LAWS = {"padding amount", "padding side", "deleting is masking", "permuting", "shifting the scores", "batch mates"}
_OF_LAWS |= {"NaN at a real token", "poison in shared arrays", "jit and vmap", "one program", "split over devices"}
