"""Normalisers. Twin of :mod:`attnpool_ref.normalizers`."""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.implementation import implementation
from attnpool_flax.masks import lengths_to_mask


@implementation
def masked_softmax(scores, mask=None, *, lengths=None, axis=-1):
    """Twin of :func:`attnpool_ref.masked_softmax`; finite gradients on empty rows."""
    if lengths is not None:
        mask = lengths_to_mask(lengths, scores.shape[axis])
        mask = mask.reshape(mask.shape[:-1] + (1,) * (scores.ndim - mask.ndim) + mask.shape[-1:])
        mask = jnp.broadcast_to(jnp.moveaxis(mask, -1, axis), scores.shape)
    return softmax(scores, mask, axis)


def softmax(scores, mask, axis=-1):
    """The masked softmax of checked arguments."""
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    top = lax.stop_gradient(jnp.max(scores, axis, keepdims=True, initial=-jnp.inf))
    unnormalized = jnp.exp(scores - jnp.where(top == -jnp.inf, 0, top))
    total = jnp.sum(unnormalized, axis, keepdims=True)
    weights = unnormalized / jnp.where(total == 0, 1, total)
    return weights if mask is None else jnp.where(mask, weights, 0)  # a real NaN stays out of the padding


@implementation
def l2_normalize(x, *, axis=-1):
    """Twin of :func:`attnpool_ref.l2_normalize`; the gradient at the zero vector is 0."""
    largest = lax.stop_gradient(jnp.max(jnp.abs(x), axis, keepdims=True, initial=0))
    scaled = x / jnp.where(largest == 0, 1, largest)
    squares = jnp.sum(scaled * scaled, axis, keepdims=True)
    norm = jnp.where(squares == 0, 1, jnp.sqrt(jnp.where(squares == 0, 1, squares)))
    return scaled / norm
