"""Rematerialization policy of loops over blocks: save small arrays, recompute the rest."""

import jax
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
