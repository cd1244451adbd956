"""Scores. Twin of :mod:`attnpool_ref.scores`: a hidden layer over pairs is never there for all queries at once."""

import math

import jax.numpy as jnp

from attnpool_flax.blocks import by_rows
from attnpool_flax.implementation import implementation
from attnpool_flax.normalizers import unit


@implementation
def dot_score(query, key, *, precision=None):
    """Twin of :func:`attnpool_ref.dot_score`."""
    return dot(query, key, precision)


def dot(query, key, precision):
    """[..., n, d] and [..., m, d] to [..., n, m]; either may be shared."""
    return jnp.einsum("...nd,...md->...nm", query, key, precision=precision)


@implementation
def scaled_dot_score(query, key, *, scale=None, precision=None):
    """Twin of :func:`attnpool_ref.scaled_dot_score`."""
    return scaled_dot(query, key, scale, precision)


def scaled_dot(query, key, scale, precision):
    """The scaled products; the scale goes to the queries, which are fewer than the scores."""
    return dot(query * (query.shape[-1] ** -0.5 if scale is None else scale), key, precision)


@implementation
def bilinear_score(query, key, kernel, *, precision=None):
    """Twin of :func:`attnpool_ref.bilinear_score`."""
    return dot(affine(query, kernel, None, precision), key, precision)


def affine(x, kernel, bias, precision):
    """[..., d] and [d, h] to [..., h]; the bias [h] may be None."""
    x = jnp.einsum("...d,dh->...h", x, kernel, precision=precision)
    return x if bias is None else x + jnp.broadcast_to(bias, x.shape)


@implementation
def cosine_score(query, key, *, precision=None):
    """Twin of :func:`attnpool_ref.cosine_score`."""
    return dot(unit(query), unit(key), precision)


@implementation
def additive_score(query, key, query_kernel, key_kernel, out_kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.additive_score`: blocks of queries."""
    return additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision)


def additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision):
    """The sum over the hidden layer, weighted unless ``out_kernel`` is None."""
    key = affine(key, key_kernel, bias, precision)

    def with_keys(query):
        hidden = jnp.tanh(query[..., None, :] + key)
        if out_kernel is None:
            return (jnp.sum(hidden, -1),)
        return (jnp.einsum("...h,h->...", hidden, out_kernel, precision=precision),)

    query = affine(query, query_kernel, None, precision)
    return by_rows(with_keys, query, _size_of_hidden(query, key))[0]


def _size_of_hidden(query, key):
    """Elements of [..., m, h], what one query of every example meets."""
    return math.prod(jnp.broadcast_shapes(query.shape[:-2], key.shape[:-2])) * math.prod(key.shape[-2:])


@implementation
def concat_score(query, key, kernel, out_kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.concat_score`: the additive score with the kernel's two parts."""
    return additive(query, key, *split(kernel, query), out_kernel, bias, precision)


def split(kernel, query):
    """A kernel [d+e, h] over [query; other] as [d, h] and [e, h]."""
    return kernel[: query.shape[-1]], kernel[query.shape[-1] :]


@implementation
def tanh_sum_score(query, key, kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.tanh_sum_score`: the additive score with the kernel's two parts, all weights 1."""
    return additive(query, key, *split(kernel, query), None, bias, precision)


@implementation
def location_score(query, state, kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.location_score`."""
    return beside(query, state, kernel, bias, precision)


def beside(query, other, kernel, bias, precision):
    """[query; other] times a kernel [d+e, o]; one of the two may be shared, so nothing is concatenated."""
    query_kernel, other_kernel = split(kernel, query)
    return affine(query, query_kernel, None, precision) + affine(other, other_kernel, bias, precision)


@implementation
def trilinear_score(query, key, kernel, *, precision=None):
    """Twin of :func:`attnpool_ref.trilinear_score`: three products, no [n, m, 3d]."""
    return trilinear(query, key, kernel, precision)


def trilinear(query, key, kernel, precision):
    """Scores [..., n, m] by a kernel [3d] over [query; key; query * key]."""
    of_query, of_key, of_product = jnp.split(kernel, 3)
    weighted = query * jnp.broadcast_to(of_product, query.shape)
    query_part = jnp.einsum("...d,d->...", query, of_query, precision=precision)[..., :, None]
    key_part = jnp.einsum("...d,d->...", key, of_key, precision=precision)[..., None, :]
    return dot(weighted, key, precision) + query_part + key_part


@implementation
def gaussian_score(query, key, *, bandwidth=1.0):
    """Twin of :func:`attnpool_ref.gaussian_score`: blocks of queries."""
    return gaussian(query, key, bandwidth)


def gaussian(query, key, bandwidth):
    """Scores [..., n, m]; the square of a small bandwidth would underflow."""
    return squared_distances(query, key) / bandwidth / bandwidth / -2


def squared_distances(query, key):
    """Sums of squared differences [..., n, m]; the expanded square would cancel."""

    def from_keys(query):
        difference = query[..., None, :] - key
        return (jnp.sum(difference * difference, -1),)

    return by_rows(from_keys, query, _size_of_hidden(query, key))[0]
