"""Additive pooling of packed sequences."""

from attnpool_flax.additive import additive_scores, averages
from attnpool_flax.call.compiled import compiled
from attnpool_flax.reductions import Packed


@compiled(as_they_come=("x", "value"))
def segment_additive_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    kernel,
    out_kernel,
    bias=None,
    gate_kernel=None,
    gate_bias=None,
    out_bias=None,
    value=None,
    activation="tanh",
    normalizer="softmax",
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_additive_attention_pooling`: no [num_segments, N] matrix.

    Numbers on a device that are out of range are padding.

    >>> x, kernel = jnp.array([[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]]), jnp.zeros((2, 4))
    >>> segment_additive_attention_pooling(x, jnp.array([0, 1, 0]), 2, kernel=kernel, out_kernel=jnp.ones(4))
    Array([[2., 0.],
           [9., 9.]], dtype=float32)
    """
    tokens, values = (
        own
        if own is None
        else Packed(own, segment_ids, num_segments, mask, indices_are_sorted, implementation, precision)
        for own in (x, value)
    )
    scores, tokens = additive_scores(tokens, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation)
    pooled, weights = averages(tokens if values is None else values, scores, normalizer, out_kernel)
    return (pooled, weights) if return_weights else pooled
