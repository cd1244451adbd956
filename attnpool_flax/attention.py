"""Attention of queries to keys and values. Twin of :mod:`attnpool_ref.attention`."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.masks import seeing_queries, seen_keys
from attnpool_flax.normalizers import divide, exp_and_sum, softmax, unnormalized_weights
from attnpool_flax.numerics.elementwise import KERNEL_FUNCTIONS, keep_real
from attnpool_flax.numerics.products import einsum
from attnpool_flax.numerics.raw_keys import of_seen, zero_unseen
from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sums import weighted
from attnpool_flax.queries.averages import Products, softmax_average
from attnpool_flax.queries.blocks import ForQueries, over_queries, size_of
from attnpool_flax.scores import (
    additive,
    affine_of_both,
    choice_for_units,
    dot,
    gaussian,
    scaled,
    split,
    squared_distances,
)


class _ForScores(ForQueries):
    """Choice of an implementation for given scores; "einsum" for a normalizer function, which sees all at once."""

    def __call__(self, values, call):
        return super().__call__(values, call) if isinstance(values["normalizer"], str) else "einsum"

    def scores(self, values, call):
        return super().scores(values, call) if isinstance(values["normalizer"], str) else 0


@compiled(as_they_come=("mask",), weights_apart=True, one_pass=True, choose=_ForScores("scores", "value"))
def attend(
    scores,
    value,
    mask=None,
    *,
    lengths=None,
    normalizer="softmax",
    dropout_multiplier=None,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attend`: in blocks of queries or examples, unless "einsum" or weights are requested.

    A normalizer that is a function gets all scores at once.

    >>> scores, value = jnp.array([[0.0, 0.0, 9.0]]), jnp.array([[1.0], [3.0], [99.0]])
    >>> attend(scores, value, jnp.array([True, True, False]), return_weights=True)
    (Array([[2.]], dtype=float32), Array([[0.5, 0.5, 0. ]], dtype=float32))
    """
    value = keep_real(value, seen_keys(mask))
    if not isinstance(normalizer, str):
        implementation = "einsum"  # a normalizer function sees all scores at once
    rows = Rows((scores,), mask, dropout_multiplier, lambda scores: scores, unnormalized_weights(normalizer))
    return rows.average(value, return_weights, implementation, precision)


class Rows(NamedTuple):
    """Queries whose weights over the keys are computed for one block of queries at a time.

    Attributes:
      parts: arrays [..., n, d], or None, of which the blocks of queries are slices.
      mask: bool [..., n or 1, m], or None.
      multiplier: [..., n, m] of the weights, or None.
      scores: from a block of the parts to its scores [..., rows, m]. If it is a :class:`Products`, and the others are
        as for GPUs below, TPUs compute the scores of blocks twice in the forward pass, which is faster there.
      normalize: from scores and mask to (unnormalized weights, denominator or None), as
        :func:`~attnpool_flax.normalizers.unnormalized_weights` returns it. If it is
        :func:`~attnpool_flax.normalizers.exp_and_sum` and there is no multiplier, GPUs use :func:`softmax_average`.
    """

    parts: tuple[Any, ...]
    mask: Any
    multiplier: Any
    scores: Callable[..., Any]
    normalize: Callable[..., Any]

    def average(self, value, return_weights, implementation, precision):
        """Averages values [..., m, v]: [..., n, v]; with ``return_weights`` (None, weights [..., n, m]) instead.

        The public function takes only the weights from that second result: bodies that return it need ``weights_apart``
        of :func:`~attnpool_flax.call.compiled.compiled`.
        """

        def pooled(*block):
            *parts, multiplier, mask = block
            unnormalized, denominator = self.normalize(self.scores(*parts), mask)
            return average(drop(unnormalized, multiplier, mask), denominator, value, precision)

        if return_weights:
            heights, total = self.normalize(self.scores(*self.parts), self.mask)
            return None, heights if total is None else divide(heights, total, self.mask)
        keys = size_of(self.parts[0], 2, value, 2) * value.shape[-2]
        parts, options = (*self.parts, self.multiplier), {"keys": keys, "implementation": implementation}
        if self.normalize is exp_and_sum and self.multiplier is None:

            def at_once(*block):
                *parts, _, mask = block
                return softmax_average(self.scores(*parts), mask, value, precision)

            def twice(*block):
                *parts, _, mask = block
                return self.scores.average(functools.partial(sums_first, precision=precision), parts, mask, value)

            options["on_gpus"] = at_once
            if isinstance(self.scores, Products):
                options["on_tpus"] = twice
        return over_queries(pooled, parts, (self.mask,), **options)


