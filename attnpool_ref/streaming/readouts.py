"""The states of readouts: VLAD."""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.definition import definition
from attnpool_ref.readouts import residuals_of, vlad_of
from attnpool_ref.states import kind


@kind
class VLADState(NamedTuple):
    """Of :func:`~attnpool_ref.streaming.vlad_state`: sums of residuals before their weights are what they are.

    Attributes:
      top: [..., K], the largest logarithm of a weight; -inf without any.
      sum: [..., K, d], the sum of exp(log a - top) times the residual.
      normalize: whether the result is divided by its norms.
      dtype: that of the result.
    """

    top: Any
    sum: Any
    normalize: bool = True
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    @property
    def options(self):
        """What two states must have in common to merge, beside their shapes."""
        return {"normalize": self.normalize}

    def merged(self, other):
        """The state of both chunks: both in the measure of the larger top."""
        top = np.maximum(self.top, other.top)
        scales = [np.exp(state.top - np.where(top == -np.inf, 0, top))[..., None] for state in (self, other)]
        return VLADState(top, self.sum * scales[0] + other.sum * scales[1], self.normalize)

    def finalized(self):
        """[..., K, d]; 0 where nothing was real."""
        return vlad_of(self.top, self.sum, self.normalize)


@definition
def vlad_state(x, mask=None, *, lengths=None, assign_kernel, centers, assign_bias=None, normalize=True):
    r"""Keeps what VLAD of the whole needs of one chunk: the sums of residuals, before they are normalised.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{\log a_{lk} - t_k} (x_l - c_k) \Big), \qquad t_k = \max_{l : k_l} \log a_{lk}

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens of the chunk, from the left, are real.
      assign_kernel: [d, K+G]; the last G columns are those of the ghosts.
      centers: [K, d], :math:`c`.
      assign_bias: [K+G], or None.
      normalize: divide the result by its norms; states merge with states that say the same.

    Returns:
      A ``VLADState``: :func:`merge_states` merges it with those of other chunks, :func:`finalize_state` gives [..., K, d].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Arandjelovic et al. 2016, equation 4, as a monoid.

    >>> parameters = {"assign_kernel": [[0.0]], "centers": [[2.0]], "normalize": False}
    >>> finalize_state(merge_states(vlad_state([[1.0]], **parameters), vlad_state([[4.0]], **parameters)))
    array([[1.]])
    """
    top, residuals, _ = residuals_of(x, mask, assign_kernel, centers, assign_bias)
    return VLADState(top, residuals, normalize)
