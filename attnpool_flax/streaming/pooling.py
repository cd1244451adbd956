"""Chunked pooling: state functions of mean, max, mean-max, first, last, weighted and attention pooling."""

import math
from dataclasses import replace

import jax.numpy as jnp
from jax import lax

from attnpool_flax.additive import perceptron
from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sums import divisor_of
from attnpool_flax.pooling.attention import fold_query
from attnpool_flax.pooling.multi_head import fold, queries_of_heads
from attnpool_flax.streaming.states import (
    AdditiveAttentionState,
    AttentionState,
    ChannelState,
    FirstState,
    LastState,
    MeanMaxState,
    MeanState,
    MultiHeadAttentionState,
    WeightedState,
)
from attnpool_flax.tokens import Dense, DenseChannels
from attnpool_flax.tokens.dense import end_position
from attnpool_flax.tokens.protocol import dot, given


@compiled(as_they_come=("x",))
def mean_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.mean_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(mean_state(jnp.array([[1.0], [3.0]])), mean_state(jnp.array([[8.0]])))
    >>> finalize_state(whole)
    Array([4.], dtype=float32)
    """
    total, count = Dense(x, mask, of_chunk=True).sum_and_count()
    return MeanState(total, jnp.zeros_like(total), count)


@compiled(as_they_come=("x",))
def max_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.max_state`; tokens of all chunks that equal the maximum share its gradient evenly.

    >>> whole = merge_states(max_state(jnp.array([[-1.0], [-3.0]])), max_state(jnp.array([[99.0]]), jnp.array([False])))
    >>> finalize_state(whole)
    Array([-1.], dtype=float32)
    """
    return Dense(x, mask, of_chunk=True).extreme_state()


