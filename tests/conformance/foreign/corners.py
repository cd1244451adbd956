"""Kinds of mistakes that show in one circumstance only, such as one rank, one dtype or a second call."""

import itertools

import numpy as np
from conformance.foreign.wrapping import Kinds, every
from conformance.foreign.wrong import KINDS, batched, has, off, returns_digits

UNSEEN = Kinds()
"""Kinds that the judge does not reject; :data:`REASONS` says why."""

REASONS = {
    "every thousandth call is wrong": (
        "a function is called 60 to 900 times in all: what goes wrong less often is not met, unless `examples` asks for more"
    ),
    "float32 results are off by 1e-6 where more is computed than a short sum": (
        "a chain of sums and functions of the data may be rounded by more, and a right implementation is"
    ),
}

THOUSAND = itertools.count(1)
"""Numbers the calls of a function that is wrong once in a thousand."""

LENGTHS = ("int", "lengths")
"""The kinds of arguments that are lengths in place of a mask."""

KEPT = {}
"""Answers by the identity of the arrays that were passed, which are kept alive."""


def any_rank(row):
    """Whether the first array may have any rank, one axis alone included."""
    return next(iter(row.arguments.values())).shapes == (("...",),)


def masked(call):
    """Whether a mask is given, or lengths in its place."""
    return bool(call.keys("mask", *LENGTHS))


# Arguments


@KINDS.of("an integer mask is overwritten", has("mask"))
def overwrites_an_integer_mask(call):
    result = call.right()
    for key in call.keys("mask"):
        if call.values[key].dtype.kind == "i":
            call.values[key] += 1
    return result


@KINDS.of("lengths are overwritten", has(*LENGTHS))
def overwrites_lengths(call):
    result = call.right()
    for key in call.keys(*LENGTHS):
        np.subtract(call.values[key], 1, out=call.values[key])
    return result


def with_one_mask(call, one):
    """The call with one of its two masks in place of the other, where they have the same shape."""
    keys = call.keys("mask")
    same = len(keys) == 2 and call.values[keys[0]].shape == call.values[keys[1]].shape
    return call.right(**({keys[1 - one]: call.values[keys[one]]} if same else {}))


@KINDS.of("the first mask for both sides where the lengths agree", has("mask", count=2))
def uses_the_first_mask_twice(call):
    return with_one_mask(call, 0)


@KINDS.of("the second mask for both sides where the lengths agree", has("mask", count=2))
def uses_the_second_mask_twice(call):
    return with_one_mask(call, 1)


@KINDS.of(
    "lengths are counted in their own dtype",
    lambda row: has(*LENGTHS)(row) and row.name != "first_pooling",  # what is counted too often is not the first one
)
def counts_in_the_dtype_of_lengths(call):
    changes = {}
    for key in call.keys(*LENGTHS) if call.values.get("axis", -1) == -1 else ():
        mask, lengths = key.replace("lengths", "mask"), call.values[key]
        own = call.row.arguments[mask].own
        lengths = lengths.reshape(
            *lengths.shape, *(1,) * ((call.rank_of(mask) if own else call.first.ndim) - lengths.ndim)
        )
        changes |= {key: None, mask: np.arange(call.size_of(mask)).astype(lengths.dtype) < lengths}
    return call.right(**changes)


@KINDS.of("lengths are cast to int8", has(*LENGTHS))
def casts_lengths(call):
    return call.right(**{key: np.maximum(call.values[key].astype(np.int8), 0) for key in call.keys(*LENGTHS)})


@KINDS.of("counts beyond two are two", lambda row: {"count", "positive"} & set(row.options.values()))
def counts_to_two(call):
    counts = [key for key, allowed in call.row.options.items() if allowed in ("count", "positive")]
    return call.right(**{key: min(call.values[key], 2) for key in counts})


@KINDS.of("a count of 0 is 1", lambda row: "count" in row.options.values())
def counts_from_one(call):
    counts = [key for key, allowed in call.row.options.items() if allowed == "count"]
    return call.right(**{key: max(call.values[key], 1) for key in counts})


@KINDS.of("a default of 1e-3 in place of 0", lambda row: row.name == "rigid_decomposition")
def has_a_loose_default(call):
    return call.right(**({} if "atol" in call.named else {"atol": 1e-3}))


# Ranks and axes


@KINDS.of("an array of rank 1 is left as it is", any_rank)
def leaves_vectors(call):
    first = next(iter(call.values.values()))
    return first.copy() if first.ndim == 1 else call.right()


@KINDS.of("axis=-3 is axis=-2", lambda row: "axis" in row.options)
def reads_two_axes(call):
    return call.right(axis=max(call.values["axis"], -2))


@KINDS.of("axis=0 is axis=1", lambda row: "axis" in row.options)
def reads_no_axis_of_batches(call):
    first = next(iter(call.values.values()))
    return call.right(axis=1 if call.values["axis"] == 0 and first.ndim > 2 else call.values["axis"])


