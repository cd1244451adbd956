"""Chunked additive attention: its state function."""

from attnpool_flax.additive import additive_scores
from attnpool_flax.call.compiled import compiled
from attnpool_flax.streaming.pooling import with_compensation
from attnpool_flax.streaming.states import AdditiveAttentionState
from attnpool_flax.tokens import Dense


@compiled(as_they_come=("x", "value"))
def additive_attention_state(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    gate_kernel=None,
    gate_bias=None,
    out_bias=None,
    value=None,
    activation="tanh",
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.additive_attention_state`; the hidden layer is recomputed in the backward pass.

    >>> parameters = {"kernel": jnp.zeros((2, 4)), "out_kernel": jnp.ones(4)}
    >>> one, other = (additive_attention_state(jnp.array([[first, 0.0]]), **parameters) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2., 0.], dtype=float32)
    """
    tokens, values = (
        own if own is None else Dense(own, mask, implementation, precision, recompute=True) for own in (x, value)
    )
    scores, tokens = additive_scores(tokens, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation)
    state = (tokens if values is None else values).softmax_state_of_scores(scores)
    if out_kernel.ndim == 1:
        state = state._replace(
            max_score=state.max_score[..., 0],
            denominator=state.denominator[..., 0],
            numerator=state.numerator[..., 0, :],
        )
    return AdditiveAttentionState(*with_compensation(state))
