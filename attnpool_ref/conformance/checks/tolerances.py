"""Tolerances for correct implementations, derived from an error analysis; ``definition`` has one more, for long sums.

A backward stable algorithm returns the exact result of slightly different inputs. Each input is off by one rounding of
the computing dtype for each term of a sum, and the result is rounded once. So each element may be off by

    ½ result_epsilon · |element|  +  computing_epsilon · terms · (sensitivity + |element|)  +  the least normal number

The sensitivity is the change of this element of the oracle's result per relative change of the inputs, measured on the
case. The least normal number (in float16, subnormal) accounts for underflow. Results that are exactly 0 for every input
(a fully masked row, a padded weight) have no tolerance: they have to be 0.
"""

import numpy as np

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next number of each dtype."""

PROBE = 2.0**-26
"""Relative step with which sensitivities are measured; in float64 its own rounding error is 2**-26 of the result."""

TRIALS = 3

LARGEST_LOGARITHM = 88.0
"""Largest magnitude of scores that counts in the tolerated error of a log-sum-exp: exp of more overflows in float32."""

NARROW_STEPS = 4
"""Number of roundings in a chain computed in a narrow dtype, except in sums: products, scores, weights, result."""


def computing_epsilon(dtype, reduced_products=False):
    """Returns the epsilon of the dtype in which inputs are computed; for narrow inputs it depends on the device.

    It is that of float64 for float64, and that of float32 for other dtypes; but that of the narrow dtype itself with
    ``reduced_products``: if narrow inputs may be multiplied with fewer bits than float32 has, such as 10 (TF32) or 7
    (bfloat16).
    """
    if dtype == "float64":
        return EPSILON["float64"]
    return EPSILON[dtype] if reduced_products and dtype != "float32" else EPSILON["float32"]


def sensitivity(function, arrays, rng, base=None):
    """Returns a list of the change of each element of each output per relative change of the inputs ``arrays``.

    It is 0 where an output is not finite. The changes are normally distributed, and the largest of a few trials counts,
    because changes may cancel by chance. ``function`` maps a dict of float64 arrays to a list of arrays; ``base`` is
    ``function(arrays)``, if known.
    """
    base = function(arrays) if base is None else base
    worst = [np.zeros(a.shape) for a in base]
    for _ in range(TRIALS):
        moved = {k: v * (1 + PROBE * rng.standard_normal(v.shape)) for k, v in arrays.items()}
        for i, (a, b) in enumerate(zip(function(moved), base, strict=True)):
            if a.dtype == bool:
                continue
            with np.errstate(invalid="ignore"):
                change = np.abs(a - b)
            worst[i] = np.maximum(worst[i], np.where(np.isfinite(change), change, 0) / PROBE)
    return worst


LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
"""Allowed error of a result that underflows: processors flush subnormal numbers of all dtypes but float16."""


def allowed_error(size, sensitive, terms, dtype, reduced_products=False):
    """Returns the largest allowed absolute error of an element, or of each element of an array, without :data:`LEAST`.

    ``size`` and ``sensitive`` are the magnitude and the sensitivity of the exact result, numbers or arrays. ``terms``
    is the number of terms in the longest chain of sums, and ``dtype`` that of the result.
    """
    rounding = EPSILON[dtype] / 2 * size
    return rounding + computing_epsilon(dtype, reduced_products) * terms * (sensitive + size)


def average_error(size, terms, dtype, reduced_products=False):
    """Returns the largest possible error of an average of positive numbers, equally weighted, summed in any order.

    Each of n ``terms`` goes through n - 1 additions at most, a product with its weight, the rounding of this weight,
    and the division by the sum: n + 2 roundings to the nearest number, each of half an epsilon. The result, of
    magnitude ``size``, is then rounded once.
    """
    return (EPSILON[dtype] + (terms + 2) * computing_epsilon(dtype, reduced_products)) / 2 * size


STEP = 2.0**-10
"""Step of the central differences; their error after two extrapolations is of the order of its sixth power."""


def difference(function, arrays, directions, step=STEP):
    """Returns the function's values for ``arrays`` plus, and for ``arrays`` minus, ``step`` times ``directions``."""
    return tuple(
        function(arrays | {key: arrays[key] + side * moves for key, moves in directions.items()})
        for side in (step, -step)
    )


