"""Table of guarantees: the name of each, a sentence that states it, its check, and what explains its failure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """One guarantee of the contract.

    Attributes:
      name: the guarantee's name in the report.
      says: the guarantee in one sentence.
      line: the number of its section in ``docs/contract.md``; 0 if no section states it.
      follows_from: guarantees whose failure explains a failure of this one in the same dtypes.
      judged_by: the check that judges the guarantee: a key of :data:`~attnpool_ref.conformance.checks.CHECKS`,
        "agreement" (the comparison with the definition), or "long sums".
      is_note: whether only attnpool's own functions must keep the guarantee; for others a deviation is a note, but a
        wrong number of "mixed dtypes" and "arguments that broadcast" is not.
      needs: what it cannot be judged without, keys of :data:`~attnpool_ref.conformance.running.unjudged.NEEDS`.
    """

    name: str
    says: str
    line: int
    follows_from: tuple[str, ...] = ()
    judged_by: str = "agreement"
    is_note: bool = False
    needs: tuple[str, ...] = ()


ANSWER = "an answer"
VALUES = "values"
MASKED = "values under masks"
EMPTY = "empty rows"
SHAPE, DTYPE, WEIGHTS, GRADIENT = "shape", "dtype", "weights", "gradient"
UNCHANGED, STATE = "inputs unchanged", "random state untouched"
INTEGERS = "integers alone"
_FORM = (ANSWER, SHAPE)
_WRONG = (*_FORM, VALUES, MASKED)
_ALL = (*_WRONG, EMPTY)


def _own(name, says, line, follows_from, is_note=False, needs=()):
    """Returns a guarantee that is judged by a check of the same name."""
    return Guarantee(name, says, line, follows_from, name, is_note, needs)


GUARANTEES = (
    Guarantee(ANSWER, "A call with valid arguments returns arrays of numbers, in time and without an error.", 0),
    Guarantee(SHAPE, "Each result has the documented shape.", 7, (ANSWER,)),
    Guarantee(DTYPE, "Results and weights have the dtype of the inputs.", 9, (ANSWER,)),
    Guarantee(
        VALUES, "Without a mask the result is that of the definition, up to rounding.", 0, _FORM, needs=("partial",)
    ),
    Guarantee(
        MASKED,
        "With a mask the result is that of the definition for the real tokens.",
        1,
        (*_FORM, VALUES),
        needs=("masks",),
    ),
    Guarantee(
        WEIGHTS,
        "The weights are those of the definition. They sum to 1 over the real tokens, except those of sigmoid, of "
        "normalizer functions and of `vlad_pooling`.",
        3,
        _WRONG,
        needs=("weights",),
    ),
    _own(
        EMPTY,
        "The pooled vector of a fully masked row is exactly 0 before any output projection, and the weight of padding is 0.",
        6,
        _WRONG,
        needs=("masks",),
    ),
    Guarantee(
        "shapes",
        "The result is right with other batch axes, lengths of 1 and 0, and arguments that all examples share.",
        7,
        _ALL,
        needs=("shapes",),
    ),
    Guarantee(
        "ties and edges",
        "Ties, zeros and other special values have the results of the definition.",
        13,
        _ALL,
        needs=("partial",),
    ),
    Guarantee(
        "one argument alone",
        "Each optional argument works without the others that it does not need, and has the definition's default.",
        0,
        _ALL,
    ),
    Guarantee(
        "arguments that broadcast",
        "Masks may be integers, lack leading axes, or have axes of size 1.",
        1,
        (*_WRONG, DTYPE, EMPTY),
        is_note=True,
        needs=("shapes",),
    ),
    Guarantee(
        "mixed dtypes",
        "The dtype of the result depends on data and parameters, not on numbers such as `scale` or on a bias of the scores.",
        9,
        (*_WRONG, DTYPE, EMPTY),
        is_note=True,
        needs=("float64",),
    ),
    Guarantee(
        INTEGERS,
        "If all data are integers, the result has the default floating dtype, and nothing overflows.",
        9,
        (*_WRONG, DTYPE, EMPTY),
        is_note=True,
        needs=(
            "whole contract",
            "float64",
        ),
    ),
    Guarantee("far from 0", "For data far from 0, the error is no larger than the rounding of the data.", 9, _ALL),
    Guarantee(
        "sums that cancel",
        "For sums that nearly cancel, the error is no larger than that of sums in float32 or wider.",
        9,
        _ALL,
    ),
    Guarantee("extreme scores", "Scores of any size neither overflow nor give weight to padding.", 10, _ALL),
    _own("long sums", "Sums over a million tokens do not drift.", 9, _WRONG, needs=("long",)),
    _own(GRADIENT, "The gradient is that of the definition, and 0 at padding.", 14, _ALL, needs=("gradients",)),
    _own(
        "finite gradients",
        "No gradient is NaN or infinite where scores are extreme or vectors are 0.",
        14,
        (*_FORM, GRADIENT, "extreme scores"),
        needs=("gradients",),
    ),
    *(
        _own(
            f"{poison} in padding",
            f"{poison} at padded positions changes no bit of a result or of a gradient.",
            4,
            (*_FORM, MASKED) if poison == "NaN" else (*_FORM, MASKED, "NaN in padding"),
            needs=("masks",),
        )
        for poison in ("NaN", "inf", "-inf", "1e30")
    ),
    _own(
        "second derivatives",
        "Second derivatives by reverse mode are right, whatever values padding holds.",
        14,
        (*_ALL, GRADIENT, "NaN in padding"),
        needs=(
            "gradients",
            "float64 gradients",
        ),
    ),
    _own(
        "forward over reverse",
        "Second derivatives by forward mode over the gradient are right, whatever values padding holds.",
        14,
        (*_ALL, GRADIENT, "NaN in padding", "second derivatives"),
        needs=(
            "gradients",
            "float64 gradients",
        ),
    ),
    _own(
        "poison in shared arrays",
        "Values in an array that all examples share do not reach the examples that mask them.",
        4,
        (*_FORM, MASKED, "shapes", "NaN in padding"),
        True,
        needs=(
            "laws",
            "shapes",
        ),
    ),
    _own(
        "padding amount",
        "More padding does not change the result.",
        7,
        (*_FORM, MASKED, EMPTY),
        needs=(
            "masks",
            "laws",
        ),
    ),
    _own(
        "padding side",
        "Padding on the left gives the same result as padding on the right.",
        7,
        (*_FORM, MASKED, EMPTY),
        needs=(
            "masks",
            "laws",
            "shapes",
        ),
    ),
    _own(
        "deleting is masking",
        "Deleting a padded token gives the same result as masking it.",
        7,
        (*_FORM, MASKED, EMPTY),
        needs=(
            "masks",
            "laws",
            "shapes",
        ),
    ),
    _own(
        "permuting",
        "The order of the tokens does not matter, except to functions such as `last_pooling` and `token_positions`.",
        7,
        _FORM,
        needs=("laws",),
    ),
    _own(
        "shifting the scores",
        "A constant added to all scores changes nothing, except where the definition depends on it.",
        10,
        _FORM,
        needs=("laws",),
    ),
    _own(
        "batch mates",
        "The result of an example does not depend on the other examples of its batch.",
        7,
        _FORM,
        needs=("laws",),
    ),
    _own(
        "NaN at a real token",
        "NaN at a real token reaches the result of its own example, and of no other example.",
        5,
        _WRONG,
        needs=("laws",),
    ),
    _own(
        "return_weights",
        "`return_weights=True` changes the pooled result by rounding at most.",
        12,
        _FORM,
        needs=("weights",),
    ),
    _own(UNCHANGED, "A call does not modify its arguments.", 15, (ANSWER,)),
    Guarantee("the same answer twice", "The same input gives the same output.", 15, (ANSWER,), UNCHANGED),
    Guarantee(STATE, "The global random states of NumPy and Python are not advanced.", 15, (ANSWER,), UNCHANGED),
    Guarantee(
        "no warnings",
        "A call raises no NumPy warning of a division by 0, an overflow or an invalid value.",
        6,
        (ANSWER,),
        UNCHANGED,
        True,
    ),
    _own(
        "jit and vmap",
        "Under JAX's jit and vmap the results are the same.",
        16,
        _WRONG,
        needs=(
            "jit",
            "laws",
        ),
    ),
    _own(
        "one program",
        "In JAX, a call with other values of the same shapes compiles nothing again.",
        16,
        _FORM,
        True,
        needs=(
            "jit",
            "laws",
        ),
    ),
)
"""All guarantees, in the order of the report: each comes after the guarantees that explain it."""

BY_NAME = {guarantee.name: guarantee for guarantee in GUARANTEES}


def explained_by(name, broken):
    """Returns the guarantee at the start of the chain of those that explain why ``name`` is broken, or "".

    ``broken`` has the dtypes in which each broken guarantee is broken; an explanation must cover all of them.
    """
    for cause in BY_NAME[name].follows_from:
        if cause in broken and broken[name] <= broken[cause]:
            return explained_by(cause, broken) or cause
    return ""
