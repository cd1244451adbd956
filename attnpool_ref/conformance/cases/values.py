"""Cases with other values in the same shapes: extremes, ties, edges, sums that cancel.

They are made from ``main``, a case with ordinary numbers. Because their shapes are those of ``main``, JAX compiles
again only if an option changes.
"""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance.cases.case import SEQUENCES
from attnpool_ref.conformance.cases.layout import places_of, scaled
from attnpool_ref.conformance.cases.ways import legal
from attnpool_ref.table import in_all_layouts

SHARPENED = dict.fromkeys(("additive_attention", "additive_attention_pooling"), "out_kernel")
"""Functions whose scores are sums of bounded terms, each with the parameter that determines the size of the scores."""


def extremes(main):
    """Yields cases with extreme scores: ±1e30, -inf, and finite ones below -1e9, a common substitute for -inf.

    Functions that divide by a norm get vectors of 1e-30, 1e30 and 0; most others without scores get data 64 times as
    large. Functions with weights get weights of 1e-30, and weights of 0 at large tokens.
    """
    values = main.values
    if main.row.norms:
        data = main.given("data", "parameter")
        for size in (1e-30, 1e30):
            yield main.with_values(f"vectors of {size:g}", **{k: size * values[k] for k in data})
        for key in (key for key in data if values[key].ndim > 1):
            some = values[key].copy()
            some[..., ::2, :] = 0
            yield main.with_values(f"zero vectors in `{key}`", **{key: some})
    if "scores" in values:
        scores = values["scores"]
        yield main.with_values("scores of ±1e30", scores=scores * 1e30)
        yield main.with_values("scores below -1e9", scores=-1e10 * (1 + np.abs(scores)))
        yield main.with_values("scores 16 times as large", scores=scores * 16)
        some = np.where(main.rng(" -inf").random(scores.shape) < 0.4, -np.inf, scores)
        some[tuple(0 for _ in scores.shape[:-1])] = -np.inf
        yield main.with_values("scores of -inf", scores=some)
    elif main.row.name in SHARPENED and main.options.get("normalizer") in (None, "softmax"):
        key = SHARPENED[main.row.name]
        yield main.with_values(f"`{key}` 16 times as large", **{key: 16 * values[key]})
    elif "scale" in main.given("number"):
        low = {k: None if values[k] is None else np.abs(values[k]) for k in main.given("data", "parameter")}
        yield main.with_values("scores below -1e9", **(low | {"scale": np.float64(-1e10)}))
    elif main.given("parameter") and main.given("mask"):
        low = {k: np.abs(values[k]) for k in main.given("data")}
        yield main.with_values("negative parameters", **low, **{k: -np.abs(values[k]) for k in main.given("parameter")})
    if values.get("weights") is not None:  # their size cancels, unless an epsilon is added to their sum
        yield main.with_values("weights of 1e-30", weights=2.0**-100 * values["weights"])
        if "x" in values and main.axes["x"][-2] in SEQUENCES:
            yield idle(main)
    if not main.row.norms and not main.row.unit and "scores" not in values and main.given("data"):
        large = main.with_values("data 64 times as large", **{k: 64 * values[k] for k in main.given("data")})
        yield large
        unbounded = main.options | {"activation": "identity"}
        names = [key for key, value in values.items() if value is not None]
        if "identity" in main.row.options.get("activation", ()) and legal(main.row, names, unbounded) == names:
            yield replace(large, title=f"{large.title}, as they are", options=unbounded)


HUGE = 2.0**34
"""Size of numbers beyond those that commonly stand for infinity in a maximum, such as 1e9."""

LARGEST = 2.0**106
"""Size of numbers beyond all but the largest finite ones; their squares overflow in float32."""

COPYING = in_all_layouts("max_pooling", "min_pooling", "mean_max_pooling", "top_k_pooling", "quantile_pooling")
"""Functions that only average or copy tokens, so that nothing overflows at :data:`LARGEST`."""

BOUNDED = dict.fromkeys(
    in_all_layouts("additive_attention", "additive_attention_pooling", "attentive_statistics_pooling"), "out_kernel"
)
"""Functions whose scores are sums of bounded terms, each with the parameter that determines the size of the scores."""

