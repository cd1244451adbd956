"""Layers before and after a pooling. Twin of :mod:`attnpool_ref.layers`."""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.elementwise import geglu, gelu, gelu_tanh, relu
from attnpool_flax.numerics.products import einsum
from attnpool_flax.numerics.rounding import power_of_two

ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "relu": relu, "geglu": geglu}


@compiled
def layer_norm(x, scale=None, bias=None, *, epsilon=1e-6):
    """Twin of :func:`attnpool_ref.layer_norm`.

    Each vector is first divided by a power of two, so that no square overflows, or underflows with an effect.

    >>> layer_norm(jnp.array([1.0, 3.0]), epsilon=0.0), layer_norm(jnp.array([2.0, 2.0]), bias=jnp.array([0.5, 1.0]))
    (Array([-1.,  1.], dtype=float32), Array([0.5, 1. ], dtype=float32))
    """
    return normalized(x, scale, bias, epsilon)


def normalized(x, scale, bias, epsilon):
    """Normalizes x [..., d] over d (layer normalization); scale and bias are [d] or None, epsilon is an array []."""
    # divided by a unit, so that neither squares nor epsilon leave the range of the dtype
    least = jnp.where(epsilon > 0, power_of_two(jnp.sqrt(jnp.maximum(lax.stop_gradient(epsilon), 0))), 0)
    unit = jnp.maximum(power_of_two(jnp.max(jnp.abs(lax.stop_gradient(x)), -1, keepdims=True)), least)
    x = x / unit - lax.stop_gradient(x[..., :1]) / unit  # equal numbers are then exactly 0
    centered = x - jnp.mean(x, -1, keepdims=True)
    variance = jnp.mean(centered * centered, -1, keepdims=True)
    constant = variance == 0  # epsilon / unit**2 may be 0 as well
    slope = jnp.where(epsilon > 0, unit * lax.rsqrt(jnp.where(epsilon > 0, epsilon, 1)), 0)
    rest = lax.rsqrt(jnp.where(constant, 1, variance + epsilon / unit / unit))
    x = centered * jnp.where(constant, slope, rest)
    if scale is not None:
        x = x * jnp.broadcast_to(scale, x.shape)
    return x if bias is None else x + jnp.broadcast_to(bias, x.shape)


@compiled
def residual_feed_forward(
    x,
    kernel,
    bias=None,
    out_kernel=None,
    out_bias=None,
    *,
    norm_scale=None,
    norm_bias=None,
    normalize=True,
    activation="gelu",
    epsilon=1e-6,
    precision=None,
):
    """Twin of :func:`attnpool_ref.residual_feed_forward`.

    >>> residual_feed_forward(jnp.array([1.0, -2.0]), jnp.eye(2), normalize=False, activation="relu")
    Array([ 2., -2.], dtype=float32)
    """
    hidden = normalized(x, norm_scale, norm_bias, epsilon) if normalize else x
    return x + perceptron(hidden, kernel, bias, out_kernel, out_bias, activation, precision)


def perceptron(x, kernel, bias, out_kernel, out_bias, activation, precision):
    """Computes a hidden layer and an output layer of x [..., d]; if ``out_kernel`` is None only the hidden layer.

    ``activation`` is a key of ACTIVATIONS. "geglu" halves the width of the hidden layer. Biases may be None.
    """
    hidden = ACTIVATIONS[activation](mapped(x, kernel, bias, precision))
    return hidden if out_kernel is None else mapped(hidden, out_kernel, out_bias, precision)


def mapped(x, kernel, bias, precision):
    """Multiplies [..., d] by a kernel [d, f] and adds the bias: [..., f]; the bias [f] may be None."""
    x = einsum("...d,df->...f", x, kernel, precision)
    return x if bias is None else x + jnp.broadcast_to(bias, x.shape)
