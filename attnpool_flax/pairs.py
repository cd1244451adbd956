"""Pairs. Twin of :mod:`attnpool_ref.pairs`: sums over the other side come before the product with it."""

import jax.numpy as jnp

from attnpool_flax.implementation import implementation
from attnpool_flax.masks import keep_real
from attnpool_flax.normalizers import softmax
from attnpool_flax.pooling import count_real, weighted_sum


@implementation
def cross_attention_pooling(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.cross_attention_pooling`: sum and mean take O((L + T) d), no [L, T] matrix.

    The other side's tokens are summed first: the sum over t of x_l . y_t is x_l . (sum of y_t).
    """
    x, y = keep_real(x, x_mask), keep_real(y, y_mask)
    if reduction == "max":
        x_scores, y_scores = _largest(x, y, x_mask, y_mask, x_kernel, y_kernel, scale, precision)
    else:
        x_scores = _linear(x, y, y_mask, x_kernel, y_kernel, reduction, scale, precision)
        y_scores = _linear(y, x, x_mask, y_kernel, x_kernel, reduction, scale, precision)
    x_weights, y_weights = softmax(x_scores, x_mask), softmax(y_scores, y_mask)
    pooled = weighted_sum(x_weights, x, precision), weighted_sum(y_weights, y, precision)
    return (pooled, (x_weights, y_weights)) if return_weights else pooled


def _linear(x, y, y_mask, x_kernel, y_kernel, reduction, scale, precision):
    """Scores [..., L] of x over the sum or mean of y: the kernels meet the one summed vector, never the tokens."""
    total = jnp.sum(y, -2)
    if reduction == "mean":
        total = total / (max(y.shape[-2], 1) if y_mask is None else count_real(y_mask, y.dtype)[..., None])
    if y_kernel is not None:
        total = jnp.einsum("...e,ec->...c", total, y_kernel, precision=precision)
    if x_kernel is not None:
        total = jnp.einsum("...c,dc->...d", total, x_kernel, precision=precision)
    return jnp.einsum("...ld,...d->...l", x, total * scale, precision=precision)


def _largest(x, y, x_mask, y_mask, x_kernel, y_kernel, scale, precision):
    """Largest score of each token over the other side's real ones, 0 where there are none."""
    if x_kernel is not None:
        x = jnp.einsum("...ld,dc->...lc", x, x_kernel, precision=precision)
    if y_kernel is not None:
        y = jnp.einsum("...te,ec->...tc", y, y_kernel, precision=precision)
    scores = scale * jnp.einsum("...lc,...tc->...lt", x, y, precision=precision)
    return _largest_real(scores, y_mask), _largest_real(jnp.swapaxes(scores, -1, -2), x_mask)


def _largest_real(scores, mask):
    """Maximum of [..., L, T] over the real of the last axis, [..., T]; 0 where nothing is real."""
    if mask is None:
        mask = jnp.ones(scores.shape[:-2] + scores.shape[-1:], bool)
    largest = jnp.max(jnp.where(mask[..., None, :], scores, -jnp.inf), -1, initial=-jnp.inf)
    return jnp.where(jnp.any(mask, -1)[..., None], largest, 0)
