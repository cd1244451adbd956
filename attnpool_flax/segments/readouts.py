"""Readouts of packed sequences: the algebra of the dense ones over packed tokens."""

from attnpool_flax.implementation import implementation
from attnpool_flax.readouts import residuals_of, set2set, vlad_of
from attnpool_flax.reductions import Packed


@implementation(as_they_come=("x",))
def segment_set2set_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    input_kernel,
    recurrent_kernel,
    bias,
    num_steps,
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_set2set_pooling`; numbers on a device that are out of range are padding.

    >>> parameters = {"input_kernel": jnp.zeros((2, 4)), "recurrent_kernel": jnp.zeros((1, 4)), "bias": jnp.zeros(4)}
    >>> segment_set2set_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, **parameters, num_steps=2)
    Array([[0., 2.],
           [0., 5.]], dtype=float32)
    """
    tokens = Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation, precision)
    read, weights = set2set(tokens, input_kernel, recurrent_kernel, bias, num_steps)
    return (read, weights) if return_weights else read


@implementation
def segment_vlad_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    assign_kernel,
    centers,
    assign_bias=None,
    normalize=True,
    indices_are_sorted=False,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_vlad_pooling`: one cluster after another, no residuals [N, K, d].

    Numbers on a device that are out of range are padding.

    >>> parameters = {"assign_kernel": jnp.zeros((1, 1)), "centers": jnp.array([[2.0]])}
    >>> x, numbers = jnp.array([[1.0], [5.0], [4.0]]), jnp.array([0, 1, 0])
    >>> segment_vlad_pooling(x, numbers, 2, **parameters, normalize=False)
    Array([[[1.]],
    <BLANKLINE>
           [[3.]]], dtype=float32)
    """
    tokens = Packed(x, segment_ids, num_segments, mask, indices_are_sorted, "einsum", precision)
    top, residuals, weights = residuals_of(tokens, assign_kernel, centers, assign_bias)
    result = vlad_of(top, residuals, normalize)
    return (result, weights) if return_weights else result
