"""The exponential of scores below their maximum."""

import jax.numpy as jnp


def exponential(scores, max_score):
    """Computes exp(score - max_score); 0 for a score of -inf, also if the maximum is -inf."""
    return jnp.exp(below(scores, max_score))


def below(scores, max_score):
    """Computes score - max_score; -inf for a score of -inf, also if the maximum is -inf. No score exceeds its maximum.

    A maximum of -inf is raised to the smallest finite number. XLA recognizes this form of the softmax on GPUs, and reads
    the scores once; with a ``where`` it reads them twice.
    """
    return scores - jnp.maximum(max_score, jnp.finfo(max_score.dtype).min)
