"""Kinds of mistakes that were found in foreign implementations, each on every row that has what it takes."""

import itertools

import numpy as np
from conformance.foreign.wrapping import Kinds, every

KINDS = Kinds()

CALLS = itertools.count()
"""How often a function was called that remembers it."""


def has(*kinds, count=1):
    """Whether a row has so many arguments of these kinds."""
    return lambda row: sum(a.kind in kinds for a in row.arguments.values()) >= count


def has_tokens(row):
    """Whether vectors of the row stand along a sequence."""
    return any(a.kind == "data" and len(a.own) > 1 for a in row.arguments.values())


def optional(row):
    """The optional arguments beside masks and lengths."""
    return [k for k, a in row.arguments.items() if a.optional and a.kind not in ("mask", "int")]


def batched(row):
    """Whether batch axes have no name of their own, and vectors stand behind them."""
    return has_tokens(row) and all(a.batched for a in row.arguments.values() if a.kind == "data")


# Arguments that are not read


@KINDS.of("integer masks are ignored", has("mask"))
def ignores_integer_masks(call):
    return call.right(**{k: None for k in call.keys("mask") if call.values[k].dtype.kind in "iu"})


@KINDS.of("~ of an integer mask", has("mask"))
def inverts_integers(call):
    return call.right(
        **{k: call.values[k] != call.values[k] for k in call.keys("mask") if call.values[k].dtype != bool}
    )


@KINDS.of("masks of lower rank are ignored", has("mask"))
def ignores_lower_rank(call):
    if call.row.name == "multi_head_attention_pooling" and call.values["mask"] is not None:
        return call.right(mask=None if call.values["mask"].ndim < call.values["x"].ndim - 1 else call.values["mask"])
    lower = [k for k in call.keys("mask") if call.values[k].ndim < call.rank_of(k)]
    return call.right(**dict.fromkeys(lower))


@KINDS.of("an axis of 1 in a mask is all real", has("mask"))
def ignores_axes_of_one(call):
    one = [k for k in call.keys("mask") if 1 in call.values[k].shape and call.first.shape[-2:].count(1) == 0]
    return call.right(**dict.fromkeys(one))


@KINDS.of("bias and dropout are ignored without a mask", lambda row: has("mask")(row) and has("stretch")(row))
def ignores_stretch_without_mask(call):
    return call.right(**dict.fromkeys([] if call.keys("mask") else call.keys("stretch")))


@KINDS.of("bias and dropout that broadcast are ignored", lambda row: has("mask")(row) and has("stretch")(row))
def ignores_stretch_that_broadcasts(call):
    lower = [
        k for k in call.keys("stretch") if call.values[k].ndim < call.batch_rank() + 1 or 1 in call.values[k].shape
    ]
    return call.right(**dict.fromkeys(lower if call.batch_rank() else []))


@KINDS.of("one of two masks is ignored without the other", has("mask", count=2))
def ignores_one_of_two_masks(call):
    return call.right(**(dict.fromkeys(call.keys("mask")) if len(call.keys("mask")) == 1 else {}))


@KINDS.of("an argument is ignored where it stands alone", lambda row: len(optional(row)) > 1 and has("mask")(row))
def ignores_what_stands_alone(call):
    given = [k for k in optional(call.row) if call.values[k] is not None]
    if len(given) != 1 or call.keys("mask"):
        return call.right()
    value = call.values[given[0]]
    if given[0].endswith("kernel"):  # without it the widths would not fit
        return call.right(**{given[0]: np.eye(*value.shape, dtype=value.dtype) if value.ndim == 2 else value})
    return call.right(**dict.fromkeys(given))


@KINDS.of(
    "an option is ignored without a mask",
    lambda row: has("mask")(row) and any(isinstance(v, tuple) for v in row.options.values()),
)
def ignores_options_without_mask(call):
    names = {k: v[0] for k, v in call.row.options.items() if isinstance(v, tuple)}
    return call.right(**({} if call.keys("mask") else names))


@KINDS.of(
    "a wrong default",
    lambda row: (
        row.name != "rigid_decomposition" and any(a.kind == "number" and not a.optional for a in row.arguments.values())
    ),
)
def has_a_wrong_default(call):
    numbers = [k for k, a in call.row.arguments.items() if a.kind == "number" and not a.optional]
    return call.right(**{k: 0.25 + 2 * call.values[k] for k in numbers if k not in call.named})


@KINDS.of("the axis is counted from the end alone", lambda row: "axis" in row.options)
def reads_axes_from_the_end(call):
    return call.right(axis=min(call.values["axis"], -1))


# What is returned without the weights, in one dtype, or without a mask


@KINDS.of("float64 where the weights are not asked for", lambda row: bool(row.weights))
def widens_without_weights(call):
    return call.right() if call.values["return_weights"] else every(lambda a: a.astype(np.float64), call.right())


