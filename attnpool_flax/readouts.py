"""Readouts: latent attention, Set2Set, VLAD and the gated sum. Twin of :mod:`attnpool_ref.readouts`."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.attention import from_heads, to_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.layers import mapped, normalized
from attnpool_flax.normalizers import softmax, unit
from attnpool_flax.numerics.elementwise import geglu
from attnpool_flax.numerics.platforms import BLOCK, unify_varying
from attnpool_flax.numerics.products import einsum, one_pass_of
from attnpool_flax.tokens.queries import over_first, over_queries

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
    layer = LatentAttention.of(locals())
    return x.with_values(layer.apply(x.zero_padded())).mean()


class LatentAttention(NamedTuple):
    """Parameters of latent attention; the docstring of :func:`latent_attention_pooling` has their shapes."""

    latents: Any
    query_kernel: Any
    key_kernel: Any
    value_kernel: Any
    out_kernel: Any
    mlp_kernel: Any
    mlp_out_kernel: Any
    mlp_bias: Any
    mlp_out_bias: Any
    norm_scale: Any
    norm_bias: Any
    latent_norm_scale: Any
    latent_norm_bias: Any
    mlp_norm_scale: Any
    mlp_norm_bias: Any
    epsilon: Any
    precision: Any

    @classmethod
    def of(cls, arguments):
        """Takes the parameters from the arguments of a function by name, among which may be others."""
        return cls._make(arguments[name] for name in cls._fields)

    def apply(self, x):
        """Applies the attention to the latents and the MLP to each token separately, before the mean: [..., L, d]."""
        # parameters that all devices share are cast to varying once, not in every block
        x, *arrays = unify_varying(x, *self[:-1])
        layer, precision = self._make([*arrays, self.precision]), self.precision
        known = normalized(layer.latents, layer.latent_norm_scale, layer.latent_norm_bias, layer.epsilon)
        keys, values = (to_heads(known, kernel, None, precision) for kernel in (layer.key_kernel, layer.value_kernel))
        keys = keys * layer.query_kernel.shape[-1] ** -0.5

        def of_tokens(x):
            queries = normalized(x, layer.norm_scale, layer.norm_bias, layer.epsilon)
            queries = to_heads(queries, layer.query_kernel, None, precision)
            weights = softmax(einsum("...hlc,hrc->...hlr", queries, keys, precision), None)
            found = einsum("...hlr,hrc->...hlc", weights, values, precision)
            x = x + from_heads(found, layer.out_kernel, None, precision)
            hidden = normalized(x, layer.mlp_norm_scale, layer.mlp_norm_bias, layer.epsilon)
            hidden = geglu(mapped(hidden, layer.mlp_kernel, layer.mlp_bias, precision))
            return x + mapped(hidden, layer.mlp_out_kernel, layer.mlp_out_bias, precision)

        held = layer.mlp_kernel.shape[-1] + math.prod(keys.shape[:2])
        keys_of_one = math.prod(x.shape[:-2]) * min(held, BLOCK // ROWS)
        return over_queries(of_tokens, (x,), keys=keys_of_one)


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
        pooled, weights, weight_sums = tokens.softmax(hidden[..., None, :])
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
    """Twin of :func:`attnpool_ref.vlad_pooling`, without an array [..., L, K, d].

    The residuals x - center are summed, because the sum of tokens minus the sum of centers would lose digits: by products
    of the residuals to the nearest centers.

    >>> x, mask = jnp.array([[1.0], [4.0], [99.0]]), jnp.array([True, True, False])
    >>> vlad_pooling(x, mask, assign_kernel=jnp.zeros((1, 1)), centers=jnp.array([[2.0]]), normalize=False)
    Array([[1.]], dtype=float32)

    Packed:

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
    tokens = tokens.with_values(tokens.x.astype(tokens.dtype))
    # parameters that all devices share are cast to varying once, not in every step of the loop
    _, assign_kernel, assign_bias = unify_varying(tokens.x, assign_kernel, assign_bias)
    scores = einsum("...d,dk->...k", tokens.zero_padded(), assign_kernel, precision)
    if assign_bias is not None:
        scores = scores + jnp.reshape(assign_bias, (1,) * (scores.ndim - 1) + assign_bias.shape)
    logs = jnp.swapaxes(jax.nn.log_softmax(scores)[..., : centers.shape[0]], -1, -2)
    weights = tokens.fill_padding(jnp.exp(logs))
    return *_sums_of_residuals(tokens, centers, logs), jnp.swapaxes(weights, -1, -2)


def _sums_of_residuals(tokens, centers, logs):
    """Sums the tokens minus each of the centers [K, d] under the exponentials of logarithms [..., K, L], by products.

    The sum of the tokens minus the sum of the centers would cancel digits where the residuals are small. With the center
    c_a(l) nearest to each token x_l, and weights w_lk,

        sum_l w_lk (x_l - c_k) = sum_l w_lk (x_l - c_a(l)) + sum_j (sum_{l: a(l) = j} w_lk) (c_j - c_k)

    has terms on the right that are at most twice as large as those on the left. All c_a(l) and c_j are constants in the
    gradient, which goes to c_k.

    Returns:
      (max_score [..., K], the largest logarithm at a real token, a constant in the gradient; the sums [..., K, d]
      under exp(log - max_score)), of all devices.
    """
    constant, width = lax.stop_gradient(centers), centers.shape[1]
    is_nearest = jax.nn.one_hot(_nearest(tokens.zero_padded(), constant), centers.shape[0], dtype=centers.dtype)
    own = jnp.einsum("...k,kd->...d", is_nearest, constant, precision=lax.Precision.HIGHEST)
    values = jnp.concatenate([tokens.x - own, is_nearest], -1)
    max_score, sums = tokens.with_values(values).softmax_sums(logs)

    def of_center(center, shares):
        differences = constant - center[None]
        return jnp.einsum("...j,jd->...d", shares, differences, precision=lax.Precision.HIGHEST)

    shares = jnp.moveaxis(sums[..., width:], -2, 0)
    between = over_first(of_center, (centers, shares), centers.size)
    return max_score, sums[..., :width] + jnp.moveaxis(between, 0, -2)


def _nearest(x, centers):
    """Returns integers [...]: the index of the center nearest to each token [..., d].

    Rounding may choose another one that is almost as near. No digits are lost by that, unless the residuals are smaller
    than the square root of the rounding error, relative to the centers.
    """
    products = jnp.einsum("...d,kd->...k", lax.stop_gradient(x), centers, precision=lax.Precision.HIGHEST)
    halves = jnp.sum(centers * centers, -1) / 2
    scores = products - jnp.reshape(halves, (1,) * (products.ndim - 1) + halves.shape)
    # as integers in the same order: XLA's TPU compiler rounds the maximum of an argmax, which is not used, to bfloat16
    bits = lax.bitcast_convert_type(scores, jnp.dtype(f"int{8 * scores.dtype.itemsize}"))
    return jnp.argmax(jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits), -1)


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

    def gated(x, kernel, bias):
        hidden = einsum("...d,do->...o", x, kernel, one_pass)
        hidden = hidden + jnp.broadcast_to(bias, hidden.shape)
        return jax.nn.sigmoid(hidden[..., :count]) * jnp.tanh(hidden[..., count:])

    return tokens.sum_of_map(gated, 2 * count, kernel, bias)
