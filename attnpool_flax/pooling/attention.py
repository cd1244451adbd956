"""Attention pooling with one query. Twin of :mod:`attnpool_ref.pooling.attention`.

The key kernel is folded into the query, so the tokens are not projected.
"""

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.layers import normalized
from attnpool_flax.normalizers import normalize
from attnpool_flax.numerics.products import factor_precision
from attnpool_flax.tokens.protocol import dot


@compiled(tokens=("x",), as_they_come=("x",))
def attention_pooling(
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
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attention_pooling`: O(L d) operations; the key kernel is folded into the query.

    With ``axis_name`` the normalizer must be "softmax" or "sigmoid".

    >>> x, mask = jnp.array([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]]), jnp.array([True, True, False])
    >>> attention_pooling(x, mask, jnp.array([0.0, 1.0]), return_weights=True)
    (Array([2., 0.], dtype=float32), Array([0.5, 0.5, 0. ], dtype=float32))

    Packed:
      The key kernel is folded into the query: there are no keys, and no array [num_segments, N].

    >>> x, query = jnp.array([[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]]), jnp.array([0.0, 1.0])
    >>> segment_attention_pooling(x, jnp.array([0, 1, 0]), 2, query=query, return_weights=True)
    (Array([[2., 0.],
           [9., 9.]], dtype=float32), Array([0.5, 1. , 0.5], dtype=float32))
    """
    parameters = query_kernel, key_kernel, (query_norm_scale, query_norm_bias, epsilon) if normalize_query else None
    pooled, weights = attend_with_query(x, query, *parameters, scale, dropout_multiplier, bias, normalizer, sink)
    return (pooled, weights) if return_weights else pooled


def attend_with_query(
    tokens,
    query,
    query_kernel,
    key_kernel,
    norm,
    scale,
    dropout_multiplier,
    bias=None,
    normalizer="softmax",
    sink=None,
):
    """Returns (pooled [..., d], weights [..., L]) of tokens in any layout; [S, d] and [N] of packed tokens.

    Args:
      tokens: :class:`~attnpool_flax.tokens.Dense` or :class:`~attnpool_flax.tokens.Packed`.
      query: [..., d], or without ``query_kernel`` [..., c]; None is the mean of the tokens.
      query_kernel: [d, c], or None.
      key_kernel: [d, c], or None.
      norm: (scale, bias, epsilon) of the query's layer normalization, or None.
      scale: of the scores; None is 1 / sqrt(width of the query after its kernel).
      dropout_multiplier: [..., L] or packed [N], multiplies the weights of the sum, not those that are returned.
      bias: [..., L] or packed [N], added to the scores, or None.
      normalizer: a name or a function.
      sink: [...] or packed [S], the score of a sink, or None.
    """
    precision = tokens.precision
    if query is None:
        query = tokens.mean()
    query = fold_query(query, query_kernel, key_kernel, norm, scale, precision)
    multiplier, bias = [None if array is None else array[..., None, :] for array in (dropout_multiplier, bias)]
    if not isinstance(normalizer, str) or normalizer != "softmax":

        def weigh(scores, mask):  # the caller's function sees no axis of queries
            return normalize(scores[..., 0, :], None if mask is None else mask[..., 0, :], normalizer)[..., None, :]

        scores = tokens.scores_of(dot, [(query[..., None, :], 2)], bias=bias)
        pooled, weights, _ = tokens.sums_under(scores, weigh, multiplier)
    else:
        sink = None if sink is None else sink[..., None]
        pooled, weights, _ = tokens.softmax(query[..., None, :], multiplier, bias, sink)
    return pooled[..., 0, :], weights[..., 0, :]


def fold_query(query, query_kernel, key_kernel, norm, scale, precision):
    """Returns the vector [..., d] whose products with tokens are the scaled scores: it includes kernels and scale.

    The arguments are as in :func:`attend_with_query`; the query is not None.
    """
    if norm is not None:
        query = normalized(query, *norm)
    precision = factor_precision(precision)
    if query_kernel is not None:
        query = jnp.einsum("...d,dc->...c", query, query_kernel, precision=precision)
    query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    if key_kernel is not None:
        query = jnp.einsum("...c,dc->...d", query, key_kernel, precision=precision)
    return query
