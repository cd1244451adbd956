"""Activations of hidden layers. Twin of :mod:`attnpool_ref.activations`."""

import jax
import jax.numpy as jnp


def relu(x):
    """max(x, 0); half of a slope at 0, as a maximum's ties have it."""
    return jnp.maximum(x, 0)


def gelu(x):
    """With erf."""
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x):
    """With tanh."""
    return jax.nn.gelu(x, approximate=True)


def geglu(x):
    """[..., 2f] to [..., f]: the first half times the :func:`gelu` of the second."""
    value, gate = jnp.split(x, 2, -1)
    return value * gelu(gate)


OF_SCORES = {"tanh": jnp.tanh, "relu": relu, "gelu": gelu, "identity": lambda x: x}
"""Of the hidden layer that scores are made of, by their names."""
