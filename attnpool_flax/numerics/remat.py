"""Rematerialization: loops over blocks save small arrays and recompute the rest; sums that XLA fuses recompute everything."""

import functools
import operator

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

_SAVEABLE = "attnpool: saveable"


def saveable(array):
    """Marks a small array as saveable: one number or vector for each query of a block."""
    return checkpoint_name(array, _SAVEABLE)


def remat(function, static=()):
    """Applies :func:`jax.checkpoint` to the step of a loop: the backward pass recomputes all but saveable arrays.

    Args:
      function: the step.
      static: the positions of its arguments that are not arrays.
    """
    policy = jax.checkpoint_policies.save_only_these_names(_SAVEABLE)
    return jax.checkpoint(
        function, prevent_cse=False, policy=policy, static_argnums=static
    )  # inside a loop nothing else can share it


def by_argument(function):
    """Makes a function that is differentiated along each of its arguments by itself, from the arguments alone.

    For a sum of a large array that XLA fuses into the sum. The gradients of the arguments are other sums of that array:
    computed together, XLA would write what they have in common.

    Args:
      function: from arrays, or None, to an array.
    """

    @jax.custom_jvp
    def computed(*arrays):
        return function(*arrays)

    @computed.defjvp
    def _jvp(primals, tangents):
        def along(place):
            # barriers of the same arrays in the same order would become one
            own, *others = lax.optimization_barrier((*primals[place:], *primals[:place]))

            def of_own(own):
                rotated = own, *others
                return function(*rotated[len(rotated) - place :], *rotated[: len(rotated) - place])

            return jax.jvp(jax.checkpoint(of_own, prevent_cse=False), (own,), (tangents[place],))[1]

        places = [i for i, a in enumerate(primals) if a is not None and jnp.issubdtype(a.dtype, jnp.inexact)]
        return computed(*primals), functools.reduce(operator.add, map(along, places))

    return computed
