"""Additive attention pooling. Twin of :mod:`attnpool_ref.additive`."""

import functools

import jax
import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.normalizers import normalize
from attnpool_flax.numerics.elementwise import OF_SCORES
from attnpool_flax.numerics.products import einsum, one_pass_of
from attnpool_flax.numerics.remat import saveable


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
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
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
    score, parameters = perceptron(x, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation)
    multiplier = dropout_multiplier
    if multiplier is not None and out_kernel.ndim == 1:
        multiplier = multiplier[..., None, :]
    if sink is not None and out_kernel.ndim == 1:
        sink = sink[..., None]
    if normalizer == "softmax" and value is None:
        pooled, weights, _ = x.softmax_of(score, shared=parameters, multiplier=multiplier, sink=sink)
    else:
        scores, values = x.scores_of(score, shared=parameters), x if value is None else x.with_values(value)
        pooled, weights, _ = averages(values, scores, normalizer, multiplier, sink)
    if out_kernel.ndim == 1:
        pooled, weights = pooled[..., 0, :], weights[..., 0, :]
    return (pooled, weights) if return_weights else pooled


def perceptron(tokens, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation, save=True):
    """Returns (the score of tokens by a perceptron with one hidden layer, the arrays that it takes as ``shared``).

    With an ``out_kernel`` [h] there is one score for each token. With ``save`` the hidden layer is saved for the backward
    pass, else computed again. The other arguments are those of the public function.
    """
    precision = one_pass_of(tokens.precision, tokens.x.dtype)

    def layer(piece, kernel, bias):
        products = einsum("...d,dh->...h", piece.x, kernel, precision)
        products = products if bias is None else products + jnp.broadcast_to(bias, products.shape)
        return saveable(products) if save else products

    def score(piece, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias):
        units = OF_SCORES[activation](layer(piece, kernel, bias))
        if gate_kernel is not None:
            units = units * jax.nn.sigmoid(layer(piece, gate_kernel, gate_bias))
        scores = jnp.dot(units, jnp.reshape(out_kernel, (kernel.shape[1], -1)), precision=piece.precision)
        return scores if out_bias is None else scores + jnp.broadcast_to(jnp.ravel(out_bias), scores.shape)

    return score, (kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias)


def averages(tokens, scores, normalizer, multiplier, sink=None):
    """Returns (pooled [..., n, d], weights [..., n, L], sums of the weights) of tokens under scores [..., n, L]."""
    if normalizer == "softmax":
        return tokens.softmax_of_scores(scores, multiplier, sink)
    return tokens.sums_under(scores, functools.partial(normalize, normalizer=normalizer), multiplier)


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
