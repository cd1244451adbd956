"""Rematerialization policy of loops over blocks: save small arrays, recompute the rest."""

import jax
from jax.ad_checkpoint import checkpoint_name

_SMALL = "attnpool: small"


def saveable(array):
    """Marks an array as saveable: one number or vector for each query of a block."""
    return checkpoint_name(array, _SMALL)


def remat(function, static=()):
    """Applies :func:`jax.checkpoint` to a loop's step: the backward pass recomputes all but the saveable arrays.

    Args:
      function: the step.
      static: the positions of its arguments that are not arrays.
    """
    keep = jax.checkpoint_policies.save_only_these_names(_SMALL)
    return jax.checkpoint(
        function, prevent_cse=False, policy=keep, static_argnums=static
    )  # inside a loop nothing else can share it
