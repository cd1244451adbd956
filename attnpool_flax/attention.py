"""Attention of queries to keys and values. Twin of :mod:`attnpool_ref.attention`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.masks import seeing_queries, seen_keys
from attnpool_flax.normalizers import divide, exp_and_sum, softmax, unnormalized_weights
from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import KERNEL_FUNCTIONS, keep_real
from attnpool_flax.numerics.products import einsum
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sums import weighted
from attnpool_flax.scores import (
    additive,
    affine_of_both,
    dot,
    gaussian,
    scaled,
    split,
    squared_distances,
)
from attnpool_flax.tokens.queries import ForQueries, over_queries, size_of


class _ForScores(ForQueries):
    """Given scores, none of which a block divides if the normalizer is a function, which sees all at once."""

    def scores(self, values, call):
        return super().scores(values, call) if isinstance(values["normalizer"], str) else 0


@compiled(as_they_come=("mask",), one_pass=True, queries=_ForScores("scores", "value"))
def attend(
    scores,
    value,
    mask=None,
    *,
    lengths=None,
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attend`: in blocks of queries or examples, unless weights are requested.

    A normalizer that is a function gets all scores at once.

    >>> scores, value = jnp.array([[0.0, 0.0, 9.0]]), jnp.array([[1.0], [3.0], [99.0]])
    >>> attend(scores, value, jnp.array([True, True, False]), return_weights=True)
    (Array([[2.]], dtype=float32), Array([[0.5, 0.5, 0. ]], dtype=float32))
    """
    value = keep_real(value, seen_keys(mask))
    rows = Rows((scores,), mask, dropout_multiplier, lambda scores: scores, unnormalized_weights(normalizer), sink)
    pooled, weights = rows.average(value, return_weights, precision, at_once=not isinstance(normalizer, str))
    return (pooled, weights) if return_weights else pooled


class Rows(NamedTuple):
    """Queries whose weights over the keys are computed for one block of queries at a time.

    Attributes:
      parts: arrays [..., n, d], or None, of which the blocks of queries are slices.
      mask: bool [..., n or 1, m], or None.
      multiplier: [..., n, m] of the weights, or None.
      scores: from a block of the parts to its scores [..., rows, m].
      normalize: from scores and mask to (weights, the denominator [..., n, 1] by which they are divided, or None).
      sink: [..., n or 1], the score of a sink, which ``normalize`` then takes; or None.
    """

    parts: tuple[Any, ...]
    mask: Any
    multiplier: Any
    scores: Callable[..., Any]
    normalize: Callable[..., Any]
    sink: Any = None

    def average(self, value, return_weights, precision, at_once=False):
        """Averages values [..., m, v]: (averages [..., n, v], weights [..., n, m] if ``return_weights``, else None).

        For the weights, or with ``at_once``, all queries are one block.
        """

        def pooled(*block):
            *parts, sink, multiplier, mask = block
            options = {} if sink is None else {"sink": sink[..., 0]}
            weights, total = self.normalize(self.scores(*parts), mask, **options)
            return average(drop(weights, multiplier, mask), total, value, precision), (weights, total)

        parts = *self.parts, None if self.sink is None else self.sink[..., None], self.multiplier
        if return_weights or at_once:
            found, (weights, total) = pooled(*parts, self.mask)
            return found, weights if total is None else divide(weights, total, self.mask)
        keys = size_of(self.parts[0], 2, value, 2) * value.shape[-2]
        return over_queries(lambda *block: pooled(*block)[0], parts, (self.mask,), keys=keys), None


def average(weights, total, value, precision):
    """Averages values under weights, divided by their total or None: [..., n, v].

    The sums are divided, which are fewer than the weights, except on GPUs, where XLA makes one kernel of a softmax that
    divides the weights.
    """
    if total is None:
        return weighted(weights, value, precision)
    total = jnp.where(total == 0, 1, total)

    def divided(weights, total, value):
        return weighted(weights, value, precision) / total

    def of_divided(weights, total, value):
        return weighted(weights / total, value, precision)

    return platforms.in_one_kernel(divided, remat(of_divided), weights, total, value)


