"""Flax NNX modules: parameters and configuration, no arithmetic.

Each module calls one function of this package. What it owns stands in :mod:`attnpool_flax.parameters`; the same
modules for Linen models are in :mod:`attnpool_flax.linen`.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.pairs import cross_attention_pooling
from attnpool_flax.parameters import (
    FIXED,
    KERNEL_INIT,
    OWNERS,
    QUERY_INIT,
    cast,
    check_rate,
    initialize,
    shaped_parameters,
)
from attnpool_flax.pooling import attention_pooling, weighted_pooling

Number = float | jax.Array


def _create(module, name, rngs, param_dtype, **initializers):
    """Gives a module the parameters that the table says; those that it does not have are None."""
    for shaped in shaped_parameters(name, vars(module)):
        if shaped.shape is None:
            setattr(module, shaped.parameter.name, nnx.data(None))
            continue
        kind, key = shaped.parameter.init, None
        if kind not in FIXED:
            if rngs is None:
                raise ValueError(f"{name}: `{shaped.parameter.name}` needs `rngs`")
            key = rngs.params()
        value = initialize(key, shaped, (FIXED | initializers)[kind], param_dtype)
        setattr(module, shaped.parameter.name, nnx.Param(value))


def _values(module, name):
    """The parameters by name, as the function takes them."""
    values = {parameter.name: getattr(module, parameter.name) for parameter in OWNERS[name].parameters}
    return {key: None if value is None else cast(value[...], module.dtype) for key, value in values.items()}


def _dropout(name, rate, rngs):
    """Flax's own layer, with a stream of its own; None where there is nothing to drop."""
    check_rate(name, rate)
    return nnx.Dropout(rate, rngs=rngs) if rate else nnx.data(None)


def _multiplier(dropout, shape, deterministic, rngs):
    """What :class:`flax.nnx.Dropout` makes of ones: 0 or 1 / (1 - rate). None where nothing is dropped."""
    if dropout is None or (dropout.deterministic if deterministic is None else deterministic):
        return None
    return dropout(jnp.ones(shape), deterministic=deterministic, rngs=rngs)


class WeightedPool(nnx.Module):
    """Parameters of :func:`attnpool_flax.weighted_pooling`.

    Owns ``weights`` [L], one for each slot, which start at ones.

    Args:
      num_slots: L, the length of every sequence, padding included.
      dtype: the dtype to which tokens and weights are cast first; None lets them decide.
      param_dtype: the dtype of the weights.
      precision: of the products; None is full float32.
      rngs: not used, as ones need no randomness; taken so that all modules are built alike.
    """

    weights: nnx.Param

    def __init__(
        self,
        num_slots: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        rngs: nnx.Rngs | None = None,
    ):
        self.num_slots = num_slots
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        _create(self, "WeightedPool", rngs, param_dtype)

    def __call__(self, x, mask=None):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.

        Returns:
          [..., d].
        """
        x = cast(x, self.dtype)
        return weighted_pooling(x, mask=mask, precision=self.precision, **_values(self, "WeightedPool"))


class AttentionPool(nnx.Module):
    """Parameters of :func:`attnpool_flax.attention_pooling`.

    Owns ``query`` [d]; with ``qk_features`` also ``query_kernel`` [d, c] and ``key_kernel`` [d, c]; with
    ``normalize_query`` also ``query_norm_scale`` [d] and ``query_norm_bias`` [d], which start at ones and zeros.

    Args:
      in_features: d, the width of the tokens and of the query.
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
      rngs: "params" for the parameters, and "dropout" (or a default) if there is dropout.
    """

    query: nnx.Param
    query_kernel: nnx.Param | None
    key_kernel: nnx.Param | None
    query_norm_scale: nnx.Param | None
    query_norm_bias: nnx.Param | None
    dropout: nnx.Dropout | None

    def __init__(
        self,
        in_features: int,
        *,
        qk_features: int | None = None,
        normalize_query: bool = False,
        epsilon: Number = 1e-6,
        scale: Number | None = None,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        kernel_init: Initializer = KERNEL_INIT,
        query_init: Initializer = QUERY_INIT,
        rngs: nnx.Rngs,
    ):
        self.in_features = in_features
        self.qk_features = qk_features
        self.normalize_query = normalize_query
        self.epsilon = epsilon
        self.scale = scale
        self.dropout_rate = dropout_rate
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        _create(self, "AttentionPool", rngs, param_dtype, kernel=kernel_init, query=query_init)
        self.dropout = _dropout("AttentionPool", dropout_rate, rngs)

    def __call__(self, x, mask=None, *, deterministic=None, rngs=None, return_weights=False):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          deterministic: True drops no weights; None does as ``train()`` and ``eval()`` have said, which is to drop.
          rngs: what draws the dropout, in place of the module's own stream.
          return_weights: also return the weights, as they are before dropout.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., L].
        """
        x = cast(x, self.dtype)
        return attention_pooling(
            x,
            mask,
            normalize_query=self.normalize_query,
            epsilon=self.epsilon,
            scale=self.scale,
            dropout_multiplier=_multiplier(self.dropout, jnp.shape(x)[:-1], deterministic, rngs),
            return_weights=return_weights,
            precision=self.precision,
            **_values(self, "AttentionPool"),
        )


class CrossAttentionPool(nnx.Module):
    """Parameters of :func:`attnpool_flax.cross_attention_pooling`.

    Owns nothing and needs no ``rngs``, unless ``qk_features`` adds ``x_kernel`` [d, c], ``y_kernel`` [e, c] or both.

    Args:
      x_features: d, the width of x, if x is projected.
      y_features: e, the width of y, if y is projected.
      qk_features: c, the width in which they meet; if one side alone is projected, the width of the other.
      reduction: "sum", "mean" or "max" of a token's scores over the other side.
      scale: a number by which the products are multiplied first.
      dtype: the dtype to which tokens and kernels are cast first; None lets them decide.
      param_dtype: the dtype of the kernels.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
      rngs: "params" for the kernels.
    """

    x_kernel: nnx.Param | None
    y_kernel: nnx.Param | None

    def __init__(
        self,
        *,
        x_features: int | None = None,
        y_features: int | None = None,
        qk_features: int | None = None,
        reduction: str = "sum",
        scale: Number = 1.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        kernel_init: Initializer = KERNEL_INIT,
        rngs: nnx.Rngs | None = None,
    ):
        if qk_features is not None and x_features is None and y_features is None:
            raise ValueError("CrossAttentionPool: `qk_features` needs `x_features`, `y_features` or both")
        self.x_features = x_features
        self.y_features = y_features
        self.qk_features = qk_features
        self.reduction = reduction
        self.scale = scale
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        _create(self, "CrossAttentionPool", rngs, param_dtype, kernel=kernel_init)

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
        return cross_attention_pooling(
            cast(x, self.dtype),
            cast(y, self.dtype),
            x_mask,
            y_mask,
            reduction=self.reduction,
            scale=self.scale,
            return_weights=return_weights,
            precision=self.precision,
            **_values(self, "CrossAttentionPool"),
        )