def average(unnormalized, denominator, value, precision):
    """Averages values under unnormalized weights: [..., n, v]. The v sums of a query are divided, not its m weights."""
    sums = saveable(weighted(unnormalized, value, precision))
    return sums if denominator is None else sums / jnp.where(denominator == 0, 1, denominator)


def sums_first(scores, mask, value, precision):
    """Averages values [..., m, v] under the softmax of scores [..., n, m]: [..., n, v]."""
    return average(*exp_and_sum(scores, mask), value, precision)


def drop(weights, multiplier, mask):
    """Multiplies weights by the dropout multiplier, if any; values of the multiplier at padding have no effect."""
    if multiplier is None:
        return weights
    return weights * (multiplier if mask is None else jnp.where(mask, multiplier, 0))


@compiled(as_they_come=("mask",), weights_apart=True, one_pass=True, choose=ForQueries("query", "value"))
def dot_product_attention(
    query,
    key,
    value,
    mask=None,
    *,
    lengths=None,
    bias=None,
    scale=None,
    dropout_multiplier=None,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.dot_product_attention`.

    It is computed in blocks of examples or of queries: all scores [..., n, m] exist at once only if they fit one block,
    or if "einsum" or the weights are requested.

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[1.0], [2.0], [3.0]]), jnp.array([[4.0], [8.0], [9.0]])
    >>> dot_product_attention(query, key, value, jnp.array([True, True, False]))
    Array([[6.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)

    def scores(query, bias):
        products = dot(scaled(query, scale), key, precision)
        return products if bias is None else products + bias  # the softmax masks the values of the bias at padding

    rows = Rows((query, bias), mask, dropout_multiplier, scores, exp_and_sum)
    return rows.average(value, return_weights, implementation, precision)


def only_seen(query, key, value, mask):
    """Replaces by 0: queries that see no key of the mask [..., n, m], and keys and values that no query sees."""
    seen = seen_keys(mask)
    return keep_real(query, seeing_queries(mask)), keep_real(key, seen), keep_real(value, seen)


@compiled(as_they_come=("key", "value", "mask"), choose=choice_for_units)
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
    dropout_multiplier=None,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.additive_attention`: hidden units are summed without an array [..., n, m, h].

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.0], [0.0], [5.0]]), jnp.array([[2.0], [4.0], [9.0]])
    >>> one, mask = jnp.ones((1, 1)), jnp.array([True, True, False])
    >>> additive_attention(query, key, value, one, one, jnp.ones(1), mask)
    Array([[3.]], dtype=float32)
    """
    arrays = query, key, query_kernel, key_kernel, out_kernel, bias
    scores = _additive_of_seen(*arrays, mask, precision, implementation)
    return _attend(scores, value, mask, dropout_multiplier, return_weights, precision)


def _additive_of_seen(query, key, query_kernel, key_kernel, out_kernel, bias, mask, precision, implementation):
    """Returns additive scores, arbitrary at keys that no query sees; the keys may be in bfloat16 or float16."""

    def scores(key, query, *parameters):
        key = key.astype(query.dtype)
        return additive(query, key, *parameters, precision=precision, implementation=implementation)

    query = keep_real(query, seeing_queries(mask))
    others = query, query_kernel, key_kernel, out_kernel, bias
    return of_seen(scores, key, seen_keys(mask), *others, gpus_alone=True)


def _attend(scores, value, mask, multiplier, return_weights, precision):
    """Applies softmax and dropout to scores, and averages the values, which may be in bfloat16 or float16."""
    value = (value if mask is None else zero_unseen(value, seen_keys(mask))).astype(scores.dtype)
    weights = softmax(scores, mask)
    pooled = weighted(drop(weights, multiplier, mask), value, precision)
    return (pooled, weights) if return_weights else pooled


@compiled(as_they_come=("key", "value", "mask"), choose=choice_for_units)
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
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.tanh_sum_attention`: hidden units are summed without an array [..., n, m, h].

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.0], [0.0], [5.0]]), jnp.array([[2.0], [4.0], [9.0]])
    >>> tanh_sum_attention(query, key, value, jnp.ones((2, 3)), jnp.array([True, True, False]))
    Array([[3.]], dtype=float32)
    """
    scores = _additive_of_seen(query, key, *split(kernel, query), None, bias, mask, precision, implementation)
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


