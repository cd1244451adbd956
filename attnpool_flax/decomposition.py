"""Decomposition. Twin of :mod:`attnpool_ref.decomposition`."""

import jax.numpy as jnp

from attnpool_flax.implementation import implementation
from attnpool_flax.masks import keep_real, seen_keys
from attnpool_flax.normalizers import unit


@implementation
def orthogonal_decomposition(x, reference, *, precision=None):
    """Twin of :func:`attnpool_ref.orthogonal_decomposition`; the gradient at a zero reference is 0."""
    return split_by(project(x, reference, precision), x)


def project(x, reference, precision):
    """The projection of x [..., d] on the reference [..., d]."""
    direction = unit(reference)
    return _products(x, direction, precision) * direction


def split_by(similar, x):
    """The two parts of x [..., d], which may be shared."""
    return similar, x - similar


def _products(x, y, precision):
    """[..., 1]: the dot product of each vector of x with its own of y."""
    return jnp.einsum("...d,...d->...", x, y, precision=precision)[..., None]


@implementation
def linear_decomposition(x, reference, *, precision=None):
    """Twin of :func:`attnpool_ref.linear_decomposition`; a zero vector's cosine has gradient 0."""
    return split_by(_products(unit(x), unit(reference), precision) * x, x)


@implementation
def rigid_decomposition(x, reference, *, atol=0.0):
    """Twin of :func:`attnpool_ref.rigid_decomposition`."""
    distance = jnp.where(x == reference, 0, jnp.abs(x - reference))  # inf equals inf
    largest = jnp.max(distance, -1, keepdims=True)
    unknown, equal = jnp.isnan(largest), largest <= atol
    return jnp.where(unknown, jnp.nan, jnp.where(equal, x, 0)), jnp.where(unknown, jnp.nan, jnp.where(equal, 0, x))


@implementation
def semantic_match(x, y, x_mask=None, y_mask=None, *, method="max", window=1, normalize=True, precision=None):
    """Twin of :func:`attnpool_ref.semantic_match`: the chosen token is read, not averaged out."""
    x, y = keep_real(x, x_mask), keep_real(y, y_mask)
    cosine = jnp.einsum("...ld,...td->...lt", unit(x), unit(y), precision=precision)
    if y_mask is None:
        y_mask = jnp.ones(y.shape[:-1], bool)
    real = jnp.broadcast_to(y_mask[..., None, :], cosine.shape)
    if y.shape[-2] == 0:
        matched = jnp.zeros((*cosine.shape[:-1], y.shape[-1]), y.dtype)
    elif method == "max":
        matched = _best(cosine, y, real)
    else:
        near = real if method == "global" else real & _within(window, cosine, real)
        matched = _average(jnp.where(near, cosine, 0), y, normalize, precision)
    return keep_real(matched, x_mask)


def _best(cosine, y, real):
    """The first of the real tokens of y that is most like each token of x; NaN where nobody knows which that is."""
    cosine = jnp.where(real, cosine, -jnp.inf)
    best = jnp.argmax(cosine, -1)[..., None]
    unknown = jnp.any(jnp.isnan(cosine), -1, keepdims=True)
    token = jnp.take_along_axis(jnp.broadcast_to(y, cosine.shape[:-2] + y.shape[-2:]), best, -2, mode="clip")
    return jnp.where(unknown, jnp.nan, token)  # without a real token it is padding, which is 0 by now


def _within(window, cosine, real):
    """Tokens at most ``window`` real ones away from the best."""
    best = jnp.argmax(jnp.where(real, cosine, -jnp.inf), -1)[..., None]
    rank = jnp.cumsum(real, -1, dtype=jnp.int32)
    return jnp.abs(rank - jnp.take_along_axis(rank, best, -1, mode="clip")) <= window


def _average(weights, y, normalize, precision):
    matched = jnp.einsum("...lt,...td->...ld", weights, y, precision=precision)
    if not normalize:
        return matched
    total = jnp.sum(weights, -1, keepdims=True)
    return jnp.where(total == 0, 0, matched / jnp.where(total == 0, 1, total))


@implementation
def graph_decomposition(labels, adjacency, *, num_layers=2, precision=None):
    """Twin of :func:`attnpool_ref.graph_decomposition`: two products, no [k, k, d] projections."""
    number = jnp.maximum(jnp.sum(adjacency, -1, keepdims=True, dtype=jnp.int32), 1).astype(labels.dtype)
    for _ in range(num_layers):
        directions = keep_real(unit(labels), seen_keys(adjacency))
        lengths = jnp.einsum("id,jd->ij", labels, directions, precision=precision)
        taken = jnp.einsum("ij,jd->id", jnp.where(adjacency, lengths, 0), directions, precision=precision)
        labels = labels - taken / number
    return labels
