"""Chunked sums and generalized means: sum, min, noisy-or, power mean, log-sum-exp, softmax."""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.means import either, noisy_or_pooling, sum_pooling
from attnpool_ref.streaming import exponents
from attnpool_ref.streaming.states import kind


@kind
class SumState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.sum_state`: the sum [..., d] of the real tokens."""

    sum: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.sum.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        return type(self)(self.sum + other.sum)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.sum


@kind
class MinState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.min_state`: smallest values [..., d]; whether any token is real [...]."""

    extreme: Any
    real: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.extreme.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        return MinState(np.minimum(self.extreme, other.extreme), self.real | other.real)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return np.where(self.real[..., None], self.extreme, 0)


@kind
class NoisyOrState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.noisy_or_state`: the probability [..., d] of at least one event."""

    probability: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.probability.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        return NoisyOrState(either(self.probability, other.probability))

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.probability


@kind
class PowerMeanState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.power_mean_state`: the sums of :class:`LogsumexpState`, with ln y for x.

    Here y is max(x, epsilon).

    Attributes:
      extreme: [..., d], the largest ln y (-inf if fully masked), or for a negative p the smallest (inf).
      total: [..., d], the sum of exp(p (ln y - extreme)).
      slack: [..., d], the mean of (exp(p (ln y - extreme)) - 1) / (2 abs(p)).
      count: [...], the number of real tokens.
      p: [..., d], the exponent.
      dtype: the dtype of the result.
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
        """The shape of the result of ``finalize_state``."""
        return self.total.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        return PowerMeanState(*exponents.merge(self, other, self.p), self.count + other.count, self.p)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return np.where(self.count[..., None] == 0, 0, np.exp(exponents.finalize(self, self.p, True)))


@kind
class LogsumexpState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.logsumexp_state`: a sum and a mean relative to the extreme value.

    Attributes:
      extreme: [..., d], the largest value (-inf if fully masked), or for a negative scale the smallest (inf).
      total: [..., d], the sum of exp(scale (x - extreme)).
      slack: [..., d], the mean of (exp(scale (x - extreme)) - 1) / (2 abs(scale)), or its limit for a scale of 0; it is
        finite if the tokens are.
      count: [...], the number of real tokens.
      scale: [..., d], the argument of the state function.
      mean: True for the logarithm of a mean, False for that of a sum.
      dtype: the dtype of the result.
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
        """The shape of the result of ``finalize_state``."""
        return self.total.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        return LogsumexpState(
            *exponents.merge(self, other, self.scale), self.count + other.count, self.scale, self.mean
        )

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return np.where(self.count[..., None] == 0, 0, exponents.finalize(self, self.scale, self.mean))


