"""`merge_states` and `finalize_state`, which turn the states of chunks into the pooled vector."""

import functools
import inspect
from dataclasses import replace

import jax
import jax.numpy as jnp

from attnpool_flax.attention import from_heads
from attnpool_flax.call.documentation import composed
from attnpool_flax.call.prepare import as_array, resolve_precision, result_dtype
from attnpool_flax.call.states import common_host_options, kinds, option, promote, without_host_options
from attnpool_flax.numerics.softmax import share_beside_sink
from attnpool_flax.streaming.states import AttentionState, MultiHeadAttentionState
from attnpool_ref import contract
from attnpool_ref.contract import rowless


@contract.with_short_traceback
def merge_states(a, b):
    """Twin of :func:`attnpool_ref.merge_states`; sums are compensated, so merges hardly add rounding error.

    Options such as ``scale`` whose values are on a device or traced are not compared; those of ``a`` are used.

    >>> whole = merge_states(mean_state(jnp.array([[1.0]])), mean_state(jnp.array([[3.0]])))
    >>> finalize_state(whole)
    Array([2.], dtype=float32)
    """
    rowless.check_mergeable(a, b, kinds(), option)
    merged = _merged(without_host_options(a), without_host_options(b))  # one compilation for all host options
    return replace(merged, known=common_host_options(a, b)) if hasattr(merged, "known") else merged


@jax.jit
def _merged(a, b):
    dtype = contract.common_dtype(state.dtype for state in (a, b) if state.dtype is not None)
    a, b = promote(a, b)
    return replace(a.merged(b), decided="" if dtype is None else dtype.name)


@contract.with_short_traceback
def finalize_state(
    state, *, sink=None, value_kernel=None, out_kernel=None, value_bias=None, out_bias=None, precision=None
):
    """Twin of :func:`attnpool_ref.finalize_state`; ``precision`` is that of the kernels' products.

    >>> finalize_state(merge_states(max_state(jnp.array([[1.0, 5.0]])), max_state(jnp.array([[3.0, 2.0]]))))
    Array([3., 5.], dtype=float32)
    """
    given = {
        "sink": sink,
        "value_kernel": value_kernel,
        "out_kernel": out_kernel,
        "value_bias": value_bias,
        "out_bias": out_bias,
    }
    parameters = {key: as_array("finalize_state", key, value) for key, value in given.items()}
    call = rowless.resolve_finalize(state, kinds(), MultiHeadAttentionState, AttentionState, **parameters)
    dtype = result_dtype(call.dtype)
    return _finalized(
        without_host_options(state), parameters, dtype, resolve_precision("finalize_state", precision, dtype)
    )


@functools.partial(jax.jit, static_argnums=(2, 3))
def _finalized(state, parameters, dtype, precision):
    pooled, share = state.finalized(), None
    sink = parameters.pop("sink")
    if sink is not None:
        sink = jnp.broadcast_to(sink.astype(state.top.dtype), state.top.shape)
        share = share_beside_sink(state.top, state.total + state.total_rest, sink)
        pooled = pooled * share[..., None]
    if parameters["value_kernel"] is None:
        return pooled.astype(dtype)
    wide = jnp.promote_types(pooled.dtype, jnp.promote_types(dtype, jnp.float32))
    given = {key: None if value is None else value.astype(wide) for key, value in parameters.items()}
    attended = jnp.einsum("...nhd,dhc->...hnc", pooled.astype(wide), given["value_kernel"], precision=precision)
    if given["value_bias"] is not None:
        real = jnp.swapaxes(state.total != 0, -1, -2)[..., None]
        value_bias = jnp.broadcast_to(given["value_bias"][:, None], attended.shape)
        if share is not None:
            value_bias = value_bias * jnp.swapaxes(share, -1, -2)[..., None].astype(wide)
        attended = attended + jnp.where(real, value_bias, 0)
    return from_heads(attended, given["out_kernel"], given["out_bias"], precision).astype(dtype)


for _function in (merge_states, finalize_state):
    _function.__doc__ = composed(_function, _function.__name__, "streaming", inspect.signature(_function).parameters)
