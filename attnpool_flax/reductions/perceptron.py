"""Scores of each token by itself, by a perceptron with one hidden layer.

The walk is over tokens one after another, whatever sequence they belong to: dense ones are flattened, packed ones are flat.
Each is read once, and once more for the gradient; of what is as large as x nothing is made but its gradient. The layer
before its activation, [N, H], is kept for the gradient, or computed anew.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.activations import OF_SCORES
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions import tiling
from attnpool_flax.reductions.dispatch import cast_varying, varying_axes
from attnpool_flax.reductions.packed_kernels import Strip
from attnpool_flax.reductions.rules import reverse_rule

TOKENS = 256
"""Tokens of a tile: enough for a fast product, and few enough that most padding lies in tiles of its own."""


def strip_for(x):
    """Returns the tiling of tokens [..., L, d] one after another, or None if they are too few for a loop."""
    length, width = math.prod(x.shape[:-1]), x.shape[-1]
    if not known(length, width) or length * width * x.dtype.itemsize <= tiling.WHOLE:
        return None
    return Strip(length, min(length, TOKENS, tiling.TOKENS))


def plain(x, real, kernel, bias, out_kernel, activation, precision):
    """Returns scores by whole products; differentiable in every mode.

    Args:
      x: [..., L, d] tokens, in any floating dtype.
      real: bool [..., L], or None.
      kernel: [d, h] in the computing dtype; with a gate [d, 2h], the gate's behind.
      bias: [h] or [2h], or None.
      out_kernel: [h, n].
      activation: a key of OF_SCORES.
      precision: of the products.

    Returns:
      [..., L, n], whatever padding gives.
    """
    x = x.astype(kernel.dtype)
    if real is not None:
        x = jnp.where(real[..., None], x, 0)
    units = activated(layer(x, kernel, bias, precision), out_kernel, activation)
    return jnp.dot(units, out_kernel, precision=precision)


def layer(x, kernel, bias, precision):
    """Returns the hidden layer [..., H] before its activation."""
    products = jnp.dot(x, kernel, precision=precision)
    return products if bias is None else products + jnp.broadcast_to(bias, products.shape)


def activated(layer, out_kernel, activation):
    """Applies the activation: units [..., h]; in a layer of twice the width the second half is the gate."""
    units = out_kernel.shape[0]
    if layer.shape[-1] == units:
        return OF_SCORES[activation](layer)
    return OF_SCORES[activation](layer[..., :units]) * jax.nn.sigmoid(layer[..., units:])


def _scores(x, real, kernel, bias, out_kernel, activation, precision, keep):
    """Returns (scores, the layer [trips, size, H] of the tiles or None)."""
    plan, settled = strip_for(x), {"activation": activation, "precision": precision}
    if plan is None:
        return plain(x, real, kernel, bias, out_kernel, **settled), None

    def whole(*arrays):
        layers = plan.trips, plan.size, kernel.shape[1]
        return plain(*arrays, **settled), cast_varying(
            jnp.zeros(layers, kernel.dtype), varying_axes(x)
        ) if keep else None

    by_tiles = functools.partial(_scores_by_tiles, **settled, keep=keep)
    return tiling.walk(by_tiles, whole, plan, x, real, kernel, bias, out_kernel)


def _scores_by_tiles(x, real, kernel, bias, out_kernel, *, plan, activation, precision, keep):
    flat, real = _flat(x, real)

    def of_tile(trip):
        before = layer(_tile(flat, real, plan, trip, kernel.dtype), kernel, bias, precision)
        scores = jnp.dot(activated(before, out_kernel, activation), out_kernel, precision=precision)
        return scores, before if keep else None

    scores, kept = lax.map(lambda trip: _unless_empty(of_tile, real, plan, trip), jnp.arange(plan.trips))
    return jnp.reshape(plan.joined(scores), (*x.shape[:-1], out_kernel.shape[1])), kept


def _flat(x, real):
    return jnp.reshape(x, (-1, x.shape[-1])), None if real is None else jnp.ravel(real)


def _tile(x, real, plan, trip, dtype):
    tokens = plan.cut(x, trip)
    return (tokens if real is None else jnp.where(plan.cut(real, trip)[:, None], tokens, 0)).astype(dtype)


def _unless_empty(of_tile, real, plan, trip):
    """Computes ``of_tile(trip)``, or zeros where no token of the tile is real."""
    if real is None:
        return of_tile(trip)
    found = jax.eval_shape(of_tile, trip)

    def zeros(trip):
        del trip
        return jax.tree.map(lambda array: cast_varying(jnp.zeros(array.shape, array.dtype), varying_axes(real)), found)

    return lax.cond(jnp.any(plan.cut(real, trip)), of_tile, zeros, trip)


def _keep(x, real, kernel, bias, out_kernel, activation, precision, keep):
    scores, kept = _scores(x, real, kernel, bias, out_kernel, activation, precision, keep)
    return (scores, x), (x, real, kernel, bias, out_kernel, kept)


def _slopes(activation, precision, keep, residuals, cotangents):
    x, real, kernel, bias, out_kernel, kept = residuals
    settled = {"activation": activation, "precision": precision}
    arrays = x, real, kernel, bias, out_kernel, kept, *cotangents
    by_tiles, whole = (functools.partial(f, **settled) for f in (_slopes_by_tiles, _slopes_plain))
    of_x, of_kernel, of_bias, of_out = tiling.walk(by_tiles, whole, strip_for(x), *arrays)
    return of_x, None, of_kernel, of_bias, of_out


def _slopes_plain(x, real, kernel, bias, out_kernel, kept, of_scores, of_rest, *, activation, precision):
    del kept

    def scores(x, kernel, bias, out_kernel):
        return plain(x, real, kernel, bias, out_kernel, activation, precision)

    of_x, *others = jax.vjp(scores, x, kernel, bias, out_kernel)[1](of_scores)
    return of_x + of_rest, *others


def _slopes_by_tiles(x, real, kernel, bias, out_kernel, kept, of_scores, of_rest, *, plan, activation, precision):
    shape = x.shape
    x, real = _flat(x, real)
    of_scores = jnp.reshape(of_scores, (-1, of_scores.shape[-1]))

    def of_tile(trip):
        tokens, slope = _tile(x, real, plan, trip, kernel.dtype), plan.cut(of_scores, trip)
        counted = plan.new(trip) if real is None else plan.new(trip) & plan.cut(real, trip)
        slope = jnp.where(counted[:, None], slope, 0)
        before = layer(tokens, kernel, bias, precision) if kept is None else kept[trip]
        units, back = jax.vjp(lambda before: activated(before, out_kernel, activation), before)
        (of_layer,) = back(jnp.dot(slope, out_kernel.T, precision=precision))
        of_tokens = jnp.dot(of_layer, kernel.T, precision=precision).astype(x.dtype)
        of_kernel = jnp.dot(tokens.T, of_layer, precision=precision)
        of_bias = None if bias is None else jnp.sum(of_layer, 0)
        return of_tokens, (of_kernel, of_bias, jnp.dot(units.T, slope, precision=precision))

    def part(carry, trip):
        of_x, sums = carry
        of_tokens, more = _unless_empty(of_tile, real, plan, trip)
        of_tokens = of_tokens + plan.cut(of_x, trip)
        of_x = lax.dynamic_update_slice_in_dim(of_x, of_tokens, plan.first(trip), 0)
        return (of_x, jax.tree.map(jnp.add, sums, more)), None

    start = jnp.reshape(of_rest, x.shape), jax.tree.map(jnp.zeros_like, (kernel, bias, out_kernel))
    start = jax.tree.map(lambda array: cast_varying(array, varying_axes(x) - varying_axes(array)), start)
    (of_x, (of_kernel, of_bias, of_out)), _ = lax.scan(part, start, jnp.arange(plan.trips))
    return jnp.reshape(of_x, shape), of_kernel, of_bias, of_out


@reverse_rule(_keep, _slopes, nondiff_argnums=(5, 6, 7))
def tiled(x, real, kernel, bias, out_kernel, activation, precision, keep):
    """Returns (scores as :func:`plain`, x), a tile in the cache at a time; scores of a tile without real tokens are 0.

    What goes on with the x that is returned adds its gradient to one array, in place. ``keep`` says whether the layer is
    kept for the gradient.
    """
    del keep
    return _scores(x, real, kernel, bias, out_kernel, activation, precision, False)[0], x
