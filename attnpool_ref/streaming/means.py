"""The states of sums and generalised means: sum, min, noisy-or, power mean, log-sum-exp, softmax."""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.means import depths, either, noisy_or_pooling, sum_pooling
from attnpool_ref.streaming.states import kind


@kind
class SumState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.sum_state`: the sum [..., d] of the real tokens."""

    sum: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """The state of both chunks."""
        return SumState(self.sum + other.sum)

    def finalized(self):
        """[..., d]; 0 where nothing was real."""
        return self.sum


@kind
class MinState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.min_state`: the smallest values [..., d], inf without any; whether any is real [...]."""

    extreme: Any
    real: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.extreme.shape

    def merged(self, other):
        """The state of both chunks."""
        return MinState(np.minimum(self.extreme, other.extreme), self.real | other.real)

    def finalized(self):
        """[..., d]; 0 where nothing was real."""
        return np.where(self.real[..., None], self.extreme, 0)


@kind
class NoisyOrState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.noisy_or_state`: the probability [..., d] that something happened."""

    probability: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.probability.shape

    def merged(self, other):
        """The state of both chunks."""
        return NoisyOrState(either(self.probability, other.probability))

    def finalized(self):
        """[..., d]; 0 where nothing was real."""
        return self.probability


@kind
class PowerMeanState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.power_mean_state`: what :class:`LogsumexpState` has, of ln y under the scale p.

    Attributes:
      extreme: [..., d], the largest ln y where p is not negative, else the smallest; an infinity without any.
      total: [..., d], the sum of exp(p (ln y - extreme)).
      slack: [..., d], half the mean of exp(p (ln y - extreme)) - 1 over the magnitude of p.
      count: [...], the number of real tokens.
      p: [..., d].
      dtype: that of the result.
    """

    extreme: Any
    total: Any
    slack: Any
    count: Any
    p: Any
    dtype: Any = None

    options = ("p",)

    @property
    def shape(self):
        """The shape of the result."""
        return self.total.shape

    def merged(self, other):
        """The state of both chunks."""
        return PowerMeanState(*_merged(self, other, self.p), self.count + other.count, self.p)

    def finalized(self):
        """[..., d]; 0 where nothing was real."""
        return np.where(self.count[..., None] == 0, 0, np.exp(_finalized(self, self.p, True)))


@kind
class LogsumexpState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.logsumexp_state`: a sum and a mean in the measure of the largest exponent.

    Attributes:
      extreme: [..., d], the largest value where the scale is not negative, else the smallest; an infinity without any.
      total: [..., d], the sum of exp(scale (x - extreme)).
      slack: [..., d], half the mean of exp(scale (x - extreme)) - 1 over the magnitude of the scale, which has a limit at
        0 and is finite where the tokens are.
      count: [...], the number of real tokens.
      scale: [..., d].
      mean: whether it ends in a mean.
      dtype: that of the result.
    """

    extreme: Any
    total: Any
    slack: Any
    count: Any
    scale: Any
    mean: bool
    dtype: Any = None

    options = "scale", "mean"

    @property
    def shape(self):
        """The shape of the result."""
        return self.total.shape

    def merged(self, other):
        """The state of both chunks."""
        return LogsumexpState(*_merged(self, other, self.scale), self.count + other.count, self.scale, self.mean)

    def finalized(self):
        """[..., d]; 0 where nothing was real."""
        return np.where(self.count[..., None] == 0, 0, _finalized(self, self.scale, self.mean))


@kind
class SoftmaxState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.softmax_state`: an exponential average of each channel before its division.

    Attributes:
      extreme: [..., d], the largest value where the scale is not negative, else the smallest; an infinity without any.
      total: [..., d], the sum of exp(scale (x - extreme)).
      sum: [..., d], the sum of exp(scale (x - extreme)) x over ``total``, so that it does not overflow.
      scale: [..., d].
      dtype: that of the result.
    """

    extreme: Any
    total: Any
    sum: Any
    scale: Any
    dtype: Any = None

    options = ("scale",)

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """The state of both chunks: both in the measure of the larger exponent."""
        extreme, *halves = _met(self, other, self.scale)
        totals = [
            state.total * np.exp(_times(self.scale, half)) for state, half in zip((self, other), halves, strict=True)
        ]
        total = totals[0] + totals[1]
        shares = [own / np.where(total == 0, 1, total) for own in totals]
        with np.errstate(invalid="ignore"):  # 0 times an infinite mean, and inf - inf
            parts = [
                np.where(share == 0, 0, share * state.sum) for state, share in zip((self, other), shares, strict=True)
            ]
            mean = parts[0] + parts[1]
        return SoftmaxState(extreme, total, mean, self.scale)

    def finalized(self):
        """[..., d]; 0 where nothing was real."""
        return self.sum


