"""Kinds of mistakes that the judge must reject by default, without the options that require more."""

import functools

import numpy as np
from conformance.foreign.sizes import masked_tokens, with_masks
from conformance.foreign.wrapping import Kinds, every
from conformance.foreign.wrong import batched, has, has_tokens, off

import attnpool_ref as ref

BY_DEFAULT = Kinds()
TOKENS, BLOCK, EXAMPLES, WIDTH, HEADS = 609, 1024, 255, 128, 3
OWN = {}
"""The buffer of each function that writes its results into one."""


def weights_are_data(row):
    """Whether a row takes a weight for each token."""
    return "weights" in row.arguments and "x" in row.arguments


def cut(call, axis, limit):
    """The arguments, 0 beyond a position of an axis."""
    changes = {}
    for key, argument in call.row.arguments.items():
        value, own = call.values[key], argument.own
        if axis in own and isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim >= len(own):
            place = own.index(axis) - len(own)
            kept = (np.arange(value.shape[place]) < limit).reshape(-1, *(1,) * (-1 - place))
            changes[key] = (value * kept).astype(value.dtype)
    return changes


# Sizes


@BY_DEFAULT.of("a mask is ignored beyond 609 tokens", masked_tokens)
def ignores_masks_beyond(call):
    return with_masks(call, lambda position, mask: mask | ((position >= TOKENS) & np.any(mask, -1, keepdims=True)))


@BY_DEFAULT.of("the last token is lost in a full row of more than 609", masked_tokens)
def loses_the_last_of_full_rows(call):
    def lose(position, mask):
        full = np.all(mask, -1, keepdims=True) & (len(position) > TOKENS)
        return mask & ~(full & (position == len(position) - 1))

    return with_masks(call, lose)


@BY_DEFAULT.of(
    "the last token is lost where lengths are more than 609", lambda row: masked_tokens(row) and has("lengths")(row)
)
def loses_the_last_of_lengths(call):
    return call.right(
        **{k: np.where(call.values[k] > TOKENS, call.values[k] - 1, call.values[k]) for k in call.keys("lengths")}
    )


@BY_DEFAULT.of("weights are ignored beyond 609 tokens", weights_are_data)
def ignores_weights_beyond(call):
    weights = call.values["weights"]
    if weights is None:
        return call.right()
    by_channel = weights.ndim == call.first.ndim and weights.shape == call.first.shape
    position = np.arange(weights.shape[-2 if by_channel else -1])
    late = (position >= TOKENS)[:, None] if by_channel else position >= TOKENS
    return call.right(weights=np.where(late, 1, weights).astype(weights.dtype))


@BY_DEFAULT.of(
    "scores are 0 beyond 609 tokens", lambda row: bool(row.weights) and "kernel[" in row.shapes and has_tokens(row)
)
def is_uniform_beyond(call):
    if max(a.shape[-2] if a.ndim > 1 else 0 for a in call.arrays("data")) <= TOKENS:
        return call.right()
    last = [k for k in call.keys("parameter") if call.values[k].ndim][-1]
    return call.right(**{last: np.zeros_like(call.values[last])})


