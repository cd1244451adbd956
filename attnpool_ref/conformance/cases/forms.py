"""Other forms of a call: masks and biases that broadcast, integer masks, arguments of several dtypes.

``main`` is the case from which the others are made: a mixed batch (examples with different masks).
"""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance.cases.case import ANY_RANK, SEQUENCES
from attnpool_ref.conformance.cases.layout import ONE, ONE_BATCH

FORMS = 4


def broadcasting(main):
    """Yields cases in which masks, biases and multipliers have other shapes that broadcast; some masks are integers.

    Over the cases each argument has each of its forms. Within one case the arguments have different forms.
    """
    keys = main.given("mask", "stretch")
    for turn in range(FORMS if keys else 0):
        values, axes, spread, names = {}, {}, {}, []
        for place, key in enumerate(keys):
            form = (turn + place) % FORMS
            found = _form(main, key, form)
            if found is None:
                continue
            values[key], axes[key] = found
            spread[key] = main.axes[key]
            if main.arguments()[key].kind == "mask" and form % 2 == 0:
                values[key] = values[key].astype(np.int64)
            kind = " of integers" if values[key].dtype.kind == "i" else ""
            names.append(f"`{key}`{kind} as [{', '.join(axes[key])}]")
        if values and all(value.size for value in values.values()):
            case = main.with_values(", ".join(names), **values)
            yield replace(case, axes=main.axes | axes, spread=spread)


def _form(main, key, form):
    """Returns (array, axes) of an argument without some axes or with axes of 1; None if it lacks the form ``form``."""
    value, axes = main.values[key], main.axes[key]
    named = axes[0] != "..." and axes[0] not in ANY_RANK[1:]  # functions of all pairs have a named batch axis
    own = axes[1:] if axes[0] == "..." or named else axes
    if axes[0] != "..." and not named:
        return None
    if not own:  # packed tokens: a mask [N] of integers; [] and [1], as which a mask hides all tokens
        single = np.zeros((), bool) if value.dtype == bool else value[0]
        arrays_by_form = {0: (value, axes), 1: (single, ()), 2: (single[None], (ONE,))}
        return arrays_by_form.get(form) if form or value.dtype == bool else None
    last, lead = value.ndim - 1, value.ndim - len(own)
    if form == 0:  # [n, m] or [L]
        return _without_ends(value[_telling(value, lead, 0)]), own
    if form == 1:  # [B, 1, m] or [B, 1]
        place = last if len(own) == 1 else last - 1
        small = np.any(value, place, keepdims=True) if value.dtype == bool else np.take(value, [0], place)
        return small, tuple(ONE if i == place - value.ndim + len(axes) else a for i, a in enumerate(axes))
    if form == 2:  # [1, L] or [1, n, m]
        ones = (1,) * lead
        single = value[_telling(value, lead, -1)].reshape(ones + value.shape[lead:])
        return single, (ONE if named else ONE_BATCH, *own)
    if len(own) > 1:  # [m]
        return value[(*_telling(value, lead, -1), *(0,) * (len(own) - 1))], own[-1:]
    return None


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
    followers = main.given("stretch", "number")
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