OF_DISTANCES = frozenset({"kernel_regression", "attention_triplet_loss"})
"""Functions of differences of squared distances.

Far from all others, these are far smaller than the squares: in float32 the rounding of a square, 2^-24 of it, is more
than tolerances allow, which count changes of the arguments only.
"""


APART = {"...": "example", "B": "example", "n": "query", "H": "head", "d": "channel", "N": "segment"}
"""Axes whose positions are pooled by themselves, and what they count."""


def gaps(main):
    """Yields cases in which one example, query, head, channel or segment has far larger scores than the others.

    The maximum that is subtracted from scores has to be that of their own softmax: if it is a common one, all weights
    of the others underflow.
    """
    if main.row.norms or main.row.unit or main.row.name in OF_DISTANCES:
        return
    if main.row.name in BOUNDED:
        key = BOUNDED[main.row.name]
        yield main.with_values(f"`{key}` 1024 times as large", **{key: 2.0**10 * main.values[key]})
    for axis, title in APART.items():
        key = next((k for k in main.given("data", "parameter") if axis in main.axes[k]), None)
        if key is None:
            continue
        size = main.batch[-1] if axis == "..." else main.sizes[axis]
        numbers = main.values[main.given("segments")[0]] if axis == "N" else np.arange(size)
        factors = np.where(numbers == numbers[0], 2.0**14, 1)
        yield scaled(main, f"one {title} of `{key}` 16384 times as large", axis, factors, [key])


def huge(main):
    """Yields cases of numbers that are all far below 0, or all far above, so that no finite one can stand for -inf."""
    if main.row.norms or main.row.unit or main.row.name in OF_DISTANCES or "scores" in main.values:
        return
    data = main.given("data")
    size = LARGEST if main.row.name in COPYING else HUGE
    for sign, title in ((-1, "below"), (1, "above")):
        signs = dict.fromkeys(data, 1) | dict.fromkeys(data[-1:], sign)
        yield main.with_values(
            f"data far {title} 0", **{k: signs[k] * size * (1 + np.abs(main.values[k])) for k in data}
        )


def idle(main):
    """Returns a case with weights of 0 at tokens far larger than all others.

    These tokens must not affect how an implementation scales or shifts the others.
    """
    weights, x = main.values["weights"], main.values["x"]
    of_tokens = np.arange(x.shape[-2]) % 3 == 0
    by_channel = main.axes["weights"][-1] not in SEQUENCES
    weights = np.where(of_tokens[:, None] if by_channel else of_tokens, 0, np.abs(weights))
    return main.with_values("large tokens of weight 0", weights=weights, x=np.where(of_tokens[:, None], 2.0**40, x))


def at_right_angles(main):
    """Yields a case of nearly orthogonal vectors for ``semantic_match``, in which all cosines are tiny and positive.

    Only the method "global" is drawn: it averages tokens with the cosines as weights, and selects no token by them.
    """
    if main.row.name not in CHOOSING or main.options["method"] != "global":
        return
    first, second = main.given("data")[:2]
    place = np.arange(main.values[first].shape[-1]) == 0
    along = np.where(place, 1 + np.abs(main.values[first]), 0)
    across = np.where(place, 2.0**-30 * (1 + np.abs(main.values[second])), main.values[second])
    yield main.with_values("nearly at right angles", **{first: _rounded(along), second: _rounded(across)})


def nearly_equal(main):
    """Returns a case of two arrays whose vectors, in turn, are equal or differ in one component.

    The relative differences are 2**-6 and 2**-20.
    """
    first, second = main.given("data")[:2]
    value = main.values[first] * 2.0**-6
    turn = np.arange(value[..., 0].size).reshape(value.shape[:-1])[..., None] % 3
    moved = value * (1 + np.choose(turn, (0, 2.0**-6, 2.0**-20)) * (np.arange(value.shape[-1]) == 0))
    near = {first: value, second: _rounded(moved)}
    return replace(main.with_values("nearly equal", **near), exact=frozenset(near))


