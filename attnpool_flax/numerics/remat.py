"""Rematerialization, which recomputes arrays in the backward pass.

Loops over blocks save small arrays and recompute the rest (:func:`remat`). Sums that XLA fuses with their terms
recompute everything (:func:`by_argument`).
"""

import functools
import operator

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from attnpool_flax.numerics import platforms

_SAVEABLE = "attnpool: saveable"


def saveable(array):
    """Marks a small array, such as one number for each query, as saveable: :func:`remat` does not recompute it."""
    return checkpoint_name(array, _SAVEABLE)


def remat(function, static=()):
    """Applies :func:`jax.checkpoint` to a function: the backward pass recomputes all but its saveable arrays.

    Args:
      function: from arrays to arrays, mostly the step of a loop.
      static: the positions of its arguments that are not arrays.
    """
    policy = jax.checkpoint_policies.save_only_these_names(_SAVEABLE)
    return jax.checkpoint(
        function, prevent_cse=False, policy=policy, static_argnums=static
    )  # inside of a loop no other code can share the recomputed values; elsewhere XLA may keep them instead


def by_argument(function):
    """Returns the function with a derivative that is computed for each argument separately, from the arguments only.

    It is for a sum whose terms are a large array, which XLA fuses into the sum and does not write. The gradient by each
    argument is another sum of such terms; computed together, XLA would write the terms that they share.

    Args:
      function: from arrays, some of which may be None, to an array.
    """

    @jax.custom_jvp
    def computed(*arrays):
        return function(*arrays)

    @computed.defjvp
    def _jvp(primals, tangents):
        def along(place):
            # rotated, because XLA would merge barriers of the same arrays in the same order
            own, *others = lax.optimization_barrier((*primals[place:], *primals[:place]))

            def of_own(own):
                rotated = own, *others
                return function(*rotated[len(rotated) - place :], *rotated[: len(rotated) - place])

            return jax.jvp(jax.checkpoint(of_own, prevent_cse=False), (own,), (tangents[place],))[1]

        places = [i for i, a in enumerate(primals) if a is not None and jnp.issubdtype(a.dtype, jnp.inexact)]
        return computed(*primals), functools.reduce(operator.add, map(along, places))

    return computed


@jax.custom_jvp
def in_own_kernel(array):
    """Returns a small array; on GPUs, if it is differentiated, behind a barrier.

    It is for a mean or a factor of vectors. Without the barrier XLA computes them together with the vectors' result, in
    one kernel, which writes a float32 copy of the vectors for each gradient.
    """
    return array


@functools.partial(in_own_kernel.defjvp, symbolic_zeros=True)
def _in_own_kernel_jvp(primals, tangents):
    def as_it_is(array):
        return array

    kernels = {"cpu": as_it_is, "tpu": as_it_is, "default": lax.optimization_barrier}
    return platforms.choose(*primals, **kernels), *tangents
