"""Chunked readouts: states and state functions of latent attention, VLAD and gated sums."""

from typing import Any

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.call.states import State, kind
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.readouts import LatentAttention, gated_sum, residuals_of, vlad_of
from attnpool_flax.streaming.means import SumState
from attnpool_flax.streaming.states import MeanState
from attnpool_flax.tokens import Dense
from attnpool_flax.tokens.states import AttentionState


@kind
class LatentAttentionState(MeanState):
    """State of :func:`~attnpool_flax.streaming.latent_attention_state`: a :class:`MeanState` of attended tokens."""


@compiled(one_pass=True)
def latent_attention_state(
    x,
    mask=None,
    *,
    lengths=None,
    latents,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    mlp_kernel,
    mlp_out_kernel,
    mlp_bias=None,
    mlp_out_bias=None,
    norm_scale=None,
    norm_bias=None,
    latent_norm_scale=None,
    latent_norm_bias=None,
    mlp_norm_scale=None,
    mlp_norm_bias=None,
    epsilon=1e-5,
    precision=None,
):
    """Twin of :func:`attnpool_ref.latent_attention_state`; more chunks hardly add rounding error (Kahan summation).

    >>> parameters = {
    ...     "latents": jnp.array([[1.0, -1.0]]),
    ...     "query_kernel": jnp.eye(2)[:, None],
    ...     "key_kernel": jnp.eye(2)[:, None],
    ...     "value_kernel": jnp.eye(2)[:, None],
    ...     "out_kernel": jnp.eye(2)[None],
    ...     "mlp_kernel": jnp.zeros((2, 2)),
    ...     "mlp_out_kernel": jnp.zeros((1, 2)),
    ...     "epsilon": 0.0,
    ... }
    >>> chunks = jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]])
    >>> finalize_state(merge_states(*(latent_attention_state(chunk, **parameters) for chunk in chunks)))
    Array([3., 2.], dtype=float32)
    """
    each = LatentAttention.of(locals()).apply(keep_real(x, mask))
    total, count = Dense(each, mask, of_chunk=True).sum_and_count()
    return LatentAttentionState(total, jnp.zeros_like(total), count)


@kind
class VladState(State):
    """State of :func:`~attnpool_flax.streaming.vlad_state`: compensated sums of residuals under unnormalized weights.

    Attributes:
      top: [..., K], for each of K clusters the largest logarithm of a token's weight; -inf if fully masked. It is a
        constant in the gradient.
      sum: [..., K, d], the numerator: the sum of exp(log weight - top) times the residual.
      rest: [..., K, d], the compensation of ``sum``.
      normalize: whether ``finalize_state`` divides the sums by their norms; static.
    """

    top: Any
    sum: Any
    rest: Any
    normalize: bool = True

    options = ("normalize",)

    def merged(self, other):
        """Merges the states of both chunks."""
        one, two = (AttentionState(state.top, None, None, state.sum, state.rest) for state in (self, other))
        both = one.merged(two)
        return VladState(both.top, both.sum, both.rest, self.normalize)

    def finalized(self):
        """Returns the result [..., K, d]; 0 for a fully masked row."""
        return vlad_of(self.top, self.sum + self.rest, self.normalize)


@compiled(as_they_come=("x",))
def vlad_state(x, mask=None, *, lengths=None, assign_kernel, centers, assign_bias=None, normalize=True, precision=None):
    """Twin of :func:`attnpool_ref.vlad_state`: an array [..., L, K, d] exists only if it fits one block.

    >>> parameters = {"assign_kernel": jnp.zeros((1, 1)), "centers": jnp.array([[2.0]]), "normalize": False}
    >>> one, other = (vlad_state(jnp.array([[token]]), **parameters) for token in (1.0, 4.0))
    >>> finalize_state(merge_states(one, other))
    Array([[1.]], dtype=float32)
    """
    tokens = Dense(x, mask, precision, of_chunk=True)
    top, residuals, _ = residuals_of(tokens, assign_kernel, centers, assign_bias, precision)
    return VladState(top, residuals, jnp.zeros_like(residuals), normalize)


@kind
class GatedSumState(SumState):
    """State of :func:`~attnpool_flax.streaming.gated_sum_state`: a :class:`SumState` of gated, projected tokens."""


@compiled(as_they_come=("x",))
def gated_sum_state(
    x, mask=None, *, lengths=None, gate_kernel, value_kernel, gate_bias=None, value_bias=None, precision=None
):
    """Twin of :func:`attnpool_ref.gated_sum_state`; more chunks hardly add rounding error (Kahan summation).

    >>> kernels = {"gate_kernel": jnp.zeros((1, 1)), "value_kernel": jnp.full((1, 1), 20.0)}
    >>> one, other = (gated_sum_state(jnp.array([[token]]), **kernels) for token in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([1.], dtype=float32)
    """
    total = gated_sum(
        Dense(x, mask, precision, of_chunk=True), gate_kernel, value_kernel, gate_bias, value_bias, precision
    )
    return GatedSumState(total, jnp.zeros_like(total))