AVERAGES = dict.fromkeys(("masked_softmax", "gumbel_softmax", "attend"), "scores")
"""Functions that can average, each with the argument that is 0 to make all weights equal; "" if none is needed.

Functions that only sum or select tokens are included, because they round no more often than an average.
"""
AVERAGES |= {"dot_product_attention": "query", "additive_attention": "out_kernel", "tanh_sum_attention": "kernel"}
AVERAGES |= dict.fromkeys(in_all_layouts("softmax_pooling"), "scale")
AVERAGES |= dict.fromkeys(
    in_all_layouts(
        *("mean_pooling", "sum_pooling", "max_pooling", "min_pooling", "mean_max_pooling"),
        *("first_pooling", "last_pooling", "weighted_pooling"),
    ),
    "",
)


def averaging(main):
    """Returns a case with numbers from 1 to 2 and equal softmax weights; None for functions not in :data:`AVERAGES`.

    The result is then an average, a sum or a selection of a few positive terms.
    """
    if main.row.name not in AVERAGES:
        return None
    values = {key: _rounded(1 + np.abs(main.values[key]) % 1) for key in main.given("data", "parameter")}
    if zero := AVERAGES[main.row.name]:
        values[zero] = np.zeros_like(main.values[zero])
    terms = max(size for axis, size in main.sizes.items() if axis in SEQUENCES)
    for key in main.given("segments"):
        terms = int(np.max(np.bincount(main.values[key]), initial=0))
    return replace(main.with_values("between 1 and 2", **values), terms_of_sum=terms)


def exact(main):
    """Returns a case with vectors of at most one nonzero component, a small integer: ties, zeros and edges are exact.

    Numeric arguments are 1. An inner product of two such vectors has at most one nonzero term, so it is exact in every
    dtype and order of summation.
    """
    rng, values = main.rng(" exact"), {}
    for key in main.given("data"):
        shape = main.values[key].shape
        numbers = [0.0, 1.0] if main.row.unit else [-1.0, 0.0, 1.0, 2.0]
        place, number = rng.integers(0, shape[-1], shape[:-1]), rng.choice(numbers, shape[:-1])
        values[key] = np.where(np.arange(shape[-1]) == place[..., None], number[..., None], 0)
    values |= {key: np.float64(1) for key in main.given("number")}
    return replace(main.with_values("small integers", **values), exact=frozenset(values))


def precise(main, dtype):
    """Yields cases whose numbers have so many bits that a conversion to a narrower dtype changes even copied numbers.

    The numbers of most other cases have 8 bits, those of bfloat16, in narrow dtypes, and at most the 24 bits of float32
    in float64. So there is a case for float16 and one for float64. bfloat16 and float32 need none.
    """
    title = f"numbers of all bits of {dtype}"
    if dtype == "float16":
        yield replace(main.with_values(title), bits=11)
    if dtype == "float64":
        arrays = [k for k in main.given("data", "parameter", "stretch") if main.values[k].dtype.kind == "f"]
        if arrays:
            yield main.with_values(title, **{k: main.values[k] * (1 + 2.0**-30) for k in arrays})


def alternating(main):
    """Returns a case with weights of 1 and -1 in turn.

    The weights of an even number of adjacent tokens sum to 0; those of an odd number, such as all 7 tokens of the mixed
    batch, do not.
    """
    shape, by_channel = main.values["weights"].shape, main.axes["weights"][-1] not in SEQUENCES
    signs = np.where(np.arange(shape[-2] if by_channel else shape[-1]) % 2, -1.0, 1.0)
    weights = np.broadcast_to(signs[:, None] if by_channel else signs, shape)
    return replace(main.with_values("weights that cancel", weights=weights), exact=frozenset({"weights"}))


def of_tokens(main):
    """Returns (argument, index of a token axis) for each token axis of the data and parameters with vectors of tokens.

    These are the arrays with at least two axes besides the batch axes. Scores [..., n, m] have two token axes, and so
    two pairs; data [..., d] without a token axis have none.
    """
    return [
        (key, place)
        for key in main.given("data", "parameter")
        if len([a for a in main.axes[key] if a != "..."]) > 1
        for axis in sorted(SEQUENCES)
        for place in places_of(axis, main.axes[key], main.values[key].ndim)
    ]


