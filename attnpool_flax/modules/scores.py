"""NNX modules of attention scores."""

from dataclasses import KW_ONLY

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.scores import (
    additive_score,
    bilinear_score,
    concat_score,
    location_score,
    tanh_sum_score,
    trilinear_score,
)


@constructor_from_fields
class BilinearScore(PoolingModule):
    """Bilinear attention score with a learned kernel (Luong's "general").

    Calls :func:`attnpool_flax.bilinear_score`. Parameters: ``kernel`` [d, e].

    >>> score = BilinearScore(4, 6, rngs=nnx.Rngs(0))
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score(query, key).shape
    (2, 3, 5)
    """

    query_features: int
    key_features: int

    def __call__(self, query, key):
        """Scores each pair.

        Returns:
          [..., n, m] scores.
        """
        return bilinear_score(**self._arguments(query=query, key=key))


@constructor_from_fields
class AdditiveScore(PoolingModule):
    """Additive attention score: an MLP with one hidden layer (Bahdanau).

    Calls :func:`attnpool_flax.additive_score`. Parameters: ``query_kernel`` [d, h], ``key_kernel`` [e, h],
    ``out_kernel`` [h]; with ``use_bias`` also ``bias`` [h].

    >>> score = AdditiveScore(4, 6, 8, rngs=nnx.Rngs(0))
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score(query, key).shape
    (2, 3, 5)
    """

    query_features: int
    key_features: int
    hidden_features: int
    _: KW_ONLY
    use_bias: bool = False

    def __call__(self, query, key):
        """Scores each pair.

        Returns:
          [..., n, m] scores.
        """
        return additive_score(**self._arguments(query=query, key=key))


@constructor_from_fields
class ConcatScore(PoolingModule):
    """Attention score by an MLP over the concatenated query and key (Luong's "concat").

    Calls :func:`attnpool_flax.concat_score`. Parameters: ``kernel`` [d+e, h] and ``out_kernel`` [h]; with ``use_bias``
    also ``bias`` [h].

    >>> score = ConcatScore(4, 6, 8, rngs=nnx.Rngs(0))
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score(query, key).shape
    (2, 3, 5)
    """

    query_features: int
    key_features: int
    hidden_features: int
    _: KW_ONLY
    use_bias: bool = False

    def __call__(self, query, key):
        """Scores each pair.

        Returns:
          [..., n, m] scores.
        """
        return concat_score(**self._arguments(query=query, key=key))


@constructor_from_fields
class TanhSumScore(PoolingModule):
    """Attention score that sums a tanh layer over the concatenated query and key.

    Calls :func:`attnpool_flax.tanh_sum_score`. Parameters: ``kernel`` [d+e, h] and, unless ``use_bias`` is False,
    ``bias`` [h].

    >>> score = TanhSumScore(4, 6, 8, rngs=nnx.Rngs(0))
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score(query, key).shape
    (2, 3, 5)
    """

    query_features: int
    key_features: int
    hidden_features: int
    _: KW_ONLY
    use_bias: bool = True

    def __call__(self, query, key):
        """Scores each pair.

        Returns:
          [..., n, m] scores.
        """
        return tanh_sum_score(**self._arguments(query=query, key=key))


@constructor_from_fields
class LocationScore(PoolingModule):
    """Attention score of numbered slots from query and state (Luong's "location").

    Calls :func:`attnpool_flax.location_score`. Parameters: ``kernel`` [d+e, m] and, unless ``use_bias`` is False,
    ``bias`` [m].

    Args:
      state_features: e, the width of the states.
      num_slots: m, the number of slots.

    >>> score = LocationScore(4, 6, 5, rngs=nnx.Rngs(0))
    >>> query, state = jnp.ones((2, 3, 4)), jnp.ones((2, 3, 6))
    >>> score(query, state).shape
    (2, 3, 5)
    """

    query_features: int
    state_features: int
    num_slots: int
    _: KW_ONLY
    use_bias: bool = True

    def __call__(self, query, state):
        """Scores each slot.

        Returns:
          [..., n, m] scores, one for each slot.
        """
        return location_score(**self._arguments(query=query, state=state))


@constructor_from_fields
class TrilinearScore(PoolingModule):
    """Trilinear attention score of query, key and their elementwise product (BiDAF).

    Calls :func:`attnpool_flax.trilinear_score`. Parameters: ``kernel`` [3d], which multiplies the concatenated query,
    key and their product.

    Args:
      in_features: d, the width of queries and keys.

    >>> score = TrilinearScore(4, rngs=nnx.Rngs(0))
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 4))
    >>> score(query, key).shape
    (2, 3, 5)
    """

    in_features: int

    def __call__(self, query, key):
        """Scores each pair.

        Returns:
          [..., n, m] scores.
        """
        return trilinear_score(**self._arguments(query=query, key=key))
