"""Normalizers from scores to weights (softmax and others), and unit vectors. Twin of :mod:`attnpool_ref.normalizers`."""

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.masks import lengths_to_mask
from attnpool_flax.numerics.entmax_bisect import alpha_entmax
from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import max_along_axis, power_of_two
from attnpool_flax.numerics.sizes import as_number, smaller
from attnpool_flax.numerics.softmax import below, beside_sink, exponential, unmasked_softmax
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.tokens.segments import segments_of
from attnpool_ref import contract


@compiled
def masked_softmax(scores, mask=None, *, lengths=None, sink=None, axis=-1):
    """Twin of :func:`attnpool_ref.masked_softmax`; gradients are 0 in fully masked rows.

    Lengths in a JAX array are not checked, but clipped to 0 and the size of ``axis``.

    >>> masked_softmax(jnp.array([2.0, 2.0, 9.0]), jnp.array([True, True, False]))
    Array([0.5, 0.5, 0. ], dtype=float32)
    >>> masked_softmax(jnp.zeros((2, 4)), lengths=jnp.array([4, 0]))
    Array([[0.25, 0.25, 0.25, 0.25],
           [0.  , 0.  , 0.  , 0.  ]], dtype=float32)
    """
    return softmax(scores, _real(scores, mask, lengths, axis), axis, sink)


def _real(scores, mask, lengths, axis):
    """Returns the mask, or that of the lengths along the axis if they are given."""
    if lengths is None:
        return mask
    mask = lengths_to_mask(lengths, scores.shape[axis])
    mask = mask.reshape(mask.shape[:-1] + (1,) * (scores.ndim - mask.ndim) + mask.shape[-1:])
    return jnp.broadcast_to(jnp.moveaxis(mask, -1, axis), scores.shape)


def softmax(scores, mask, axis=-1, sink=None):
    """Returns the masked softmax of scores; the mask, which broadcasts, or None is already checked.

    ``sink`` is the score of a sink, with the axes of the scores without ``axis``, or None.
    """
    if sink is not None:
        return divide(*exp_and_sum(scores, mask, axis, sink), mask)
    if mask is None:
        return unmasked_softmax(scores, axis)
    weights = unmasked_softmax(jnp.where(mask, scores, -jnp.inf), axis)
    return jnp.where(mask, weights, 0)  # NaN of a real token must not reach padding


def exp_and_sum(scores, mask, axis=-1, sink=None):
    """Returns (exp(score - max_score), its sum along the axis, of size 1 there); with a sink, both for its denominator.

    At padding the exponentials are 0, but if a real score of the row is NaN, all of the row are. The mask may be None.
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    max_score = saveable(lax.stop_gradient(jnp.max(scores, axis, keepdims=True, initial=-jnp.inf)))
    max_score, of_sink = (max_score, 0) if sink is None else beside_sink(max_score, jnp.expand_dims(sink, axis))
    unnormalized = exponential(scores, max_score)
    total = jnp.sum(unnormalized, axis, keepdims=True)
    return unnormalized, saveable(total if sink is None else total + of_sink)


@compiled
def masked_log_softmax(scores, mask=None, *, lengths=None, axis=-1):
    """Twin of :func:`attnpool_ref.masked_log_softmax`; gradients are 0 where the result is -inf.

    Lengths in a JAX array are not checked, but clipped to 0 and the size of ``axis``.

    >>> masked_log_softmax(jnp.array([0.0, -1000.0, 9.0]), jnp.array([True, True, False]))
    Array([    0., -1000.,   -inf], dtype=float32)
    >>> masked_log_softmax(jnp.zeros((2, 2)), lengths=jnp.array([1, 0]))
    Array([[  0., -inf],
           [-inf, -inf]], dtype=float32)
    """
    mask = _real(scores, mask, lengths, axis)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    max_score = lax.stop_gradient(jnp.max(scores, axis, keepdims=True, initial=-jnp.inf))
    differences = below(scores, max_score)
    denominator = jnp.sum(jnp.exp(differences), axis, keepdims=True)
    logarithms = differences - jnp.log(jnp.where(denominator == 0, 1, denominator))
    logarithms = jnp.where(scores == -jnp.inf, lax.stop_gradient(logarithms), logarithms)  # ignores cotangents there
    return logarithms if mask is None else jnp.where(mask, logarithms, -jnp.inf)


@compiled
def segment_softmax(scores, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_softmax`: one maximum and one sum of all segments; gradients are 0 at padding.

    Segment numbers out of range are an error if the array is on the host, and padding if it is on a device.

    >>> segment_softmax(jnp.array([1.0, 5.0, 1.0]), jnp.array([0, 1, 0]), 2)
    Array([0.5, 1. , 0.5], dtype=float32)
    """
    kept, real, segments = _by_segment(scores, segment_ids, num_segments, mask, indices_are_sorted)
    unnormalized = exponential(kept, _largest_of_segment(kept, segments))
    weights = unnormalized / segments.expand_to_tokens(_nonzero(segments.sum(unnormalized)))
    return jnp.where(real, weights, 0)  # NaN of a real token must not reach padding