def repeated(main):
    """Returns a case whose tokens all equal the first, except the last: differences between the equal ones are 0.

    The tokens are marked as exact, so that the sensitivity of results is measured without changes that break the ties.
    """
    values = {}
    for key, place in of_tokens(main):
        value = values.get(key, main.values[key])
        first, last = np.take(value, [0], place), np.take(value, [-1], place)
        far = np.float32(1 - first if main.row.unit else last - 2 * first).astype(np.float64)
        values[key] = np.concatenate([first] * (value.shape[place] - 1) + [far], place)
    return replace(main.with_values("repeated tokens", **values), exact=frozenset(values))


AWAY = 1000.0

CHOOSING = frozenset({"semantic_match"})
"""Functions that select tokens by the largest cosine: far from 0 all cosines are nearly 1, and rounding decides."""


def far_from_zero(main):
    """Yields cases with data 1000 away from 0, for which a difference of squares loses nearly all digits in float32.

    The data are shifted to both sides, because a finite number may stand for an infinity in a maximum or a minimum. All
    data are shifted together, because distances between shifted and other data are rounded in any implementation. A
    query that is normalized first is also shifted by itself.
    """
    if main.row.name in CHOOSING or main.row.unit:
        return
    data = [k for k in main.given("data") if main.values[k].dtype.kind == "f"]
    normalized = ["query"] if main.options.get("normalize_query") and "query" in data else []
    below = [] if main.row.name in OF_DISTANCES else data  # distances are the same on both sides
    for keys, away in ((data, AWAY), (below, -AWAY), (normalized, AWAY)):
        if keys:
            title = f"{', '.join(f'`{key}`' for key in keys)} {away:g} away from 0"
            yield main.with_values(title, **{k: _rounded(main.values[k] + away) for k in keys})


def cancelling(main):
    """Returns a case in which adjacent tokens nearly cancel, or adjacent features of arrays without tokens.

    Sums are then far smaller than their terms.
    """
    values = {}
    for key in main.given("data"):
        value, axes = main.values[key], main.axes[key]
        places = [p for axis in sorted(SEQUENCES) for p in places_of(axis, axes, value.ndim)] or [value.ndim - 1]
        place = places[-1]
        count = value.shape[place]
        pairs = np.take(value, [i - i % 2 for i in range(count)], place)
        sign = np.where(np.arange(count) % 2, -1.0, 1.0).reshape([-1 if i == place else 1 for i in range(value.ndim)])
        values[key] = _rounded(sign * pairs * 3 + value * 2.0**-6)
    return main.with_values("sums that cancel", **values)


TIED = in_all_layouts(
    *("max_pooling", "min_pooling", "mean_max_pooling", "top_k_pooling"),
    *("cross_attention_pooling", "cross_attention_pooling_all_pairs"),
    *("code_wise_attention", "bidaf_attention", "maxsim_score", "maxsim_score_all_pairs"),
)
"""Functions of a maximum, whose gradient is shared by tied tokens."""


def tied(main):
    """Returns a case with pairs of equal tokens and a negative scale, so that at most two tokens share each maximum.

    The last of an odd number of tokens equals no other. Losses with a margin get hinges at 0; other functions get no
    case, and the result is None. Central differences then measure an equal share of the gradient for both tokens, and
    half of the slope at a hinge.
    """
    values = {}
    if main.row.name in TIED:
        for key, place in of_tokens(main):
            value = values.get(key, main.values[key])
            if main.arguments()[key].kind == "data":
                values[key] = np.take(value, [i - i % 2 for i in range(value.shape[place])], place)
        if main.given("number"):
            values |= {key: -main.values[key] for key in main.given("number") if key == "scale"}
    elif main.values.get("margin") is not None:
        first, second = (k for k in main.given("data") if k in ("positive", "negative", "similar", "dissimilar"))
        values = {second: main.values[first], "margin": np.float64(0)}
    return replace(main.with_values("ties of two", **values), exact=frozenset(values)) if values else None


def _rounded(values):
    return np.float32(values).astype(np.float64)