@BY_DEFAULT.of("the last block of 1024 tokens is lost where it is incomplete", masked_tokens)
def loses_a_block(call):
    return with_masks(call, lambda position, mask: mask & (position < max(len(position) // BLOCK, 1) * BLOCK))


@BY_DEFAULT.of("weights are 0 beyond 1024 tokens", lambda row: row.weights.endswith(("L]", "m]")))
def returns_no_weights(call):
    result = call.right()
    if not call.values["return_weights"]:
        return result
    kept = np.arange(result[-1].shape[-1]) < BLOCK
    return (*result[:-1], (result[-1] * kept).astype(result[-1].dtype))


@BY_DEFAULT.of("zeros from the 256th example on", batched)
def counts_examples_in_8_bits(call):
    def zeroed(a):
        return a * (np.arange(len(a)) < EXAMPLES + 1).reshape(-1, *(1,) * (a.ndim - 1)) if a.ndim else a

    return every(lambda a: zeroed(a).astype(a.dtype), call.right()) if call.batch_rank() == 1 else call.right()


@BY_DEFAULT.of("segments are counted in 8 bits", has("segments"))
def counts_segments_in_8_bits(call):
    return call.right(**{k: call.values[k].astype(np.uint8).astype(np.int32) for k in call.keys("segments")})


@BY_DEFAULT.of(
    "features beyond 128 are 0", lambda row: "x[..., L, d]" in row.shapes and row.family in ("pooling", "means")
)
def loses_features(call):
    return call.right(**cut(call, "d", WIDTH))


@BY_DEFAULT.of("heads beyond three are 0", lambda row: "[d, H, c]" in row.shapes)
def loses_heads(call):
    return call.right(**cut(call, "H", HEADS))


@BY_DEFAULT.of("scores are divided by the root of at most 64", lambda row: row.name.startswith("dot_product_attention"))
def divides_by_at_most_8(call):
    width = call.first.shape[-1]
    return call.right(**({"scale": min(width, 64) ** -0.5} if call.values["scale"] is None else {}))


@BY_DEFAULT.of("the last token is lost for even lengths", lambda row: row.name in ("max_pooling", "min_pooling"))
def loses_the_last_of_even_lengths(call):
    length = call.first.shape[-2]
    return with_masks(call, lambda position, mask: mask & (position < length - (length > 8 and length % 2 == 0)))


# Numbers


@BY_DEFAULT.of(
    "-inf becomes 0", lambda row: row.name in ("max_pooling", "last_pooling", "segment_max_pooling", "max_state")
)
def mends_minus_infinity(call):
    return every(lambda a: np.where(np.isneginf(a), 0, a).astype(a.dtype), call.right())


@BY_DEFAULT.of("inf becomes 0", lambda row: row.name in ("min_pooling", "segment_min_pooling"))
def mends_infinity(call):
    return every(lambda a: np.where(np.isposinf(a), 0, a).astype(a.dtype), call.right())


def at(name, values):
    """A kind that is wrong where a number or a count has one of these values."""

    @BY_DEFAULT.of(
        f"wrong for {name} of {' or '.join(map(str, values))}",
        lambda row: (name in row.arguments and row.arguments[name].numeric) or name in row.options,
    )
    def is_wrong(call):
        value = call.values[name]
        wrong = value is not None and np.ndim(value) == 0 and value in values
        return every(lambda a: (a + wrong / 4).astype(a.dtype), call.right())


for _name, _values in {"p": (0,), "q": (0,), "alpha": (1,), "scale": (0,), "window": (5,), "num_layers": (5,)}.items():
    at(_name, _values)
at("q", (1,))
at("alpha", (2,))


@BY_DEFAULT.of("wrong for a k of more than the row has", lambda row: "k" in row.options)
def is_wrong_for_a_large_k(call):
    size = call.first.shape[-2 if has_tokens(call.row) else -1]
    return off(call.right(), call.values["k"] > size > 0)


# Calls


@BY_DEFAULT.of("an argument is overwritten and restored", has("data"))
def overwrites_and_restores(call):
    first = call.first
    if first.size:
        before = first.flat[0]
        first.flat[0] = 0
        first.flat[0] = before
    return call.right()


@BY_DEFAULT.of("all results are in one buffer", lambda row: len(row.results) == 1 and has("data")(row))
def reuses_a_buffer(call):
    result = call.right()
    if isinstance(result, tuple):
        return result
    buffer = OWN.setdefault((call.row.name, result.shape, result.dtype.name), np.empty_like(result))
    buffer[...] = result
    return buffer


@BY_DEFAULT.of("an integer mask is overwritten", has("mask"))
def overwrites_integers(call):
    result = call.right()
    for key in call.keys("mask"):
        if call.values[key].dtype.kind == "i" and call.values[key].flags.writeable:
            call.values[key] *= 2
    return result


# Ranks


@BY_DEFAULT.of("a mask or a bias of lower rank is ignored", lambda row: has("mask")(row) and batched(row))
def ignores_lower_ranks(call):
    rank = {k: call.batch_rank() + len(call.row.arguments[k].own) for k in call.keys("mask", "stretch")}
    lower = [k for k, full in rank.items() if call.values[k].ndim < min(full, call.batch_rank() + 1)]
    return call.right(**(dict.fromkeys(lower) if call.batch_rank() else {}))


@BY_DEFAULT.of("a mask with one head is ignored", lambda row: "mask?[..., n, m]|[..., H, n, m]" in row.shapes)
def ignores_a_mask_of_one_head(call):
    mask = call.values["mask"]
    one = mask is not None and mask.ndim == call.batch_rank() + 3 and mask.shape[-3] == 1
    return call.right(**({"mask": None} if one and call.batch_rank() else {}))


@BY_DEFAULT.of(
    "the first head's mask for all heads without a batch", lambda row: "mask?[..., n, m]|[..., H, n, m]" in row.shapes
)
def reads_the_first_head(call):
    mask = call.values["mask"]
    return call.right(**({"mask": mask[0]} if mask is not None and call.batch_rank() == 0 and mask.ndim == 3 else {}))


@BY_DEFAULT.of("the other sequence's mask where lengths agree", has("mask", count=2))
def takes_the_other_mask(call):
    one, other = [k for k, a in call.row.arguments.items() if a.kind == "mask"][:2]
    given = [k for k in (one, other) if call.values[k] is not None]
    first, second = [a.shape[:-1] for a in call.arrays("data", "parameter") if a.ndim > 1][:2]
    same = first == second
    if len(given) != 1 or not same:
        return call.right()
    return call.right(**dict.fromkeys((one, other), call.values[given[0]]))


@BY_DEFAULT.of("one kernel for all fields is wrong without batch axes", lambda row: "[J, d+e]|[d+e]" in row.shapes)
def is_wrong_with_one_kernel(call):
    return off(call.right(), call.batch_rank() == 0 and call.values["kernel"].ndim == 1)


@BY_DEFAULT.of("three batch axes are flattened in the wrong order", batched)
def flattens_in_the_wrong_order(call):
    if call.batch_rank() != 3:
        return call.right()
    changes = {}
    for key, argument in call.row.arguments.items():
        value = call.values[key]
        if argument.kind == "data" and value is not None and value.ndim == 3 + len(argument.own):
            shape = value.shape
            changes[key] = np.swapaxes(value, 0, 1).reshape(shape)
    return call.right(**changes)


# Chunks


class States:
    """The functions of ``attnpool_ref`` for one kind of state, wrong in one of several ways."""

    def __init__(self, row, mistake):
        self._wrong, self._seen = mistake, 0
        setattr(self, row, functools.wraps(getattr(ref, row))(functools.partial(self._state, getattr(ref, row))))

    def _state(self, function, x, mask=None, **more):
        kept = x if self._wrong == "a view of the caller's array is kept" else np.copy(x)
        return {"chunks": [(function, kept, None if mask is None else np.copy(mask), more)], "read": False}

    def merge_states(self, one, other):
        chunks = [*one["chunks"], *other["chunks"]]
        if self._wrong == "chunks after the 16th are lost":
            chunks = chunks[:16]
        if self._wrong == "a merge changes its first argument":
            one["chunks"] = chunks
        return {"chunks": chunks, "read": False}

    def finalize_state(self, state):
        parts = [function(x, mask, **more) for function, x, mask, more in state["chunks"]]
        result = ref.finalize_state(functools.reduce(ref.merge_states, parts))
        again, state["read"] = state["read"], True
        return 0 * result if again and self._wrong == "a state is 0 where it is read again" else result


STATES = (
    "a view of the caller's array is kept",
    "chunks after the 16th are lost",
    "a merge changes its first argument",
    "a state is 0 where it is read again",
)
"""Mistakes of :class:`States`."""