@KINDS.of("NaN at length 0 where the weights are not asked for", lambda row: bool(row.weights) and has_tokens(row))
def is_nan_at_length_0(call):
    empty = any(0 in a.shape[call.batch_rank() :] for a in call.arrays("data"))
    if call.values["return_weights"] or not empty:
        return call.right()
    return every(lambda a: a * np.float32("nan"), call.right())


@KINDS.of("wrong in bfloat16 without a mask", has("mask"), ("float32", "bfloat16"))
def is_wrong_without_a_mask(call):
    wrong = call.dtype.name == "bfloat16" and not call.keys("mask")
    return every(lambda a: (a * np.float32(1.1)).astype(a.dtype), call.right()) if wrong else call.right()


# Shapes


def off(result, wrong):
    """The result, off by a hundredth if it is to be wrong."""
    return every(lambda a: (a * np.float64(1.01)).astype(a.dtype), result) if wrong else result


@KINDS.of("wrong beyond 64 tokens", has_tokens)
def is_wrong_beyond_64(call):
    return off(call.right(), any(64 < max(a.shape, default=0) <= 500 for a in call.arrays("data")))


@KINDS.of(
    "wrong for odd widths",
    lambda row: has_tokens(row) and row.name not in ("field_attention_pooling", "attention_penalty"),
)
def is_wrong_for_odd_widths(call):
    width = call.first.shape[-1]
    return off(call.right(), width % 2 and width > 9)


@KINDS.of("wrong where all sizes are equal", batched)
def is_wrong_for_equal_sizes(call):
    shape = call.first.shape
    return off(call.right(), len(shape) > 2 and len(set(shape)) == 1 and shape[0] > 1)


@KINDS.of("wrong for three batch axes", batched)
def is_wrong_for_three_batch_axes(call):
    return off(call.right(), call.batch_rank() == 3)


@KINDS.of("axes of 1 are squeezed", lambda row: batched(row) and row.family == "pooling")
def squeezes_widths_of_one(call):
    width = call.first.shape[-1]
    return (
        every(lambda a: a.squeeze(-1) if a.ndim and a.shape[-1] == 1 else a, call.right())
        if width == 1
        else call.right()
    )


# Numbers that are not finite, in data and in padding


@KINDS.of("a single NaN is patched", has("data"))
def patches_a_single_nan(call):
    single = {k: np.nan_to_num(call.values[k]) for k in call.keys("data") if np.sum(np.isnan(call.values[k])) == 1}
    return call.right(**single)


@KINDS.of("poison in padding of unbatched arrays", lambda row: has("mask")(row) and batched(row))
def is_poisoned_without_a_batch(call):
    poisoned = call.batch_rank() == 0 and any(np.isnan(a).any() for a in call.arrays("data"))
    return every(lambda a: a * np.float32("nan"), call.right()) if poisoned else call.right()


@KINDS.of(
    "poison in arrays that are shared", lambda row: has("mask")(row) and has("data", count=2)(row) and batched(row)
)
def is_poisoned_where_shared(call):
    least = min(call.values[k].ndim - len(call.row.arguments[k].own) for k in call.keys("data"))
    shared = least < call.batch_rank()
    poisoned = shared and any(np.isnan(a).any() for a in call.arrays("data"))
    return every(lambda a: a * np.float32("nan"), call.right()) if poisoned else call.right()


# Rounding


def returns_floats(row):
    """Whether the result is of numbers, which the mistake is seen in."""
    return has("data")(row) or row.name.endswith("all_pairs")


def returns_digits(row):
    """Whether these numbers are not 0 and 1 alone, which every dtype holds."""
    return returns_floats(row) and row.name != "hardmax"


@KINDS.of(
    "sums in bfloat16",
    lambda row: (
        has_tokens(row)
        and has("mask")(row)
        and "L" in row.shapes
        and row.family == "pooling"
        and row.name not in ("first_pooling", "last_pooling", "max_pooling")
    ),
    ("bfloat16",),
)
def loses_count(call):
    tokens = call.first.shape[-2]
    return (
        every(lambda a: (a / 2).astype(a.dtype), call.right())
        if call.dtype.name == "bfloat16" and tokens > 256
        else call.right()
    )


@KINDS.of("rounded to bfloat16 within float16", returns_digits, ("float32", "float16"))
def rounds_to_bfloat16(call):
    import ml_dtypes

    def twice(a):
        return a.astype(ml_dtypes.bfloat16).astype(a.dtype)

    return every(twice, call.right()) if call.dtype == np.float16 else call.right()


@KINDS.of("rounded to float32 within float64", returns_digits, ("float32", "float64"))
def rounds_to_float32(call):
    def twice(a):
        with np.errstate(over="ignore"):
            return a.astype(np.float32).astype(a.dtype)

    return every(twice, call.right()) if call.dtype == np.float64 else call.right()