def drop(weights, multiplier, mask):
    """Multiplies weights by the dropout multiplier, if any; values of the multiplier at padding have no effect."""
    if multiplier is None:
        return weights
    return weights * (multiplier if mask is None else jnp.where(mask, multiplier, 0))


@compiled(as_they_come=("mask",), one_pass=True, queries=ForQueries("query", "value"))
def dot_product_attention(
    query,
    key,
    value,
    mask=None,
    *,
    lengths=None,
    bias=None,
    scale=None,
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.dot_product_attention`.

    It is computed in blocks of examples or of queries: all scores [..., n, m] exist at once only if they fit one block,
    or if the weights are requested.

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[1.0], [2.0], [3.0]]), jnp.array([[4.0], [8.0], [9.0]])
    >>> dot_product_attention(query, key, value, jnp.array([True, True, False]))
    Array([[6.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)

    def scores(query, bias):
        products = dot(scaled(query, scale), key, precision)
        return products if bias is None else products + bias  # the softmax masks the values of the bias at padding

    rows = Rows((query, bias), mask, dropout_multiplier, scores, exp_and_sum, sink)
    pooled, weights = rows.average(value, return_weights, precision)
    return (pooled, weights) if return_weights else pooled


def only_seen(query, key, value, mask):
    """Replaces by 0: queries that see no key of the mask [..., n, m], and keys and values that no query sees."""
    seen = seen_keys(mask)
    return keep_real(query, seeing_queries(mask)), keep_real(key, seen), keep_real(value, seen)


@compiled(as_they_come=("mask",))
def additive_attention(
    query,
    key,
    value,
    query_kernel,
    key_kernel,
    out_kernel,
    mask=None,
    *,
    lengths=None,
    bias=None,
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.additive_attention`: hidden units are summed without an array [..., n, m, h].

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.0], [0.0], [5.0]]), jnp.array([[2.0], [4.0], [9.0]])
    >>> one, mask = jnp.ones((1, 1)), jnp.array([True, True, False])
    >>> additive_attention(query, key, value, one, one, jnp.ones(1), mask)
    Array([[3.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    scores = additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision)
    return _attend(scores, value, mask, dropout_multiplier, return_weights, precision, sink)


def _attend(score, value, mask, multiplier, return_weights, precision, sink=None):
    """Applies softmax and dropout to scores, and averages the values."""
    weights = softmax(score, mask, -1, sink)
    pooled = weighted(drop(weights, multiplier, mask), value, precision)
    return (pooled, weights) if return_weights else pooled


@compiled(as_they_come=("mask",))
def tanh_sum_attention(
    query,
    key,
    value,
    kernel,
    mask=None,
    *,
    lengths=None,
    bias=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.tanh_sum_attention`: hidden units are summed without an array [..., n, m, h].

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.0], [0.0], [5.0]]), jnp.array([[2.0], [4.0], [9.0]])
    >>> tanh_sum_attention(query, key, value, jnp.ones((2, 3)), jnp.array([True, True, False]))
    Array([[3.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    scores = additive(query, key, *split(kernel, query), None, bias, precision)
    return _attend(scores, value, mask, None, return_weights, precision)


@compiled
def location_attention(
    query,
    state,
    value,
    kernel,
    bias,
    out_kernel,
    out_bias,
    mask=None,
    *,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.location_attention`.

    >>> query, state, value = jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[2.0], [4.0]])
    >>> kernel, out_kernel = jnp.zeros((2, 2)), jnp.array([[10.0], [1.0]])
    >>> location_attention(query, state, value, kernel, jnp.zeros(2), out_kernel, jnp.array([0.5]))
    Array([[13.5]], dtype=float32)
    """
    if mask is not None:
        state = jnp.where(jnp.any(mask, -1)[..., None, None], state, 0)
        mask = mask[..., None, :]
    scores = affine_of_both(query, state, kernel, bias, precision)
    weights = softmax(scores, mask)
    context = weighted(weights, keep_real(value, seen_keys(mask)), precision)
    result = affine_of_both(query, context, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


@compiled(as_they_come=("mask",), one_pass=True, queries=ForQueries("query", "value", "H"))
def multi_head_attention(
    query,
    key,
    value,
    mask=None,
    *,
    lengths=None,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.multi_head_attention`.

    It is computed in blocks of examples or of queries: all scores [..., H, n, m] exist at once only if they fit one
    block, or if the weights are requested.

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> multi_head_attention(
    ...     jnp.array([[0.0, 0.0]]),
    ...     jnp.array([[1.0, 2.0], [3.0, 4.0]]),
    ...     jnp.array([[2.0, 4.0], [4.0, 8.0]]),
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    Array([[3., 6.]], dtype=float32)
    """
    if mask is not None:
        if mask.ndim == query.ndim:
            mask = mask[..., None, :, :]
        query, key, value = only_seen(query, key, value, jnp.any(mask, -3))
    queries = to_heads(query, query_kernel, query_bias, precision)
    keys = to_heads(key, key_kernel, key_bias, precision)
    queries = queries * query_kernel.shape[-1] ** -0.5
    rows = Rows(
        (queries,),
        mask,
        dropout_multiplier,
        lambda queries: dot(queries, keys, precision),
        exp_and_sum,
        sink_of_heads(sink, queries),
    )
    values = to_heads(value, value_kernel, value_bias, precision)
    pooled, weights = rows.average(values, return_weights, precision)
    result = from_heads(pooled, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


def to_heads(x, kernel, bias, precision):
    """Projects [..., L, d] by a kernel [d, H, c] to [..., H, L, c]; the bias [H, c] may be None."""
    heads = einsum("...ld,dhc->...hlc", x, kernel, precision)
    return heads if bias is None else heads + jnp.broadcast_to(bias[:, None, :], heads.shape)


def sink_of_heads(sink, heads):
    """Expands sinks [H] for the queries of heads [..., H, n, c], or for their scores; None stays None."""
    return None if sink is None else jnp.reshape(sink, (1,) * (heads.ndim - 3) + (-1, 1))


def from_heads(heads, kernel, bias, precision):
    """Projects [..., H, n, c] by a kernel [H, c, o] to [..., n, o]; without a kernel concatenates the heads.

    The bias [o] may be None. Without a kernel it is not used.
    """
    if kernel is None:
        heads = jnp.swapaxes(heads, -3, -2)
        return jnp.reshape(heads, (*heads.shape[:-2], heads.shape[-2] * heads.shape[-1]))
    result = einsum("...hnc,hco->...no", heads, kernel, precision)
    return result if bias is None else result + jnp.broadcast_to(bias, result.shape)


@compiled(as_they_come=("mask",), one_pass=True, queries=ForQueries("query", "value"))
def kernel_regression(
    query,
    key,
    value,
    mask=None,
    *,
    lengths=None,
    kernel="gaussian",
    bandwidth=1.0,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.kernel_regression`.

    It is computed in blocks of queries or examples, unless the weights are requested, and always without an
    array [..., n, m, d] of differences.

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.5], [-1.0], [2.0]]), jnp.array([[1.0], [3.0], [9.0]])
    >>> kernel_regression(query, key, value, kernel="boxcar")
    Array([[2.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    part = power_of_two(bandwidth)  # exact; the square of a small bandwidth would be 0

    def kernel_values(query):
        return KERNEL_FUNCTIONS[kernel](squared_distances(query, key, part), bandwidth / part)

    if kernel == "gaussian":
        rows = Rows((query,), mask, None, lambda query: gaussian(query, key, bandwidth), exp_and_sum)
    else:
        rows = Rows((query,), mask, None, kernel_values, _with_total)
    pooled, weights = rows.average(value, return_weights, precision)
    return (pooled, weights) if return_weights else pooled


def _with_total(heights, mask):
    if mask is not None:
        heights = jnp.where(mask, heights, 0)
    return heights, jnp.sum(heights, -1, keepdims=True)
