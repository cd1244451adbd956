"""What stands between two linear maps. Twin of :mod:`attnpool_ref.activations`."""

import functools

import jax
import jax.numpy as jnp

ACTIVATIONS = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "identity": lambda x: x,
}
"""By the names that the options have."""
