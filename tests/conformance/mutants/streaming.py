"""Mistakes in states: each is a mapping of the functions that give, merge and finalize them."""

import functools
from typing import Any, NamedTuple

import numpy as np

import attnpool_ref as ref
from attnpool_ref import table
from attnpool_ref.primitives import exchanged, softmax

MUTANTS = {}
"""``{row: {mistake: namespace}}``."""


def states(**changed):
    """The oracle's functions of states, some of them changed."""
    names = [*(row.name for row in table.STATES), "merge_states", "finalize_state"]
    return {name: getattr(ref, name) for name in names} | changed


def _keep(row, mistake, changed, **functions):
    """Keeps states of which those of a row are changed, and perhaps other functions."""
    MUTANTS.setdefault(row, {})[mistake] = states(**{row: functools.wraps(getattr(ref, row))(changed)}, **functions)


class Part(NamedTuple):
    """State of a mistake that merges pooled vectors: the vector, what the chunk weighs, and the oracle's state."""

    pooled: Any
    mass: Any
    whole: Any


def _merging(row, mistake, mass=None):
    """Keeps a merge of two pooled vectors as a mistake of a row; it gets two parts, and gives the vector and the mass.

    ``mass(arguments)`` is what a chunk weighs: by default the number of its real tokens.
    """

    def keep(merged):
        def state(*args, **kwargs):
            whole = getattr(ref, row)(*args, **kwargs)
            arguments = whole.chunks[0]
            weighs = np.sum(arguments["mask"], -1) if mass is None else mass(arguments)
            return Part(np.asarray(ref.finalize_state(whole), np.float64), weighs, whole)

        def merge_states(a, b):
            return Part(*merged(a, b), ref.merge_states(a.whole, b.whole))

        def finalize_state(state):
            return state.pooled.astype(state.whole.dtype)

        _keep(row, mistake, state, merge_states=merge_states, finalize_state=finalize_state)
        return merged

    return keep


# Merges of pooled vectors


def _broadcast(mass, pooled):
    return np.reshape(mass, np.shape(mass) + (1,) * (pooled.ndim - np.ndim(mass)))


def _averaged(a, b):
    """The average of the pooled vectors under their masses."""
    mine, theirs = _broadcast(a.mass, a.pooled), _broadcast(b.mass, b.pooled)
    whole = mine + theirs
    return (a.pooled * mine + b.pooled * theirs) / np.where(whole == 0, 1, whole)


def _mean_of_two(a, b):
    return (a.pooled + b.pooled) / 2, a.mass + b.mass


def _by_mass(a, b):
    return _averaged(a, b), a.mass + b.mass


def _by_one_mass(a, b):
    return _averaged(a, b), np.maximum(a.mass, b.mass)


def _added_up(a, b):
    return a.pooled + b.pooled, a.mass + b.mass


def _larger(a, b):
    return np.maximum(a.pooled, b.pooled), a.mass + b.mass


def _of_the_mean_half(merged):
    """A merge of the first half of the features; the second half is merged as maxima."""

    def merge(a, b):
        halves = [np.split(part.pooled, 2, -1) for part in (a, b)]
        mean, mass = merged(*(part._replace(pooled=half[0]) for part, half in zip((a, b), halves, strict=True)))
        real = [_broadcast(part.mass, part.pooled) > 0 for part in (a, b)]
        low = [np.where(given, half[1], -np.inf) for given, half in zip(real, halves, strict=True)]
        return np.concatenate([mean, np.where(real[0] | real[1], np.maximum(*low), 0)], -1), mass

    return merge


def _with_padding(arguments):
    return np.full(arguments["mask"].shape[:-1], arguments["mask"].shape[-1])


for _row, _half in (
    ("mean_state", lambda f: f),
    ("latent_attention_state", lambda f: f),
    ("mean_max_state", _of_the_mean_half),
):
    _name = _row.replace("_", " ")
    _merging(_row, f"{_name}: a mean of means")(_half(_mean_of_two))
    _merging(_row, f"{_name}: the count of one chunk")(_half(_by_one_mass))
    _merging(_row, f"{_name}: padding counts", _with_padding)(_half(_by_mass))

