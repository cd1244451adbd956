"""Cases made from a mixed batch: other values in the same shapes, masks that broadcast, arguments of several dtypes.

``main`` is the case from which the others are made: five examples with different masks and ordinary numbers. Most cases
have its shapes, so that JAX compiles again only if an option changes.
"""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance.cases.case import ANY_RANK, ONE, ONE_BATCH, SEQUENCES, places_of, scaled
from attnpool_ref.conformance.cases.ways import legal


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
    elif main.row.sharpened and main.options.get("normalizer") in (None, "softmax"):
        key = main.row.sharpened
        yield main.with_values(f"`{key}` 16 times as large", **{key: 16 * values[key]})
    elif "scale" in main.given("number"):
        low = {k: None if values[k] is None else np.abs(values[k]) for k in main.given("data", "parameter")}
        case = main.with_values("scores below -1e9", **(low | {"scale": np.float64(-1e10)}))
        yield _without(case, "sink")  # beside a sink all weights would be 0
    elif main.given("parameter") and main.given("mask"):
        low = {k: np.abs(values[k]) for k in main.given("data")}
        yield main.with_values("negative parameters", **low, **{k: -np.abs(values[k]) for k in main.given("parameter")})
    if values.get("weights") is not None:  # their size cancels, unless an epsilon is added to their sum
        yield main.with_values("weights of 1e-30", weights=2.0**-100 * values["weights"])
        if "x" in values and main.axes["x"][-2] in SEQUENCES:
            yield from idle(main)
    if not main.row.norms and not main.row.unit and "scores" not in values and main.given("data"):
        large = main.with_values("data 64 times as large", **{k: 64 * values[k] for k in main.given("data")})
        yield large
        unbounded = main.options | {"activation": "identity"}
        names = [key for key, value in values.items() if value is not None]
        if "identity" in main.row.options.get("activation", ()) and legal(main.row, names, unbounded) == names:
            yield replace(large, title=f"{large.title}, as they are", options=unbounded)


def _without(case, key):
    """Returns the case without an argument."""
    values = {name: None if name == key else value for name, value in case.values.items()}
    return replace(case, values=values, axes={name: axes for name, axes in case.axes.items() if name != key})


HUGE = 2.0**34
"""Size of numbers beyond those that commonly stand for infinity in a maximum, such as 1e9."""

LARGEST = 2.0**106
"""Size of numbers beyond all but the largest finite ones; their squares overflow in float32."""

APART = {"...": "example", "B": "example", "n": "query", "H": "head", "d": "channel", "N": "segment"}
"""Axes whose positions are pooled by themselves, and what they count."""


def gaps(main):
    """Yields cases in which one example, query, head, channel or segment has far larger scores than the others.

    The maximum that is subtracted from scores has to be that of their own softmax: if it is a common one, all weights
    of the others underflow.
    """
    if main.row.norms or main.row.unit or "differences" in main.row.facts:
        return
    if key := main.row.sharpened:
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
    if main.row.norms or main.row.unit or "differences" in main.row.facts or "scores" in main.values:
        return
    data = main.given("data")
    size = LARGEST if "copies" in main.row.facts else HUGE
    for sign, title in ((-1, "below"), (1, "above")):
        signs = dict.fromkeys(data, 1) | dict.fromkeys(data[-1:], sign)
        yield main.with_values(
            f"data far {title} 0", **{k: signs[k] * size * (1 + np.abs(main.values[k])) for k in data}
        )


def idle(main):
    """Yields cases with weights of 0 at tokens far larger than all others: at the first one, and at every third one.

    These tokens must not affect how an implementation scales or shifts the others.
    """
    weights, x = main.values["weights"], main.values["x"]
    by_channel = main.axes["weights"][-1] not in SEQUENCES
    place = np.arange(x.shape[-2])
    large = {"large tokens of weight 0": place % 3 == 2, "a large first token of weight 0": place == 0}
    for title, of_tokens in large.items():
        without = np.where(of_tokens[:, None] if by_channel else of_tokens, 0, np.abs(weights))
        yield main.with_values(title, weights=without, x=np.where(of_tokens[:, None], 2.0**40, x))


def at_right_angles(main):
    """Yields a case of nearly orthogonal vectors for ``semantic_match``, in which all cosines are tiny and positive.

    Only the method "global" is drawn: it averages tokens with the cosines as weights, and selects no token by them.
    """
    if "chooses" not in main.row.facts or main.options["method"] != "global":
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


