"""Activations of hidden layers. Twin of :mod:`attnpool_ref.numerics.activations`."""

import math

import jax
import jax.numpy as jnp


def relu(x):
    """Computes max(x, 0); the slope at 0 is 1/2, as for ties of a maximum."""
    return jnp.maximum(x, 0)


@jax.custom_jvp
def normal_cdf(x):
    """Computes the standard normal CDF; with its own derivative, because JAX 0.12's fails in ``shard_map``."""
    return jax.lax.erfc(x * -math.sqrt(0.5)) * 0.5


@normal_cdf.defjvp
def _normal_density(primals, tangents):
    (x,), (moved,) = primals, tangents
    return normal_cdf(x), jnp.exp(x * x * -0.5) * math.sqrt(0.5 / math.pi) * moved


def gelu(x):
    """Computes GELU with erf."""
    return x * normal_cdf(x)


def gelu_tanh(x):
    """Computes GELU in the tanh approximation."""
    return jax.nn.gelu(x, approximate=True)


def geglu(x):
    """Maps [..., 2f] to [..., f]: the first half times the :func:`gelu` of the second."""
    value, gate = jnp.split(x, 2, -1)
    return value * gelu(gate)


@jax.custom_jvp
def tanh(x):
    """Its derivative is 1 / cosh², from x: 1 - tanh² has lost its digits where the tangent is near 1."""
    return jnp.tanh(x)


@tanh.defjvp
def _steepness(primals, tangents):
    (x,), (moved,) = primals, tangents
    decay = jnp.exp(-2 * jnp.abs(x))
    return tanh(x), 4 * decay / jnp.square(1 + decay) * moved


OF_SCORES = {"tanh": tanh, "relu": relu, "gelu": gelu, "identity": lambda x: x}
"""Of the hidden layer that scores are made of, by their names."""
