"""Decompositions of vectors and matching of tokens. Twin of :mod:`attnpool_ref.decomposition`."""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.masks import seen_keys
from attnpool_flax.normalizers import unit
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.rounding import norm, within_rounding
from attnpool_flax.numerics.sums import weighted


@compiled
def orthogonal_decomposition(x, reference, *, precision=None):
    """Twin of :func:`attnpool_ref.orthogonal_decomposition`; a zero reference has gradient 0.

    >>> orthogonal_decomposition(jnp.array([3.0, 4.0]), jnp.array([2.0, 0.0]))
    (Array([3., 0.], dtype=float32), Array([0., 4.], dtype=float32))
    """
    return split_by(project(x, reference, precision), x)


def project(x, reference, precision):
    """Returns the projection of x [..., d] on the reference [..., d]; 0 if the reference is 0."""
    direction = unit(reference)
    return _products(x, direction, precision) * direction


def split_by(similar, x):
    """Returns the similar part of x [..., d], and x minus it. The batch axes of both broadcast."""
    return similar, x - similar


def _products(x, y, precision):
    """Returns [..., 1]: the dot product of each vector of x with the corresponding vector of y."""
    return jnp.einsum("...d,...d->...", x, y, precision=precision)[..., None]


@compiled
def linear_decomposition(x, reference, *, precision=None):
    """Twin of :func:`attnpool_ref.linear_decomposition`; the cosine of a zero vector has gradient 0.

    >>> linear_decomposition(jnp.array([4.0, 0.0, 0.0, 0.0]), jnp.ones(4))
    (Array([2., 0., 0., 0.], dtype=float32), Array([2., 0., 0., 0.], dtype=float32))
    """
    return split_by(_products(unit(x), unit(reference), precision) * x, x)


@compiled
def rigid_decomposition(x, reference, *, atol=0.0):
    """Twin of :func:`attnpool_ref.rigid_decomposition`.

    >>> rigid_decomposition(jnp.array([[1.0, 0.0], [1.0, 1.0]]), jnp.array([1.0, 0.0]))[0]
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    distance = jnp.where(x == reference, 0, jnp.abs(x - reference))  # inf - inf is NaN
    largest = jnp.max(distance, -1, keepdims=True)
    unknown, equal = jnp.isnan(largest), largest <= atol
    return jnp.where(unknown, jnp.nan, jnp.where(equal, x, 0)), jnp.where(unknown, jnp.nan, jnp.where(equal, 0, x))


@compiled
def semantic_match(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_lengths=None,
    y_lengths=None,
    method="max",
    window=1,
    normalize=True,
    precision=None,
):
    """Twin of :func:`attnpool_ref.semantic_match`: with ``method="max"`` the best token is gathered by its index.

    >>> x, y = jnp.array([[1.0, 0.0], [1.0, 1.0]]), jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
    >>> semantic_match(x, y)
    Array([[1., 0.],
           [1., 2.]], dtype=float32)
    """
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
        everywhere = method == "global"
        weights = jnp.where(real, cosine, 0) if everywhere else _nearest(window, cosine, real, y.shape[-1])
        matched = _weighted(weights, y, normalize, precision)
    return keep_real(matched, x_mask)


def _best(cosine, y, real):
    """Returns for each token of x the real token of y with the largest cosine, the first of equals: [..., L, d].

    It is NaN if a real cosine of the token is NaN, and 0 without a real token of y.
    """
    cosine = jnp.where(real, cosine, -jnp.inf)
    best, unknown = _first_of_largest(cosine, y.shape[-1])
    token = jnp.take_along_axis(jnp.broadcast_to(y, cosine.shape[:-2] + y.shape[-2:]), best, -2, mode="clip")
    return jnp.where(unknown, jnp.nan, token)  # without a real token it is padding, which is 0 here


def _first_of_largest(cosine, terms):
    """Returns (position of the first of the largest cosines; whether one is NaN), both [..., 1].

    Cosines that differ only by the rounding of ``terms`` products, the width of the vectors, count as equal.
    """
    cosine = lax.stop_gradient(cosine)
    top = jnp.max(cosine, -1, keepdims=True)
    reaches = cosine >= top - within_rounding(terms, cosine.dtype)
    return jnp.argmax(reaches, -1)[..., None], jnp.isnan(top)


def _nearest(window, cosine, real, terms):
    """Returns the cosines of tokens at most ``window`` real tokens from the best, 0 elsewhere; NaN if a cosine is."""
    best, unknown = _first_of_largest(jnp.where(real, cosine, -jnp.inf), terms)
    rank = jnp.cumsum(real, -1, dtype=jnp.int32)
    near = jnp.abs(rank - jnp.take_along_axis(rank, best, -1, mode="clip")) <= min(window, jnp.iinfo(rank.dtype).max)
    return jnp.where(unknown, jnp.nan, jnp.where(real & near, cosine, 0))


def _weighted(weights, y, normalize, precision):
    matched = weighted(weights, y, precision)
    if not normalize:
        return matched
    total = jnp.sum(weights, -1, keepdims=True)
    return jnp.where(total == 0, 0, matched / jnp.where(total == 0, 1, total))


@compiled
def graph_decomposition(labels, adjacency, *, num_layers=2, precision=None):
    """Twin of :func:`attnpool_ref.graph_decomposition`: each layer is two matrix products, without an array [k, k, d].

    If a layer leaves only rounding errors of a label, its value becomes 0, and its gradient stays that of the layer.

    >>> labels, adjacency = jnp.array([[3.0, 4.0], [2.0, 0.0]]), jnp.array([[False, True], [False, False]])
    >>> graph_decomposition(labels, adjacency, num_layers=1)
    Array([[0., 4.],
           [2., 0.]], dtype=float32)
    """
    noise = within_rounding(sum(labels.shape), labels.dtype)
    number = jnp.maximum(jnp.sum(adjacency, -1, keepdims=True, dtype=jnp.int32), 1).astype(labels.dtype)
    for _ in range(num_layers):
        directions = keep_real(unit(labels), seen_keys(adjacency))
        lengths = jnp.einsum("id,jd->ij", labels, directions, precision=precision)
        taken = jnp.einsum("ij,jd->id", jnp.where(adjacency, lengths, 0), directions, precision=precision)
        rest = labels - taken / number
        small = norm(lax.stop_gradient(rest)) <= noise * norm(lax.stop_gradient(labels))
        labels = rest - jnp.where(small, lax.stop_gradient(rest), 0)
    return labels
