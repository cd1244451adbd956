"""Table of guarantees: the name of each, a sentence that states it, and guarantees that explain its failure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """One guarantee of the contract.

    Attributes:
      name: the guarantee's name in the report.
      says: the guarantee in one sentence.
      line: the number of its section in ``docs/contract.md``; 0 for the definition itself.
      follows_from: guarantees whose failure explains a failure of this one in the same dtypes.
      judged_by: the check that judges it, a key of :data:`~attnpool_ref.conformance.checks.CHECKS`,
        or "agreement", "long sums" or "refusals".
      asked: the option of the judge that requires the guarantee, or "" if it is required by default.
    """

    name: str
    says: str
    line: int
    follows_from: tuple[str, ...] = ()
    judged_by: str = "agreement"
    asked: str = ""


ANSWER = "an answer"
VALUES = "values"
MASKED = "values under masks"
EMPTY = "empty rows"
SHAPE, DTYPE, WEIGHTS, GRADIENT = "shape", "dtype", "weights", "gradient"
REFUSALS, SPLIT, INTEGERS = "bad input refused", "split over devices", "integers alone"
_FORM = (ANSWER, SHAPE, DTYPE)
_WRONG = (*_FORM, VALUES, MASKED)

PROMISES = (
    Promise(ANSWER, "A legal call returns arrays of numbers, in time and without an error.", 0),
    Promise(SHAPE, "Each result has the documented shape.", 7, (ANSWER,)),
    Promise(DTYPE, "Results and weights have the dtype of the input.", 9, (ANSWER,)),
    Promise(VALUES, "Without a mask the result is what the definition says, up to rounding.", 0, _FORM),
    Promise(MASKED, "Under masks the result is what the definition says of the real tokens.", 1, (*_FORM, VALUES)),
    Promise(WEIGHTS, "The weights are those of the definition; the real ones sum to 1.", 3, _WRONG),
    Promise(EMPTY, "A fully masked row gives exactly 0, and padding has weight 0.", 6, _WRONG, "empty rows"),
    Promise(
        "shapes",
        "Other batch axes, lengths of 1 and 0, and shared arguments give the same result.",
        7,
        (*_WRONG, EMPTY),
    ),
    Promise("ties and edges", "Ties, zeros and edges are decided as the definition says.", 13, (*_WRONG, EMPTY)),
    Promise(
        "one argument alone",
        "Each argument works without the others, and has the function's default.",
        0,
        (*_WRONG, EMPTY),
    ),
    Promise(
        "arguments that broadcast",
        "Masks may be integers, of a lower rank or with axes of 1.",
        1,
        (*_WRONG, EMPTY),
        asked="broadcasting",
    ),
    Promise(
        "mixed dtypes",
        "Data and parameters decide the dtype; numbers and biases do not.",
        9,
        (*_WRONG, EMPTY),
        asked="mixed",
    ),
    Promise(
        INTEGERS,
        "Data of integers only give the default floating dtype, and nothing overflows.",
        9,
        (*_WRONG, EMPTY),
        asked="integers",
    ),
    Promise("far from 0", "Data far from 0 lose no more than their own rounding.", 9, (*_WRONG, EMPTY)),
    Promise(
        "sums that cancel", "Sums that nearly cancel lose no more than the rounding of wide sums.", 9, (*_WRONG, EMPTY)
    ),
    Promise("extreme scores", "Scores of any size neither overflow nor lose to padding.", 10, (*_WRONG, EMPTY)),
    Promise("long sums", "Sums over a million tokens do not drift.", 9, _WRONG, "long sums"),
    Promise(GRADIENT, "The gradient is that of the definition, and 0 at padding.", 14, (*_WRONG, EMPTY), "gradient"),
    Promise(
        "finite gradients",
        "No gradient is NaN or infinite where scores are extreme or vectors are 0.",
        14,
        (*_FORM, GRADIENT, "extreme scores"),
        "finite gradients",
    ),
    Promise(
        "stated gradients",
        "Where a function has no derivative, the gradient is what the contract states.",
        14,
        (*_WRONG, GRADIENT, "finite gradients"),
        "stated gradients",
        "contract",
    ),
    *(
        Promise(
            f"{poison} in padding",
            f"{poison} in padded positions changes no bit of a result or of a gradient.",
            4,
            (*_FORM, MASKED) if poison == "NaN" else (*_FORM, MASKED, "NaN in padding"),
            f"{poison} in padding",
        )
        for poison in ("NaN", "inf", "-inf", "1e30")
    ),
    Promise(
        "second derivatives",
        "Differentiated twice in reverse mode, the result has the second derivative, whatever padding holds.",
        14,
        (*_WRONG, EMPTY, GRADIENT, "NaN in padding"),
        "second derivatives",
    ),
    Promise(
        "forward over reverse",
        "Forward mode of the gradient agrees in a direct call; elsewhere the error names what to write instead.",
        14,
        (*_WRONG, EMPTY, GRADIENT, "NaN in padding", "second derivatives"),
        "forward over reverse",
    ),
    Promise(
        "poison in shared arrays",
        "A shared array's values at positions that are padding for an example do not reach that example.",
        4,
        (*_FORM, MASKED, "shapes", "NaN in padding"),
        "poison in shared arrays",
        "contract",
    ),
    Promise("padding amount", "More padding changes nothing.", 7, (*_FORM, MASKED, EMPTY), "padding amount"),
    Promise(
        "padding side",
        "Padding on the left gives the same as padding on the right.",
        7,
        (*_FORM, MASKED, EMPTY),
        "padding side",
    ),
    Promise(
        "deleting is masking",
        "Deleting a padded token gives the same as masking it.",
        7,
        (*_FORM, MASKED, EMPTY),
        "deleting",
    ),
    Promise(
        "permuting",
        "The order of the tokens does not matter, except where the definition depends on it.",
        7,
        _FORM,
        "permuting",
    ),
    Promise(
        "shifting the scores",
        "A constant added to every score changes nothing, except where the definition depends on it.",
        10,
        _FORM,
        "shifting",
    ),
    Promise("batch mates", "The other examples of the batch do not matter.", 7, _FORM, "batch mates"),
    Promise("NaN at a real token", "NaN reaches its own example and no other.", 5, _WRONG, "NaN at a real token"),
    Promise("return_weights", "`return_weights=True` changes no bit of the result.", 12, _FORM, "return_weights"),
    Promise("inputs unchanged", "The caller's arrays stay as they are.", 15, (ANSWER,), "purity"),
    Promise("the same answer twice", "The same input gives the same output.", 15, (ANSWER,), "purity"),
    Promise(
        "random state untouched",
        "The global random states of NumPy and Python are not advanced.",
        15,
        (ANSWER,),
        "purity",
    ),
    Promise(
        "no warnings", "NumPy warns of no division by 0, overflow or invalid value.", 6, (ANSWER,), "purity", "contract"
    ),
    Promise("jit and vmap", "Under jit and vmap of JAX the results are the same.", 16, _WRONG, "jit and vmap"),
    Promise(SPLIT, "A sequence split over devices by `axis_name` gives what the whole gives.", 16, _WRONG, SPLIT),
    Promise(
        "one program",
        "Other values of the same shapes compile nothing more in JAX.",
        16,
        _FORM,
        "one program",
        "contract",
    ),
    Promise(
        REFUSALS,
        "Bad input raises a TypeError or a ValueError before anything is computed.",
        18,
        (ANSWER,),
        "refusals",
        "refusals",
    ),
)
"""All guarantees, in the order of the report: each comes after the guarantees that explain it."""

BY_NAME = {promise.name: promise for promise in PROMISES}


def explained_by(name, broken):
    """Returns the guarantee that explains why ``name`` is broken, or "".

    Args:
      name: a broken guarantee.
      broken: the dtypes in which each broken guarantee is broken; an explanation must cover all of them.
    """
    for cause in BY_NAME[name].follows_from:
        if cause in broken and broken[name] <= broken[cause]:
            return explained_by(cause, broken) or cause
    return ""
