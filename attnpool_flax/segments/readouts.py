"""Readouts of packed sequences: the algebra of the dense ones over packed tokens."""

from attnpool_flax.call.compiled import compiled
from attnpool_flax.readouts import asked_of_latents, residuals_of, set2set, vlad_of
from attnpool_flax.reductions import Packed


@compiled
def segment_latent_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
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
    indices_are_sorted=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_latent_attention_pooling`: keys and values once a call, blocks of tokens.

    Numbers on a device that are out of range are padding.

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
    >>> x, numbers = jnp.array([[1.0, 2.0], [9.0, 8.0], [3.0, 4.0]]), jnp.array([0, 1, 0])
    >>> segment_latent_attention_pooling(x, numbers, 2, **parameters)
    Array([[ 3.,  2.],
           [10.,  7.]], dtype=float32)
    """
    each = asked_of_latents(
        Packed(x, segment_ids, num_segments, mask, indices_are_sorted, "einsum").zero_padded(),
        latents,
        query_kernel,
        key_kernel,
        value_kernel,
        out_kernel,
        mlp_kernel,
        mlp_out_kernel,
        mlp_bias,
        mlp_out_bias,
        norm_scale,
        norm_bias,
        latent_norm_scale,
        latent_norm_bias,
        mlp_norm_scale,
        mlp_norm_bias,
        epsilon,
        precision,
    )
    return Packed(each, segment_ids, num_segments, mask, indices_are_sorted, "einsum").mean()


@compiled(as_they_come=("x",))
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


@compiled
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
