"""Attention scores. Twin of :mod:`attnpool_ref.scores`: no hidden layer [..., n, m, h] over all pairs is stored."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.normalizers import unit
from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.products import einsum
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.rounding import power_of_two


@compiled
def dot_score(query, key, *, result_dtype=None, precision=None):
    """Twin of :func:`attnpool_ref.dot_score`.

    >>> dot_score(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0], [5.0, 6.0]]))
    Array([[11., 17.]], dtype=float32)
    """
    return dot(query, key, precision)


def dot(query, key, precision):
    """Computes dot products of [..., n, d] and [..., m, d]: [..., n, m]. The batch axes broadcast."""
    return einsum("...nd,...md->...nm", query, key, precision)


@compiled
def scaled_dot_score(query, key, *, scale=None, result_dtype=None, precision=None):
    """Twin of :func:`attnpool_ref.scaled_dot_score`.

    >>> query, key = jnp.array([[1.0, 2.0, 2.0, 0.0]]), jnp.array([[2.0, 2.0, 2.0, 2.0]])
    >>> scaled_dot_score(query, key), scaled_dot_score(query, key, scale=1)
    (Array([[5.]], dtype=float32), Array([[10.]], dtype=float32))
    """
    return scaled_dot(query, key, scale, precision)


def scaled_dot(query, key, scale, precision):
    """Computes scaled products [..., n, m]. The scale multiplies the queries, a smaller array than the scores."""
    return dot(scaled(query, scale), key, precision)


def scaled(query, scale):
    """Multiplies queries [..., n, d] by the scale; by 1 / sqrt(d) if it is None."""
    return query * (query.shape[-1] ** -0.5 if scale is None else scale)


@compiled
def bilinear_score(query, key, kernel, *, result_dtype=None, precision=None):
    """Twin of :func:`attnpool_ref.bilinear_score`.

    >>> bilinear_score(jnp.array([[1.0, 2.0]]), jnp.array([[3.0]]), jnp.array([[1.0], [10.0]]))
    Array([[63.]], dtype=float32)
    """
    return dot(affine(query, kernel, None, precision), key, precision)


def affine(x, kernel, bias, precision):
    """Multiplies [..., d] by [d, h] and adds the bias: [..., h]; the bias [h] may be None."""
    x = jnp.einsum("...d,dh->...h", x, kernel, precision=precision)
    return x if bias is None else x + jnp.broadcast_to(bias, x.shape)


@compiled
def cosine_score(query, key, *, result_dtype=None, precision=None):
    """Twin of :func:`attnpool_ref.cosine_score`.

    >>> cosine_score(jnp.ones((1, 4)), jnp.array([[3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    return dot(unit(query), unit(key), precision)


@compiled
def additive_score(query, key, query_kernel, key_kernel, out_kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.additive_score`: hidden units are summed without an array [..., n, m, h] over pairs.

    >>> query, key = jnp.zeros((1, 2)), jnp.ones((1, 2))
    >>> scores = additive_score(query, key, jnp.eye(2), jnp.eye(2), jnp.ones(2))
    >>> print(jnp.array_str(scores, precision=4))
    [[1.5232]]
    """
    return additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision)


def additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision):
    """Sums a tanh layer over its hidden units, weighted by ``out_kernel`` unless it is None: scores [..., n, m]."""
    query, key = _units(query, query_kernel, None, precision), _units(key, key_kernel, bias, precision)
    weights = jnp.ones(query.shape[0], query.dtype) if out_kernel is None else out_kernel
    return _sum_of_tanh(*unify_varying(query, key, weights))


UNROLL = 16
"""Hidden units in one step of the loop. With 8 or fewer, XLA's CPU backend runs the loop several times slower."""


@jax.custom_jvp
def _sum_of_tanh(query, key, weights):
    """Returns scores [..., n, m]: the weighted sum over the first axis of tanh(query [h, ..., n] + key [h, ..., m]).

    In the loop over units, tanh(a + b) is computed as 1 - 2 / (1 + exp(2a) exp(2b)), which needs no tanh for each pair.
    If some a or b is above 20 in magnitude, so that the exponentials might overflow, or all are below 0.25, so that the
    1 cancels their digits, tanh is computed instead.
    """
    largest = jnp.maximum(jnp.max(jnp.abs(query), initial=0), jnp.max(jnp.abs(key), initial=0))
    ordinary = (largest >= 0.25) & (largest <= 20)

    def by_loop(ordinary, *arrays):
        return lax.cond(ordinary, _sum_by_exponentials, functools.partial(_sum_by_loop, _tanh), *arrays)

    def at_once(ordinary, *arrays):
        del ordinary
        return _sum_at_once(_tanh, *arrays)

    # the condition is computed outside, because ``vmap`` would copy the operands for it
    return platforms.by_pieces(by_loop, at_once, ordinary, query, key, weights)


def _tanh(query, key, weight):
    return weight * jnp.tanh(query + key)


def _sum_by_exponentials(query, key, weights):
    def part(query, key, weight):
        return weight / (1 + query * key)

    return jnp.sum(weights) - 2 * _sum_by_loop(part, jnp.exp(2 * query), jnp.exp(2 * key), weights)


@_sum_of_tanh.defjvp
def _sum_of_tanh_jvp(primals, tangents):
    return _sum_of_tanh(*primals), _tangent_of_sum(_tanh, primals, tangents)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def sum_of_units(of_unit, query, key, weights):
    """Returns scores [..., n, m]: a sum over the first axis of [h, ..., n] and [h, ..., m].

    Units are computed in a loop, a few at a time, or on accelerators in one reduction, into which XLA fuses them. So the
    pairs [..., n, m] of at most a few units exist in memory, also in the backward pass, which recomputes them.

    Args:
      of_unit: from one unit's query [..., n, 1], key [..., 1, m] and weight [] to its summand of the scores.
      query: [h, ..., n].
      key: [h, ..., m].
      weights: [h].
    """
    by_loop, at_once = (functools.partial(function, of_unit) for function in (_sum_by_loop, _sum_at_once))
    return platforms.by_pieces(by_loop, at_once, query, key, weights)


@sum_of_units.defjvp
def _sum_of_units_jvp(of_unit, primals, tangents):
    return sum_of_units(of_unit, *primals), _tangent_of_sum(of_unit, primals, tangents)


def _sum_at_once(of_unit, query, key, weights):
    """Computes the sum by one reduction over all units."""
    weights = jnp.reshape(weights, (-1,) + (1,) * query.ndim)
    return jnp.sum(of_unit(query[..., :, None], key[..., None, :], weights), 0)


def _sum_by_loop(of_unit, query, key, weights):
    """Computes the sum by a loop over the units."""
    zero = _zero_scores(of_unit, query, key, weights)

    def add(total, unit):
        query, key, weight = unit
        return total + of_unit(query[..., :, None], key[..., None, :], weight), None

    return lax.scan(add, zero, (query, key, weights), unroll=UNROLL)[0]


def _zero_scores(of_unit, query, key, weights):
    """Returns zeros [..., n, m], which inside of ``jax.shard_map`` vary over the same mesh axes as the units."""
    first = of_unit(query[0][..., :, None], key[0][..., None, :], weights[0])
    return jnp.where(jnp.ones(first.shape, bool), jnp.zeros_like(first), first)


def _tangent_of_sum(of_unit, primals, tangents):
    """Computes the tangent of the sum over units.

    Its transpose, the backward pass, saves only the primals, and recomputes the units: no array over pairs is saved.
    """
    by_loop = functools.partial(_tangent_by_loop, of_unit)

    def at_once(primals, tangents):
        return jax.jvp(remat(functools.partial(_sum_at_once, of_unit)), primals, tangents)[1]

    return platforms.by_pieces(by_loop, at_once, primals, tangents)


def _tangent_by_loop(of_unit, primals, tangents):
    zero = _zero_scores(of_unit, *primals)

    def summed(query, key, weights):
        again = jax.checkpoint(of_unit, prevent_cse=False)  # in a loop there is none to prevent

        def add(total, unit):
            query, key, weight = unit
            return total + again(query[..., :, None], key[..., None, :], weight), None

        return lax.scan(add, zero, (query, key, weights))[0]

    return jax.jvp(summed, primals, tangents)[1]


def _units(x, kernel, bias, precision):
    """Multiplies [..., n, d] by [d, h]: [h, ..., n]. The units are the first axis, as the product lays them out."""
    units = lax.dot_general(kernel, x, (((0,), (x.ndim - 1,)), ((), ())), precision=precision)
    return units if bias is None else units + jnp.reshape(bias, (-1,) + (1,) * (units.ndim - 1))


@compiled
def concat_score(query, key, kernel, out_kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.concat_score`: computed as the additive score, by the two parts of the kernel.

    >>> query, key = jnp.array([[1.0]]), jnp.array([[2.0], [-1.0]])
    >>> scores = concat_score(query, key, jnp.ones((2, 1)), jnp.array([2.0]))
    >>> print(jnp.array_str(scores, precision=4))
    [[1.9901 0.    ]]
    """
    return additive(query, key, *split(kernel, query), out_kernel, bias, precision)


def split(kernel, query):
    """Splits a kernel [d+e, h] for concatenated vectors [query; other] into [d, h] and [e, h]."""
    return kernel[: query.shape[-1]], kernel[query.shape[-1] :]


@compiled
def tanh_sum_score(query, key, kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.tanh_sum_score`: computed as the additive score, with an ``out_kernel`` of ones.

    >>> query, key = jnp.array([[1.0]]), jnp.array([[2.0], [-1.0]])
    >>> scores = tanh_sum_score(query, key, jnp.ones((2, 2)))
    >>> print(jnp.array_str(scores, precision=4))
    [[1.9901 0.    ]]
    """
    return additive(query, key, *split(kernel, query), None, bias, precision)


@compiled
def location_score(query, state, kernel, *, bias=None, precision=None):
    """Twin of :func:`attnpool_ref.location_score`.

    >>> kernel = jnp.array([[1.0, 0.0, 3.0], [0.0, 1.0, 5.0]])
    >>> location_score(jnp.array([[1.0]]), jnp.array([[2.0]]), kernel)
    Array([[ 1.,  2., 13.]], dtype=float32)
    """
    return affine_of_both(query, state, kernel, bias, precision)


def affine_of_both(query, other, kernel, bias, precision):
    """Multiplies [query; other] by a kernel [d+e, o], and adds the bias [o] or None: [..., o].

    The two are not concatenated, because one of them may be shared by the examples.
    """
    query_kernel, other_kernel = split(kernel, query)
    return affine(query, query_kernel, None, precision) + affine(other, other_kernel, bias, precision)


@compiled
def trilinear_score(query, key, kernel, *, result_dtype=None, precision=None):
    """Twin of :func:`attnpool_ref.trilinear_score`: computed as the sum of three products, without an array [n, m, 3d].

    >>> trilinear_score(jnp.array([[2.0]]), jnp.array([[3.0], [5.0]]), jnp.array([1.0, 10.0, 100.0]))
    Array([[ 632., 1052.]], dtype=float32)
    """
    return trilinear(query, key, kernel, precision)


def trilinear(query, key, kernel, precision):
    """Returns scores [..., n, m] by a kernel [3d] for concatenated vectors [query; key; query * key]."""
    of_query, of_key, of_product = jnp.split(kernel, 3)
    weighted = query * jnp.broadcast_to(of_product, query.shape)
    query_part = jnp.einsum("...d,d->...", query, of_query, precision=precision)[..., :, None]
    key_part = jnp.einsum("...d,d->...", key, of_key, precision=precision)[..., None, :]
    return dot(weighted, key, precision) + query_part + key_part


@compiled
def gaussian_score(query, key, *, bandwidth=1.0):
    """Twin of :func:`attnpool_ref.gaussian_score`: features are summed without an array [..., n, m, d] of differences.

    >>> gaussian_score(jnp.array([[0.0, 0.0]]), jnp.array([[3.0, 4.0], [1.0, 0.0]]), bandwidth=0.5)
    Array([[-50.,  -2.]], dtype=float32)
    """
    return gaussian(query, key, bandwidth)


def gaussian(query, key, bandwidth):
    """Returns scores [..., n, m]: -|q - k|² / (2 bandwidth²) for queries q and keys k."""
    part = power_of_two(bandwidth)  # exact; the square of a small bandwidth would be 0
    return squared_distances(query, key, part) / (-2 * (bandwidth / part) ** 2)


def squared_distances(query, key, part):
    """Returns squared distances [..., n, m] divided by the square of ``part``, an array [] with a power of two.

    Differences are squared, because the expanded form q² - 2qk + k² would cancel. So would gradients by products: one far
    key, though its weight is 0, would leave no digits to those of all others.
    """

    def squared(q, k, part):
        difference = (q - k) / part
        return difference * difference

    query, key = jnp.moveaxis(query, -1, 0), jnp.moveaxis(key, -1, 0)
    parts = jnp.broadcast_to(part, query.shape[:1])
    return sum_of_units(squared, *unify_varying(query, key, parts))