def _met(a, b, scale):
    """The extreme of two states, and half of each one's distance from it as scale x goes, at most 0."""
    heights = [np.where(scale < 0, -state.extreme, state.extreme) for state in (a, b)]
    top = np.maximum(*heights)
    return np.where(scale < 0, -top, top), *(depths(height / 2, top / 2, scale) for height in heights)


def _times(scale, half):
    """The magnitude of the scale times twice a half; 0 where either is 0, whatever the other."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((half == 0) | (scale == 0), 0, 2 * (np.abs(scale) * half))


def _slack(scale, half):
    """(exp(2 scale half) - 1) over twice the magnitude of the scale, and its limit at 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale == 0, half, np.expm1(_times(scale, half)) / 2 / np.abs(scale))


def _merged(a, b, scale):
    """(extreme, total, slack) of two states: both in the measure of the larger exponent."""
    extreme, *halves = _met(a, b, scale)
    count = np.maximum(a.count + b.count, 1)
    total, slack = 0, 0
    for state, half in zip((a, b), halves, strict=True):
        share, part = np.exp(_times(scale, half)), (state.count / count)[..., None]
        total = total + state.total * share
        slack = slack + np.where(
            part == 0, 0, part * (state.slack * share + _slack(scale, np.where(part == 0, 0, half)))
        )
    return extreme, total, slack


def _finalized(state, scale, mean):
    """ln(mean exp(scale x)) / scale; anything where nothing was real."""
    count = np.maximum(state.count, 1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):  # an empty row, scales of 0, and all tokens infinite
        logarithm = np.log(state.total / (count if mean else 1))
        if mean:
            rest = np.where(np.isinf(scale), -1, _times(scale, state.slack))
            logarithm = np.where(rest > -0.5, np.log1p(np.maximum(rest, -0.5)), logarithm)
        limit = state.slack if mean else np.where(logarithm == 0, 0, np.inf)
        half = np.where(scale == 0, limit, logarithm / 2 / scale)
        return (state.extreme + half) + half


def _sums(x, mask, scale):
    """(extreme, total, slack, count, scale) of clean tokens under a scale."""
    scale, real = np.broadcast_to(scale, (*x.shape[:-2], x.shape[-1])), mask[..., None]
    extreme, halves = _measured(x, mask, scale)
    each, count = scale[..., None, :], np.maximum(np.sum(real, -2, keepdims=True), 1)
    total = np.sum(np.where(real, np.exp(_times(each, halves)), 0), -2)
    slack = np.sum(np.where(real, _slack(each, halves) / count, 0), -2)
    return extreme, total, slack, np.sum(mask, -1), scale


def _measured(x, mask, scale):
    """(extreme [..., d], half of each real token's distance from it as scale x goes) of clean tokens, scale [..., d]."""
    real, each = mask[..., None], scale[..., None, :]
    heights = np.where(each < 0, -x, x)
    top = np.max(np.where(real, heights, -np.inf), -2, keepdims=True, initial=-np.inf)
    halves = np.where(real, depths(np.where(real, heights, top) / 2, top / 2, each), 0)
    return np.where(each < 0, -top, top)[..., 0, :], halves


@definition
def sum_state(x, mask=None, *, lengths=None):
    r"""Keeps what the sum of the whole needs of one chunk.

    .. math:: \sum_{l : k_l} x_l

    :math:`k_l` is 1 at real tokens, else 0.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``SumState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives [..., d].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Zaheer et al. 2017, equation 4, as a monoid.

    >>> whole = merge_states(sum_state([[1.0], [3.0]]), sum_state([[8.0], [99.0]], [True, False]))
    >>> finalize_state(whole)
    array([12.])
    """
    return SumState(sum_pooling(x, mask))


@definition
def min_state(x, mask=None, *, lengths=None):
    r"""Keeps what the minimum of the whole needs of one chunk.

    .. math:: \min_{l : k_l} x_{lc}

    :math:`k_l` is 1 at real tokens, else 0.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``MinState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives [..., d].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Corso et al. 2020, section 2.1, as a monoid.

    >>> whole = merge_states(min_state([[1.0], [3.0]]), min_state([[-99.0]], [False]))
    >>> finalize_state(whole)
    array([1.])
    """
    return MinState(np.min(np.where(mask[..., None], x, np.inf), -2, initial=np.inf), np.any(mask, -1))


