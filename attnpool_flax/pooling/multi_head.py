"""Attention pooling with learned queries in several heads. Twin of :mod:`attnpool_ref.pooling.multi_head`."""

import functools
import math

import jax.numpy as jnp

from attnpool_flax.attention import drop, from_heads, sink_of_heads, to_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.normalizers import normalize
from attnpool_flax.numerics.products import factor_precision
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.sums import weighted
from attnpool_flax.scores import dot
from attnpool_flax.tokens import Packed

SHIFTED = ("softmax", "sparsemax", "entmax15", "hardmax")
"""Normalizers to which adding a constant to all scores makes no difference, so that the key bias cancels."""


def queries_of_heads(query, query_kernel, query_bias, scale, precision):
    """Projects queries [..., n, q] by ``query_kernel`` [q, H, c] to [..., H, n, c], scaled.

    Without a kernel the queries are given as [n, H, c]. A ``scale`` of None is 1 / sqrt(c).
    """
    if query_kernel is None:
        heads = jnp.swapaxes(query, 0, 1)
    else:
        heads = jnp.einsum("...nq,qhc->...hnc", query, query_kernel, precision=factor_precision(precision))
    if query_bias is not None:
        heads = heads + jnp.broadcast_to(query_bias[:, None, :], heads.shape)
    return heads * (heads.shape[-1] ** -0.5 if scale is None else scale)


def fold(queries, key_kernel, precision):
    """Folds the key kernel [d, H, c] into scaled queries [..., H, n, c]: [..., H, n, d].

    Their products with the tokens are the scores without the key bias.
    """
    return jnp.einsum("...hnc,dhc->...hnd", queries, key_kernel, precision=factor_precision(precision))


def _offsets(queries, key_bias, normalizer, precision):
    """Returns the contribution [..., H, n] of the key bias [H, c] to the scores of each query.

    It is None without a key bias, and for the normalizers in ``SHIFTED``, under which it cancels.
    """
    if key_bias is None or normalizer in SHIFTED:
        return None
    return jnp.einsum("...hnc,hc->...hn", queries, key_bias, precision=factor_precision(precision))


def _folding_pays(count, key_kernel, value_kernel):
    """Returns whether pooling unprojected tokens takes no more products per token than projecting keys and values.

    It is False if ``count``, the number of queries, is a symbol of ``jax.export``.
    """
    if not known(count):
        return False
    width, heads, keys = key_kernel.shape
    values = value_kernel.shape[-1]
    folded = 2 * heads * count * width
    return folded <= heads * (width + count) * (keys + values)


def attended(
    tokens,
    queries,
    key_kernel,
    value_kernel,
    key_bias,
    value_bias,
    multiplier=None,
    bias=None,
    normalizer="softmax",
    sink=None,
):
    """Computes the attention of each head, by the way that takes fewer products for a token.

    Either the tokens are projected to keys and values, or the key kernel is folded into the queries and the value
    kernel is applied to the pooled tokens. Packed tokens and tokens over a mesh always take the second way.

    Args:
      tokens: :class:`~attnpool_flax.tokens.Dense`; or ``Packed``, with H, n, N in place of ..., H, n, L below.
      queries: [..., H, n, c], scaled.
      key_kernel: [d, H, c].
      value_kernel: [d, H, c'].
      key_bias: [H, c], or None.
      value_bias: [H, c'], or None; it is multiplied by the sum of the weights.
      multiplier: [..., H, n, L], multiplies the weights of the sum, not those that are returned; or None.
      bias: [..., H, n, L], added to the scores, or None.
      normalizer: a name or a function.
      sink: [H], the scores of sinks, or None.

    Returns:
      (attended [..., H, n, c'], weights [..., H, n, L]).
    """
    options = key_kernel, value_kernel, key_bias, value_bias, multiplier, bias, normalizer, sink
    split = tokens.axis_name is not None
    if isinstance(tokens, Packed) or split or _folding_pays(queries.shape[-2], key_kernel, value_kernel):
        return attended_folded(tokens, queries, *options)
    precision, real = tokens.precision, None if tokens.mask is None else tokens.mask[..., None, None, :]
    values = tokens.zero_padded()
    keys = to_heads(values, key_kernel, None if normalizer in SHIFTED else key_bias, precision)
    scores = dot(jnp.reshape(queries, (1,) * (keys.ndim - queries.ndim) + queries.shape), keys, precision)
    if bias is not None:
        scores = scores + (bias if real is None else jnp.where(real, bias, 0))
    weights = normalize(scores, real, normalizer, sink_of_heads(sink, scores))
    applied = drop(weights, multiplier, real)
    found = weighted(applied, to_heads(values, value_kernel, None, precision), precision)
    return _with_bias(found, value_bias, jnp.sum(applied, -1, keepdims=True)), weights