def averaging(main):
    """Returns a case with numbers from 1 to 2 and equal softmax weights; None for functions that are no average.

    The result is then an average, a sum or a selection of a few positive terms.
    """
    if main.row.averaged is None:
        return None
    values = {key: _rounded(1 + np.abs(main.values[key]) % 1) for key in main.given("data", "parameter")}
    if zero := main.row.averaged:
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


def far_from_zero(main):
    """Yields cases with data 1000 away from 0, for which a difference of squares loses nearly all digits in float32.

    The data are shifted to both sides, because a finite number may stand for an infinity in a maximum or a minimum. All
    data are shifted together, because distances between shifted and other data are rounded in any implementation. A
    query that is normalized first is also shifted by itself.
    """
    if "chooses" in main.row.facts or main.row.unit:
        return
    data = [k for k in main.given("data") if main.values[k].dtype.kind == "f"]
    normalized = ["query"] if main.options.get("normalize_query") and "query" in data else []
    below = [] if "differences" in main.row.facts else data  # distances are the same on both sides
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


def tied(main):
    """Returns a case with pairs of equal tokens and a negative scale, so that at most two tokens share each maximum.

    The last of an odd number of tokens equals no other. Losses with a margin get hinges at 0; other functions get no
    case, and the result is None. Central differences then measure an equal share of the gradient for both tokens, and
    half of the slope at a hinge.
    """
    values = {}
    if "ties" in main.row.facts:
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


FORMS, INTEGERS = 4, {0: np.uint8, 2: np.int32, 4: np.int64}
"""The number of forms of arguments that broadcast, two fewer than with ``contract``; dtypes of masks in some of them."""


def broadcasting(main, contract=False):
    """Yields cases in which masks, biases and multipliers have other shapes that broadcast; some masks are integers.

    Over the cases each argument has each of its forms. Within one case the arguments have different forms. With
    ``contract`` the shapes [] and [1] are among them, and the integers of masks have 8, 32 and 64 bits.
    """
    keys, forms = main.given("mask", "stretch"), FORMS + 2 * contract
    for turn in range(forms if keys else 0):
        values, axes, spread, names = {}, {}, {}, []
        for place, key in enumerate(keys):
            form = (turn + place) % forms
            found = _broadcast_form(main, key, form)
            if found is None:
                continue
            values[key], axes[key] = found
            spread[key] = main.axes[key]
            if main.arguments()[key].kind == "mask" and form % 2 == 0:
                values[key] = values[key].astype(INTEGERS[form] if contract else np.int64)
            kind = " of integers" if values[key].dtype.kind == "i" else ""
            names.append(f"`{key}`{kind} as [{', '.join(axes[key])}]")
        if values and all(value.size for value in values.values()):
            case = main.with_values(", ".join(names), **values)
            yield replace(case, axes=main.axes | axes, spread=spread)


def _broadcast_form(main, key, form):
    """Returns (array, axes) of an argument without some axes or with axes of 1; None if it lacks the form ``form``."""
    value, axes = main.values[key], main.axes[key]
    named = axes[0] != "..." and axes[0] not in ANY_RANK[1:]  # functions of all pairs have a named batch axis
    unbatched = axes[1:] if axes[0] == "..." or named else axes
    if axes[0] != "..." and not named:
        return None
    if not unbatched:  # packed tokens: a mask [N] of integers; [] and [1], as which a mask hides all tokens
        single = np.zeros((), bool) if value.dtype == bool else value[0]
        arrays_by_form = {0: (value, axes), 1: (single, ()), 2: (single[None], (ONE,))}
        return arrays_by_form.get(form) if form or value.dtype == bool else None
    last, lead = value.ndim - 1, value.ndim - len(unbatched)
    if form == 0:  # [n, m] or [L]
        return _without_ends(value[_telling(value, lead, 0)]), unbatched
    if form == 1:  # [B, 1, m] or [B, 1]
        place = last if len(unbatched) == 1 else last - 1
        small = np.any(value, place, keepdims=True) if value.dtype == bool else np.take(value, [0], place)
        return small, tuple(ONE if i == place - value.ndim + len(axes) else a for i, a in enumerate(axes))
    if form == 2:  # [1, L] or [1, n, m]
        ones = (1,) * lead
        single = value[_telling(value, lead, -1)].reshape(ones + value.shape[lead:])
        return single, (ONE if named else ONE_BATCH, *unbatched)
    if form > 3:  # [] and [1], as which a mask hides all tokens
        single = np.zeros((), bool) if value.dtype == bool else value[(0,) * value.ndim]
        return (single, ()) if form == 4 else (single[None], (ONE,))
    if len(unbatched) > 1:  # [m]
        return value[(*_telling(value, lead, -1), *(0,) * (len(unbatched) - 1))], unbatched[-1:]
    return None


