"""The modules of :mod:`attnpool_flax.modules` for Flax Linen models: same parameters, same names, same layouts.

Sizes that stand in the data are read off the first call's, as Linen does; all other arguments are the same.
"""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.pairs import cross_attention_pooling
from attnpool_flax.parameters import (
    FIXED,
    KERNEL_INIT,
    QUERY_INIT,
    cast,
    check_rate,
    initialize,
    read_sizes,
    shaped_parameters,
)
from attnpool_flax.pooling import attention_pooling, weighted_pooling

__all__ = ["AttentionPool", "CrossAttentionPool", "WeightedPool"]

Number = float | jax.Array


def _values(module, name, sizes, **initializers):
    """The parameters by name, as the function takes them, created on the first call; ``sizes`` come off the data."""
    fields = {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}
    values = {}
    for shaped in shaped_parameters(name, fields | sizes):
        key, value = shaped.parameter.name, None
        if shaped.shape is not None:
            init = (FIXED | initializers)[shaped.parameter.init]
            value = cast(module.param(key, initialize, shaped, init, module.param_dtype), module.dtype)
        values[key] = value
    return values


def _multiplier(module, shape, deterministic):
    """What :class:`flax.linen.Dropout` makes of ones: 0 or 1 / (1 - rate). None where nothing is dropped.

    Initialisation drops nothing unless it is told to, so that it needs no key for it.
    """
    check_rate(type(module).__name__, module.dropout_rate)
    if not module.dropout_rate or deterministic or (deterministic is None and module.is_initializing()):
        return None
    return nn.Dropout(module.dropout_rate)(jnp.ones(shape), deterministic=deterministic)


class WeightedPool(nn.Module):
    """Parameters of :func:`attnpool_flax.weighted_pooling`.

    Owns ``weights`` [L], one for each slot, which start at ones.

    Attributes:
      dtype: the dtype to which tokens and weights are cast first; None lets them decide.
      param_dtype: the dtype of the weights.
      precision: of the products; None is full float32.
    """

    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None

    @nn.compact
    def __call__(self, x, mask=None):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.

        Returns:
          [..., d].
        """
        values = _values(self, "WeightedPool", read_sizes("WeightedPool", {"x": x}))
        return weighted_pooling(cast(x, self.dtype), mask=mask, precision=self.precision, **values)


class AttentionPool(nn.Module):
    """Parameters of :func:`attnpool_flax.attention_pooling`.

    Owns ``query`` [d]; with ``qk_features`` also ``query_kernel`` [d, c] and ``key_kernel`` [d, c]; with
    ``normalize_query`` also ``query_norm_scale`` [d] and ``query_norm_bias`` [d], which start at ones and zeros.

    Attributes:
      qk_features: c, the width in which query and tokens meet; None compares them as they are.
      normalize_query: apply layer normalisation to the query, before its kernel.
      epsilon: of the layer normalisation.
      scale: a number in place of 1/sqrt(c); c is d without kernels.
      dropout_rate: of the attention weights, in [0, 1].
      dtype: the dtype to which tokens and parameters are cast first; None lets them decide.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
      query_init: initialiser of the query, which sees the shape [d, 1].
    """

    qk_features: int | None = None
    normalize_query: bool = False
    epsilon: Number = 1e-6
    scale: Number | None = None
    dropout_rate: float = 0.0
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT
    query_init: Initializer = QUERY_INIT

    @nn.compact
    def __call__(self, x, mask=None, *, deterministic=None, return_weights=False):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          deterministic: True drops no weights, False draws with the key "dropout"; needed if there is dropout.
          return_weights: also return the weights, as they are before dropout.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., L].
        """
        sizes = read_sizes("AttentionPool", {"x": x})
        values = _values(self, "AttentionPool", sizes, kernel=self.kernel_init, query=self.query_init)
        return attention_pooling(
            cast(x, self.dtype),
            mask,
            normalize_query=self.normalize_query,
            epsilon=self.epsilon,
            scale=self.scale,
            dropout_multiplier=_multiplier(self, x.shape[:-1], deterministic),
            return_weights=return_weights,
            precision=self.precision,
            **values,
        )


class CrossAttentionPool(nn.Module):
    """Parameters of :func:`attnpool_flax.cross_attention_pooling`.

    Owns nothing, unless ``qk_features`` adds ``x_kernel`` [d, c] and ``y_kernel`` [e, c].

    Attributes:
      x_features: d; given without ``y_features``, x alone is projected. Nobody else needs to give it.
      y_features: e; given without ``x_features``, y alone is projected. Nobody else needs to give it.
      qk_features: c, the width in which they meet; if one side alone is projected, the width of the other.
      reduction: "sum", "mean" or "max" of a token's scores over the other side.
      scale: a number by which the products are multiplied first.
      dtype: the dtype to which tokens and kernels are cast first; None lets them decide.
      param_dtype: the dtype of the kernels.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
    """

    x_features: int | None = None
    y_features: int | None = None
    qk_features: int | None = None
    reduction: str = "sum"
    scale: Number = 1.0
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT

    @nn.compact
    def __call__(self, x, y, x_mask=None, y_mask=None, *, return_weights=False):
        """Pools two sequences, each by how well its tokens suit the other.

        Args:
          x: [..., L, d] tokens.
          y: [..., T, e] tokens.
          x_mask: bool, broadcastable to [..., L], True = real.
          y_mask: bool, broadcastable to [..., T], True = real.
          return_weights: also return the weights.

        Returns:
          ([..., d], [..., e]), and with ``return_weights`` the weights ([..., L], [..., T]).
        """
        unnamed = self.x_features is None and self.y_features is None
        sizes = read_sizes("CrossAttentionPool", {"x": x, "y": y}) if unnamed and self.qk_features is not None else {}
        values = _values(self, "CrossAttentionPool", sizes, kernel=self.kernel_init)
        return cross_attention_pooling(
            cast(x, self.dtype),
            cast(y, self.dtype),
            x_mask,
            y_mask,
            reduction=self.reduction,
            scale=self.scale,
            return_weights=return_weights,
            precision=self.precision,
            **values,
        )