_merging("max_state", "max state: an empty chunk is 0")(_larger)
_merging("sum_state", "sum state: the mean of the sums")(_mean_of_two)
_merging("gated_sum_state", "gated sum state: the mean of the sums")(_mean_of_two)
_merging("noisy_or_state", "noisy-or state: probabilities added up")(_added_up)
_merging("noisy_or_state", "noisy-or state: the larger one")(_larger)
_merging("vlad_state", "vlad state: what the chunks give, added up")(_added_up)
_merging("vlad_state", "vlad state: the mean of what the chunks give")(_mean_of_two)
for _row in (
    "power_mean_state",
    "logsumexp_state",
    "softmax_state",
    "std_state",
    "statistics_state",
    "attentive_statistics_state",
):
    _name = _row.replace("_", " ")
    _merging(_row, f"{_name}: a mean of what the chunks give")(_mean_of_two)
    _merging(_row, f"{_name}: what the chunks give, averaged by their numbers of tokens")(_by_mass)


def _averaged_variances(a, b):
    """A merge of the means, if they come with the deviations, and of the variances, without the distance of the means."""
    width = a.pooled.shape[-1]
    powers = np.where(np.arange(width) < (width - a.whole.chunks[0]["x"].shape[-1]), 1, 2)
    average = _averaged(*(part._replace(pooled=part.pooled**powers) for part in (a, b)))
    return average ** (1 / powers), a.mass + b.mass


for _row in ("std_state", "statistics_state", "attentive_statistics_state"):
    _merging(_row, f"{_row.replace('_', ' ')}: the distance of the means forgotten")(_averaged_variances)


def max_of_nothing(state):
    real = np.any([np.any(chunk["mask"], -1) for chunk in state.chunks], 0)
    return np.where(real[..., None], ref.finalize_state(state), -np.inf)


MUTANTS["max_state"]["max state: -inf where nothing is real"] = states(finalize_state=max_of_nothing)


def _real_if_both_are(a, b, reduced=np.maximum):
    both = (a.mass > 0) & (b.mass > 0)
    return np.where(both[..., None], reduced(a.pooled, b.pooled), 0), np.where(both, 1, 0)


_merging("max_state", "max state: real if both are")(_real_if_both_are)
_merging("min_state", "min state: real if both are")(functools.partial(_real_if_both_are, reduced=np.minimum))
_merging("min_state", "min state: an empty chunk is 0")(lambda a, b: (np.minimum(a.pooled, b.pooled), a.mass + b.mass))


@_merging("first_state", "first state: the first that is given")
def first_that_is_given(a, b):
    return np.where((a.mass > 0)[..., None], a.pooled, b.pooled), a.mass + b.mass


def _from_0(right):
    return lambda x, mask=None, *, start: right(x, mask, start=0 * start)


for _row in ("first_state", "last_state"):
    _keep(_row, f"{_row.replace('_', ' ')}: the position in the chunk", _from_0(getattr(ref, _row)))


def _last_position(arguments):
    """The position of the last real token, or of the chunk if it has none."""
    places = np.where(arguments["mask"], np.arange(arguments["mask"].shape[-1]), 0)
    return arguments["start"] + np.max(places, -1, initial=0)


@_merging("last_state", "last state: an empty chunk stands where it begins", _last_position)
def last_of_an_empty_chunk(a, b):
    return np.where((a.mass >= b.mass)[..., None], a.pooled, b.pooled), np.maximum(a.mass, b.mass)


def _sum_of_weights(arguments):
    """The sum of the real tokens' weights, of each feature if they have that axis."""
    mask, weights = arguments["mask"], arguments["weights"]
    if weights is None:
        return np.sum(mask, -1)
    by_feature = weights.ndim == arguments["x"].ndim
    return np.sum(np.where(mask[..., None], weights, 0), -2) if by_feature else np.sum(np.where(mask, weights, 0), -1)


_merging("weighted_state", "weighted state: weighed by the number of tokens")(_by_mass)
_merging("weighted_state", "weighted state: weights that cancel make the unit", _sum_of_weights)(_by_mass)
_merging("weighted_state", "weighted state: normalised by the chunk", lambda a: np.where(_sum_of_weights(a), 1, 0))(
    _by_mass
)


def heads_state_scaled_by_all_heads(x, mask=None, *, key_kernel, scale=None, **parameters):
    scale = np.prod(key_kernel.shape[1:]) ** -0.5 if scale is None else scale
    return ref.multi_head_attention_state(x, mask, key_kernel=key_kernel, scale=scale, **parameters)


def gated_sum_of_padding(x, mask=None, **parameters):
    clean = x if mask is None else np.where(np.broadcast_to(mask, x.shape[:-1])[..., None], x, 0)
    return ref.gated_sum_state(clean, None, **parameters)


