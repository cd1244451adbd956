"""Generalised means with a parameter that is learned."""

import jax.numpy as jnp
from flax import nnx
from flax.typing import Dtype

from attnpool_flax.layouts import in_layout
from attnpool_flax.means import logsumexp_pooling, power_mean_pooling, softmax_pooling
from attnpool_flax.modules.creation import PoolingModule, create, values
from attnpool_flax.parameters import cast
from attnpool_flax.segments import segment_logsumexp_pooling, segment_power_mean_pooling, segment_softmax_pooling


class PowerMeanPool(PoolingModule):
    """Parameters of :func:`attnpool_flax.power_mean_pooling`.

    Owns ``p`` [], or ``p`` [d] with ``num_features``: a number, which decides no dtype, or one for each feature.

    Args:
      p: where p starts; 1 is the mean, and a large one comes near the maximum.
      num_features: d, the width of the tokens, where each feature learns its own; None is one for all.
      epsilon: what tokens are clamped to from below.
      dtype: the dtype to which tokens and parameters are cast first; None lets them decide.
      param_dtype: the dtype of the parameters.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``.
      rngs: not used, as nothing is drawn; taken so that all modules are built alike.

    >>> pool = PowerMeanPool(num_features=4)
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 4)
    """

    p: nnx.Param

    def __init__(
        self,
        *,
        p: float = 3.0,
        num_features: int | None = None,
        epsilon: float = 1e-6,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        axis_name: str | tuple[str, ...] | None = None,
        rngs: nnx.Rngs | None = None,
    ):
        self.num_features = num_features
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.axis_name = axis_name
        create(self, "PowerMeanPool", rngs, {"p": p}, start=nnx.initializers.constant(p))

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Takes the power mean of tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., d].
        """
        pool = in_layout(
            "PowerMeanPool",
            power_mean_pooling,
            segment_power_mean_pooling,
            num_segments,
            {"lengths": lengths},
            self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            epsilon=self.epsilon,
            **values(self, "PowerMeanPool", x=x),
        )


class LogSumExpPool(PoolingModule):
    """Parameters of :func:`attnpool_flax.logsumexp_pooling`.

    Owns ``scale`` [], or ``scale`` [d] with ``num_features``: a number, which decides no dtype, or one for each feature.

    Args:
      scale: where the scale starts; 0 is the mean, and a large one comes near the maximum.
      num_features: d, the width of the tokens, where each feature learns its own; None is one for all.
      mean: divide by the number of real tokens.
      dtype: the dtype to which tokens and parameters are cast first; None lets them decide.
      param_dtype: the dtype of the parameters.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``.
      rngs: not used, as nothing is drawn; taken so that all modules are built alike.

    >>> pool = LogSumExpPool(num_features=4)
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 4)
    """

    scale: nnx.Param

    def __init__(
        self,
        *,
        scale: float = 10.0,
        num_features: int | None = None,
        mean: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        axis_name: str | tuple[str, ...] | None = None,
        rngs: nnx.Rngs | None = None,
    ):
        self.num_features = num_features
        self.mean = mean
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.axis_name = axis_name
        create(self, "LogSumExpPool", rngs, {"scale": scale}, start=nnx.initializers.constant(scale))

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Takes the logarithm of the mean of exponentials.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., d].
        """
        pool = in_layout(
            "LogSumExpPool",
            logsumexp_pooling,
            segment_logsumexp_pooling,
            num_segments,
            {"lengths": lengths},
            self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            mean=self.mean,
            **values(self, "LogSumExpPool", x=x),
        )


class SoftmaxPool(PoolingModule):
    """Parameters of :func:`attnpool_flax.softmax_pooling`.

    Owns ``scale`` [], or ``scale`` [d] with ``num_features``: a number, which decides no dtype, or one for each feature.

    Args:
      scale: where the scale starts; 0 is the mean, as AutoPool begins.
      num_features: d, the width of the tokens, where each feature learns its own; None is one for all.
      dtype: the dtype to which tokens and parameters are cast first; None lets them decide.
      param_dtype: the dtype of the parameters.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``.
      rngs: not used, as nothing is drawn; taken so that all modules are built alike.

    >>> pool = SoftmaxPool(num_features=4)
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 4)
    """

    scale: nnx.Param

    def __init__(
        self,
        *,
        scale: float = 1.0,
        num_features: int | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        axis_name: str | tuple[str, ...] | None = None,
        rngs: nnx.Rngs | None = None,
    ):
        self.num_features = num_features
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.axis_name = axis_name
        create(self, "SoftmaxPool", rngs, {"scale": scale}, start=nnx.initializers.constant(scale))

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Averages tokens under their own softmax.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.
          return_weights: also return the weights.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., L, d].
        """
        pool = in_layout(
            "SoftmaxPool",
            softmax_pooling,
            segment_softmax_pooling,
            num_segments,
            {"lengths": lengths},
            self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            return_weights=return_weights,
            **values(self, "SoftmaxPool", x=x),
        )