@KINDS.of("wrong without a mask for two batch axes", lambda row: has("mask")(row) and batched(row))
def is_wrong_without_a_mask_for_two_batch_axes(call):
    return off(call.right(), call.batch_rank() == 2 and not masked(call))


@KINDS.of("wrong without a mask and without batch axes", lambda row: has("mask")(row) and batched(row))
def is_wrong_without_a_mask_and_batch_axes(call):
    return off(call.right(), call.batch_rank() == 0 and not masked(call))


@KINDS.of("a window of slots where x is shared", lambda row: row.name == "semantic_match")
def counts_slots(call):
    x, y, real = call.values["x"], call.values["y"], call.values["y_mask"]
    if call.values["method"] != "local" or real is None or x.ndim >= y.ndim:
        return call.right()
    wide = np.where(real[..., None], y, 0).astype(np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    cosine = x.astype(np.float64) @ np.swapaxes(wide / np.where(norms == 0, 1, norms), -1, -2)
    best = np.argmax(np.where(real[..., None, :], cosine, -np.inf), -1)[..., None]
    near = np.abs(np.arange(y.shape[-2]) - best) <= call.values["window"]
    lines = [  # of each token of x, with the tokens of y in its window alone
        call.right(x=x[i : i + 1], x_mask=None, y_mask=real & near[..., i, :], window=y.shape[-2])
        for i in range(x.shape[-2])
    ]
    found, keep = np.concatenate(lines, -2), call.values["x_mask"]
    return found if keep is None else np.where(np.asarray(keep)[..., None] != 0, found, 0).astype(found.dtype)


# Numbers


def gives_softmax(row):
    """Whether it gives the weights of a softmax, as its result or beside it."""
    normalizer = row.options.get("normalizer", ("softmax",))[0]
    return row.name in ("masked_softmax", "gumbel_softmax") or (
        bool(row.weights) and normalizer == "softmax" and ("query" in row.arguments or "scores" in row.arguments)
    )


@KINDS.of("weights below 1e-7 are 0", gives_softmax)
def flushes_small_weights(call):
    def flushed(a):
        return np.where(np.abs(a) < 1e-7, 0, a).astype(a.dtype)

    result = call.right()
    if "normalizers" in call.row.family:
        return every(flushed, result)
    return (*result[:-1], every(flushed, result[-1])) if call.values["return_weights"] else result


@KINDS.of("weights that sum below 1e-6 give 0", lambda row: row.name == "semantic_match")
def calls_small_sums_empty(call):
    result, total = call.right(), call.right(normalize=False)
    if not call.values["normalize"] or call.values["method"] == "max":
        return result
    return np.where(np.abs(total) < 1e-6 * np.abs(result), 0, result).astype(result.dtype)


def is_off_by_a_millionth(call):
    return every(lambda a: (a * np.float64(1 + 1e-6)).astype(a.dtype), call.right())


KINDS.of("float32 results are off by 1e-6", lambda row: row.averaged is not None)(is_off_by_a_millionth)
UNSEEN.of(
    "float32 results are off by 1e-6 where more is computed than a short sum",
    lambda row: returns_digits(row) and row.averaged is None,
)(is_off_by_a_millionth)


# Calls


@KINDS.of("a view of the caller's array without a mask", lambda row: row.name in ("first_pooling", "last_pooling"))
def returns_a_view(call):
    x = call.values["x"]
    if masked(call) or not x.shape[-2]:
        return call.right()
    return x[..., 0 if call.row.name == "first_pooling" else -1, :]


@KINDS.of("the caller's array where nothing is to be done", lambda row: row.name == "graph_decomposition")
def returns_the_array(call):
    return call.values["labels"] if call.values["num_layers"] == 0 else call.right()


@KINDS.of("answers are cached by the arrays' identity", has("data", "parameter"))
def caches_by_identity(call):
    arrays = [a for a in call.values.values() if isinstance(a, np.ndarray)]
    plain = [(k, v) for k, v in call.values.items() if not isinstance(v, np.ndarray)]
    key = (call.row.name, *map(id, arrays), repr(plain))
    if key not in KEPT:
        KEPT[key] = arrays, call.right()
    return every(np.copy, KEPT[key][1])


@KINDS.of("masks are cached by their identity", has("mask"))
def caches_masks_by_identity(call):
    changes = {}
    for key in call.keys("mask"):
        mask = call.values[key]
        changes[key] = KEPT.setdefault((key, id(mask)), (mask, mask.copy()))[1]
    return call.right(**changes)


@KINDS.of("a second call with the same arrays is wrong", has("data", "parameter"))
def is_wrong_for_known_arrays(call):
    arrays = [a for a in call.values.values() if isinstance(a, np.ndarray)]
    key = ("known", *map(id, arrays))
    known = key in KEPT
    KEPT[key] = arrays
    return off(call.right(), known)


@UNSEEN.of("every thousandth call is wrong", has("data", "parameter"))
def is_wrong_once_in_a_thousand(call):
    return off(call.right(), next(THOUSAND) % 1000 == 0)
