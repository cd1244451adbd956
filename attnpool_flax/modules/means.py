"""NNX modules of generalized means with a learned parameter."""

from dataclasses import KW_ONLY, InitVar

from attnpool_flax.means import logsumexp_pooling, power_mean_pooling, softmax_pooling
from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields, in_layout


@constructor_from_fields
class PowerMeanPool(PoolingModule):
    """Generalized-mean pooling with a learned exponent (GeM).

    Calls :func:`attnpool_flax.power_mean_pooling`. Parameters: ``p``, a number [], which does not affect the
    result's dtype; with ``num_features`` ``p`` [d], one for each feature, whose dtype takes part in promotion.

    Args:
      p: initial value of p; 1 is the mean, and a large value approaches the maximum.
      epsilon: lower bound of the tokens: smaller values are raised to it.
      rngs: not used, because nothing is drawn; accepted because every module takes it.

    >>> pool = PowerMeanPool(num_features=4)
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 4)
    """

    _: KW_ONLY
    p: InitVar[float] = 3.0
    num_features: int | None = None
    epsilon: float = 1e-6

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Computes the power mean of the tokens.

        Returns:
          [..., d].
        """
        pool, layout = in_layout(self, power_mean_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, **self._arguments(x=x), **layout)


@constructor_from_fields
class LogSumExpPool(PoolingModule):
    """Log-sum-exp pooling with a learned scale (LSE).

    Calls :func:`attnpool_flax.logsumexp_pooling`. Parameters: ``scale``, a number [], which does not affect
    the result's dtype; with ``num_features`` ``scale`` [d], one for each feature, whose dtype takes part in promotion.

    Args:
      scale: initial value of the scale; 0 is the mean (with ``mean=False`` an error), and a large value approaches the
        maximum.
      mean: whether to divide the sum by the number of real tokens.
      rngs: not used, because nothing is drawn; accepted because every module takes it.

    >>> pool = LogSumExpPool(num_features=4)
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 4)
    """

    _: KW_ONLY
    scale: InitVar[float] = 10.0
    num_features: int | None = None
    mean: bool = True

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Computes log(mean(exp(scale x))) / scale over tokens x; ``mean=False`` takes the sum instead.

        Returns:
          [..., d].
        """
        pool, layout = in_layout(self, logsumexp_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, **self._arguments(x=x), **layout)


@constructor_from_fields
class SoftmaxPool(PoolingModule):
    """Softmax average of each channel under its own values, with a learned scale (AutoPool).

    Calls :func:`attnpool_flax.softmax_pooling`. Parameters: ``scale``, a number [], which does not affect
    the result's dtype; with ``num_features`` ``scale`` [d], one for each feature, whose dtype takes part in promotion.

    Args:
      scale: initial value of the scale; 0 is the mean, AutoPool's initial value.
      rngs: not used, because nothing is drawn; accepted because every module takes it.

    >>> pool = SoftmaxPool(num_features=4)
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 4)
    """

    _: KW_ONLY
    scale: InitVar[float] = 1.0
    num_features: int | None = None

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Averages tokens under their own softmax.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., L, d].
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(self, softmax_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, return_weights=return_weights, **self._arguments(x=x), **layout)