@compiled
def segment_log_softmax(scores, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_log_softmax`; gradients are 0 where the result is -inf.

    Segment numbers out of range are an error if the array is on the host, and padding if it is on a device.

    >>> segment_log_softmax(jnp.array([0.0, 5.0, -900.0]), jnp.array([0, 1, 0]), 2)
    Array([   0.,    0., -900.], dtype=float32)
    """
    kept, real, segments = _by_segment(scores, segment_ids, num_segments, mask, indices_are_sorted)
    differences = below(kept, _largest_of_segment(kept, segments))
    denominator = _nonzero(segments.sum(jnp.exp(differences)))
    logarithms = differences - segments.expand_to_tokens(jnp.log(denominator))
    logarithms = jnp.where(kept == -jnp.inf, lax.stop_gradient(logarithms), logarithms)  # ignores cotangents there
    return jnp.where(real, logarithms, -jnp.inf)


def _by_segment(scores, segment_ids, num_segments, mask, ordered):
    """Returns (scores, -inf at padding; bool [N] or [N, 1], True at real tokens; the segments)."""
    segments = segments_of(segment_ids, mask, num_segments, ordered)
    real = segments.real if scores.ndim == 1 else segments.real[:, None]
    return jnp.where(real, scores, -jnp.inf), real, segments


def _largest_of_segment(kept, segments):
    """Returns the largest score of each token's segment, without gradient."""
    return segments.expand_to_tokens(segments.max(lax.stop_gradient(kept)))


def _nonzero(denominator):
    return jnp.where(denominator == 0, 1, denominator)


def divide(unnormalized, denominator, mask):
    """Divides unnormalized weights by their denominator; 0 where the denominator is 0."""
    weights = unnormalized / jnp.where(denominator == 0, 1, denominator)
    return weights if mask is None else jnp.where(mask, weights, 0)  # NaN of a real token must not reach padding


@compiled(as_they_come=("scores",))
def sparsemax(scores, mask=None, *, axis=-1):
    """Twin of :func:`attnpool_ref.sparsemax`; computed by Newton's method in place of a sort.

    Newton's method finds the support: the scores with nonzero weights. Their number and mean give the
    threshold and the gradient.

    >>> sparsemax(jnp.array([0.5, 0.25, -1.0, 9.0]), jnp.array([True, True, True, False]))
    Array([0.625, 0.375, 0.   , 0.   ], dtype=float32)
    """
    return project_on_simplex(scores, mask, axis)


def project_on_simplex(scores, mask, axis=-1):
    """Returns the sparsemax of scores; arguments are checked, and the mask may be None."""
    scores, largest, empty = _with_largest(scores, mask, 1, axis)
    below = _below(scores, largest, 1)
    support = _support(scores, largest, 1, axis)
    size = jnp.sum(support, axis, keepdims=True, dtype=below.dtype)
    threshold = (jnp.sum(jnp.where(support, below, 0), axis, keepdims=True) - 1) / jnp.maximum(size, 1)
    return _where_real(jnp.where(support, below - threshold, 0), mask, empty)


@compiled(as_they_come=("scores",))
def entmax15(scores, mask=None, *, axis=-1):
    """Twin of :func:`attnpool_ref.entmax15`; computed by Newton's method in place of a sort.

    Newton's method finds the support: the scores with nonzero weights. Their number, mean and variance give the
    threshold and the gradient.

    >>> entmax15(jnp.array([2.0, 2.0, -2.0, 9.0]), jnp.array([True, True, True, False])).round(4)
    Array([0.5, 0.5, 0. , 0. ], dtype=float32)
    """
    return entmax_15(scores, mask, axis)


def entmax_15(scores, mask, axis=-1):
    """Returns the 1.5-entmax of scores; arguments are checked, and the mask may be None."""
    scores, largest, empty = _with_largest(scores, mask, 2, axis)
    below = _below(scores, largest, 2)
    support = _support(scores, largest, 2, axis)
    size = jnp.maximum(jnp.sum(support, axis, keepdims=True, dtype=below.dtype), 1)
    mean = jnp.sum(jnp.where(support, below, 0), axis, keepdims=True) / size
    deviation = jnp.where(support, below - mean, 0)
    square = (1 - jnp.sum(deviation * deviation, axis, keepdims=True)) / size
    # positive up to rounding; the root of 0 would have an infinite gradient
    root = jnp.where(square <= 0, 0, jnp.sqrt(jnp.where(square <= 0, 1, square)))
    above = jnp.where(support, deviation + root, 0)
    return _where_real(above * above, mask, empty)


def _with_largest(scores, mask, degree, axis):
    """Returns (scores, -inf at padding; max_score / degree; bool, True for rows without a score above -inf).

    The last two have size 1 along the axis. The largest score is in the computing dtype, without gradient; it is NaN in
    a row with a score of +inf, and 0 in a row without a score above -inf.
    """
    scores = scores if mask is None else jnp.where(mask, scores, -jnp.inf)
    largest = jnp.expand_dims(max_along_axis(lax.stop_gradient(scores), axis), axis).astype(
        computing_dtype(scores.dtype)
    )
    empty = largest == -jnp.inf
    return scores, jnp.where(largest == jnp.inf, jnp.nan, jnp.where(empty, 0, largest)) / degree, empty


def _below(scores, largest, degree):
    """Returns (score - max_score) / degree, raised to -1 where it is less: at -1 and below, weights are 0."""
    below = scores.astype(largest.dtype) / degree - largest
    return jnp.where(below <= -1, -1, below)


def _support(scores, largest, degree, axis):
    """Returns the support as bool: NaN, and scores s above the t at which the sum of max(0, s - t)^degree is 1.

    Here s is the result of :func:`_below`. The degree is 1 for sparsemax and 2 for 1.5-entmax.

    Newton's method starts below the solution. The sum is convex in t, so t never passes the solution, and increases
    until rounding stops it. About ten steps suffice; a sort by XLA's CPU backend takes as long as hundreds of passes.
    Each step computes s again, because narrow scores are read faster than s.
    """
    scores = lax.stop_gradient(scores)

    def increases(thresholds):
        before, threshold = thresholds
        return jnp.any(threshold > before)

    def step(thresholds):
        _, threshold = thresholds
        below = _below(scores, largest, degree)
        above = jnp.maximum(below - threshold, 0)
        first = jnp.sum(above, axis, keepdims=True)
        if degree == 1:
            total, derivative = first, jnp.sum(below > threshold, axis, keepdims=True, dtype=below.dtype)
        else:
            total, derivative = jnp.sum(above * above, axis, keepdims=True), 2 * first
        return threshold, jnp.maximum(threshold, threshold + (total - 1) / jnp.where(derivative == 0, 1, derivative))

    below = _below(scores, largest, degree)
    least = jnp.min(below, axis, keepdims=True, initial=-1)  # -1 or NaN
    return ~(below <= lax.while_loop(increases, step, (least - 1, least))[1])


def _where_real(weights, mask, empty):
    weights = jnp.where(empty, 0, weights)
    return weights if mask is None else jnp.where(mask, weights, 0)


@compiled(as_they_come=("scores",))
def entmax(scores, mask=None, *, alpha=1.5, axis=-1):
    """Twin of :func:`attnpool_ref.entmax`; the gradient is computed from the weights, not through the bisection.

    >>> entmax(jnp.array([1.0, 2.0, 0.5, 9.0]), jnp.array([True, True, True, False]), alpha=2.0)
    Array([0., 1., 0., 0.], dtype=float32)
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = alpha_entmax(scores, alpha, axis)
    return weights if mask is None else jnp.where(mask, weights, 0)


@compiled
def top_k_softmax(scores, mask=None, *, k, axis=-1):
    """Twin of :func:`attnpool_ref.top_k_softmax`.

    >>> top_k_softmax(jnp.array([2.0, 2.0, 0.5, 9.0]), jnp.array([True, True, True, False]), k=1)
    Array([0.5, 0.5, 0. , 0. ], dtype=float32)
    """
    rows = jnp.moveaxis(lax.stop_gradient(scores if mask is None else jnp.where(mask, scores, -jnp.inf)), axis, -1)
    largest, _ = lax.top_k(rows, smaller(k, rows.shape[-1]))
    least = jnp.min(largest, -1, keepdims=True, initial=jnp.inf)
    max_score = max_along_axis(rows, -1)[..., None]
    undefined = jnp.moveaxis(jnp.isnan(max_score) | (max_score == jnp.inf), -1, axis)
    selected = ~(scores < jnp.moveaxis(least, -1, axis)) | undefined  # a row with NaN becomes NaN
    return softmax(scores, selected if mask is None else selected & mask, axis)


@compiled
def gumbel_softmax(scores, mask=None, noise=None, *, temperature=1.0, hard=False, axis=-1):
    """Twin of :func:`attnpool_ref.gumbel_softmax`.

    >>> noise = jnp.array([1.0, 0.0, 9.0])
    >>> gumbel_softmax(jnp.array([1.0, 2.0, 0.5]), jnp.array([True, True, False]), noise)
    Array([0.5, 0.5, 0. ], dtype=float32)
    """
    if noise is not None:
        scores = scores + noise
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    nothing = scores == -jnp.inf  # the gradient of -inf / temperature is NaN
    scaled = jnp.where(nothing, -jnp.inf, jnp.where(nothing, 0, scores) / temperature)
    weights = softmax(scaled, mask, axis)
    if not hard:
        return weights
    return first_largest(scores, mask, axis) + (weights - lax.stop_gradient(weights))


@compiled
def masked_sigmoid(scores, mask=None, *, normalize=False, axis=-1):
    """Twin of :func:`attnpool_ref.masked_sigmoid`; with ``normalize`` computed as softmax of the sigmoid's logarithm.

    >>> masked_sigmoid(jnp.array([0.0, 0.0, 9.0]), jnp.array([True, True, False]))
    Array([0.5, 0.5, 0. ], dtype=float32)
    """
    return normalized_sigmoid(scores, mask, axis) if normalize else sigmoid(scores, mask)


def sigmoid(scores, mask):
    """Returns the sigmoid of scores, 0 at padding, NaN at +inf; arguments are checked, and the mask may be None."""
    weights = jax.nn.sigmoid(_finite(scores, mask))
    return weights if mask is None else jnp.where(mask, weights, 0)


def normalized_sigmoid(scores, mask, axis=-1):
    """Returns the sigmoid of scores divided by its sum along the axis; 0 at padding, NaN in a row with +inf."""
    return softmax(jax.nn.log_sigmoid(_finite(scores, mask)), mask, axis)


def _finite(scores, mask):
    """Replaces scores at padding by 0, and real scores of +inf by NaN."""
    if mask is not None:
        scores = jnp.where(mask, scores, 0)
    return jnp.where(scores == jnp.inf, jnp.nan, scores)


@compiled
def hardmax(scores, mask=None, *, axis=-1):
    """Twin of :func:`attnpool_ref.hardmax`; the gradient is 0.

    >>> hardmax(jnp.array([1.0, 3.0, 3.0, 9.0]), jnp.array([True, True, True, False]))
    Array([0., 1., 0., 0.], dtype=float32)
    """
    return first_largest(scores, mask, axis)


def first_largest(scores, mask, axis=-1):
    """Returns 1 at the first largest real score of each row, else 0; NaN if a real score is NaN or +inf; gradient 0."""
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    scores = lax.stop_gradient(scores)
    max_score = jnp.expand_dims(max_along_axis(scores, axis), axis)
    place = lax.broadcasted_iota(jnp.int32, scores.shape, axis % scores.ndim)
    count = jnp.asarray(as_number(scores.shape[axis], jnp.int32))
    first = jnp.min(jnp.where(scores == max_score, place, count), axis, keepdims=True, initial=count)
    weights = ((place == first) & (max_score > -jnp.inf)).astype(scores.dtype)
    weights = jnp.where(jnp.isnan(max_score) | (max_score == jnp.inf), jnp.nan, weights)
    return weights if mask is None else jnp.where(mask, weights, 0)


NORMALIZERS = {
    "softmax": softmax,
    "sparsemax": project_on_simplex,
    "entmax15": entmax_15,
    "sigmoid": sigmoid,
    "hardmax": first_largest,
}


def normalize(scores, mask, normalizer, sink=None):
    """Returns weights [..., m] over the last axis, 0 at padding.

    Args:
      scores: [..., m] in the computing dtype.
      mask: bool with as many axes as ``scores``, of size 1 where it is shared; None if all scores are real.
      normalizer: a key of NORMALIZERS, or the caller's function from scores and mask to weights. The function gets both
        broadcast to one shape, with scores of 0 at padding; its result is cast to the dtype of the scores.
      sink: [...], the score of a sink, only with "softmax"; or None.

    Raises:
      TypeError: the function does not return an array of numbers.
      ValueError: its array is complex, or does not have the shape of the scores.
    """
    if sink is not None:
        return softmax(scores, mask, -1, sink)
    if isinstance(normalizer, str):
        return NORMALIZERS[normalizer](scores, mask)
    if mask is None:
        mask = jnp.ones_like(scores, bool)
    scores, mask = jnp.broadcast_arrays(scores, mask)
    weights = normalizer(jnp.where(mask, scores, 0), mask)
    contract.check_weights(normalizer, weights, scores.shape)
    return jnp.where(mask, jnp.asarray(weights).astype(scores.dtype), 0)


def unnormalized_weights(normalizer):
    """Returns the function of a normalizer from scores and mask to (unnormalized weights, denominator).

    For "softmax" it is :func:`exp_and_sum`, whose weights must be divided by the denominator [..., 1]. For others the
    weights are final, and the denominator is None.
    """
    if isinstance(normalizer, str) and normalizer == "softmax":
        return exp_and_sum
    return lambda scores, mask: (normalize(scores, mask, normalizer), None)


@compiled
def l2_normalize(x, *, axis=-1):
    """Twin of :func:`attnpool_ref.l2_normalize`; the gradient at the zero vector is 0.

    >>> l2_normalize(jnp.array([[3.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 0.0]]))
    Array([[0.5, 0.5, 0.5, 0.5],
           [0. , 0. , 0. , 0. ]], dtype=float32)
    """
    return unit(x, axis)


def unit(x, axis=-1):
    """Returns vectors along the axis divided by their L2 norms; 0, with gradient 0, for the zero vector."""
    scaled = x * (1 / power_of_two(jnp.max(jnp.abs(x), axis, keepdims=True, initial=0)))
    squares = jnp.sum(scaled * scaled, axis, keepdims=True)
    norm = jnp.sqrt(jnp.where(squares == 0, 1, squares))
    return jnp.where(squares == 0, 0, scaled / norm)  # a constant: the gradient at the zero vector is 0
