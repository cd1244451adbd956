"""NNX modules of the Set Transformer's PMA and of attentive probes."""

from dataclasses import KW_ONLY

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.modules.head_functions import attentive_probe, pma
from attnpool_flax.pooling.multi_head import of_queries


@constructor_from_fields
class PMA(PoolingModule):
    """Pooling by multi-head attention of the Set Transformer (PMA), as in the authors' code or in PyG.

    Parameters, where c = d / H is the width of a head: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and
    ``value_bias`` [H, c]; ``mlp_kernel`` [d, d] and ``mlp_bias`` [d]; with ``normalize`` ``norm_scale`` [d],
    ``norm_bias`` [d], ``mlp_norm_scale`` [d] and ``mlp_norm_bias`` [d]. With variant "pyg" also ``out_kernel``
    [H, c, d], ``input_kernel`` [d, d], ``input_bias`` [d] and, depending on ``use_bias``, ``out_bias`` [d].

    Args:
      in_features: d, the width of the tokens and of the result.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      variant: "author" adds the attention output to the projected query, and divides scores by the root of the width
        of all heads together. "pyg" first applies a linear layer and a relu to the tokens, adds the projected
        attention output to the raw query, and divides scores by the root of one head's width.
      normalize: apply layer normalization after each residual sum; None is False for "author" and True for "pyg".
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      query_init: initializer of the queries, called with the shape [d, n].

    >>> head = PMA(in_features=4, num_heads=2, num_queries=5, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 5, 4)
    """

    _: KW_ONLY
    in_features: int
    num_heads: int
    num_queries: int | None
    variant: str = "author"
    normalize: bool | None = None
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., n, d], and with ``return_weights`` the weights [..., H, n, L]; [..., d] and [..., H, L] with
          ``num_queries=None``.
        """
        found = pma(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))
        return of_queries(found, self.num_queries)


@constructor_from_fields
class AttentiveProbe(PoolingModule):
    """Attentive probe of a frozen encoder (V-JEPA, AIM), without an output projection.

    Parameters, where c = d / H is the width of a head: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and
    ``value_bias`` [H, c]; ``norm_scale`` [d], ``norm_bias`` [d], ``mlp_norm_scale`` [d], ``mlp_norm_bias`` [d],
    ``mlp_kernel`` [d, f], ``mlp_bias`` [f], ``mlp_out_kernel`` [f, d] and ``mlp_out_bias`` [d].

    With variant "aim" the parameters are only ``query`` [n, H, c], ``key_kernel``, ``value_kernel``, and the batch
    statistics ``mean`` [d] and ``variance`` [d]. These are 0 and 1 in a new module, and no call updates them: load or
    assign them.

    Args:
      in_features: d, the width of the tokens and of the result.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      hidden_features: f, the width of the hidden layer; required for "vjepa", not used by "aim".
      variant: "vjepa" applies layer normalization to the tokens, and adds the attention output to the query, followed
        by a residual MLP. "aim" normalizes the tokens by batch statistics, and averages the attention output over the
        queries.
      epsilon: the epsilon of the layer normalizations of "vjepa"; the batch normalization of "aim" has 1e-6.
      use_bias: whether the heads of "vjepa" have biases; or a tuple of the names of the biases to have. Those of "aim"
        have none.
      query_init: initializer of the queries, called with the shape [d, n], or [c, n·H] for "aim".

    >>> head = AttentiveProbe(in_features=4, num_heads=2, hidden_features=8, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 1, 4)
    """

    _: KW_ONLY
    in_features: int
    num_heads: int
    num_queries: int | None = 1
    hidden_features: int | None = None
    variant: str = "vjepa"
    epsilon: float = 1e-5
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., n, d], or [..., d] for "aim"; and with ``return_weights`` the weights [..., H, n, L]. The axis n is
          dropped with ``num_queries=None``.
        """
        found = attentive_probe(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))
        return of_queries(found, self.num_queries, pooled=self.variant != "aim")
