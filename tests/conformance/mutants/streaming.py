"""Mistakes in states: each is a mapping of the functions that give, merge and finalize them."""

import functools

import numpy as np

import attnpool_ref as ref
from attnpool_ref import table
from attnpool_ref.streaming.states import NOWHERE

MUTANTS = {}
"""``{row: {mistake: namespace}}``."""


def states(**changed):
    """The oracle's functions of states, some of them changed."""
    names = [*(row.name for row in table.STATES), "merge_states", "finalize_state"]
    return {name: getattr(ref, name) for name in names} | changed


def _merging(row, mistake):
    """Keeps a merge of two states as a mistake of a row."""

    def keep(merged):
        @functools.wraps(ref.merge_states)
        def merge_states(a, b):
            return merged(a, b)._replace(dtype=ref.merge_states(a, b).dtype)

        MUTANTS.setdefault(row, {})[mistake] = states(merge_states=merge_states)
        return merged

    return keep


def _finalizing(row, mistake):
    """Keeps what a state finalizes to as a mistake of a row."""

    def keep(finalized):
        @functools.wraps(ref.finalize_state)
        def finalize_state(state):
            return finalized(state).astype(state.dtype)

        MUTANTS.setdefault(row, {})[mistake] = states(finalize_state=finalize_state)
        return finalized

    return keep


def _giving(row, mistake):
    """Keeps a state of a chunk as a mistake of a row; it gets the right function and its arguments."""

    def keep(given):
        right = getattr(ref, row)

        @functools.wraps(right)
        def state(*args, **kwargs):
            return given(right, *args, **kwargs)

        MUTANTS.setdefault(row, {})[mistake] = states(**{row: state})
        return given

    return keep


@_merging("mean_state", "mean state: a mean of means")
def mean_of_means(a, b):
    return a._replace(mean=(a.mean + b.mean) / 2, count=a.count + b.count)


@_merging("mean_state", "mean state: the count of one chunk")
def mean_by_one_count(a, b):
    return ref.merge_states(a, b)._replace(count=np.maximum(a.count, b.count))


@_giving("mean_state", "mean state: padding counts")
def mean_counts_padding(right, x, mask=None):
    return right(x, mask)._replace(count=np.full(x.shape[:-2], x.shape[-2]))


@_merging("mean_max_state", "mean max state: a mean of means")
def mean_max_of_means(a, b):
    whole = ref.merge_states(a, b)
    return whole._replace(mean=(a.mean + b.mean) / 2)


@_giving("mean_max_state", "mean max state: padding counts")
def mean_max_counts_padding(right, x, mask=None):
    return right(x, mask)._replace(count=np.full(x.shape[:-2], x.shape[-2]))


@_giving("max_state", "max state: an empty chunk is 0")
def max_of_an_empty_chunk(right, x, mask=None):
    state = right(x, mask)
    return state._replace(extreme=np.where(state.real[..., None], state.extreme, 0))


@_merging("max_state", "max state: real if both are")
def max_real_if_both_are(a, b):
    return ref.merge_states(a, b)._replace(real=a.real & b.real)


@_finalizing("max_state", "max state: -inf where nothing is real")
def max_of_nothing(state):
    return state.extreme


@_merging("first_state", "first state: the first that is given")
def first_that_is_given(a, b):
    mine = (a.position != NOWHERE.max)[..., None]
    return ref.merge_states(a, b)._replace(token=np.where(mine, a.token, b.token))


@_giving("first_state", "first state: the position in the chunk")
def first_position_in_the_chunk(right, x, mask=None, *, start):
    return right(x, mask, start=0 * start)


@_giving("last_state", "last state: the position in the chunk")
def last_position_in_the_chunk(right, x, mask=None, *, start):
    return right(x, mask, start=0 * start)


@_giving("last_state", "last state: an empty chunk stands where it begins")
def last_of_an_empty_chunk(right, x, mask=None, *, start):
    state = right(x, mask, start=start)
    return state._replace(position=np.maximum(state.position, start))


