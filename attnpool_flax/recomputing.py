"""What a loop over blocks keeps for the backward pass: what is small. All else is computed anew."""

import jax
from jax.ad_checkpoint import checkpoint_name

_SMALL = "attnpool: small"


def small(array):
    """The same array, which is worth keeping: one number or vector for each query of a block."""
    return checkpoint_name(array, _SMALL)


def recomputed(function, static=()):
    """The function of a loop's trip, whose backward pass finds what is small and computes the rest anew.

    Args:
      function: the function.
      static: the places of its arguments that are no arrays.
    """
    keep = jax.checkpoint_policies.save_only_these_names(_SMALL)
    return jax.checkpoint(
        function, prevent_cse=False, policy=keep, static_argnums=static
    )  # inside a loop nothing else can share it
