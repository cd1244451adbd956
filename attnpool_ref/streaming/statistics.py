"""Chunked statistics pooling: moments about a center, which merge without subtracting large squares."""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.statistics import counting, deviation_of, first_used, scores_of
from attnpool_ref.streaming.states import kind


@kind
class StdState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.std_state`: moments of the tokens x under weights w about a center c.

    Sums of weights are [..., d], or [..., 1] if all features share the weights.

    Attributes:
      mass: [..., d] or [..., 1], the sum of abs(w).
      total: [..., d] or [..., 1], the sum of w.
      squares: [..., d] or [..., 1], the sum of w squared.
      center: [..., d], the mean of x under the weights abs(w): the weighted mean if no weight is negative.
      first: [..., d], the sum of w (x - c): 0 up to rounding if no weight is negative.
      second: [..., d], the sum of w (x - c) squared.
      ddof: [..., 1], the argument of the state function.
      epsilon: [..., 1], the argument of the state function.
      dtype: the dtype of the result.
    """

    mass: Any
    total: Any
    squares: Any
    center: Any
    first: Any
    second: Any
    ddof: Any
    epsilon: Any
    dtype: Any = None

    options = "ddof", "epsilon"

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.second.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``, about a center between theirs."""
        return type(self)(*_merged(self[:6], other[:6]), self.ddof, self.epsilon)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row, or if the weights sum to 0."""
        return _statistics(self[1:6], self.ddof, self.epsilon)[1]


@kind
class StatisticsState(StdState):
    """State of :func:`~attnpool_ref.streaming.statistics_state`, with the fields of :class:`StdState`."""

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return _doubled(self.second.shape)

    def finalized(self):
        """Returns the result [..., 2d] in float64; 0 for a fully masked row, or if the weights sum to 0."""
        return np.concatenate(_statistics(self[1:6], self.ddof, self.epsilon), -1)


@kind
class AttentiveStatisticsState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.attentive_statistics_state`: moments under the weights exp(score - top).

    Attributes:
      top: [..., d] or [..., 1], the largest score; -inf for a fully masked row.
      mass: [..., d] or [..., 1], the sum of the weights.
      total: the same as ``mass``, because no weight is negative.
      squares: [..., d] or [..., 1], the sum of the squared weights.
      center: [..., d], the weighted mean.
      first: [..., d], the sum of weights times distances from the center: 0 up to rounding.
      second: [..., d], the sum of weights times squared distances from the center.
      epsilon: [..., 1], the argument of the state function.
      dtype: the dtype of the result.
    """

    top: Any
    mass: Any
    total: Any
    squares: Any
    center: Any
    first: Any
    second: Any
    epsilon: Any
    dtype: Any = None

    options = ("epsilon",)

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return _doubled(self.second.shape)

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``, with weights relative to the larger ``top``."""
        top, parts = np.maximum(self.top, other.top), []
        for state in (self, other):
            with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf gives NaN by definition
                scale = np.exp(state.top - np.where(top == -np.inf, 0, top))
            mass, total, squares, center, first, second = state[1:7]
            parts.append((mass * scale, total * scale, squares * scale**2, center, first * scale, second * scale))
        return AttentiveStatisticsState(top, *_merged(*parts), self.epsilon)

    def finalized(self):
        """Returns the result [..., 2d] in float64; 0 for a fully masked row."""
        return np.concatenate(_statistics(self[2:7], 0, self.epsilon), -1)


def _doubled(shape):
    return (*shape[:-1], 2 * shape[-1])


