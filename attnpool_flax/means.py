"""Sums, order statistics and generalized means. Twin of :mod:`attnpool_ref.means`.

In the functions without ``@compiled``, ``tokens`` is a :class:`DenseChannels` (padded tokens, also sharded over a mesh)
or its equivalent for packed tokens; both have the same methods. States of chunks call these functions too.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.exponents import (
    average,
    clamped,
    depths,
    exponential_times,
    exponents_of,
    half,
    logarithm,
    lowered,
    scaled,
)
from attnpool_flax.numerics.order_statistic import order_statistics
from attnpool_flax.numerics.rounding import largest
from attnpool_flax.numerics.sizes import smaller
from attnpool_flax.numerics.sums import divisor_of, summed
from attnpool_flax.tokens import DenseChannels


@compiled(tokens=("x",), as_they_come=("x",))
def sum_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.sum_pooling`; rounding errors hardly grow with the number of tokens: sums are nested.

    >>> sum_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([4.], dtype=float32)

    Packed:

    >>> segment_sum_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[4.],
           [5.]], dtype=float32)
    """
    return x.sum()


@compiled(tokens=("x",), as_they_come=("x",))
def min_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.min_pooling`.

    >>> min_pooling(jnp.array([[1.0], [3.0], [-99.0]]), jnp.array([True, True, False]))
    Array([1.], dtype=float32)

    Packed:

    >>> segment_min_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [5.]], dtype=float32)
    """
    return x.min()


@compiled(as_they_come=("x",))
def quantile_pooling(x, mask=None, q=0.5, *, lengths=None, method="linear"):
    """Twin of :func:`attnpool_ref.quantile_pooling`: order statistics by their bits, without a sort.

    >>> x = jnp.array([[1.0], [2.0], [10.0], [3.0], [99.0]])
    >>> quantile_pooling(x, jnp.array([True, True, True, True, False]))
    Array([2.5], dtype=float32)
    """
    tokens, length = DenseChannels(x, mask), x.shape[-2]
    if not length:
        return jnp.sum(tokens.x, -2)
    last = jnp.maximum(_number(tokens)[..., None] - 1, 0)
    place = last * q
    rounded = {"lower": (jnp.floor,), "higher": (jnp.ceil,), "nearest": (jnp.round,)}.get(method, (jnp.floor, jnp.ceil))
    ends = [jnp.clip(end(lax.stop_gradient(place)), 0, last).astype(jnp.int32) for end in rounded]
    low, high = (found.astype(tokens.x.dtype) for found in order_statistics(x, tokens.real, ends[0], ends[-1]))
    if method == "linear":
        fraction = place - jnp.floor(lax.stop_gradient(place))
    else:  # NaN if the place is
        fraction = 0 * lax.stop_gradient(place) + (0.5 if method == "midpoint" else 0)
    between = jnp.squeeze(fraction, -2)
    return _known(tokens, _between(low, high, between))


def _between(low, high, fraction):
    """Returns low + fraction (high - low), for low <= high; where the difference overflows, a weighted sum of both."""
    apart = jnp.where(low == high, 0, high - low)  # of equal infinities the difference is 0
    wide = jnp.isinf(apart)
    near, (low_end, high_end) = (
        low + fraction * jnp.where(wide, 0, apart),
        (jnp.where(wide, end, 0) for end in (low, high)),
    )
    return jnp.where(wide, (1 - fraction) * low_end + fraction * high_end, near)


@compiled
def top_k_pooling(x, mask=None, *, lengths=None, k):
    """Twin of :func:`attnpool_ref.top_k_pooling`.

    >>> top_k_pooling(jnp.array([[3.0], [1.0], [4.0], [99.0]]), jnp.array([True, True, True, False]), k=2)
    Array([3.5], dtype=float32)
    """
    tokens, length = DenseChannels(x, mask), x.shape[-2]
    if not length:
        return jnp.sum(x, -2)
    k = smaller(k, length)
    taken = jnp.minimum(k, jnp.maximum(_number(tokens)[..., None], 1))
    values = tokens.fill_padding(x, -jnp.inf)
    ordered = jnp.swapaxes(lax.top_k(jnp.swapaxes(lax.stop_gradient(values), -1, -2), k)[0], -1, -2)
    least = jnp.expand_dims(_at(ordered, taken.astype(jnp.int32) - 1), -2)
    above, tied = (tokens.fill_padding(found, False) for found in (values > least, values == least))
    tied_weight = 1 - jnp.sum(above, -2).astype(x.dtype) / jnp.squeeze(taken, -2)
    return _known(
        tokens,
        summed(jnp.where(above, x / taken, 0), -2) + tied_weight * largest(jnp.where(tied, x, -jnp.inf), tied, -2),
    )


def _at(ordered, index):
    """Takes [..., d] from [..., L, d], at one index [..., 1, 1] for each example."""
    batch = jnp.broadcast_shapes(ordered.shape[:-2], index.shape[:-2])
    index = jnp.broadcast_to(index, (*batch, 1, ordered.shape[-1]))
    ordered = jnp.broadcast_to(ordered, (*batch, *ordered.shape[-2:]))
    return jnp.squeeze(jnp.take_along_axis(ordered, index, -2, mode="clip"), -2)


def _known(tokens, result):
    """Returns ``result`` [..., d], but NaN where a real value of the channel is NaN, and 0 for a fully masked row."""
    lost = jnp.any(tokens.fill_padding(jnp.isnan(tokens.x), False), -2)
    return jnp.where(_number(tokens) == 0, 0, jnp.where(lost, jnp.nan, result))


def _number(tokens):
    """Counts the real tokens: [..., 1], in the computing dtype."""
    return tokens.sum_over_tokens(None)[0]


@compiled(tokens=("x",), as_they_come=("x",))
def noisy_or_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.noisy_or_pooling`.

    Pairs of tokens are combined by a + b - a b, then pairs of the results, until one is left. Result and gradient are
    accurate also for probabilities near 0, or equal to 1.

    >>> noisy_or_pooling(jnp.array([[0.5], [0.5], [0.9]]), jnp.array([True, True, False]))
    Array([0.75], dtype=float32)

    Packed:
      The function first sorts the tokens by segment.

    >>> segment_noisy_or_pooling(jnp.array([[0.5], [0.25], [0.5]]), jnp.array([0, 1, 0]), 2)
    Array([[0.75],
           [0.25]], dtype=float32)
    """
    return noisy_or(x.channels())


def noisy_or(tokens):
    """Returns the noisy-or [..., d] of tokens, the probability of at least one event; 0 for a fully masked row."""
    return tokens.fold(tokens.x, either)


@jax.custom_jvp
def either(a, b):
    """Returns the probability of at least one of two independent events; for infinite arguments 1 - (1 - a) (1 - b)."""
    neither = 1 - a
    value = a + b * neither
    return jnp.where(value == value, value, (b - 1) * neither)  # NaN by inf - inf or 0 * inf


@either.defjvp
def _either_jvp(primals, tangents):
    a, b = primals
    return either(a, b), (1 - b) * tangents[0] + (1 - a) * tangents[1]


@compiled(tokens=("x",), as_they_come=("x",))
def power_mean_pooling(x, mask=None, p=3.0, *, lengths=None, epsilon=1e-6, axis_name=None):
    """Twin of :func:`attnpool_ref.power_mean_pooling`: computed from logarithms of the values.

    The derivative with respect to p is accurate for small p. At p = 0 the contract does not guarantee this derivative.

    >>> power_mean_pooling(jnp.array([[3.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([3.], dtype=float32)

    Packed:

    >>> segment_power_mean_pooling(jnp.array([[2.0], [5.0], [2.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return power_mean(x.channels(), p, epsilon)


def power_mean(tokens, p, epsilon):
    """Returns the power mean [..., d] of tokens; ``p`` is [] or [d]; tokens below ``epsilon`` are raised to it."""
    extreme, sums, zeros = power_mean_sums(tokens, p, epsilon)
    return finished_power_mean(extreme, sums, zeros, tokens.broadcast_features(p)[0])


def power_mean_sums(tokens, p, epsilon):
    """Returns (the largest value, or the smallest for p < 0; :class:`Exponents` of the logarithms; the sum of zeros).

    Tokens can be exactly 0 only if ``epsilon`` is 0. Their logarithm, -inf, has no gradient. The sum of zeros has value
    0: at p = 1 it is the sum of these tokens and has their gradient, at any other p it is a constant.
    """
    of_example, p = tokens.broadcast_features(p)
    values = clamped(tokens.fill_padding(tokens.x, 1), epsilon)
    (most,) = tokens.max_over_tokens(tokens.fill_padding(times_sign(values, p), -jnp.inf))
    extreme = times_sign(most, of_example)
    extreme = jnp.where(extreme == -jnp.inf, 0, extreme)  # a fully masked row
    here, zero = tokens.expand_to_tokens(extreme), values == 0
    logarithms = jnp.where(zero, -jnp.inf, jnp.log(jnp.where(zero, 1, values)))
    measured = times_sign(logarithms, p)
    # the logarithm of the same number may be rounded differently in an array of another shape
    top = jnp.where(values == here, lax.stop_gradient(measured), times_sign(jnp.log(here), p))
    zeros = tokens.fill_padding(jnp.where(zero & (p == 1), values, 0))
    sums, (zeros,) = exponents_of(tokens, tokens.fill_padding(depths(measured, top, p)), times_sign(p, p), zeros)
    return extreme, sums, zeros


def finished_power_mean(extreme, sums, zeros, p):
    """Returns the power mean [..., d] from :func:`power_mean_sums`; 0 for a fully masked row; p is [..., 1 or d]."""
    nothing = sums.count == 0
    below, extreme = times_sign(logarithm(sums, times_sign(p, p), True), p), jnp.where(nothing, 1, extreme)
    # exp(below) may under- or overflow where the mean does not
    far = jnp.abs(below) > 0.9 * math.log(jnp.finfo(below.dtype).max)
    mean = jnp.where(far, 1, extreme) * jnp.exp(jnp.where(far, jnp.log(extreme), 0) + below)
    return jnp.where(nothing, 0, mean + zeros / jnp.maximum(sums.count, 1))


@compiled(tokens=("x",), as_they_come=("x",))
def logsumexp_pooling(x, mask=None, scale=1.0, *, lengths=None, mean=True, axis_name=None):
    """Twin of :func:`attnpool_ref.logsumexp_pooling`; the derivative by the scale is accurate at small scales.

    With ``mean=False`` a scale of 0 is an error, except in a JAX array, which is not checked: the result of several
    real tokens is then infinite.

    >>> logsumexp_pooling(jnp.array([[0.0], [0.0], [99.0]]), jnp.array([True, True, False]), 2.0)
    Array([0.], dtype=float32)

    Packed:

    >>> segment_logsumexp_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, scale=0.0)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return logsumexp(x.channels(), scale, mean)


def logsumexp(tokens, scale, mean):
    """Returns ln(mean exp(scale x)) / scale [..., d] of tokens x; the sum in place of the mean if ``mean`` is False."""
    extreme, sums = logsumexp_sums(tokens, scale)
    return finished_logsumexp(extreme, sums, tokens.broadcast_features(scale)[0], mean)


def logsumexp_sums(tokens, scale):
    """Returns (the largest value [..., d], or the smallest for scale < 0; :class:`Exponents` of the values).

    The exponents have half the depths and twice the magnitude of the scale, against overflow.
    """
    of_example, scale = tokens.broadcast_features(scale)
    top, below = max_and_distances(tokens, scale)
    return times_sign(top, of_example), exponents_of(tokens, below, doubled_magnitude(scale))[0]


def finished_logsumexp(extreme, sums, scale, mean):
    """Returns the result of :func:`logsumexp` [..., d] from that of :func:`logsumexp_sums`; 0 for a fully masked row.

    ``scale`` is [..., 1] or [..., d].
    """
    below = times_sign(logarithm(sums, doubled_magnitude(scale), mean), scale)
    return jnp.where(sums.count == 0, 0, lowered(extreme, below))


@compiled(tokens=("x",), as_they_come=("x",))
def softmax_pooling(x, mask=None, scale=1.0, *, lengths=None, return_weights=False, axis_name=None):
    """Twin of :func:`attnpool_ref.softmax_pooling`.

    >>> softmax_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]), 0.0)
    Array([2.], dtype=float32)

    Packed:

    >>> segment_softmax_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, scale=0.0)
    Array([[2.],
           [5.]], dtype=float32)
    """
    pooled, weights = softmax(x.channels(), scale)
    return (pooled, weights) if return_weights else pooled


def softmax(tokens, scale):
    """Returns (pooled [..., d], weights [..., L, d], packed [N, d]) of tokens x under the softmax of scale x."""
    extreme, total, excess, unnormalized = softmax_sums(tokens, scale)
    whole = jnp.where(total == 0, 1, total)
    pooled = finished_softmax(extreme, total, excess, tokens.broadcast_features(scale)[0])
    return pooled, tokens.fill_padding(unnormalized / tokens.expand_to_tokens(whole))


def softmax_sums(tokens, scale):
    """Returns (the largest value, or the smallest for scale < 0; total; excess; unnormalized weights).

    The depth of a token is sign(scale) x minus the largest such number, at most 0. The unnormalized weights [..., L, d]
    are exp(|scale| depth), and the total [..., d] is their sum. The excess [..., d] is the sum of the unnormalized
    weights times half the depths, divided by :func:`~attnpool_flax.numerics.sums.divisor_of` the total to avoid
    overflow.
    """
    of_example, scale = tokens.broadcast_features(scale)
    top, below = max_and_distances(tokens, scale)
    exponent, infinite = scaled(below, doubled_magnitude(scale)), jnp.isinf(below)
    unnormalized, parts = tokens.fill_padding(jnp.exp(exponent)), below / tokens.divisor
    excess = tokens.fill_padding(exponential_times(exponent, jnp.where(infinite, 0, parts)))
    excess = jnp.where(infinite & (scale == 0), parts, excess)  # elsewhere its weight is 0
    total, excess = tokens.sum_over_tokens(unnormalized, excess)
    return times_sign(top, of_example), total, excess * (tokens.divisor / divisor_of(total)), unnormalized


def finished_softmax(extreme, total, excess, scale):
    """Returns the average [..., d] from :func:`softmax_sums`; 0 for a fully masked row; scale is [..., 1 or d]."""
    nothing = total == 0
    total = jnp.where(nothing, 1, total)
    return jnp.where(nothing, 0, lowered(extreme, times_sign(average(excess, total), scale)))


def max_and_distances(tokens, scale):
    """Returns (the maximum [..., d] of sign(scale) x; half of each token's difference from it [..., L, d], at most 0).

    Padding takes no part: a maximum over no real token is -inf, and differences are 0 at padding.
    """
    measured = times_sign(tokens.x, scale)
    (top,) = tokens.max_over_tokens(tokens.fill_padding(measured, -jnp.inf))
    return top, tokens.fill_padding(depths(measured / 2, tokens.expand_to_tokens(half(top)), scale))


def doubled_magnitude(scale):
    """Returns twice the magnitude of a scale; callers halve the differences that it multiplies."""
    return 2 * times_sign(scale, scale)


def times_sign(values, scale):
    """Returns -values where the scale is negative, else values."""
    return jnp.where(scale < 0, -values, values)
