"""NNX module of attentive statistics pooling."""

from dataclasses import KW_ONLY

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields, in_layout
from attnpool_flax.statistics import attentive_statistics_pooling


@constructor_from_fields
class AttentiveStatisticsPool(PoolingModule):
    """Attentive statistics pooling: weighted mean and standard deviation (ASP, ECAPA-TDNN).

    Calls :func:`attnpool_flax.attentive_statistics_pooling`. Parameters: ``kernel`` [d, h], or [3d, h] with
    ``global_context``; ``out_kernel`` [h, d], or [h] without ``per_channel``; ``bias`` [h]; with ``use_norm`` also
    ``norm_scale`` [h] and ``norm_bias`` [h], which start at ones and zeros: the factor and offset to which a trained
    batch normalization reduces.

    Args:
      per_channel: one weight for each feature of a token, instead of one for the token.
      global_context: concatenate the mean and the deviation of all tokens to each token that is scored.
      use_norm: apply a relu, ``norm_scale`` and ``norm_bias`` to the hidden layer, before the tanh.
      activation: "tanh", "relu", "gelu" or "identity"; must be "tanh" with ``use_norm``.
      context_ddof: a number, subtracted from the number of tokens in the denominator of the context's variance.
      epsilon: the minimum of the variances of the result and of the context.
      bias_init: initializer of the bias.

    >>> pool = AttentiveStatisticsPool(4, hidden_features=8, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 8)
    """

    in_features: int
    _: KW_ONLY
    hidden_features: int = 128
    per_channel: bool = True
    global_context: bool = False
    use_norm: bool = False
    activation: str = "tanh"
    context_ddof: float = 0
    epsilon: float = 0.0

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., 2d], and with ``return_weights`` the weights [..., L], or [..., L, d] with ``per_channel``.
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(
            self, attentive_statistics_pooling, num_segments, lengths=lengths, segment_ids=segment_ids
        )
        return pool(mask=mask, return_weights=return_weights, **self._arguments(x=x), **layout)
