"""The softmax without a mask, and its exponentials: 0 for a score of -inf, also if no score is larger."""

import functools

import jax
import jax.numpy as jnp
from jax import lax


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def unmasked_softmax(scores, axis):
    """Returns the softmax of scores; 0 in rows without a score above -inf.

    The maximum starts at the smallest number and the sum at the smallest normal number, in place of cases for such rows:
    XLA's TPU compiler reads the scores once only if nothing stands between the reductions.
    """
    axes, limits = (axis % scores.ndim,), jnp.finfo(scores.dtype)
    max_score = lax.reduce(scores, limits.min, lax.max, axes)
    unnormalized = jnp.exp(scores - jnp.expand_dims(max_score, axes))
    return unnormalized / jnp.expand_dims(lax.reduce(unnormalized, limits.tiny, lax.add, axes), axes)


@unmasked_softmax.defjvp
def _softmax_jvp(axis, primals, tangents):
    weights, (dscores,) = unmasked_softmax(*primals, axis), tangents
    return weights, weights * (dscores - jnp.sum(weights * dscores, axis, keepdims=True))


def exponential(scores, max_score):
    """Computes exp(score - max_score); 0 for a score of -inf, also if the maximum is -inf."""
    return jnp.exp(below(scores, max_score))


def beside_sink(max_score, sink):
    """Returns (the larger of the maximum and the sink, without gradient; exp(sink - larger), a term of the denominator).

    The term is 0 in a row without a score above -inf, and inf for a sink of inf, which leaves no weight for the scores.
    """
    empty, blocked = max_score == -jnp.inf, sink == jnp.inf
    sink = jnp.where(empty | blocked, 0, sink)
    larger = lax.stop_gradient(jnp.where(empty | blocked, max_score, jnp.maximum(max_score, sink)))
    term = jnp.exp(sink - jnp.where(empty, 0, larger))
    return larger, jnp.where(empty, 0, jnp.where(blocked, jnp.inf, term))


def share_beside_sink(max_score, total, sink):
    """Returns what a sink leaves for scores whose sum of exp(score - max_score) is the total; 0 if that is 0."""
    larger, term = beside_sink(max_score, sink)
    total = total * exponential(max_score, larger)
    return total / jnp.where(total == 0, 1, total + term)


def below(scores, max_score):
    """Computes score - max_score; -inf for a score of -inf, also if the maximum is -inf. No score exceeds its maximum.

    A maximum of -inf is raised to the smallest finite number. XLA recognizes this form of the softmax on GPUs, and reads
    the scores once; with a ``where`` it reads them twice.
    """
    return scores - jnp.maximum(max_score, jnp.finfo(max_score.dtype).min)
