"""The exponential of scores below their maximum."""

import jax.numpy as jnp


def exponential(scores, max_score):
    """Computes exp(score - max_score); 0 for a score of -inf, whatever the maximum."""
    return jnp.exp(scores - jnp.where(max_score == -jnp.inf, 0, max_score))
