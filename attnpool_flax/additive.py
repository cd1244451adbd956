"""Additive attention pooling. Twin of :mod:`attnpool_ref.additive`.

On CPUs the kernel "tiles" computes the hidden layer of one tile of tokens at a time, and saves that of all tokens only
if the call is differentiated and is not that of a state of chunks.
"""

import functools

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.normalizers import normalize


@compiled(tokens=("x",), as_they_come=("x", "value"))
def additive_attention_pooling(
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
    normalizer="softmax",
    dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.additive_attention_pooling`: one matrix product computes hidden layer and gate.

    With ``axis_name`` the normalizer must be "softmax" or "sigmoid".

    >>> x, kernel = jnp.array([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]]), jnp.zeros((2, 4))
    >>> additive_attention_pooling(x, jnp.array([True, True, False]), kernel=kernel, out_kernel=jnp.ones(4))
    Array([2., 0.], dtype=float32)

    Packed:
      There is one score for each token and query, and no array [num_segments, N].

    >>> x, kernel = jnp.array([[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]]), jnp.zeros((2, 4))
    >>> segment_additive_attention_pooling(x, jnp.array([0, 1, 0]), 2, kernel=kernel, out_kernel=jnp.ones(4))
    Array([[2., 0.],
           [9., 9.]], dtype=float32)
    """
    scores, tokens = additive_scores(x, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation)
    values = tokens if value is None else x.with_values(value)
    pooled, weights = averages(values, scores, normalizer, out_kernel)
    pooled = values.drop(pooled, weights, dropout_multiplier)
    return (pooled, weights) if return_weights else pooled


def additive_scores(tokens, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation):
    """Returns (scores [..., n, L], undefined at padding; the tokens to average).

    ``tokens`` is a :class:`~attnpool_flax.tokens.Dense` or :class:`~attnpool_flax.tokens.Packed`. The average
    must read the returned tokens: their gradient is added to that through the scores in one array. With an
    ``out_kernel`` [h], n is 1. The other arguments are those of the public function.
    """
    columns = jnp.reshape(out_kernel, (kernel.shape[1], -1))
    if gate_kernel is not None:
        kernel, bias = jnp.concatenate([kernel, gate_kernel], 1), _side_by_side(bias, gate_bias, kernel)
    scores, tokens = tokens.perceptron(kernel, bias, columns, activation)
    if out_bias is not None:
        scores = scores + jnp.broadcast_to(jnp.reshape(out_bias, (-1, 1)), scores.shape)
    return scores, tokens


def _side_by_side(bias, gate_bias, kernel):
    """Concatenates both biases [h]: [2h], with 0 in place of one that is None; None if both are."""
    if bias is None and gate_bias is None:
        return None
    nothing = jnp.zeros_like(kernel[0])
    return jnp.concatenate([nothing if own is None else own for own in (bias, gate_bias)])


def averages(tokens, scores, normalizer, out_kernel):
    """Returns (pooled, weights) of tokens under scores [..., n, L]; an ``out_kernel`` [h] drops the axis n of both."""
    if isinstance(normalizer, str) and normalizer == "softmax":
        pooled, weights = tokens.softmax_of_scores(scores)
    else:
        pooled, weights = tokens.weighted_sums_of_scores(scores, functools.partial(normalize, normalizer=normalizer))
    return (pooled, weights) if out_kernel.ndim == 2 else (pooled[..., 0, :], weights[..., 0, :])


@compiled
def attention_penalty(weights, *, precision=None):
    """Twin of :func:`attnpool_ref.attention_penalty`.

    >>> attention_penalty(jnp.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    Array(0.25, dtype=float32)
    """
    products = jnp.einsum("...nl,...ml->...nm", weights, weights, precision=precision)
    own = jnp.broadcast_to(jnp.eye(weights.shape[-2], dtype=bool), products.shape)
    looks = jnp.any(weights != 0, -1)[..., None]
    return jnp.sum(jnp.square(products - (own & looks).astype(products.dtype)), (-1, -2))
