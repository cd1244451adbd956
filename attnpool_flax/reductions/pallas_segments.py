"""Softmax of packed tokens by Pallas kernels: ``implementation="pallas"`` of ``segment_`` functions, on request only.

It is :mod:`attnpool_flax.reductions.pallas_softmax` with segments in place of examples, on TPUs
(:mod:`attnpool_flax.reductions.pallas_packed`) and NVIDIA GPUs (:mod:`attnpool_flax.reductions.pallas_triton_packed`).
Tokens must lie in the order of their segments, and the call must say so by ``indices_are_sorted=True``.

N are the tokens, S segments, h queries, d features.
"""

from typing import Any

import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.reductions import packed_softmax, pallas_packed
from attnpool_flax.reductions.dispatch import KernelRefusal
from attnpool_flax.reductions.pallas_chunks import chunks_of
from attnpool_flax.reductions.pallas_softmax import (
    INSTEAD,
    check,
    gpu_refusal,
    kernel_precision,
    on_platforms,
    primals,
)
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.softmax import OnlineSoftmax

STEPS = 2**16
"""The largest number of steps of a grid: two numbers of each are prefetched into a memory of 1 MB."""


def kernel(x, segments, has_query, queries, multiplier, bias, precision):
    """Computes :func:`attnpool_flax.reductions.packed_softmax.plain` by a kernel; a second one computes the scores.

    XLA removes the second kernel if the scores are not used. Without tokens, queries or features it calls ``plain``.

    Raises:
      KernelRefusal: no kernel supports these arguments.
    """
    check(x, queries, precision)
    if not segments.ordered:
        reason = "takes packed tokens in the order of their segments; sort them and pass indices_are_sorted=True, or"
        raise KernelRefusal(f"`implementation` is 'pallas', which {reason} {INSTEAD}")
    if 0 in (*x.shape, *queries.shape):
        return packed_softmax.plain(x, segments, has_query, queries, multiplier, bias, precision)
    steps = chunks_of(x, queries, segments.count).steps
    if steps > STEPS:
        reason = f"takes at most {STEPS} blocks of packed tokens and groups of segments, not {steps}"
        raise KernelRefusal(f"`implementation` is 'pallas', which {reason}; {INSTEAD}")
    if has_query is not None:
        queries = jnp.where(has_query[:, None, None], queries, 0)
        bias = None if bias is None else jnp.where(segments.expand_to_tokens(has_query)[:, None], bias, 0)
    arrays = x, segments.ids, segments.real, queries, multiplier, bias
    return _ruled(*arrays, segments.count, kernel_precision(precision))


# --------------------------------------------------------------------------------------------------------------
# Rule for gradients


def _softmax(x, ids, real, queries, multiplier, bias, count, precision):
    queries = jnp.asarray(queries, jnp.float32)
    forward, scores = (_on_platforms(name, x, queries, count, precision) for name in ("forward", "scores"))
    state = OnlineSoftmax(*forward(x, ids, real, queries, _rows_of(multiplier), _rows_of(bias)))
    found = scores(x, ids, real, queries, _rows_of(bias)).T
    return jnp.where(real[:, None], found, -jnp.inf), state


def _softmax_fwd(x, ids, real, queries, multiplier, bias, count, precision):
    arrays = primals(x, ids, real, queries, multiplier, bias)
    scores, state = _softmax(*arrays, count=count, precision=precision)
    return (scores, state), (*arrays, state.max_score)


def _softmax_bwd(count, precision, residuals, cotangents: Any):
    x, ids, real, queries, multiplier, bias, max_score = residuals
    dscores, (_, *dsums) = cotangents  # the maximum is a constant
    dscores = None if isinstance(dscores, SymbolicZero) else dscores.T
    dsums = (jnp.zeros(array.shape, jnp.float32) if isinstance(array, SymbolicZero) else array for array in dsums)
    backward = _on_platforms("backward", x, queries, count, precision)
    arrays = x, ids, real, queries, _rows_of(multiplier), _rows_of(bias), max_score, dscores, *dsums
    dx, dqueries, dbias, dmultiplier = backward(*arrays)
    dbias, dmultiplier = (None if array is None else array.T for array in (dbias, dmultiplier))
    return dx, None, None, dqueries, dmultiplier, dbias


@reverse_rule(_softmax_fwd, _softmax_bwd, nondiff_argnums=(6, 7), symbolic_zeros=True)
def _ruled(x, ids, real, queries, multiplier, bias, count, precision):
    return _softmax(x, ids, real, queries, multiplier, bias, count, precision)


def _rows_of(numbers):
    """Returns numbers [N, h] as the kernels take them, float32 [h, N]; or None."""
    return None if numbers is None else numbers.T.astype(jnp.float32)


def _on_platforms(name, x, queries, count, precision):
    """Returns the kernel of this name for the platform that the program is lowered for, TPUs or GPUs.

    On a CPU it runs interpreted, if ``ATTNPOOL_PALLAS_INTERPRET`` is 1. Otherwise lowering raises a KernelRefusal.
    """
    options = {"count": count, "precision": precision}

    def on_tpu(*arrays, interpret=False):
        return getattr(pallas_packed, name)(*arrays, **options, interpret=interpret)

    def on_gpu(*arrays):
        from attnpool_flax.reductions import pallas_triton_packed  # late, because JAX deprecates Triton

        return getattr(pallas_triton_packed, name)(*arrays, **options)

    return on_platforms(on_tpu, gpu_refusal(x.shape[1], queries.shape[1]) or on_gpu, x.dtype)
