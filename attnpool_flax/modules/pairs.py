"""NNX modules of attention between two sequences."""

from dataclasses import KW_ONLY
from typing import ClassVar

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields, in_layout
from attnpool_flax.pairs import bidaf_attention, code_wise_attention, cross_attention_pooling, mask_attention


@constructor_from_fields
class CrossAttentionPool(PoolingModule):
    """Pooling of two sequences, each under its scores against the other.

    Calls :func:`attnpool_flax.cross_attention_pooling`. Parameters: with ``qk_features`` ``x_kernel``
    [d, c], ``y_kernel`` [e, c], or only that of the side that is projected; else none.

    Args:
      x_features: d, the width of x; give it to project x, or None.
      y_features: e, the width of y; give it to project y, or None.
      qk_features: c, the width to which x, y or both are projected; if only one is projected, the width of the other.
        None without a projection.
      reduction: "sum", "mean" or "max" of a token's scores over the other sequence; packed tokens and ``axis_name``
        exclude "max". None is "mean" with kernels, else "sum", as in the notebook. "max" finds the tokens that match.
      scale: a number that multiplies the products before the reduction. None is 1/sqrt(c) with kernels, else 1, as in the
        notebook: sums of unit normal tokens give almost all weight to one token (over 0.9 with 40 tokens of width 64),
        and a layer before the pooling then gets almost no gradient.
      param_dtype: the dtype of the kernels.
      rngs: random keys (``nnx.Rngs``): the stream "params" for the kernels, and "dropout" (or the default stream) if
        there is dropout; not needed without both.

    >>> pool = CrossAttentionPool(x_features=4, y_features=6, qk_features=8, rngs=nnx.Rngs(0))
    >>> x, y = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> [pooled.shape for pooled in pool(x, y)]
    [(2, 4), (2, 6)]
    """

    _: KW_ONLY
    x_features: int | None = None
    y_features: int | None = None
    qk_features: int | None = None
    reduction: str | None = None
    scale: float | None = None

    def __post_init__(self, *initial):
        if self.qk_features is not None and self.x_features is None and self.y_features is None:
            raise ValueError("CrossAttentionPool: `qk_features` needs `x_features`, `y_features` or both")
        super().__post_init__(*initial)

    @classmethod
    def _check(cls, given):
        reduction = given.get("reduction")
        super()._check(given | {"reduction": "sum" if reduction is None else reduction})

    _of_call: ClassVar = {
        "num_segments": "the number of segments, an integer: the size of the batch axis of the results."
    }

    def __call__(
        self,
        x,
        y,
        x_mask=None,
        y_mask=None,
        *,
        x_lengths=None,
        y_lengths=None,
        x_segment_ids=None,
        y_segment_ids=None,
        num_segments=None,
        deterministic=None,
        rngs=None,
        return_weights=False,
    ):
        """Pools two sequences, each under its tokens' scores against the other.

        Returns:
          ([..., d], [..., e]), and with ``return_weights`` the weights ([..., L], [..., T]); those of packed tokens are
          ([N], [M]).
        """
        arrays = {"x_lengths": x_lengths, "y_lengths": y_lengths}
        arrays |= {"x_segment_ids": x_segment_ids, "y_segment_ids": y_segment_ids}
        pool, layout = in_layout(self, cross_attention_pooling, num_segments, **arrays)
        arguments, projects = self._arguments(x=x, y=y), self.qk_features is not None
        if self.reduction is None:
            arguments["reduction"] = "mean" if projects else "sum"
        if self.scale is None and not projects:
            arguments["scale"] = 1.0
        return pool(
            x_mask=x_mask,
            y_mask=y_mask,
            return_weights=return_weights,
            **self._multipliers(deterministic, rngs, x=x, y=y),
            **arguments,
            **layout,
        )


@constructor_from_fields
class CodeWiseAttention(PoolingModule):
    """Code-wise attention: pooling of a context under its best-matching labels (Yue et al. 2021).

    Calls :func:`attnpool_flax.code_wise_attention`. No parameters, only configuration.

    Args:
      scale: a number that multiplies the products. 1.0 is that of the source, with which one token has most of the weight
        of unit normal tokens; None is 1/sqrt(d), which gives it less than half.
      rngs: not used; accepted because every module takes it.
      dtype: the dtype to which the data are cast first; None uses their promoted dtype.

    >>> attention = CodeWiseAttention()
    >>> query, context = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 4))
    >>> attention(query, context).shape
    (2, 4)
    """

    _: KW_ONLY
    scale: float | None = 1.0

    def __call__(
        self,
        query,
        context,
        query_mask=None,
        context_mask=None,
        *,
        query_lengths=None,
        context_lengths=None,
        return_weights=False,
    ):
        """Pools the context, weighted by each context token's best score against the query.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., n].
        """
        return code_wise_attention(
            query_mask=query_mask,
            context_mask=context_mask,
            query_lengths=query_lengths,
            context_lengths=context_lengths,
            return_weights=return_weights,
            **self._arguments(query=query, context=context),
        )


@constructor_from_fields
class MaskAttention(PoolingModule):
    """Mask attention from each context token to the query's tokens (Yue et al. 2021).

    Calls :func:`attnpool_flax.mask_attention`. No parameters, only configuration.

    Args:
      scale: a number that multiplies the products. 1.0 is that of the source, with which one token has most of the weight
        of unit normal tokens; None is 1/sqrt(d), which gives it less than half.
      rngs: not used; accepted because every module takes it.
      dtype: the dtype to which the data are cast first; None uses their promoted dtype.

    >>> attention = MaskAttention()
    >>> query, context = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 4))
    >>> attention(query, context).shape
    (2, 5, 4)
    """

    _: KW_ONLY
    scale: float | None = 1.0

    def __call__(
        self,
        query,
        context,
        query_mask=None,
        context_mask=None,
        *,
        query_lengths=None,
        context_lengths=None,
        return_weights=False,
    ):
        """Averages the query's tokens for each token of the context.

        Returns:
          [..., n, d], and with ``return_weights`` the weights [..., n, k].
        """
        return mask_attention(
            query_mask=query_mask,
            context_mask=context_mask,
            query_lengths=query_lengths,
            context_lengths=context_lengths,
            return_weights=return_weights,
            **self._arguments(query=query, context=context),
        )


@constructor_from_fields
class BiDAFAttention(PoolingModule):
    """Bidirectional attention flow between context and query (BiDAF).

    Calls :func:`attnpool_flax.bidaf_attention`. Parameters: ``kernel`` [3d], which multiplies the concatenated context,
    query and their product.

    Args:
      in_features: d, the width of context and query.

    >>> attention = BiDAFAttention(4, rngs=nnx.Rngs(0))
    >>> context, query = jnp.ones((2, 5, 4)), jnp.ones((2, 3, 4))
    >>> attention(context, query).shape
    (2, 5, 16)
    """

    in_features: int

    def __call__(
        self,
        context,
        query,
        context_mask=None,
        query_mask=None,
        *,
        context_lengths=None,
        query_lengths=None,
        return_weights=False,
    ):
        """Concatenates each context token with its attention in both directions.

        Returns:
          [..., T, 4d], and with ``return_weights`` the weights ([..., T, J] of the query's tokens for each context
          token, [..., T] of the context's tokens).
        """
        return bidaf_attention(
            context_mask=context_mask,
            query_mask=query_mask,
            context_lengths=context_lengths,
            query_lengths=query_lengths,
            return_weights=return_weights,
            **self._arguments(context=context, query=query),
        )
