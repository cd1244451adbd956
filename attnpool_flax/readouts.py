"""Readouts: latent attention, Set2Set, VLAD and the gated sum. Twin of :mod:`attnpool_ref.readouts`."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.attention import from_heads, to_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.layers import mapped, normalized
from attnpool_flax.normalizers import softmax, unit
from attnpool_flax.numerics.elementwise import geglu
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.products import einsum, one_pass_of
from attnpool_flax.queries.averages import Products
from attnpool_flax.queries.blocks import over_queries
from attnpool_flax.reductions.loops import blocks

ROWS = 256
"""The smallest number of tokens of all examples in a block of latent attention; each block reads all kernels once."""


@compiled(tokens=("x",), one_pass=True)
def latent_attention_pooling(
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
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.latent_attention_pooling`: the latents' keys and values are computed once.

    The tokens are processed in blocks, so that their hidden layers exist for one block at a time.

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
    >>> x, mask = jnp.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]), jnp.array([True, True, False])
    >>> latent_attention_pooling(x, mask, **parameters)
    Array([3., 2.], dtype=float32)

    Packed:
      The latents' keys and values are computed once, and the tokens are processed in blocks.

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
        x.zero_padded(),
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
    return x.with_values(each).mean()


def asked_of_latents(
    x,
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
):
    """Applies the attention to the latents and the MLP to each token separately, before the mean: [..., L, d]."""
    # parameters that all devices share are cast to varying once, not in every block
    x, query_kernel, out_kernel, mlp_kernel, mlp_out_kernel, mlp_bias, mlp_out_bias, *norms = unify_varying(
        x,
        query_kernel,
        out_kernel,
        mlp_kernel,
        mlp_out_kernel,
        mlp_bias,
        mlp_out_bias,
        norm_scale,
        norm_bias,
        mlp_norm_scale,
        mlp_norm_bias,
    )
    norm_scale, norm_bias, mlp_norm_scale, mlp_norm_bias = norms
    known = normalized(latents, latent_norm_scale, latent_norm_bias, epsilon)
    keys, values = (to_heads(known, kernel, None, precision) for kernel in (key_kernel, value_kernel))
    _, keys, values = unify_varying(x, keys * query_kernel.shape[-1] ** -0.5, values)

    def averaged(scores, _, values):
        return einsum("...hlr,hrc->...hlc", softmax(scores, None), values, precision)

    def asked(queries):
        return averaged(einsum("...hlc,hrc->...hlr", queries, keys, precision), None, values)

    def asked_on_tpus(queries):
        own = jnp.expand_dims(keys, tuple(range(x.ndim - 2)))
        return Products(lambda queries: (queries, own, None), precision).average(averaged, (queries,), None, values)

    def of_tokens(x, asked=asked):
        queries = to_heads(normalized(x, norm_scale, norm_bias, epsilon), query_kernel, None, precision)
        x = x + from_heads(asked(queries), out_kernel, None, precision)
        hidden = geglu(mapped(normalized(x, mlp_norm_scale, mlp_norm_bias, epsilon), mlp_kernel, mlp_bias, precision))
        return x + mapped(hidden, mlp_out_kernel, mlp_out_bias, precision)

    held = mlp_kernel.shape[-1] + math.prod(keys.shape[:2])
    keys_of_one = math.prod(x.shape[:-2]) * min(held, blocks.LARGEST // ROWS)
    on_tpus = functools.partial(of_tokens, asked=asked_on_tpus)
    return over_queries(of_tokens, (x,), keys=keys_of_one, on_tpus=on_tpus)


@compiled(tokens=("x",), as_they_come=("x",))
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
    """Twin of :func:`attnpool_ref.set2set_pooling`; the first query is the same for all examples, and computed once.

    >>> parameters = {"input_kernel": jnp.zeros((2, 4)), "recurrent_kernel": jnp.zeros((1, 4)), "bias": jnp.zeros(4)}
    >>> set2set_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]), **parameters, num_steps=2)
    Array([0., 2.], dtype=float32)

    Packed:

    >>> parameters = {"input_kernel": jnp.zeros((2, 4)), "recurrent_kernel": jnp.zeros((1, 4)), "bias": jnp.zeros(4)}
    >>> segment_set2set_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, **parameters, num_steps=2)
    Array([[0., 2.],
           [0., 5.]], dtype=float32)
    """
    read, weights = set2set(x, input_kernel, recurrent_kernel, bias, num_steps)
    return (read, weights) if return_weights else read


def set2set(tokens, input_kernel, recurrent_kernel, bias, num_steps):
    """Returns (result [..., 2d], weights [..., L] of the last step, packed [N]) of dense or packed tokens."""
    width = tokens.x.shape[-1]
    hidden = cell = jnp.zeros((1,) * (tokens.x.ndim - 2) + (width,), tokens.dtype)
    read: Any = None
    weights: Any = None
    weight_sums: Any = None
    for _ in range(num_steps):
        gates = jnp.reshape(bias, (1,) * (hidden.ndim - 1) + bias.shape)
        if read is not None:
            gates = gates + mapped(read, input_kernel, None, tokens.precision)
            gates = gates + mapped(hidden, recurrent_kernel, None, tokens.precision)
        keep, forget, new, show = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(keep) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(show) * jnp.tanh(cell)
        pooled, weights, weight_sums = tokens.softmax_with_weight_sums(hidden[..., None, :])
        pooled = pooled[..., 0, :]
        hidden, cell = (jnp.broadcast_to(part, pooled.shape) for part in (hidden, cell))
        read = jnp.concatenate([hidden, pooled], -1)
    return jnp.where(weight_sums == 0, 0, read), weights[..., 0, :]


@compiled(tokens=("x",), as_they_come=("x",), one_pass=True)
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
    """Twin of :func:`attnpool_ref.vlad_pooling`: an array [..., L, K, d] exists only if it fits one block.

    The residuals x - center are summed, because the sum of tokens minus the sum of centers would lose digits: on CPUs by
    blocks of clusters, on GPUs in one reduction, on TPUs by matrix products of the residuals to the nearest centers.

    >>> x, mask = jnp.array([[1.0], [4.0], [99.0]]), jnp.array([True, True, False])
    >>> vlad_pooling(x, mask, assign_kernel=jnp.zeros((1, 1)), centers=jnp.array([[2.0]]), normalize=False)
    Array([[1.]], dtype=float32)

    Packed:
      An array [N, K, d] exists only if it fits one block. GPUs and TPUs sum the residuals by matrix products.

    >>> parameters = {"assign_kernel": jnp.zeros((1, 1)), "centers": jnp.array([[2.0]])}
    >>> x, numbers = jnp.array([[1.0], [5.0], [4.0]]), jnp.array([0, 1, 0])
    >>> segment_vlad_pooling(x, numbers, 2, **parameters, normalize=False)
    Array([[[1.]],
    <BLANKLINE>
           [[3.]]], dtype=float32)
    """
    top, residuals, weights = residuals_of(x, assign_kernel, centers, assign_bias, precision)
    result = vlad_of(top, residuals, normalize)
    return (result, weights) if return_weights else result


def residuals_of(tokens, assign_kernel, centers, assign_bias, precision):
    """Sums the residuals of dense or packed tokens to the cluster centers, over all devices.

    Returns:
      (max score [..., K]: the largest logarithm of a real token's weight, a constant in the gradient;
      the sums [..., K, d] of the residuals under the weights divided by exp(max score); the weights [..., L, K]).
    """
    dtype, tokens = tokens.x.dtype, tokens.with_values(tokens.x.astype(tokens.dtype))
    # parameters that all devices share are cast to varying once, not in every step of the loop
    _, assign_kernel, centers, assign_bias = unify_varying(tokens.x, assign_kernel, centers, assign_bias)
    scores = einsum("...d,dk->...k", tokens.zero_padded(), assign_kernel, precision)
    if assign_bias is not None:
        scores = scores + jnp.reshape(assign_bias, (1,) * (scores.ndim - 1) + assign_bias.shape)
    logs = jnp.swapaxes(jax.nn.log_softmax(scores)[..., : centers.shape[0]], -1, -2)
    weights = tokens.fill_padding(jnp.exp(logs))
    top, residuals = tokens.sums_of_residuals(centers, logs, dtype, precision)
    return *tokens.all_reduce_softmax(top, residuals), jnp.swapaxes(weights, -1, -2)


def vlad_of(top, residuals, normalize):
    """Returns the result [..., K, d] from max scores (``top``) and sums of :func:`residuals_of`.

    With ``normalize`` each cluster's sum is divided by its norm, then all by their common norm; the factor exp(top)
    cancels. Otherwise the sums are multiplied by it.
    """
    if not normalize:
        return jnp.exp(lax.stop_gradient(top))[..., None] * residuals
    each = unit(residuals)
    whole = jnp.reshape(each, (*each.shape[:-2], each.shape[-2] * each.shape[-1]))
    return jnp.reshape(unit(whole), each.shape)


@compiled(tokens=("x",), as_they_come=("x",))
def gated_sum_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    gate_kernel,
    value_kernel,
    gate_bias=None,
    value_bias=None,
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.gated_sum_pooling`: one matrix product computes gate and value of a block of tokens.

    >>> x, mask = jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False])
    >>> gated_sum_pooling(x, mask, gate_kernel=jnp.zeros((1, 1)), value_kernel=jnp.full((1, 1), 20.0))
    Array([1.], dtype=float32)

    Packed:

    >>> kernels = {"gate_kernel": jnp.zeros((1, 1)), "value_kernel": jnp.full((1, 1), 20.0)}
    >>> segment_gated_sum_pooling(jnp.array([[1.0], [0.0], [3.0]]), jnp.array([0, 1, 0]), 2, **kernels)
    Array([[1.],
           [0.]], dtype=float32)
    """
    return gated_sum(x, gate_kernel, value_kernel, gate_bias, value_bias, precision)


def gated_sum(tokens, gate_kernel, value_kernel, gate_bias, value_bias, precision):
    """Sums sigmoid(gate) * tanh(value) over dense or packed tokens: [..., o]; a bias [o] may be None."""
    _, *parameters = unify_varying(tokens.x, gate_kernel, value_kernel, gate_bias, value_bias)
    gate_kernel, value_kernel, gate_bias, value_bias = parameters
    kernel, count = jnp.concatenate([gate_kernel, value_kernel], 1), gate_kernel.shape[1]
    zero, one_pass = jnp.zeros_like(kernel[0, :count]), one_pass_of(precision, tokens.x.dtype)
    bias = jnp.concatenate([zero if bias is None else bias for bias in (gate_bias, value_bias)])

    def gated(x):
        hidden = einsum("...d,do->...o", x, kernel, one_pass)
        hidden = hidden + jnp.broadcast_to(bias, hidden.shape)
        return jax.nn.sigmoid(hidden[..., :count]) * jnp.tanh(hidden[..., count:])

    return tokens.sum_of_map(gated, 2 * count)
