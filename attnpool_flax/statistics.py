"""Statistics pooling. Twin of :mod:`attnpool_ref.statistics`; one formula for padded, packed and sharded tokens."""

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.elementwise import OF_SCORES, relu
from attnpool_flax.numerics.products import einsum
from attnpool_flax.tokens.channels import exp_scores
from attnpool_flax.tokens.moments import mean_and_deviation, moments


@compiled(tokens=("x",), as_they_come=("x",))
def std_pooling(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0, axis_name=None):
    """Twin of :func:`attnpool_ref.std_pooling`; a power of two scales the tokens, so that squares do not overflow.

    >>> std_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([1.], dtype=float32)

    Packed:

    >>> segment_std_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [0.]], dtype=float32)
    """
    return statistics(x.channels(), weights, ddof, epsilon)[1]


@compiled(tokens=("x",), as_they_come=("x",))
def statistics_pooling(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0, axis_name=None):
    """Twin of :func:`attnpool_ref.statistics_pooling`; a power of two scales the tokens: squares do not overflow.

    >>> statistics_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([2., 1.], dtype=float32)

    Packed:

    >>> segment_statistics_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2., 1.],
           [5., 0.]], dtype=float32)
    """
    return jnp.concatenate(statistics(x.channels(), weights, ddof, epsilon), -1)


def statistics(channels, weights, ddof, epsilon):
    """Returns (mean, deviation) [..., d] of the tokens in ``channels``, dense or packed.

    ``weights`` are [..., L] or [..., L, d]; None counts each token once. ``ddof`` are the delta degrees of freedom, and
    ``epsilon`` is the least variance.
    """
    weights = None if weights is None else channels.fill_padding(channels.expand_to_features(weights))
    return mean_and_deviation(moments(channels, weights), ddof, epsilon)


@compiled(tokens=("x",), as_they_come=("x",), one_pass=True)
def attentive_statistics_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    out_bias=None,
    norm_scale=None,
    norm_bias=None,
    activation="tanh",
    global_context=False,
    context_ddof=0,
    epsilon=0.0,
    return_weights=False,
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attentive_statistics_pooling`; the context, if any, is one vector for each example.

    With ``global_context`` the mean and the deviation of all tokens are multiplied by their part of the kernel once,
    not once for each token, so no array [..., L, 3d] of concatenated tokens exists.

    >>> kernels = {"kernel": jnp.array([[0.0]]), "out_kernel": jnp.array([1.0])}
    >>> attentive_statistics_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]), **kernels)
    Array([2., 1.], dtype=float32)

    Packed:
      The context is one vector for each segment.

    >>> x, ids = jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0])
    >>> kernels = {"kernel": jnp.array([[0.0]]), "out_kernel": jnp.array([1.0])}
    >>> segment_attentive_statistics_pooling(x, ids, 2, **kernels)
    Array([[2., 1.],
           [5., 0.]], dtype=float32)
    """
    channels = x.channels()
    context = (context_ddof, epsilon) if global_context else None
    network = kernel, bias, norm_scale, norm_bias, activation, out_kernel
    pooled, weights = attentive_statistics(channels, network, context, epsilon, precision)
    return (pooled, weights) if return_weights else pooled


def attentive_statistics(channels, network, context, epsilon, precision):
    """Returns ([mean; deviation] [..., 2d], weights) of tokens under the softmax of a network's scores.

    The weights are [..., L, d], or [..., L] if the out kernel is [h].

    Args:
      channels: the tokens, dense or packed (:mod:`attnpool_flax.tokens.channels`).
      network: kernel, bias, norm scale, norm bias, the name of the activation, out kernel; the bias and both arrays of
        the norm may be None.
      context: (ddof, epsilon) of the statistics of all tokens that are concatenated to each token, or None.
      epsilon: the least variance.
      precision: of the matrix products.
    """
    statistics_of_all = None if context is None else jnp.concatenate(statistics(channels, None, *context), -1)
    unnormalized, _ = exp_scores(channels, scores_of(channels, network, statistics_of_all, precision))
    found = moments(channels, unnormalized)
    total = channels.expand_to_tokens(jnp.where(found.total == 0, 1, found.total) * found.unit)
    weights = channels.fill_padding(unnormalized / total)
    pooled = jnp.concatenate(mean_and_deviation(found, 0, epsilon), -1)
    return pooled, weights if network[-1].ndim == 2 else weights[..., 0]


def scores_of(channels, network, context, precision):
    """Scores each token by a network, the tuple of :func:`attentive_statistics`.

    Returns [..., L, d], or [..., L, 1] if the network's out kernel is [h]; scores at padding have no meaning.
    ``context`` [..., 2d], or None, acts as if it were concatenated to each token.
    """
    kernel, bias, norm_scale, norm_bias, activation, out_kernel = network
    width = channels.x.shape[-1]
    hidden = einsum("...d,dh->...h", channels.x, kernel[:width], precision)
    if context is not None:
        hidden = hidden + channels.expand_to_tokens(einsum("...d,dh->...h", context, kernel[width:], precision))
    if bias is not None:
        hidden = hidden + _with_all_axes(bias, hidden)
    if norm_scale is not None:
        hidden = relu(hidden) * _with_all_axes(norm_scale, hidden)
        hidden = hidden if norm_bias is None else hidden + _with_all_axes(norm_bias, hidden)
    hidden = OF_SCORES[activation](hidden)
    out_kernel = out_kernel if out_kernel.ndim == 2 else out_kernel[:, None]
    return einsum("...h,hd->...d", hidden, out_kernel, precision)


def _with_all_axes(vector, like):
    return jnp.reshape(vector, (1,) * (like.ndim - 1) + vector.shape)