@compiled(as_they_come=("x",))
def mean_max_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.mean_max_state`; more chunks hardly add rounding error (Kahan summation).

    Tokens that tie for the largest value share its gradient evenly, across all chunks.

    >>> finalize_state(merge_states(mean_max_state(jnp.array([[1.0], [3.0]])), mean_max_state(jnp.array([[8.0]]))))
    Array([4., 8.], dtype=float32)
    """
    tokens = Dense(x, mask, of_chunk=True)
    total, count = tokens.sum_and_count()
    largest = tokens.extreme_state()
    return MeanMaxState(total, jnp.zeros_like(total), count, largest.extreme, largest.count)


@compiled(as_they_come=("x",))
def first_state(x, mask=None, *, lengths=None, start):
    """Twin of :func:`attnpool_ref.first_state`; positions have JAX's default integer dtype.

    ``start`` is traced: a new value does not compile the function again.

    >>> later = first_state(jnp.array([[1.0], [2.0]]), start=2)
    >>> earlier = first_state(jnp.array([[8.0], [9.0]]), jnp.array([False, True]), start=0)
    >>> finalize_state(merge_states(later, earlier))
    Array([9.], dtype=float32)
    """
    index = None if mask is None or not x.shape[-2] else end_position(mask, last=False)
    return FirstState(*_token_state(x, mask, start, index, 0, jnp.iinfo(jnp.result_type(int)).max))


@compiled(as_they_come=("x",))
def last_state(x, mask=None, *, lengths=None, start):
    """Twin of :func:`attnpool_ref.last_state`; positions have JAX's default integer dtype.

    ``start`` is traced: a new value does not compile the function again.

    >>> later = last_state(jnp.array([[1.0], [2.0]]), jnp.array([True, False]), start=2)
    >>> earlier = last_state(jnp.array([[8.0], [9.0]]), start=0)
    >>> finalize_state(merge_states(later, earlier))
    Array([1.], dtype=float32)
    """
    end = x.shape[-2] - 1
    index = None if mask is None or end < 0 else end_position(mask, last=True)
    return LastState(*_token_state(x, mask, start, index, end, jnp.iinfo(jnp.result_type(int)).min))


def _token_state(x, mask, start, index, end, nowhere):
    """Returns (position, token) of a chunk's first or last real token; (``nowhere``, 0) for a fully masked row.

    Args:
      x: [..., L, d] tokens; the returned token has at least 32 bits.
      mask: bool [..., L], or None.
      start: the position of the chunk's first token in the sequence.
      index: [...], the index of the wanted token in the chunk; None if the mask is None or L is 0.
      end: the index of the wanted token if ``index`` is None.
      nowhere: the largest integer for the first token, the smallest for the last one.
    """
    wide = jnp.promote_types(x.dtype, jnp.float32)
    start = start.astype(jnp.result_type(int))
    if x.shape[-2] == 0:
        return jnp.full(x.shape[:-2], nowhere, start.dtype), jnp.sum(x, -2).astype(wide)
    if index is None:
        return jnp.broadcast_to(start + end, x.shape[:-2]), x[..., end, :].astype(wide)
    position = jnp.broadcast_to(start, index.shape) + index.astype(start.dtype)
    return jnp.where(jnp.any(mask, -1), position, nowhere), Dense(x, mask).token_at(index).astype(wide)


@compiled(as_they_come=("x",))
def weighted_state(x, weights=None, mask=None, *, lengths=None, precision=None):
    """Twin of :func:`attnpool_ref.weighted_state`; more chunks hardly add rounding error (Kahan summation).

    >>> one = weighted_state(jnp.array([[1.0], [2.0]]), jnp.array([1.0, -1.0]))
    >>> finalize_state(merge_states(one, weighted_state(jnp.array([[5.0]]), jnp.array([2.0]))))
    Array([4.5], dtype=float32)
    """
    if weights is not None and weights.ndim == x.ndim:
        channels = DenseChannels(x, mask)
        size, mass, weights = _in_units(channels.fill_padding(weights), -2)
        total, pooled = channels.sum_over_tokens(weights, weights * channels.x)
        return ChannelState(size, mass, *_compensated(total), *_compensated(pooled))
    tokens = Dense(x, mask, precision, of_chunk=True)
    if weights is None:
        weights = jnp.ones(x.shape[:-1], tokens.dtype)
    size, mass, weights = _in_units(tokens.fill_padding(weights), -1)
    return WeightedState(
        size, mass, *_compensated(jnp.sum(weights, -1)), *_compensated(tokens.weighted_sum_of(weights))
    )


def _in_units(weights, axis):
    """Returns (size, mass, weights divided by the unit); :class:`WeightedState` defines all three.

    ``weights`` must be 0 at padding; ``axis`` is their axis of tokens.
    """
    sizes = lax.stop_gradient(jnp.abs(weights))
    largest = jnp.max(sizes, axis, initial=0)
    size = jnp.where(largest == 0, 0, power_of_two(largest))
    inverse = jnp.expand_dims(1 / jnp.where(size == 0, 1, size), axis)
    mass = jnp.sum(sizes * inverse, axis)
    # XLA would divide by the product of two divisors, which overflows
    return size, mass, weights * inverse * jnp.expand_dims(1 / divisor_of(mass), axis)


def _compensated(total):
    return total, jnp.zeros_like(total)


@compiled(as_they_come=("x",))
def attention_state(
    x,
    mask=None,
    query=None,
    *,
    lengths=None,
    query_kernel=None,
    key_kernel=None,
    normalize_query=False,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-6,
    scale=None,
    bias=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attention_state`: O(L d) operations, because the key kernel is folded into the query.

    >>> query = jnp.array([0.0, 1.0])
    >>> one, other = (attention_state(jnp.array([[first, 0.0]]), None, query) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2., 0.], dtype=float32)
    """
    norm = (query_norm_scale, query_norm_bias, epsilon) if normalize_query else None
    query = fold_query(query, query_kernel, key_kernel, norm, scale, precision)
    bias = None if bias is None else bias[..., None, :]
    state = Dense(x, mask, precision, of_chunk=True).softmax_state(dot, [(query[..., None, :], 2)], bias=bias)
    return _with_compensation(AttentionState, _of_one_query(state))


def _of_one_query(state):
    """Returns the state of an attention without its axis of queries."""
    return replace(state, top=state.top[..., 0], total=state.total[..., 0], sum=state.sum[..., 0, :])


@compiled(as_they_come=("x",))
def multi_head_attention_state(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel=None,
    key_kernel,
    query_bias=None,
    key_bias=None,
    scale=None,
    bias=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.multi_head_attention_state`: the key kernel is folded into the queries.

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> parameters = {"query": jnp.zeros((1, 2)), "query_kernel": kernel, "key_kernel": kernel}
    >>> chunks = jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]])
    >>> whole = merge_states(*(multi_head_attention_state(chunk, **parameters) for chunk in chunks))
    >>> finalize_state(whole)
    Array([[[2., 3.],
            [2., 3.]]], dtype=float32)
    """
    queries = fold(queries_of_heads(query, query_kernel, query_bias, scale, precision), key_kernel, precision)
    queries = jnp.swapaxes(queries, -3, -2)
    *lead, count, heads, width = queries.shape
    lead, axes = lead or [1] * (x.ndim - 2), (count, heads)
    queries = jnp.reshape(queries, (*lead, math.prod(axes), width))
    if bias is not None:
        bias = jnp.swapaxes(bias, -3, -2)
        bias = jnp.reshape(bias, (*bias.shape[:-3], math.prod(axes), bias.shape[-1]))
    state = Dense(x, mask, precision, of_chunk=True).softmax_state(dot, [(queries, 2)], bias=bias)
    batch = state.top.shape[:-1]
    top, total = (jnp.reshape(array, (*batch, *axes)) for array in (state.top, state.total))
    state = replace(state, top=top, total=total, sum=jnp.reshape(state.sum, (*batch, *axes, width)))
    return _with_compensation(MultiHeadAttentionState, state)


@compiled(as_they_come=("x", "value"))
def additive_attention_state(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    gate_kernel=None,
    gate_bias=None,
    out_bias=None,
    value=None,
    activation="tanh",
    precision=None,
):
    """Twin of :func:`attnpool_ref.additive_attention_state`; the hidden layer is recomputed in the backward pass.

    >>> parameters = {"kernel": jnp.zeros((2, 4)), "out_kernel": jnp.ones(4)}
    >>> one, other = (additive_attention_state(jnp.array([[first, 0.0]]), **parameters) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2., 0.], dtype=float32)
    """
    tokens = Dense(x, mask, precision, of_chunk=True)
    score, parameters = perceptron(
        tokens, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation, save=False
    )
    if value is None:
        state = tokens.softmax_state(score, shared=parameters)
    else:
        scores = tokens.scores_of(score, shared=parameters)
        state = Dense(value, mask, precision, of_chunk=True).softmax_state(given, tokens=(scores,))
    state = _of_one_query(state) if out_kernel.ndim == 1 else state
    return _with_compensation(AdditiveAttentionState, state)


def _with_compensation(kind, state):
    """Returns the :class:`AttentionState` of one piece as the state of a chunk, with compensations of 0."""
    return kind(state.top, *_compensated(state.total), *_compensated(state.sum))