def doubt_of_difference(total):
    """Returns a bound of the rounding error of a central difference, whose terms have the magnitude ``total``."""
    return 16 * EPSILON["float64"] * total / STEP


def directional_derivative(function, base, arrays, directions, total, smooth=True):
    """Returns central differences of a scalar function along some of its arguments, Richardson-extrapolated.

    Args:
      function: from a dict of arrays to a number.
      base: ``function(arrays)``.
      arrays: the arguments.
      directions: the direction of each argument that changes, an array of its shape.
      total: the magnitude of the terms that the function adds up, to which its rounding error is proportional.
      smooth: whether the function should be differentiable here; then a kink (a point without a derivative) within a
        step counts as doubt. Otherwise the result is the mean of the slopes on both sides.

    Returns:
      (derivative, doubt): the doubt adds up the change by the second extrapolation, the rounding error of the
      differences, the changes from step to step if they do not shrink as those of a smooth function, and, with
      ``smooth``, the difference of the slopes on both sides that curvature does not explain.
    """

    def first_and_second(step):
        ahead, behind = difference(function, arrays, directions, step)
        return np.array([ahead - behind, ahead - 2 * base + behind]) / (2 * step)

    (coarse, _), (middle, bent), (fine, bent_fine) = (first_and_second(STEP / 2**level) for level in range(3))
    fourth, fourth_fine = middle + (middle - coarse) / 3, fine + (fine - middle) / 3
    value = fourth_fine + (fourth_fine - fourth) / 15
    doubt = abs(value - fourth_fine) + doubt_of_difference(total)
    first, second = abs(middle - coarse), abs(fine - middle)
    if not first / 8 < second < first / 2:  # the ratio is a fourth where the function is smooth
        doubt += first + second
    return value, doubt + (abs(2 * bent_fine - bent) if smooth else 0)


FINER = (1, 2**-3, 2**-6, 2**-9)
"""Fractions of the step that are tried until no kink lies within it."""


def derivative_of_arrays(function, arrays, directions, rounding):
    """Returns central differences of arrays along a direction of all arguments, each element Richardson-extrapolated.

    If a kink (a point without a derivative) lies within the step, the differences of some element do not converge. The
    step is then made smaller. ``function`` maps a dict of arrays to a dict of arrays, and ``rounding`` bounds the
    rounding error of an element of the results.

    Returns:
      For each array (derivative, doubt), both of its shape: the doubt adds up the change by the second extrapolation,
      the rounding error of the differences, and the effect of a kink if every step contains one.
    """

    def central(step):
        ahead, behind = difference(function, arrays, directions, step)
        return {key: (ahead[key] - behind[key]) / (2 * step) for key in ahead}

    found = {}
    for part in FINER:
        step = STEP * part
        coarse, middle, fine = (central(step / 2**level) for level in range(3))
        noise, smooth, steps = 8 * rounding / step, True, []
        for key, near in fine.items():
            first, second = np.abs(middle[key] - coarse[key]), np.abs(near - middle[key])
            closer = second <= first / 2 + noise  # a fourth of it where the function is smooth
            fourth, fourth_fine = middle[key] + (middle[key] - coarse[key]) / 3, near + (near - middle[key]) / 3
            value = fourth_fine + (fourth_fine - fourth) / 15
            found[key] = value, np.abs(value - fourth_fine) + noise + np.where(closer, 0, 4 * (first + second))
            smooth = smooth and bool(np.all(closer))
            steps.append((np.max(first, initial=0), np.max(second, initial=0)))
        first, second = np.max(steps, 0, initial=0)
        if smooth and first <= 8 * second + noise:  # otherwise only the widest differences contain a kink
            break
    return found