@definition
def noisy_or_state(x, mask=None, *, lengths=None):
    r"""Keeps what the noisy-or of the whole needs of one chunk.

    .. math:: 1 - \prod_{l : k_l} (1 - x_{lc})

    :math:`k_l` is 1 at real tokens, else 0.

    Args:
      x: [..., L, d] tokens of the chunk, probabilities.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``NoisyOrState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives
      [..., d].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Maron and Lozano-Pérez 1997, section 2, noisy-or, as a monoid.

    >>> finalize_state(merge_states(noisy_or_state([[0.5]]), noisy_or_state([[0.5]])))
    array([0.75])
    """
    return NoisyOrState(noisy_or_pooling(x, mask))


@definition
def power_mean_state(x, mask=None, p=3.0, *, lengths=None, epsilon=1e-6):
    r"""Keeps what the generalised mean of the whole needs of one chunk; the state remembers p.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{p \ln y_l - t}, \;
              \frac{1}{2 N |p|} \sum_{l : k_l} (e^{p \ln y_l - t} - 1), \; N \Big), \qquad
              t = \max_{l : k_l} p \ln y_l, \quad y = \max(x, \epsilon)

    :math:`k_l` is 1 at real tokens, else 0, and :math:`N` the number of real tokens.

    States that merge have the same p.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L], True = real.
      p: a number, or [d].
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      epsilon: :math:`\epsilon`, a number of at least 0.

    Returns:
      A ``PowerMeanState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives
      [..., d].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Radenović, Tolias and Chum 2018, equation 3, GeM, as a monoid.

    >>> whole = merge_states(power_mean_state([[3.0]], p=2.0), power_mean_state([[4.0]], p=2.0))
    >>> finalize_state(whole) ** 2
    array([12.5])
    """
    with np.errstate(divide="ignore"):  # epsilon 0
        logarithms = np.log(np.maximum(np.where(mask[..., None], x, 1), epsilon))
    return PowerMeanState(*_sums(logarithms, mask, p))


@definition
def logsumexp_state(x, mask=None, scale=1.0, *, lengths=None, mean=True):
    r"""Keeps what the log-mean-exp of the whole needs of one chunk; the state remembers the scale and ``mean``.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{r x_l - t}, \;
              \frac{1}{2 N |r|} \sum_{l : k_l} (e^{r x_l - t} - 1), \; N \Big), \qquad
              t = \max_{l : k_l} r x_l

    :math:`k_l` is 1 at real tokens, else 0, and :math:`N` the number of real tokens.

    States that merge have the same scale.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L], True = real.
      scale: :math:`r`, a number, or [d].
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      mean: divide by the number of real tokens in the end.

    Returns:
      A ``LogsumexpState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives
      [..., d].

    Raises:
      ValueError: shapes disagree, a float mask, a scale of 0 without ``mean``.

    Source:
      Pinheiro and Collobert 2015, equation 4, as a monoid.

    >>> finalize_state(merge_states(logsumexp_state([[1.0]], scale=0.0), logsumexp_state([[3.0]], scale=0.0)))
    array([2.])
    """
    return LogsumexpState(*_sums(np.where(mask[..., None], x, 0), mask, scale), mean)


@definition
def softmax_state(x, mask=None, scale=1.0, *, lengths=None):
    r"""Keeps what softmax pooling of the whole needs of one chunk; the state remembers the scale.

    .. math:: \Big( t, \; T, \; \frac{1}{T} \sum_{l : k_l} e^{r x_l - t} x_l \Big), \qquad
              t = \max_{l : k_l} r x_l, \quad T = \sum_{l : k_l} e^{r x_l - t}

    :math:`k_l` is 1 at real tokens, else 0.

    States that merge have the same scale.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L], True = real.
      scale: :math:`r`, a number, or [d].
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``SoftmaxState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives
      [..., d].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      McFee, Salamon and Bello 2018, section II-C, as a monoid.

    >>> finalize_state(merge_states(softmax_state([[1.0]], scale=0.0), softmax_state([[3.0]], scale=0.0)))
    array([2.])
    """
    real, scale = mask[..., None], np.broadcast_to(scale, (*x.shape[:-2], x.shape[-1]))
    x = np.where(real, x, 0)
    extreme, halves = _measured(x, mask, scale)
    unnormalized = np.where(real, np.exp(_times(scale[..., None, :], halves)), 0)
    total = np.sum(unnormalized, -2)
    weights = unnormalized / np.where(total == 0, 1, total)[..., None, :]
    with np.errstate(invalid="ignore"):  # 0 times an infinite token
        return SoftmaxState(extreme, total, np.sum(np.where(weights == 0, 0, weights * x), -2), scale)