@_giving("weighted_state", "weighted state: normalised by the chunk")
def weighted_by_the_chunk(right, x, weights=None, mask=None):
    state = right(x, weights, mask)
    total = np.where(state.total == 0, 1, state.total)
    return state._replace(sum=state.sum / total[..., None], total=np.where(state.total == 0, 0, 1.0))


@_merging("weighted_state", "weighted state: the sizes forgotten")
def weighted_without_the_sizes(a, b):
    whole = ref.merge_states(a, b)
    return whole._replace(total=a.total + b.total, sum=a.sum + b.sum)


@_merging("weighted_state", "weighted state: weights that cancel make the unit")
def weighted_cancelled_chunk_is_the_unit(a, b):
    whole = ref.merge_states(a, b)
    kept = np.where((a.total == 0)[..., None], 0, a.sum), np.where((b.total == 0)[..., None], 0, b.sum)
    return whole._replace(sum=ref.merge_states(a._replace(sum=kept[0]), b._replace(sum=kept[1])).sum)


def _unscaled(a, b):
    """A merge that adds up sums in two measures."""
    return a._replace(top=np.maximum(a.top, b.top), total=a.total + b.total, sum=a.sum + b.sum)


def _infinite(a, b):
    """A merge that subtracts one -inf from another."""
    top = np.maximum(a.top, b.top)
    a_scale, b_scale = np.exp(a.top - top), np.exp(b.top - top)
    total = a.total * a_scale + b.total * b_scale
    return a._replace(top=top, total=total, sum=a.sum * a_scale[..., None] + b.sum * b_scale[..., None])


def _without_tops(a, b):
    """A merge that leaves out the measure: exp overflows."""
    a_scale, b_scale = (np.exp(np.where(s.top == -np.inf, 0, s.top)).astype(np.float32) for s in (a, b))
    total = a.total * a_scale + b.total * b_scale
    pooled = a.sum * a_scale[..., None] + b.sum * b_scale[..., None]
    return a._replace(top=np.zeros_like(a.top), total=total, sum=pooled)


def _mean_of_the_pooled(a, b):
    """A merge that averages what the chunks finalize to."""
    real = [np.where(state.total == 0, 0.0, 1.0) for state in (a, b)]
    pooled = [
        s.sum / np.where(s.total == 0, 1, s.total)[..., None] * r[..., None] for s, r in zip((a, b), real, strict=True)
    ]
    return a._replace(top=np.maximum(a.top, b.top), total=sum(real), sum=sum(pooled))


for _row in ("attention_state", "multi_head_attention_state", "additive_attention_state"):
    _name = _row.replace("_", " ")
    _merging(_row, f"{_name}: the merge forgets the rescaling")(_unscaled)
    _merging(_row, f"{_name}: -inf minus -inf")(_infinite)
    _merging(_row, f"{_name}: the tops left out")(_without_tops)
    _merging(_row, f"{_name}: a mean of what the chunks give")(_mean_of_the_pooled)


@_giving("multi_head_attention_state", "multi head attention state: scaled by the width of all heads")
def heads_state_scaled_by_all_heads(right, x, mask=None, *, key_kernel, scale=None, **parameters):
    scale = np.prod(key_kernel.shape[1:]) ** -0.5 if scale is None else scale
    return right(x, mask, key_kernel=key_kernel, scale=scale, **parameters)


@_giving("multi_head_attention_state", "multi head attention state: the bias left out")
def heads_state_without_bias(right, x, mask=None, *, bias=None, **parameters):
    return right(x, mask, **parameters)


def _about_two_means(a, b):
    """A merge that adds up squares about two means."""
    return ref.merge_states(a, b)._replace(second=a.second + b.second)


def _mean_of_the_means(a, b):
    """A merge whose center is the mean of two, whatever they weigh."""
    return ref.merge_states(a, b)._replace(center=(a.center + b.center) / 2)


for _row in ("std_state", "statistics_state", "attentive_statistics_state"):
    _name = _row.replace("_", " ")
    _merging(_row, f"{_name}: the distance of the means forgotten")(_about_two_means)
    _merging(_row, f"{_name}: the mean of two means")(_mean_of_the_means)