def _merged(a, b):
    """Returns (mass, total, squares, center, first, second) of two states together, each given as such a tuple."""
    whole = a[0] + b[0]
    with np.errstate(invalid="ignore"):  # inf - inf: an infinite token has no deviation
        between = a[3] + (b[3] - a[3]) * (b[0] / np.where(whole == 0, 1, whole))
        center = np.where(b[0] == 0, a[3], np.where(a[0] == 0, b[3], between))
        moved = [np.where((c == center) | (mass == 0), 0, c - center) for mass, _, _, c, _, _ in (a, b)]
        first = sum(part[4] + part[1] * away for part, away in zip((a, b), moved, strict=True))
        second = sum(part[5] + away * (2 * part[4] + part[1] * away) for part, away in zip((a, b), moved, strict=True))
    return whole, a[1] + b[1], a[2] + b[2], center, first, second


def _statistics(moments, ddof, epsilon):
    """Returns (mean, deviation) from the moments (total, squares, center, first, second)."""
    total, squares, center, first, second = moments
    whole = np.where(total == 0, 1, total)
    mean = np.where(total == 0, 0, center + first / whole)
    return mean, deviation_of(total, squares, second - first**2 / whole, ddof, epsilon)


def _moments(x, mask, weights):
    """Returns (mass, total, squares, center, first, second) of real tokens under weights [..., L, d] or [..., L, 1]."""
    mask = mask[..., None]
    weights = np.where(mask, weights, 0)
    origin, mass = first_used(x, weights), np.sum(np.abs(weights), -2)
    with np.errstate(invalid="ignore"):  # inf - inf: an infinite token has no deviation
        shifted = np.where(mask & counting(x, weights), x, origin) - origin
        center = np.sum(np.abs(weights) * shifted, -2) / np.where(mass == 0, 1, mass)
        away = shifted - center[..., None, :]
        first, second = np.sum(weights * away, -2), np.sum(weights * away**2, -2)
        center = origin[..., 0, :] + center
    return mass, np.sum(weights, -2), np.sum(weights**2, -2), center, first, second


def _given(x, mask, weights, ddof, epsilon):
    """Returns the fields of a :class:`StdState` under given weights."""
    if weights is None:
        weights = np.ones(mask.shape)
    moments = _moments(x, mask, weights if weights.ndim == x.ndim else weights[..., None])
    return *moments, *(np.broadcast_to(number, (*x.shape[:-2], 1)) for number in (ddof, epsilon))


@definition
def std_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    r"""Returns the state of one chunk of a sequence for the standard deviation; it holds ``ddof`` and ``epsilon``.

    .. math:: \Big( W, \; \sum_{l : k_l} w_l^2, \; \mu, \; \sum_{l : k_l} w_l (x_l - \mu)^2 \Big), \qquad
              W = \sum_{l : k_l} w_l, \quad \mu = \frac 1 W \sum_{l : k_l} w_l x_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    States whose ``ddof`` or ``epsilon`` differ do not merge: :func:`merge_states` raises an error. Two states merge
    about their common mean. The state stores the mean under the absolute weights, which is :math:`\mu` if no weight is
    negative.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      weights: at least 0, which is not checked: [L], shared by all examples; [..., L], for each example; or
        [..., L, d], for each feature. None gives each token weight 1.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      ddof: a number, as in :func:`std_pooling`; 1 divides by the number of real tokens minus 1, if there are no
        weights.
      epsilon: the minimum of the variance, a number.

    Returns:
      A ``StdState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if the weights are boolean (then they are
        probably a mask).

    Source:
      Snyder et al. 2018, section 2.1; states are merged as in Chan, Golub and LeVeque 1983, equation 2.1.

    >>> whole = merge_states(std_state([[1.0], [2.0]]), std_state([[3.0], [99.0]], [True, False], ddof=0))
    >>> finalize_state(whole)
    array([0.81649658])
    """
    return StdState(*_given(x, mask, weights, ddof, epsilon))


