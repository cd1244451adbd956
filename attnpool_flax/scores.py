"""Scores. Twin of :mod:`attnpool_ref.scores`: a hidden layer over pairs is there for a few of its units at a time."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.blocks import over_queries, size_of
from attnpool_flax.implementation import implementation
from attnpool_flax.normalizers import unit
from attnpool_flax.reductions import chosen_for_units
from attnpool_flax.rounding import power_of_two


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
    """Twin of :func:`attnpool_ref.additive_score`: one hidden unit after another."""
    return additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision)


def additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision, implementation=None):
    """The sum over the hidden layer, weighted unless ``out_kernel`` is None."""
    if chosen_for_units(implementation) == "einsum":
        return _additive_in_blocks(query, key, query_kernel, key_kernel, out_kernel, bias, precision)
    query, key = _units(query, query_kernel, None, precision), _units(key, key_kernel, bias, precision)
    if out_kernel is None:
        return sum_of_units(lambda q, k: jnp.tanh(q + k), query, key)
    return sum_of_units(lambda q, k, weight: weight * jnp.tanh(q + k), query, key, out_kernel)


def _additive_in_blocks(query, key, query_kernel, key_kernel, out_kernel, bias, precision):
    """The same sum for a block of queries at a time, whose hidden layer a fused program never writes."""
    key = affine(key, key_kernel, bias, precision)

    def of_block(query):
        hidden = jnp.tanh(query[..., :, None, :] + key[..., None, :, :])
        if out_kernel is not None:
            hidden = hidden * jnp.reshape(out_kernel, (1,) * (hidden.ndim - 1) + (-1,))
        return jnp.sum(hidden, -1)

    query = affine(query, query_kernel, None, precision)
    return over_queries(of_block, (query,), keys=size_of(query, 2, key, 2) * math.prod(key.shape[-2:]))


def _units(x, kernel, bias, precision):
    """[..., n, d] and [d, h] to [h, ..., n]: the units first, in the order in which the product gives them."""
    units = lax.dot_general(kernel, x, (((0,), (x.ndim - 1,)), ((), ())), precision=precision)
    return units if bias is None else units + jnp.reshape(bias, (-1,) + (1,) * (units.ndim - 1))


def sum_of_units(of_unit, query, key, *weights):
    """Scores [..., n, m]: a sum over the first axis of [h, ..., n] and [h, ..., m], one unit after another.

    The pairs [..., n, m] of a few units are all that exists at once, also in the backward pass, which computes them
    anew; no gradient is written by hand, so that forward mode and shard_map work.

    Args:
      of_unit: from a unit's [..., n, 1], [..., 1, m] and weight to its part of the scores.
      query: [h, ..., n].
      key: [h, ..., m].
      weights: nothing, or [h].
    """
    again = jax.checkpoint(of_unit, prevent_cse=False)  # inside a loop there is none
    units = query[..., :, None], key[..., None, :], *weights
    first = lax.stop_gradient(of_unit(*(unit[0] for unit in units)))
    zero = jnp.where(jnp.ones(first.shape, bool), jnp.zeros_like(first), first)  # varies over a mesh as the units do
    return lax.scan(lambda total, unit: (total + again(*unit), None), zero, units, unroll=4)[0]


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
    """Twin of :func:`attnpool_ref.gaussian_score`: one feature after another."""
    return gaussian(query, key, bandwidth)


def gaussian(query, key, bandwidth):
    """Scores [..., n, m]."""
    part = power_of_two(bandwidth)  # exact; the square of a small bandwidth would be 0
    return squared_distances(query, key, part) / (-2 * (bandwidth / part) ** 2)


def squared_distances(query, key, part):
    """Sums of squared differences [..., n, m], in parts of this size; the expanded square would cancel."""

    def squared(q, k, part):
        difference = (q - k) / part
        return difference * difference

    query, key = jnp.moveaxis(query, -1, 0), jnp.moveaxis(key, -1, 0)
    return sum_of_units(squared, query, key, jnp.broadcast_to(part, query.shape[:1]))
