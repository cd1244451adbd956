"""Why a guarantee was not judged."""

from attnpool_ref.conformance.report.guarantees import BY_NAME, UNCHANGED


def _masks(subject, scope):
    masks = [key for key, argument in subject.row.arguments.items() if argument.kind == "mask"]
    if not masks:
        return "the function has no mask"
    if not any(subject.calling.takes(key) for key in masks):
        return "it takes no mask"
    return "packed tokens hold no padding" if subject.candidate.mask_form == "segments" else ""


def _weights(subject, scope):
    if not subject.row.weights:
        return "the function has no weights"
    return "" if subject.calling.takes("return_weights") else "it takes no `return_weights`"


def _gradients(subject, scope):
    if subject.adapter.gradient is None:
        return f"{subject.adapter.name} arrays have no gradients"
    return "" if scope.gradients else "skipped with gradients=False"


def _of_float64(subject, scope):
    judged = "float64" in scope.dtypes and scope.differentiates("float64")
    return "" if judged else "judged only in float64, if gradients are"


def _jit(subject, scope):
    return "" if subject.adapter.name == "jax" else f"{subject.adapter.name} arrays know neither jit nor vmap"


def _option(is_asked, reason):
    """Returns a need that is met if an option of the :class:`Scope` is not left out."""
    return lambda subject, scope: "" if is_asked(scope) else reason


_FEW = "skipped with shapes=(), partial=False, --quick"

NEEDS = {
    "masks": _masks,
    "weights": _weights,
    "jit": _jit,
    "gradients": _gradients,
    "float64 gradients": _of_float64,
    "float64": _option(lambda scope: "float64" in scope.dtypes, "judged only if float64 is"),
    "whole contract": _option(lambda scope: scope.whole_contract, "only attnpool's own functions must keep it"),
    "long": _option(lambda scope: scope.long, "skipped with long=False, --quick"),
    "laws": _option(lambda scope: scope.laws, "skipped with laws=False, --quick"),
    "shapes": _option(lambda scope: scope.shapes, _FEW),
    "partial": _option(lambda scope: scope.partial, _FEW),
}
"""What guarantees need: functions of subject and scope to the reason why it is missing, or ""."""


def why_not(name, report, subject, scope, broken):
    """Returns the reason why the guarantee ``name`` was not judged; ``broken`` has the broken guarantees."""
    if not report.cases:
        return "nothing was judged"
    if BY_NAME[name].judged_by == UNCHANGED and not subject.adapter.in_process:
        return "a program is another process, with its own arrays and random numbers"
    reasons = (NEEDS[need](subject, scope) for need in BY_NAME[name].needs)
    return next(filter(None, reasons), "its check was not reached" if broken else "no case of this function applies")
