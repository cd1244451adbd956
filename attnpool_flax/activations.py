"""Activations of hidden layers. Twin of :mod:`attnpool_ref.activations`."""

import math

import jax
import jax.numpy as jnp


def relu(x):
    """max(x, 0); half of a slope at 0, as a maximum's ties have it."""
    return jnp.maximum(x, 0)


@jax.custom_jvp
def normal_cdf(x):
    """The share of a standard normal that is at most x; its derivative is stated, as JAX 0.12's fails in ``shard_map``."""
    return jax.lax.erfc(x * -math.sqrt(0.5)) * 0.5


@normal_cdf.defjvp
def _normal_density(primals, tangents):
    (x,), (moved,) = primals, tangents
    return normal_cdf(x), jnp.exp(x * x * -0.5) * math.sqrt(0.5 / math.pi) * moved


def gelu(x):
    """With erf."""
    return x * normal_cdf(x)


def gelu_tanh(x):
    """With tanh."""
    return jax.nn.gelu(x, approximate=True)


def geglu(x):
    """[..., 2f] to [..., f]: the first half times the :func:`gelu` of the second."""
    value, gate = jnp.split(x, 2, -1)
    return value * gelu(gate)


OF_SCORES = {"tanh": jnp.tanh, "relu": relu, "gelu": gelu, "identity": lambda x: x}
"""Of the hidden layer that scores are made of, by their names."""