@kind
class SoftmaxState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.softmax_state`: a softmax average of each feature.

    Attributes:
      extreme: [..., d], the largest value (-inf if fully masked), or for a negative scale the smallest (inf).
      total: [..., d], the sum of exp(scale (x - extreme)).
      sum: [..., d], the sum of exp(scale (x - extreme)) x, divided by ``total`` so that it cannot overflow.
      scale: [..., d], the argument of the state function.
      dtype: the dtype of the result.
    """

    extreme: Any
    total: Any
    sum: Any
    scale: Any
    dtype: Any = None

    options = ("scale",)

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.sum.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``, rescaled to the larger exponent."""
        extreme, *halves = exponents.common_extreme(self, other, self.scale)
        totals = [
            state.total * np.exp(exponents.exponent(self.scale, half))
            for state, half in zip((self, other), halves, strict=True)
        ]
        total = totals[0] + totals[1]
        ratios = [own / np.where(total == 0, 1, total) for own in totals]
        with np.errstate(invalid="ignore"):  # 0 * inf and inf - inf are not selected
            terms = [np.where(r == 0, 0, r * s.sum) for r, s in zip(ratios, (self, other), strict=True)]
            mean = terms[0] + terms[1]
        return SoftmaxState(extreme, total, mean, self.scale)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.sum


@definition
def sum_state(x, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for sum pooling.

    .. math:: \sum_{l : k_l} x_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``SumState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Zaheer et al. 2017, theorem 2.

    >>> whole = merge_states(sum_state([[1.0], [3.0]]), sum_state([[8.0], [99.0]], [True, False]))
    >>> finalize_state(whole)
    array([12.])
    """
    return SumState(sum_pooling(x, mask))


@definition
def min_state(x, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for min pooling.

    .. math:: \min_{l : k_l} x_{lc}

    A chunk has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if token
    :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``MinState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Corso et al. 2020, section 2.1.

    >>> whole = merge_states(min_state([[1.0], [3.0]]), min_state([[-99.0]], [False]))
    >>> finalize_state(whole)
    array([1.])
    """
    return MinState(np.min(np.where(mask[..., None], x, np.inf), -2, initial=np.inf), np.any(mask, -1))


@definition
def noisy_or_state(x, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for noisy-or pooling.

    .. math:: 1 - \prod_{l : k_l} (1 - x_{lc})

    A chunk has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if token
    :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens of the chunk, probabilities from 0 to 1.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``NoisyOrState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Maron and Lozano-Pérez 1997, section 2, noisy-or.

    >>> finalize_state(merge_states(noisy_or_state([[0.5]]), noisy_or_state([[0.5]])))
    array([0.75])
    """
    return NoisyOrState(noisy_or_pooling(x, mask))


@definition
def power_mean_state(x, mask=None, p=3.0, *, lengths=None, epsilon=1e-6):
    r"""Returns the state of one chunk of a sequence for the power mean (GeM); it holds ``p``.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{p \ln y_l - t}, \;
              \frac{1}{2 N |p|} \sum_{l : k_l} (e^{p \ln y_l - t} - 1), \; N \Big), \qquad
              t = \max_{l : k_l} p \ln y_l, \quad y = \max(x, \epsilon)

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the :math:`N` real tokens. Each feature is computed for itself; the state stores :math:`t` as
    the :math:`\ln y_l` that attains it. :func:`merge_states` raises an error for states
    with different p.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      p: :math:`p`, a number, or [d] with one for each feature.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      epsilon: :math:`\epsilon`, a number of at least 0; the same for all chunks, which is not checked.

    Returns:
      A ``PowerMeanState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Radenović, Tolias and Chum 2019, equation 3, GeM.

    >>> whole = merge_states(power_mean_state([[3.0]], p=2.0), power_mean_state([[4.0]], p=2.0))
    >>> finalize_state(whole) ** 2
    array([12.5])
    """
    with np.errstate(divide="ignore"):  # log(0) if epsilon is 0
        logarithms = np.log(np.maximum(np.where(mask[..., None], x, 1), epsilon))
    return PowerMeanState(*exponents.accumulate(logarithms, mask, p))


@definition
def logsumexp_state(x, mask=None, scale=1.0, *, lengths=None, mean=True):
    r"""Returns the state of one chunk of a sequence for log-sum-exp pooling; it holds ``scale`` and ``mean``.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{r x_l - t}, \;
              \frac{1}{2 N |r|} \sum_{l : k_l} (e^{r x_l - t} - 1), \; N \Big), \qquad
              t = \max_{l : k_l} r x_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the :math:`N` real tokens. Each feature is computed for itself; the state stores :math:`t` as
    the :math:`x_l` that attains it. :func:`merge_states` raises an error for states
    with different ``scale`` or ``mean``.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      scale: :math:`r`, a number, or [d] with one for each feature.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      mean: divide the sum of the exponentials by the number of real tokens of all chunks.

    Returns:
      A ``LogsumexpState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if ``scale`` is 0 without ``mean``.

    Source:
      Pinheiro and Collobert 2015, equation 4.

    >>> finalize_state(merge_states(logsumexp_state([[1.0]], scale=0.0), logsumexp_state([[3.0]], scale=0.0)))
    array([2.])
    """
    return LogsumexpState(*exponents.accumulate(np.where(mask[..., None], x, 0), mask, scale), mean)


@definition
def softmax_state(x, mask=None, scale=1.0, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for softmax pooling; it holds ``scale``.

    .. math:: \Big( t, \; T, \; \frac{1}{T} \sum_{l : k_l} e^{r x_l - t} x_l \Big), \qquad
              t = \max_{l : k_l} r x_l, \quad T = \sum_{l : k_l} e^{r x_l - t}

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. Each feature is computed for itself; the state stores :math:`t` as the
    :math:`x_l` that attains it. :func:`merge_states` raises an error for
    states with different scales.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      scale: :math:`r`, a number, or [d] with one for each feature.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``SoftmaxState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      McFee, Salamon and Bello 2018, section II-C.

    >>> finalize_state(merge_states(softmax_state([[1.0]], scale=0.0), softmax_state([[3.0]], scale=0.0)))
    array([2.])
    """
    real, scale = mask[..., None], np.broadcast_to(scale, (*x.shape[:-2], x.shape[-1]))
    x = np.where(real, x, 0)
    extreme, halves = exponents.relative_to_extreme(x, mask, scale)
    unnormalized = np.where(real, np.exp(exponents.exponent(scale[..., None, :], halves)), 0)
    total = np.sum(unnormalized, -2)
    weights = unnormalized / np.where(total == 0, 1, total)[..., None, :]
    with np.errstate(invalid="ignore"):  # 0 * inf is not selected
        return SoftmaxState(extreme, total, np.sum(np.where(weights == 0, 0, weights * x), -2), scale)