HEADS = "multi_head_attention_state"
_keep(HEADS, "multi head attention state: scaled by the width of all heads", heads_state_scaled_by_all_heads)
_keep(
    HEADS,
    "multi head attention state: the bias left out",
    lambda x, mask=None, *, bias=None, **parameters: ref.multi_head_attention_state(x, mask, **parameters),
)
_keep("sum_state", "sum state: padding counts", lambda x, mask=None: ref.sum_state(x, None))
_keep("gated_sum_state", "gated sum state: padding is a token of zeros", gated_sum_of_padding)


# Online softmax


class Softmax(NamedTuple):
    """The largest score, and sums over tokens of exp(score - top) and of its product with the value."""

    top: Any
    total: Any
    sum: Any
    dtype: Any


def _softmax_of(row, whole):
    """The online softmax of one chunk, from the scores that the oracle makes weights of."""
    noted = []

    def weights_of(scores, real, axis=-1):
        noted.append((scores, real))
        return softmax.__wrapped__(scores, real, axis)

    with exchanged({softmax: weights_of}):
        rank = ref.finalize_state(whole).ndim
    scores, mask = (np.swapaxes(part, -3, -2) if row == HEADS else part for part in noted[-1])
    scores, mask = (part if part.ndim == rank else part[..., 0, :] for part in (scores, mask))  # of a single hop
    chunk = whole.chunks[0]
    values = chunk["x"] if chunk.get("value") is None else chunk["value"]
    values = np.where(chunk["mask"][..., None], values, 0).astype(np.float64)
    values = values.reshape(values.shape[:-2] + (1,) * (scores.ndim - values.ndim + 1) + values.shape[-2:])
    top = np.max(np.where(mask, scores, -np.inf), -1, initial=-np.inf)
    weights = np.where(mask, np.exp(scores - _finite(top)[..., None]), 0)
    return Softmax(top, np.sum(weights, -1), np.sum(weights[..., None] * values, -2), whole.dtype)


def _merged(scale_of):
    """A merge in which each chunk's sums are multiplied by ``scale_of(its top, the larger top)``."""

    def merge(a, b):
        top = np.maximum(a.top, b.top)
        scales = [scale_of(s.top, top) for s in (a, b)]
        pooled = a.sum * scales[0][..., None] + b.sum * scales[1][..., None]
        return a._replace(top=top, total=a.total * scales[0] + b.total * scales[1], sum=pooled)

    return merge


def _finite(top):
    return np.where(top == -np.inf, 0, top)


_right = _merged(lambda own, top: np.exp(own - _finite(top)))
"""The right merge, of which the mistakes are variations."""


def _without_tops(a, b):
    """A merge that leaves out the measure: exp overflows."""
    merged = _merged(lambda own, top: np.exp(_finite(own)).astype(np.float32))(a, b)
    return merged._replace(top=np.zeros_like(a.top))


def _mean_of_the_pooled(a, b):
    """A merge that averages what the chunks finalize to."""
    real = [np.where(state.total == 0, 0.0, 1.0) for state in (a, b)]
    pooled = [
        s.sum / np.where(s.total == 0, 1, s.total)[..., None] * r[..., None] for s, r in zip((a, b), real, strict=True)
    ]
    return a._replace(top=np.maximum(a.top, b.top), total=sum(real), sum=sum(pooled))


def _softmax_states(row, merged):
    """The functions of states of an attention whose merge of two online softmaxes is ``merged``."""
    right = getattr(ref, row)

    @functools.wraps(right)
    def state(*args, **kwargs):
        return _softmax_of(row, right(*args, **kwargs))

    def finalize_state(state):
        return (state.sum / np.where(state.total == 0, 1, state.total)[..., None]).astype(state.dtype)

    return states(**{row: state}, merge_states=merged, finalize_state=finalize_state)


RIGHT = {}
"""For each attention, the functions of which its mistakes are variations, and which no check may reject."""

for _row in ("attention_state", "multi_head_attention_state", "additive_attention_state"):
    _name = _row.replace("_", " ")
    RIGHT[_row] = _softmax_states(_row, _right)
    MUTANTS.setdefault(_row, {}).update(
        {
            f"{_name}: the merge forgets the rescaling": _softmax_states(
                _row, _merged(lambda _, top: np.ones_like(top))
            ),
            f"{_name}: -inf minus -inf": _softmax_states(_row, _merged(lambda own, top: np.exp(own - top))),
            f"{_name}: the tops left out": _softmax_states(_row, _without_tops),
            f"{_name}: a mean of what the chunks give": _softmax_states(_row, _mean_of_the_pooled),
        }
    )
