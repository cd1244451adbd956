"""The algebra of learned queries in several heads, for tokens in any layout."""

import functools
import math

import jax.numpy as jnp

from attnpool_flax.normalizers import normalize

SHIFTED = ("softmax", "sparsemax", "entmax15", "hardmax")
"""The normalisers for which a constant added to all scores cancels, and so the key bias."""


def queries_of_heads(query, query_kernel, query_bias, scale, precision):
    """Learned queries [..., n, q], or without a kernel [n, H, c], as [..., H, n, c], scaled."""
    if query_kernel is None:
        heads = jnp.swapaxes(query, 0, 1)
    else:
        heads = jnp.einsum("...nq,qhc->...hnc", query, query_kernel, precision=precision)
    if query_bias is not None:
        heads = heads + jnp.broadcast_to(query_bias[:, None, :], heads.shape)
    return heads * (heads.shape[-1] ** -0.5 if scale is None else scale)


def fold(queries, key_kernel, precision):
    """Queries [..., H, n, c] as [..., H, n, d]: their products with raw tokens are the scores, but for the key bias."""
    return jnp.einsum("...hnc,dhc->...hnd", queries, key_kernel, precision=precision)


def offsets_of(queries, key_bias, normalizer, precision):
    """[..., H, n]: what the key bias adds to the scores of each query; None where it cancels."""
    if key_bias is None or normalizer in SHIFTED:
        return None
    return jnp.einsum("...hnc,hc->...hn", queries, key_bias, precision=precision)


def folding_pays(count, width, key_kernel, value_kernel):
    """Whether pooling the raw tokens takes no more products a token than projecting them to keys and values."""
    heads, keys, values = *key_kernel.shape[1:], value_kernel.shape[-1]
    folded = 2 * heads * count * width
    return folded <= heads * (width + count) * (keys + values)


def attended_by_heads(
    tokens, queries, value_kernel, value_bias, multiplier, offsets=None, bias=None, normalizer="softmax"
):
    """What the heads attend to, of raw tokens in any layout.

    Args:
      tokens: :class:`~attnpool_flax.reductions.Dense` or :class:`~attnpool_flax.reductions.Packed`.
      queries: [..., H, n, d], folded.
      value_kernel: [d, H, c'].
      value_bias: [H, c'], or None; it counts as often as the weights sum to.
      multiplier: [..., H, n, L] of the weights, or None.
      offsets: [..., H, n], added to the scores, or None.
      bias: [..., H, n, L], added as well, or None.
      normalizer: a name or a function.

    Returns:
      (attended [..., H, n, c'], weights [..., H, n, L]).
    """
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
        pooled, weights, shares = tokens.softmax_with_shares(queries, multiplier, bias)
    else:
        weigh = functools.partial(normalize, normalizer=normalizer)
        pooled, weights, shares = tokens.weighed(queries, weigh, offsets, bias, multiplier)
    each = heads, count
    pooled, weights = (jnp.reshape(a, (*a.shape[:-2], *each, a.shape[-1])) for a in (pooled, weights))
    attended = jnp.einsum("...hnd,dhc->...hnc", pooled, value_kernel, precision=tokens.precision)
    if value_bias is not None:
        shares = jnp.reshape(shares, attended.shape[:-1])[..., None]
        attended = attended + shares * jnp.broadcast_to(value_bias[:, None], attended.shape)
    return attended, weights
