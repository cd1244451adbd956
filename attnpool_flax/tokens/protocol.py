"""Reductions of dense and packed tokens that the body of a pooling function may call: one body serves both layouts."""

import copy
from abc import ABC, abstractmethod
from typing import Any

import jax.numpy as jnp

from attnpool_flax.numerics.sums import computing_dtype


class Tokens(ABC):
    """Base class of :class:`~attnpool_flax.tokens.Dense` and :class:`~attnpool_flax.tokens.Packed` tokens.

    Its methods are all that the body of a pooling function calls, except for what a function of dense tokens alone
    asks of them. Shapes are those of dense tokens: an example is a sequence with batch axes [...] and L tokens. Of
    packed tokens an example is one of S segments: [..., d] is [S, d], [..., L] is [N], and [..., h, L] is [h, N].
    Pooled vectors are 0 for a fully masked example, and are those of the whole sequence also over a mesh.

    A score is a function of a piece of tokens (:mod:`attnpool_flax.tokens.pieces`) and of arrays, to the piece's scores
    [B, L, h], or packed [L, h]. It closes over no traced array, and is arbitrary at padding.

    Attributes:
      x: the tokens in the caller's dtype, [..., L, d] or packed [N, d].
      dtype: the dtype of the computation, float32 or float64.
    """

    x: Any
    dtype: Any

    # Sums and means

    @abstractmethod
    def sum(self) -> Any:
        """Sums the real tokens: [..., d]."""

    @abstractmethod
    def mean(self) -> Any:
        """Averages the real tokens: [..., d]."""

    @abstractmethod
    def sum_of_map(self, function, width, *parameters) -> Any:
        """Sums ``function(tokens, *parameters)`` [..., o] of the real tokens, piece by piece.

        ``width`` is the number of array elements that the function holds for one token. It closes over no traced array.
        """

    @abstractmethod
    def weighted_sums_of(self, weights) -> Any:
        """Sums the real tokens of this device under weights [..., h, L]: [..., h, d]."""

    def weighted_sum_of(self, weights):
        """Sums the real tokens of this device under weights [..., L]: [..., d]."""
        return self.weighted_sums_of(weights[..., None, :])[..., 0, :]

    @abstractmethod
    def sums_under(self, scores, normalize, multiplier=None) -> Any:
        """Sums the tokens under weights that are not those of a softmax.

        Args:
          scores: [..., h, L].
          normalize: from scores and their mask to weights; of packed tokens and over a mesh it must be elementwise.
          multiplier: [..., h, L] of the weights, or None.

        Returns:
          (pooled [..., h, d], weights [..., h, L], sums [..., h] of the weights after the multiplier).
        """

    @abstractmethod
    def channels(self) -> Any:
        """Returns the tokens for reductions of each channel separately."""

    # Softmax

    @abstractmethod
    def softmax_of(self, score, examples=(), shared=(), tokens=(), multiplier=None, bias=None, sink=None) -> Any:
        """Averages the tokens under the softmax of a score.

        Args:
          score: from a piece and the arrays that follow to scores: first those of ``tokens``, then of ``examples``, then
            ``shared``.
          examples: pairs (array [..., own axes], the number of its own axes), of which a piece gets those of its examples.
          shared: arrays that all examples share.
          tokens: arrays [..., h, L], of which a piece gets [B, L, h] of its tokens, or packed [L, h].
          multiplier: [..., h, L], multiplied with the weights before the average, or None.
          bias: [..., h, L], added to the scores, or None.
          sink: [..., h], the score of a sink (:func:`~attnpool_flax.numerics.softmax.share_beside_sink`), or None.

        Returns:
          (pooled [..., h, d], weights [..., h, L], sums [..., h] of the weights after the multiplier).
        """

    @abstractmethod
    def scores_of(self, score, examples=(), shared=(), bias=None) -> Any:
        """Computes the scores [..., h, L] of the tokens; the arguments are those of :meth:`softmax_of`."""

    def softmax(self, queries, multiplier=None, bias=None, sink=None):
        """Averages under the softmax of the tokens' products with queries [..., h, d], which include the scale."""
        return self.softmax_of(dot, [(queries, 2)], multiplier=multiplier, bias=bias, sink=sink)

    def softmax_of_scores(self, scores, multiplier=None, sink=None):
        """Averages the tokens under the softmax of given scores [..., h, L]; returns what :meth:`softmax_of` returns."""
        return self.softmax_of(given, tokens=(scores,), multiplier=multiplier, sink=sink)

    @abstractmethod
    def softmax_sums(self, scores) -> Any:
        """Sums the tokens under exp(score - max_score) of given scores [..., h, L], without dividing.

        Returns:
          (max_score [..., h], a constant in the gradient; the sums [..., h, d]), of all devices.
        """

    # Single tokens and extremes

    @abstractmethod
    def max(self) -> Any:
        """Computes the maximum of each feature over the real tokens: [..., d]."""

    @abstractmethod
    def min(self) -> Any:
        """Computes the minimum of each feature over the real tokens: [..., d]."""

    @abstractmethod
    def end_token(self, last) -> Any:
        """Returns the last real token of each example, [..., d], or the first if not ``last``; 0 if fully masked."""

    def with_values(self, values):
        """Returns a copy of this object with other values [..., L, e] or [N, e] in place of x, under the same mask."""
        other = copy.copy(self)
        other.x, other.dtype = values, computing_dtype(values.dtype)
        return other

    # Values of tokens

    @abstractmethod
    def zero_padded(self) -> Any:
        """Returns the tokens in the computing dtype ``dtype``, 0 at padding."""

    @abstractmethod
    def has_real_token(self) -> Any:
        """Returns bool [...]: whether an example has a real token; None for dense tokens without a mask."""

    @abstractmethod
    def fill_padding(self, weights) -> Any:
        """Sets weights [..., L] or [..., h, L] to 0 at padding."""


def times_share(share, pooled, weights, of_tokens, sums):
    """Multiplies pooled vectors, weights and their sums by the share that a sink leaves; padding keeps the weight 0.

    ``of_tokens`` is the share of each token's example.
    """
    return pooled * share[..., None], jnp.where(weights == 0, 0, weights * of_tokens), sums * share


def dot(piece, queries):
    """Scores tokens by their products with queries [B or 1, h, d]."""
    return piece.dot(queries)


def dot_if_any(piece, queries, has_query):
    """Scores as :func:`dot`; 0 for an example without a query (``has_query`` [B or 1] is False), even for NaN tokens."""
    return jnp.where(piece.each(has_query[:, None]), piece.dot(queries), 0)


def given(piece, scores):
    """Returns given scores."""
    del piece
    return scores
