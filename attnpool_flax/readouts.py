"""Readouts. Twin of :mod:`attnpool_ref.readouts`."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.blocks import over_first
from attnpool_flax.implementation import implementation
from attnpool_flax.normalizers import unit
from attnpool_flax.reductions import Dense, alike


@implementation(as_they_come=("x",))
def set2set_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    input_kernel,
    recurrent_kernel,
    bias,
    num_steps,
    return_weights=False,
    axis_name=None,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.set2set_pooling`; the first query, which all examples share, is computed once.

    >>> parameters = {"input_kernel": jnp.zeros((2, 4)), "recurrent_kernel": jnp.zeros((1, 4)), "bias": jnp.zeros(4)}
    >>> set2set_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]), **parameters, num_steps=2)
    Array([0., 2.], dtype=float32)
    """
    tokens = Dense(x, mask, implementation, precision, axis_name)
    read, weights = set2set(tokens, input_kernel, recurrent_kernel, bias, num_steps)
    return (read, weights) if return_weights else read


def set2set(tokens, input_kernel, recurrent_kernel, bias, num_steps):
    """(read [..., 2d], weights [..., L] of the last step) of tokens in any layout."""
    width = tokens.x.shape[-1]
    times = functools.partial(jnp.einsum, "...d,dc->...c", precision=tokens.precision)
    hidden = cell = jnp.zeros((1,) * (tokens.x.ndim - 2) + (width,), tokens.dtype)
    read = pooled = weights = shares = None
    for _ in range(num_steps):
        gates = jnp.reshape(bias, (1,) * (hidden.ndim - 1) + bias.shape)
        if read is not None:
            gates = gates + times(read, input_kernel) + times(hidden, recurrent_kernel)
        keep, forget, new, show = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(keep) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(show) * jnp.tanh(cell)
        pooled, weights, shares = tokens.softmax_with_shares(hidden[..., None, :])
        pooled = pooled[..., 0, :]
        hidden, cell = (jnp.broadcast_to(part, pooled.shape) for part in (hidden, cell))
        read = jnp.concatenate([hidden, pooled], -1)
    return jnp.where(shares == 0, 0, read), weights[..., 0, :]


@implementation
def vlad_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    assign_kernel,
    centers,
    assign_bias=None,
    normalize=True,
    return_weights=False,
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.vlad_pooling`: one cluster after another, no residuals [..., L, K, d].

    Each residual is taken before it is summed up: the sum of the tokens less that of the centres would cancel.

    >>> x, mask = jnp.array([[1.0], [4.0], [99.0]]), jnp.array([True, True, False])
    >>> vlad_pooling(x, mask, assign_kernel=jnp.zeros((1, 1)), centers=jnp.array([[2.0]]), normalize=False)
    Array([[1.]], dtype=float32)
    """
    tokens = Dense(x, mask, "einsum", precision, axis_name)
    top, residuals, weights = residuals_of(tokens, assign_kernel, centers, assign_bias)
    result = vlad_of(top, residuals, normalize)
    return (result, weights) if return_weights else result


def residuals_of(tokens, assign_kernel, centers, assign_bias):
    """What is left of tokens in any layout, of all devices.

    Returns:
      (top [..., K], the largest logarithm of a weight, a constant; the sums [..., K, d] of the residuals under weights
      relative to it; weights [..., L, K]).
    """
    # a parameter that is the same on all devices becomes each one's own once, and not in every trip of the loop
    _, assign_kernel, centers, assign_bias = alike(tokens.x, assign_kernel, centers, assign_bias)
    scores = jnp.einsum("...d,dk->...k", tokens.clean(), assign_kernel, precision=tokens.precision)
    if assign_bias is not None:
        scores = scores + jnp.reshape(assign_bias, (1,) * (scores.ndim - 1) + assign_bias.shape)
    logs = jnp.swapaxes(jax.nn.log_softmax(scores)[..., : centers.shape[0]], -1, -2)
    weights = tokens.kept(jnp.exp(logs))
    shares, top = tokens.heights(logs)

    def of_cluster(center, shares):
        return tokens.less(center).total(shares)

    parts = centers, jnp.moveaxis(shares, -2, 0)
    residuals = jnp.moveaxis(over_first(of_cluster, parts, math.prod(tokens.x.shape)), 0, -2)
    return *tokens.of_all(top, residuals), jnp.swapaxes(weights, -1, -2)


def vlad_of(top, residuals, normalize):
    """[..., K, d]: sums of residuals under weights relative to ``top``, normalised or in their own size."""
    if not normalize:
        return jnp.exp(lax.stop_gradient(top))[..., None] * residuals
    each = unit(residuals)
    return jnp.reshape(unit(jnp.reshape(each, (*each.shape[:-2], -1))), each.shape)
