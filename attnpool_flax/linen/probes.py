"""Linen modules of more pooling heads: the Set Transformer's PMA and attentive probes."""

import flax.linen as nn
import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.linen.creation import TokenWalker, values
from attnpool_flax.modules.head_functions import attentive_probe, pma
from attnpool_flax.modules.parameters import (
    BIAS_INIT,
    KERNEL_INIT,
    QUERY_INIT,
    cast,
    checked_variant,
    head_features,
    read_sizes,
)
from attnpool_flax.pooling.multi_head import of_queries


class PMA(TokenWalker, kw_only=True):
    """Pooling by multi-head attention of the Set Transformer (PMA), as in the authors' code or in PyG.

    Parameters: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c],
    depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and ``value_bias`` [H, c]; ``mlp_kernel``
    [d, d] and ``mlp_bias`` [d]; with ``normalize`` ``norm_scale`` [d], ``norm_bias`` [d], ``mlp_norm_scale`` [d] and
    ``mlp_norm_bias`` [d]; with variant "pyg" also ``out_kernel`` [H, c, d], ``out_bias`` [d] among the biases,
    ``input_kernel`` [d, d] and ``input_bias`` [d].

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      variant: "author" adds the attention to the projected query, scaled by the width of all heads; "pyg" maps the
        tokens first, adds to the query itself, and has the usual scale and an output map.
      normalize: layer normalisation after each sum; None is False for "author" and True for "pyg".
      use_bias: whether the heads have biases; or a tuple of the names of those that there are.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.
      query_init: initialiser of the queries, which sees the shape [d, n].

    >>> import jax
    >>> x = jnp.ones((2, 3, 4))
    >>> head = PMA(num_heads=2, num_queries=5)
    >>> variables = head.init(jax.random.key(0), x)
    >>> head.apply(variables, x).shape
    (2, 5, 4)
    """

    num_heads: int
    num_queries: int | None
    variant: str = "author"
    normalize: bool | None = None
    use_bias: bool | tuple[str, ...] = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT
    query_init: Initializer = QUERY_INIT

    @nn.compact
    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          return_weights: also return the weights.

        Returns:
          [..., n, d], and with ``return_weights`` the weights [..., H, n, L]; [..., d] and [..., H, L] of
          ``num_queries=None``.
        """
        sizes = read_sizes("PMA", {"x": x})
        sizes["variant"] = checked_variant("PMA", self.variant)
        sizes["normalize"] = sizes["variant"] == "pyg" if self.normalize is None else self.normalize
        sizes["head_features"] = head_features("PMA", self.num_heads, sizes["in_features"])
        parameters = values(self, "PMA", sizes, kernel=self.kernel_init, bias=self.bias_init, query=self.query_init)
        found = pma(
            cast(x, self.dtype),
            mask=mask,
            lengths=lengths,
            variant=self.variant,
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )
        return of_queries(found, self.num_queries)


class AttentiveProbe(TokenWalker, kw_only=True):
    """Attentive probe of a frozen encoder (V-JEPA, AIM), without an output projection.

    Parameters: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c],
    depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and ``value_bias`` [H, c]; ``norm_scale``
    [d], ``norm_bias`` [d], ``mlp_norm_scale`` [d], ``mlp_norm_bias`` [d], ``mlp_kernel`` [d, f], ``mlp_bias`` [f],
    ``mlp_out_kernel`` [f, d] and ``mlp_out_bias`` [d]. With variant "aim": ``query`` [n, H, c], ``key_kernel``,
    ``value_kernel``, and ``mean`` [d] and ``variance`` [d]: frozen batch statistics.

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      hidden_features: f, the width of the hidden layer, only for "vjepa".
      variant: "vjepa" adds the attention to the query and then a residual MLP; "aim" normalises the tokens by batch
        statistics, and averages over its queries.
      epsilon: of the layer normalisations of "vjepa"; the batch normalisation of "aim" has 1e-6.
      use_bias: whether the heads have biases; or a tuple of the names of those that there are.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.
      query_init: initialiser of the queries, which sees the shape [d, n], or [c, n H] of "aim".

    >>> import jax
    >>> x = jnp.ones((2, 3, 4))
    >>> head = AttentiveProbe(num_heads=2, hidden_features=8)
    >>> variables = head.init(jax.random.key(0), x)
    >>> head.apply(variables, x).shape
    (2, 1, 4)
    """

    num_heads: int
    num_queries: int | None = 1
    hidden_features: int | None = None
    variant: str = "vjepa"
    epsilon: float = 1e-5
    use_bias: bool | tuple[str, ...] = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT
    query_init: Initializer = QUERY_INIT

    @nn.compact
    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          return_weights: also return the weights.

        Returns:
          [..., n, d]; [..., d] of "aim", and with ``return_weights`` the weights [..., H, n, L].
        """
        sizes = read_sizes("AttentiveProbe", {"x": x})
        sizes["variant"] = checked_variant("AttentiveProbe", self.variant)
        sizes["head_features"] = head_features("AttentiveProbe", self.num_heads, sizes["in_features"])
        parameters = values(
            self, "AttentiveProbe", sizes, kernel=self.kernel_init, bias=self.bias_init, query=self.query_init
        )
        found = attentive_probe(
            cast(x, self.dtype),
            mask=mask,
            lengths=lengths,
            variant=self.variant,
            epsilon=self.epsilon,
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )
        return of_queries(found, self.num_queries, pooled=self.variant != "aim")