@definition
def statistics_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    r"""Returns the state of one chunk of a sequence for mean and standard deviation, with ``ddof`` and ``epsilon``.

    .. math:: \Big( W, \; \sum_{l : k_l} w_l^2, \; \mu, \; \sum_{l : k_l} w_l (x_l - \mu)^2 \Big), \qquad
              W = \sum_{l : k_l} w_l, \quad \mu = \frac 1 W \sum_{l : k_l} w_l x_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    States whose ``ddof`` or ``epsilon`` differ do not merge: :func:`merge_states` raises an error.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      weights: at least 0, which is not checked: [L], shared by all examples; [..., L], for each example; or
        [..., L, d], for each feature. None gives each token weight 1.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      ddof: a number, as in :func:`std_pooling`; 1 divides by the number of real tokens minus 1, if there are no
        weights.
      epsilon: the minimum of the variance, a number.

    Returns:
      A ``StatisticsState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., 2d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if the weights are boolean (then they are
        probably a mask).

    Source:
      Snyder et al. 2018, section 2.1; states are merged as in Chan, Golub and LeVeque 1983, equation 2.1.

    >>> finalize_state(merge_states(statistics_state([[1.0], [1.0]]), statistics_state([[3.0], [3.0]])))
    array([2., 1.])
    """
    return StatisticsState(*_given(x, mask, weights, ddof, epsilon))


@definition
def attentive_statistics_state(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    out_bias=None,
    norm_scale=None,
    norm_bias=None,
    activation="tanh",
    global_context=False,
    epsilon=0.0,
):
    r"""Returns the state of one chunk of a sequence for attentive statistics pooling.

    .. math:: \Big( t, \; T, \; \mu, \; \sum_{l : k_l} e^{s_l - t} (x_l - \mu)^2 \Big), \qquad
              t = \max_{l : k_l} s_l, \quad T = \sum_{l : k_l} e^{s_l - t}, \quad
              \mu = \frac 1 T \sum_{l : k_l} e^{s_l - t} x_l, \quad s_l = a(x_l W + b) V

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`t` is the largest score, and the entries are moments of the tokens under
    the weights :math:`e^{s_l - t}`. :math:`a` is the activation.

    ``global_context=True`` is an error, because the statistics of all tokens are not known before the last chunk.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      kernel: [d, h], :math:`W`, for h hidden units.
      out_kernel: :math:`V`: [h] for one weight per token, [h, d] for one per token and feature.
      bias: [h], :math:`b`, or None.
      out_bias: a number or [d], or None; ignored, because it cancels.
      norm_scale: [h], as in :func:`attentive_statistics_pooling`, or None; only with the activation "tanh".
      norm_bias: [h], as in :func:`attentive_statistics_pooling`, or None; only with ``norm_scale``.
      activation: :math:`a`: "tanh", "relu", "gelu" (exact) or "identity".
      global_context: only False.
      epsilon: the minimum of the variance, a number. :func:`merge_states` raises an error for states with different
        values.

    Returns:
      An ``AttentiveStatisticsState``, for :func:`merge_states` and then :func:`finalize_state`, which returns
      [..., 2d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, if the activation is unknown, if ``norm_scale`` is
        given with another activation than "tanh", if ``norm_bias`` is given without ``norm_scale``, or if
        ``global_context`` is True.

    Source:
      Okabe et al. 2018, section 2.3.

    >>> kernels = {"kernel": [[0.0]], "out_kernel": [1.0]}
    >>> whole = merge_states(*(attentive_statistics_state([[token]], **kernels) for token in (1.0, 3.0)))
    >>> finalize_state(whole)
    array([2., 1.])
    """
    clean = np.where(mask[..., None], x, 0)
    scores = scores_of(clean, kernel, bias, norm_scale, norm_bias, activation, out_kernel)
    scores = np.where(mask[..., None], scores if out_kernel.ndim == 2 else scores[..., None], -np.inf)
    top = np.max(scores, -2, initial=-np.inf)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf gives NaN by definition
        weights = np.exp(scores - np.where(top == -np.inf, 0, top)[..., None, :])
    return AttentiveStatisticsState(top, *_moments(x, mask, weights), np.broadcast_to(epsilon, (*x.shape[:-2], 1)))
