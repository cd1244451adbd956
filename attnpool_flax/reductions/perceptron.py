"""Scores of tokens by a perceptron with one hidden layer, on CPUs one tile of tokens at a time.

Dense tokens are flattened, and packed tokens are flat: a tile has consecutive tokens, whatever sequence they belong to.
By tiles, each token is read once, and once more for the gradient. No other array of the size of x exists, except its
gradient. The hidden layer of all N tokens before its activation, [N, h], or [N, 2h] with a gate, is saved for the
backward pass or recomputed.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.elementwise import OF_SCORES
from attnpool_flax.numerics.platforms import cast_varying, varying_axes
from attnpool_flax.numerics.products import einsum, one_pass_of
from attnpool_flax.numerics.raw_keys import of_seen, zero_unseen
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.dispatch import by_platform
from attnpool_flax.reductions.loops import tiling as tiles
from attnpool_flax.reductions.loops.blocks import Blocks
from attnpool_flax.reductions.rules import reverse_rule

FACTOR = 4
"""A loop pays for masked tokens of more than this times ``tiling.WHOLE`` bytes in float32: 4 MiB."""

TOKENS = 256
"""Masked tokens of a tile: enough for a fast product, so few that most padding lies in tiles without real tokens."""


def tiling_of(x, real):
    """Returns the tiling of flattened tokens [..., L, d], a :class:`Blocks`; None for few tokens, or symbolic sizes.

    Without a mask no tile is skipped: tiles are larger, and a loop pays later, for more than 16 MiB.
    """
    length, width = math.prod(x.shape[:-1]), x.shape[-1]
    factor, tokens = (4 * FACTOR, 2 * TOKENS) if real is None else (FACTOR, TOKENS)
    if not known(length, width) or length * width * 4 <= factor * tiles.WHOLE:
        return None
    return Blocks(length, min(length, tokens, tiles.TOKENS))


def plain(x, real, kernel, bias, out_kernel, activation, precision, joint=False):
    """Returns scores by whole products; differentiable in forward and reverse mode.

    Args:
      x: [..., L, d] tokens, in any floating dtype.
      real: bool [..., L], True at real tokens; None if all are real.
      kernel: [d, h] in the computing dtype (float32 or float64); with a gate [d, 2h], the gate's columns last.
      bias: [h] or [2h], or None.
      out_kernel: [h, n], for n scores of each token.
      activation: "tanh", "relu", "gelu" or "identity".
      precision: of the products.
      joint: whether a gate shares a product with the other units, for which both kernels are copied. Accelerators then
        read x once; on CPUs few tokens take longer.

    Returns:
      [..., L, n], arbitrary at padding.
    """
    one_pass = one_pass_of(precision, x.dtype)
    products = 1 if joint or kernel.shape[1] == out_kernel.shape[0] else 2

    def hidden(x, kernel, bias):
        # XLA removes these slices of concatenated kernels, and those of the concatenated layer in `activate`
        kernels = jnp.split(kernel, products, 1)
        biases = [None] * products if bias is None else jnp.split(bias, products)
        layers = [hidden_layer(x.astype(kernel.dtype), *own, one_pass) for own in zip(kernels, biases, strict=True)]
        return jnp.concatenate(layers, -1)

    layer = of_seen(hidden, x, real, kernel, bias)
    return jnp.dot(activate(layer, out_kernel, activation, joint), out_kernel, precision=precision)


def with_tokens(scores):
    """Returns the function ``scores`` in the form of :func:`tiled`, which also takes ``save`` and returns the tokens.

    It ignores ``save`` and returns x unchanged.
    """

    def scores_and_tokens(x, real, kernel, bias, out_kernel, activation, precision, save):
        del save
        return scores(x, real, kernel, bias, out_kernel, activation, precision), x

    return scores_and_tokens


def hidden_layer(x, kernel, bias, precision):
    """Returns the hidden layer [..., h], or [..., 2h] with a gate, of tokens [..., d] before its activation."""
    products = einsum("...d,dh->...h", x, kernel, precision)
    return products if bias is None else products + jnp.broadcast_to(bias, products.shape)


def activate(layer, out_kernel, activation, joint=False):
    """Applies the activation to a hidden layer: [..., h].

    If the layer is [..., 2h], its second half is the gate, whose sigmoid multiplies the activation. ``out_kernel``
    [h, n] tells the two cases apart.
    """
    units = out_kernel.shape[0]
    if layer.shape[-1] == units:
        return OF_SCORES[activation](layer)
    # the gradient of slices is a sum of padded arrays, which accelerators fuse; that of a split is a concatenation
    layer, gate = (layer[..., :units], layer[..., units:]) if joint else jnp.split(layer, 2, -1)
    return OF_SCORES[activation](layer) * jax.nn.sigmoid(gate)


def _scores(x, real, kernel, bias, out_kernel, activation, precision, save):
    """Returns (scores, the hidden layer [steps, size, h or 2h] of all tiles).

    The hidden layer is None without ``save`` and for few tokens, and 0 on accelerators, which do not read it.
    """
    tiling, options = tiling_of(x, real), {"activation": activation, "precision": precision}
    if tiling is None:
        return plain(x, real, kernel, bias, out_kernel, **options), None

    def plain_(x, real, *kernels):
        if (
            save and real is not None
        ):  # the backward pass needs the hidden layer of the same tokens, and XLA computes it once
            x, real = zero_unseen(x, real), None
        scores, shape = plain(x, real, *kernels, **options, joint=True), (tiling.steps, tiling.size, kernel.shape[1])
        return scores, cast_varying(jnp.zeros(shape, kernel.dtype), varying_axes(x)) if save else None

    tiled_ = functools.partial(_scores_tiles, **options, save=save)
    return by_platform(tiled_, plain_, tiling, x, real, kernel, bias, out_kernel)


def _scores_tiles(x, real, kernel, bias, out_kernel, *, tiling, activation, precision, save):
    flat, real = _flatten(x, real)

    def tile(step):
        layer = hidden_layer(_masked_tile(flat, real, tiling, step, kernel.dtype), kernel, bias, precision)
        scores = jnp.dot(activate(layer, out_kernel, activation), out_kernel, precision=precision)
        return scores, layer if save else None

    scores, layers = lax.map(lambda step: _unless_empty(tile, real, tiling, step), jnp.arange(tiling.steps))
    return jnp.reshape(tiling.concatenate(scores), (*x.shape[:-1], out_kernel.shape[1])), layers


def _flatten(x, real):
    return jnp.reshape(x, (-1, x.shape[-1])), None if real is None else jnp.ravel(real)


def _masked_tile(x, real, tiling, step, dtype):
    tokens = tiling.slice(x, step)
    return (tokens if real is None else jnp.where(tiling.slice(real, step)[:, None], tokens, 0)).astype(dtype)


def _unless_empty(tile, real, tiling, step):
    """Computes ``tile(step)``, or zeros if no token of the tile is real."""
    if real is None:
        return tile(step)
    shapes = jax.eval_shape(tile, step)

    def zeros(step):
        del step
        return jax.tree.map(lambda array: cast_varying(jnp.zeros(array.shape, array.dtype), varying_axes(real)), shapes)

    return lax.cond(jnp.any(tiling.slice(real, step)), tile, zeros, step)


def _perceptron_fwd(x, real, kernel, bias, out_kernel, activation, precision, save):
    scores, layers = _scores(x, real, kernel, bias, out_kernel, activation, precision, save)
    return (scores, x), (x, real, kernel, bias, out_kernel, layers)


def _perceptron_bwd(activation, precision, save, residuals, cotangents):
    del save
    x, real, kernel, bias, out_kernel, layers = residuals
    options = {"activation": activation, "precision": precision}
    arrays = x, real, kernel, bias, out_kernel, layers, *cotangents
    tiling, tiled_ = tiling_of(x, real), functools.partial(_bwd_tiles, **options)
    plain_ = functools.partial(_bwd_plain, **options, joint=tiling is not None)
    dx, dkernel, dbias, dout_kernel = by_platform(tiled_, plain_, tiling, *arrays)
    return dx, None, dkernel, dbias, dout_kernel


def _bwd_plain(x, real, kernel, bias, out_kernel, layers, dscores, dx_out, *, activation, precision, joint):
    del layers

    def scores(x, kernel, bias, out_kernel):
        return plain(x, real, kernel, bias, out_kernel, activation, precision, joint)

    dx, *others = jax.vjp(scores, x, kernel, bias, out_kernel)[1](dscores)
    return dx + dx_out, *others


def _bwd_tiles(x, real, kernel, bias, out_kernel, layers, dscores, dx_out, *, tiling, activation, precision):
    shape = x.shape
    x, real = _flatten(x, real)
    dscores = jnp.reshape(dscores, (-1, dscores.shape[-1]))

    def tile(step):
        tokens, dtile = _masked_tile(x, real, tiling, step, kernel.dtype), tiling.slice(dscores, step)
        once = tiling.outside_overlap(step)
        once = once if real is None else once & tiling.slice(real, step)
        dtile = jnp.where(once[:, None], dtile, 0)
        layer = hidden_layer(tokens, kernel, bias, precision) if layers is None else layers[step]
        units, vjp = jax.vjp(lambda layer: activate(layer, out_kernel, activation), layer)
        (dlayer,) = vjp(jnp.dot(dtile, out_kernel.T, precision=precision))
        dtokens = jnp.dot(dlayer, kernel.T, precision=precision).astype(x.dtype)
        dkernel = jnp.dot(tokens.T, dlayer, precision=precision)
        dbias = None if bias is None else jnp.sum(dlayer, 0)
        return dtokens, (dkernel, dbias, jnp.dot(units.T, dtile, precision=precision))

    def tile_step(carry, step):
        dx, sums = carry
        dtokens, more = _unless_empty(tile, real, tiling, step)
        dx = tiling.update(dx, dtokens + tiling.slice(dx, step), step)
        return (dx, jax.tree.map(jnp.add, sums, more)), None

    start = jnp.reshape(dx_out, x.shape), jax.tree.map(jnp.zeros_like, (kernel, bias, out_kernel))
    start = jax.tree.map(lambda array: cast_varying(array, varying_axes(x) - varying_axes(array)), start)
    (dx, (dkernel, dbias, dout_kernel)), _ = lax.scan(tile_step, start, jnp.arange(tiling.steps))
    return jnp.reshape(dx, shape), dkernel, dbias, dout_kernel


def _perceptron(x, real, kernel, bias, out_kernel, activation, precision, save):
    """Returns (scores as :func:`plain`, x), on CPUs one tile in the cache at a time; 0 in tiles of only padding.

    Reductions that follow read the returned x. Its cotangent is the start value of ``dx``, to which the gradient
    through the scores is added in place. With ``save`` the hidden layer is saved for the backward pass; without it, as
    for states of chunks, the backward pass recomputes it.
    """
    del save
    return _scores(x, real, kernel, bias, out_kernel, activation, precision, False)[0], x


tiled = reverse_rule(_perceptron, _perceptron_fwd, _perceptron_bwd, nondiff_argnums=(5, 6, 7))