def attended_folded(
    tokens, queries, key_kernel, value_kernel, key_bias, value_bias, multiplier, bias, normalizer, sink
):
    """Computes :func:`attended` without projecting the tokens."""
    offsets = _offsets(queries, key_bias, normalizer, tokens.precision)
    queries = fold(queries, key_kernel, tokens.precision)
    *lead, heads, count, width = queries.shape
    lead = lead or [1] * (tokens.x.ndim - 2)
    queries = jnp.reshape(queries, (*lead, heads * count, width))
    offsets = None if offsets is None else jnp.reshape(offsets, (*lead, heads * count))
    multiplier, bias = (
        None
        if array is None
        else jnp.reshape(array, (*array.shape[:-3], math.prod(array.shape[-3:-1]), array.shape[-1]))
        for array in (multiplier, bias)
    )
    if normalizer == "softmax":
        if sink is not None:
            sink = jnp.reshape(jnp.repeat(sink, count), (*([1] * (queries.ndim - 2)), heads * count))
        pooled, weights, weight_sums = tokens.softmax(queries, multiplier, bias, sink)
    else:
        examples = [(queries, 2)] if offsets is None else [(queries, 2), (offsets, 1)]
        scores = tokens.scores_of(_plus_offsets, examples, bias=bias)
        weigh = functools.partial(normalize, normalizer=normalizer)
        pooled, weights, weight_sums = tokens.sums_under(scores, weigh, multiplier)
    each = heads, count
    pooled, weights = (jnp.reshape(a, (*a.shape[:-2], *each, a.shape[-1])) for a in (pooled, weights))
    found = jnp.einsum("...hnd,dhc->...hnc", pooled, value_kernel, precision=factor_precision(tokens.precision))
    return _with_bias(found, value_bias, jnp.reshape(weight_sums, found.shape[:-1])[..., None]), weights


def _plus_offsets(piece, queries, *offsets):
    """Scores tokens by their products with queries, plus offsets [B or 1, h], if any."""
    return piece.dot(queries) + piece.each(offsets[0]) if offsets else piece.dot(queries)


def _with_bias(found, bias, weight_sums):
    """Adds the value bias, multiplied by the sum of the weights, to the result of the attention."""
    return found if bias is None else found + weight_sums * jnp.broadcast_to(bias[:, None], found.shape)


def of_queries(found, num_queries, pooled=True):
    """Drops the axis of queries from a result, pooled or (pooled, weights), if ``num_queries`` is None.

    Args:
      found: pooled [..., n, o], or the pair of it and the weights [..., H, n, L].
      num_queries: n, or None for one query, whose axis is dropped.
      pooled: whether the pooled array has that axis.
    """
    if num_queries is not None:
        return found
    if not isinstance(found, tuple):
        return found[..., 0, :] if pooled else found
    return of_queries(found[0], None, pooled), found[1][..., 0, :]


@compiled(tokens=("x",), as_they_come=("x",))
def multi_head_attention_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel=None,
    key_kernel,
    value_kernel,
    out_kernel=None,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    scale=None,
    bias=None,
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.multi_head_attention_pooling`: O(L d H n) operations, or fewer.

    The key kernel is folded into the queries, and the key bias into one number for each query and head. The unprojected
    tokens are pooled for each head and query, and the value kernel is applied to the pooled tokens. The value bias is
    multiplied by the sum of the weights. If there are so many queries that projecting the tokens takes fewer
    operations, the tokens are projected, except with ``axis_name``, which supports the normalizers "softmax" and
    "sigmoid".

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> multi_head_attention_pooling(
    ...     jnp.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]),
    ...     jnp.array([True, True, False]),
    ...     query=jnp.array([[0.0, 0.0]]),
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    Array([[2., 3.]], dtype=float32)

    Packed:
      Tokens are never projected.

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> segment_multi_head_attention_pooling(
    ...     jnp.array([[1.0, 2.0], [9.0, 9.0], [3.0, 4.0]]),
    ...     jnp.array([0, 1, 0]),
    ...     2,
    ...     query=jnp.array([[0.0, 0.0]]),
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    Array([[[2., 3.]],
    <BLANKLINE>
           [[9., 9.]]], dtype=float32)
    """
    queries = queries_of_heads(query, query_kernel, query_bias, scale, precision)
    kernels, biases = (key_kernel, value_kernel), (key_bias, value_bias)
    found, weights = attended(x, queries, *kernels, *biases, dropout_multiplier, bias, normalizer, sink)
    result = from_heads(found, out_kernel, out_bias, factor_precision(precision))
    return (result, weights) if return_weights else result