def of_one_head(main):
    """Returns the case with masks [B, 1, n, m] in place of [B, H, n, m]; None if it has no such mask."""
    keys = [key for key in main.given("mask") if len([a for a in main.axes[key] if a != "..."]) == 3]
    axes = {key: tuple(ONE if a == "H" else a for a in main.axes[key]) for key in keys}
    values = {key: main.values[key][..., :1, :, :] for key in keys}
    case = main.with_values("a mask for all heads", **values)
    return replace(case, axes=main.axes | axes, spread={key: main.axes[key] for key in keys}) if keys else None


def _telling(value, lead, end):
    """Returns the index of an example with real tokens and padding, preferably padding at ``end``; or of the first.

    ``lead`` is the number of batch axes.
    """
    found = (0,) * lead
    if value.dtype == bool:
        for index in reversed(list(np.ndindex(*value.shape[:lead]))):
            if np.any(value[index]) and not np.all(value[index]):
                found = index
                if not np.any(value[index][..., end]):
                    break
    return found


def _without_ends(value):
    """Returns a mask that also hides the first and the last position, unless it would then hide all.

    Some wrong implementations read only one of these positions of a mask.
    """
    if value.dtype != bool or not value.ndim:
        return value
    inner = value & ~np.isin(np.arange(value.shape[-1]), (0, value.shape[-1] - 1))
    return inner if np.any(inner) else value


def mixed(main):
    """Yields cases with arguments of several dtypes."""
    arrays = _deciding(main)
    if not arrays or not main.row.results:
        return
    first, others = arrays[0], arrays[1:]
    followers = main.given("stretch", "number", "constant")
    wide = dict.fromkeys(followers, "float64")
    if followers:
        yield _of_dtypes(main, "wide numbers beside float32", dict.fromkeys(arrays, "float32") | wide, "float32")
    if others:
        narrow = dict.fromkeys(followers, "float32")
        yield _of_dtypes(
            main, "float32 beside float64", dict.fromkeys(others, "float64") | {first: "float32"} | narrow, "float64"
        )
        yield _of_dtypes(
            main, "float16 beside bfloat16", dict.fromkeys(others, "bfloat16") | {first: "float16"} | narrow, "float32"
        )
        whole = main.with_values("", **{first: np.round(4 * main.values[first])})
        rest = dict.fromkeys([*others, *followers], "float32")
        yield _of_dtypes(whole, f"integers in `{first}`", rest | {first: "int32"}, "float32")


def integers(main):
    """Yields cases with data and parameters of integers only."""
    arrays = _deciding(main)
    if not arrays or not main.row.results:
        return
    whole = main.with_values("", **{key: _whole(main, key, key == arrays[0]) for key in arrays})
    rest = dict.fromkeys(main.given("stretch", "number"), "float32")
    yield _of_dtypes(whole, "integers alone", dict.fromkeys(arrays, "int8") | rest, "float64")


def _deciding(main):
    """Returns the names of the floating-point arrays whose dtypes determine that of the result."""
    return [k for k in main.given("data", "parameter") if main.values[k].ndim and main.values[k].dtype.kind == "f"]


def _whole(main, key, first):
    """Returns an argument rounded to integers whose sums and products exceed 8 bits.

    The numbers are smaller in functions of scores, and in parameters unless ``first`` is True; probabilities become 0
    and 1.
    """
    large = (first or main.arguments()[key].kind == "data") and "scores" not in main.values
    return np.clip(np.round((1 if main.row.unit else 64 if large else 4) * main.values[key]), -127, 127)


def _of_dtypes(main, title, dtypes, result):
    return replace(main, title=f"{main.title}, {title}", dtypes=dtypes, result=result)


def shared_arrays(case):
    """Returns the names of data arrays with a token axis and without batch axes, which all examples share."""
    return [k for k in case.given("data") if "..." not in case.axes[k] and set(case.axes[k]) & SEQUENCES]