@compiled(as_they_come=("mask",), weights_apart=True, one_pass=True, choose=ForQueries("query", "value", "H"))
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
    dropout_multiplier=None,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.multi_head_attention`.

    It is computed in blocks of examples or of queries: all scores [..., H, n, m] exist at once only if they fit one
    block, or if "einsum" or the weights are requested.

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
    # not as Products: XLA takes a minute to compile those of many heads in float32 for a TPU
    rows = Rows((queries,), mask, dropout_multiplier, lambda queries: dot(queries, keys, precision), exp_and_sum)
    if return_weights:
        return rows.average(keys, True, implementation, precision)
    values = to_heads(value, value_kernel, value_bias, precision)
    return from_heads(rows.average(values, False, implementation, precision), out_kernel, out_bias, precision)


def to_heads(x, kernel, bias, precision):
    """Projects [..., L, d] by a kernel [d, H, c] to [..., H, L, c]; the bias [H, c] may be None."""
    heads = einsum("...ld,dhc->...hlc", x, kernel, precision)
    return heads if bias is None else heads + jnp.broadcast_to(bias[:, None, :], heads.shape)


def from_heads(heads, kernel, bias, precision):
    """Projects [..., H, n, c] by a kernel [H, c, o] to [..., n, o]; without a kernel concatenates the heads.

    The bias [o] may be None. Without a kernel it is not used.
    """
    if kernel is None:
        heads = jnp.swapaxes(heads, -3, -2)
        return jnp.reshape(heads, (*heads.shape[:-2], heads.shape[-2] * heads.shape[-1]))
    result = einsum("...hnc,hco->...no", heads, kernel, precision)
    return result if bias is None else result + jnp.broadcast_to(bias, result.shape)


@compiled(as_they_come=("mask",), weights_apart=True, one_pass=True, choose=ForQueries("query", "value"))
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
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.kernel_regression`.

    It is computed in blocks of queries or examples, unless "einsum" or the weights are requested, and always without an
    array [..., n, m, d] of differences.

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.5], [-1.0], [2.0]]), jnp.array([[1.0], [3.0], [9.0]])
    >>> kernel_regression(query, key, value, kernel="boxcar")
    Array([[2.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    part = power_of_two(bandwidth)  # exact; the square of a small bandwidth would be 0

    def kernel_values(query):
        return KERNEL_FUNCTIONS[kernel](squared_distances(query, key, part, implementation), bandwidth / part)

    if kernel == "gaussian":
        rows = Rows((query,), mask, None, lambda query: gaussian(query, key, bandwidth, implementation), exp_and_sum)
    else:
        rows = Rows((query,), mask, None, kernel_values, _with_total)
    return rows.average(value, return_weights, implementation, precision)


def _with_total(unnormalized, mask):
    if mask is not None:
        unnormalized = jnp.where(mask, unnormalized, 0)
    return unnormalized, jnp.sum(unnormalized, -1, keepdims=True)