@_merging("attentive_statistics_state", "attentive statistics state: the merge forgets the rescaling")
def attentive_statistics_unscaled(a, b):
    top = np.maximum(a.top, b.top)
    return ref.merge_states(a._replace(top=top), b._replace(top=top))


@_merging("sum_state", "sum state: the mean of the sums")
def mean_of_sums(a, b):
    return a._replace(sum=(a.sum + b.sum) / 2)


@_giving("sum_state", "sum state: padding counts")
def sum_of_padding(right, x, mask=None):
    return right(x, None)


@_merging("gated_sum_state", "gated sum state: the mean of the sums")
def mean_of_gated_sums(a, b):
    return a._replace(sum=(a.sum + b.sum) / 2)


@_giving("gated_sum_state", "gated sum state: padding is a token of zeros")
def gated_sum_of_padding(right, x, mask=None, **parameters):
    clean = x if mask is None else np.where(np.broadcast_to(mask, x.shape[:-1])[..., None], x, 0)
    return right(clean, None, **parameters)


@_giving("min_state", "min state: an empty chunk is 0")
def min_of_an_empty_chunk(right, x, mask=None):
    state = right(x, mask)
    return state._replace(extreme=np.where(state.real[..., None], state.extreme, 0))


@_merging("min_state", "min state: real if both are")
def min_real_if_both_are(a, b):
    return ref.merge_states(a, b)._replace(real=a.real & b.real)


@_merging("noisy_or_state", "noisy-or state: probabilities added up")
def probabilities_added_up(a, b):
    return a._replace(probability=a.probability + b.probability)


@_merging("noisy_or_state", "noisy-or state: the larger one")
def larger_probability(a, b):
    return a._replace(probability=np.maximum(a.probability, b.probability))


def _sums_in_two_measures(a, b):
    """A merge that forgets that a larger exponent rescales the sums."""
    sums = {key: getattr(a, key) + getattr(b, key) for key in ("total", "slack", "sum") if hasattr(a, key)}
    return ref.merge_states(a, b)._replace(**sums)


def _one_number(a, b):
    """A merge that counts the tokens of one chunk."""
    return ref.merge_states(a, b)._replace(count=np.maximum(a.count, b.count))


def _first_alone(a, b):
    """A merge that keeps the chunk whose exponents are larger."""
    mine = np.where(a.scale < 0, -a.extreme, a.extreme) >= np.where(b.scale < 0, -b.extreme, b.extreme)
    return a._replace(**{key: np.where(mine, getattr(a, key), getattr(b, key)) for key in ("extreme", "total", "sum")})


for _row, _mistakes in {
    "power_mean_state": (_sums_in_two_measures, _one_number),
    "logsumexp_state": (_sums_in_two_measures, _one_number),
    "softmax_state": (_sums_in_two_measures, _first_alone),
}.items():
    for _mistake in _mistakes:
        _merging(_row, f"{_row.replace('_', ' ')}: {_mistake.__doc__.removeprefix('A merge that ').rstrip('.')}")(
            _mistake
        )


@_giving("latent_attention_state", "latent attention state: padding counts")
def latent_state_counts_padding(right, x, mask=None, **parameters):
    return right(x, mask, **parameters)._replace(count=np.full(x.shape[:-2], x.shape[-2]))


@_merging("latent_attention_state", "latent attention state: a mean of means")
def latent_mean_of_means(a, b):
    return a._replace(mean=(a.mean + b.mean) / 2, count=a.count + b.count)


@_merging("vlad_state", "vlad state: the merge forgets the rescaling")
def vlad_unscaled(a, b):
    return a._replace(top=np.maximum(a.top, b.top), sum=a.sum + b.sum)


@_merging("vlad_state", "vlad state: what the chunks give, added up")
def vlad_sum_of_the_normalized(a, b):
    parts = [state.finalized() / np.where(np.exp(state.top) == 0, 1, np.exp(state.top))[..., None] for state in (a, b)]
    return ref.merge_states(a._replace(sum=parts[0]), b._replace(sum=parts[1]))