@KINDS.of("one unit off in bfloat16", returns_floats, ("float32", "bfloat16"))
def is_one_unit_off(call):
    if call.dtype.name != "bfloat16":
        return call.right()
    return every(lambda a: (a.astype(np.float32) * np.float32(1 + 2.0**-7)).astype(a.dtype), call.right())


@KINDS.of("an epsilon of 1e-9 in float64", returns_floats, ("float32", "float64"))
def has_an_epsilon(call):
    return every(lambda a: a * (1 - 1e-9), call.right()) if call.dtype == np.float64 else call.right()


@KINDS.of("an epsilon under the sum of the weights", lambda row: row.name.endswith("weighted_pooling"))
def has_an_epsilon_under_weights(call):
    weights = call.values["weights"]
    if weights is None or call.values["mask"] is None or weights.ndim == call.first.ndim:
        return call.right()
    total = real_sums(call, "mask", weights.astype(np.float64))
    with np.errstate(invalid="ignore"):
        factor = np.where(total == 0, 1, total / (total + 1e-9))[..., None]
    return (call.right() * factor).astype(call.dtype)


@KINDS.of(
    "small elements are wrong by a factor",
    lambda row: returns_floats(row) and not row.norms and "score" not in row.name,
)
def is_wrong_where_small(call):
    def shrunk(a):
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(a) < 0.02 * np.max(np.abs(a), initial=0), a * np.float32(1.001), a).astype(a.dtype)

    return every(shrunk, call.right())


# Purity


@KINDS.of(
    "padding is overwritten in float64", lambda row: "x" in row.arguments and has("mask")(row), ("float32", "float64")
)
def overwrites_padding(call):
    result = call.right()
    key = "mask" if "mask" in call.values else "x_mask"
    if call.dtype == np.float64 and call.values[key] is not None and call.values[key].dtype == bool:
        x = call.values["x"]
        x[~np.broadcast_to(call.values[key], x.shape[:-1])] = 0
    return result


@KINDS.of("random numbers are drawn with the weights", lambda row: bool(row.weights))
def draws_numbers(call):
    if call.values["return_weights"]:
        np.random.rand()
    return call.right()


@KINDS.of("another answer at every second call", returns_floats, ("float32", "float64"))
def answers_differently(call):
    return every(lambda a: np.nextafter(a, a.dtype.type(9)), call.right()) if next(CALLS) % 2 else call.right()


def real_sums(call, key, weights=None):
    """The sums of the real tokens' weights, or their counts, row by row or segment by segment."""
    real = np.where(call.values[key], 1.0 if weights is None else weights, 0.0)
    numbers = call.values.get(key.replace("mask", "segment_ids"))
    if numbers is None:
        return np.sum(real, -1)
    return np.bincount(numbers, np.broadcast_to(real, numbers.shape), call.values["num_segments"])


@KINDS.of("a division by 0 that is mended", has("mask"))
def divides_by_0(call):
    for key in call.keys("mask"):
        np.ones(1) / real_sums(call, key)
    return call.right()


@KINDS.of("a division by 0 that is mended, at length 0", has_tokens)
def divides_by_0_at_length_0(call):
    if any(0 in a.shape for a in call.arrays("data", "parameter")):
        np.ones(1) / np.zeros(1)
    return call.right()


# Several dtypes


@KINDS.of("everything widens", lambda row: has("data")(row) and has("stretch", "number")(row), ("float64",))
def widens(call):
    wide = any(getattr(a, "dtype", None) == np.float64 for a in call.values.values())
    return every(lambda a: a.astype(np.float64), call.right()) if wide else call.right()


@KINDS.of("the first array decides the dtype", has("data", count=2), ("float64",))
def follows_the_first(call):
    return every(lambda a: a.astype(call.dtype), call.right())


@KINDS.of("integers are rounded to integers", has("data", "parameter"), ("float64",))
def stays_integer(call):
    return every(lambda a: a.astype(call.dtype), call.right()) if call.dtype.kind == "i" else call.right()


@KINDS.of("integers alone are narrow", has("data", "parameter"), ("float64",))
def narrows_integers(call):
    whole = all(a.dtype.kind == "i" for a in call.arrays("data", "parameter") if a.ndim)
    return every(lambda a: a.astype(np.float32), call.right()) if whole else call.right()


@KINDS.of(
    "integers overflow in their own dtype",
    lambda row: has("data", "parameter")(row) and not row.unit and "scores" not in row.arguments,
    ("float64",),
)
def overflows_integers(call):
    whole = {k: call.values[k] for k in call.keys("data", "parameter") if call.values[k].dtype.kind == "i"}
    return call.right(**{k: a * a.dtype.type(2) // 2 for k, a in whole.items()})
