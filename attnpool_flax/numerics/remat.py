"""Rematerialization, which recomputes arrays in the backward pass.

Loops over pieces and blocks save small arrays and recompute the rest.
"""

import jax
from jax.ad_checkpoint import checkpoint_name

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
