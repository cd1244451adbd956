"""Two packed sequences: the algebra of the dense poolings of pairs over packed tokens."""

from attnpool_flax.call.compiled import compiled
from attnpool_flax.pairs import cross_attention
from attnpool_flax.reductions import Packed


@compiled(as_they_come=("x", "y"))
def segment_cross_attention_pooling(
    x,
    x_segment_ids,
    y,
    y_segment_ids,
    num_segments,
    x_mask=None,
    y_mask=None,
    *,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_cross_attention_pooling`: O((N + M) d), no matrix over pairs.

    Numbers on a device that are out of range are padding.

    >>> x, y = jnp.array([[2.0, 0.0], [2.0, 4.0]]), jnp.array([[1.0, 0.0]])
    >>> segment_cross_attention_pooling(x, jnp.array([0, 0]), y, jnp.array([0]), 1)
    (Array([[2., 2.]], dtype=float32), Array([[1., 0.]], dtype=float32))
    """
    settled = indices_are_sorted, implementation, precision
    xs, ys = (
        Packed(x, x_segment_ids, num_segments, x_mask, *settled),
        Packed(y, y_segment_ids, num_segments, y_mask, *settled),
    )
    pooled, weights = cross_attention(xs, ys, x_kernel, y_kernel, reduction, scale)
    return (pooled, weights) if return_weights else pooled
