"""Softmax of dense tokens by Pallas kernels: ``implementation="pallas"``, on request only.

XLA reads the tokens twice, for the scores and for the sums. A kernel reads them once. In a training step it reads them
once more, with one write of ``dx``. It has not been timed in this project, so it is never the default.

* On TPUs the tokens are float32, with at most 8192 features, or bfloat16, with at most 16384
  (:mod:`attnpool_flax.kernels.tpu`). On NVIDIA GPUs they may be
  float16 as well, with at most 4096 features under one query and 1152 under several
  (:mod:`attnpool_flax.kernels.triton`). On other platforms
  lowering raises an error, except that on a CPU the kernel for TPUs runs interpreted, slowly, if the environment
  variable ``ATTNPOOL_PALLAS_INTERPRET`` is 1 when a call is traced.
* There are at most 16 queries of an example, heads included; they share one read of the tokens.
* Only first derivatives in reverse mode: kernels have no second derivatives.
* Weights cost one more read of the tokens, if the caller uses them.
* ``vmap`` adds an axis to the grid. Under ``shard_map`` each device runs the kernel over its own tokens; interpreted,
  it needs ``check_vma=False``, because JAX's interpreter mixes varying and unvarying arrays. A plain ``jit`` over
  sharded arrays gathers them first, because XLA cannot split a kernel.
* Tokens that several examples share are first copied for each example.

B are the examples, L tokens, h queries, d features.
"""

import functools
import math
import os
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from attnpool_flax.kernels import tpu as pallas_tpu
from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.dispatch import KernelRefusal
from attnpool_flax.reductions.loops.tiling import flatten_batch
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.softmax import OnlineSoftmax, plain

QUERIES = 16
"""The largest number of queries of an example, heads included."""

GPU_FEATURES = 4096
"""The largest number of features on a GPU under one query: more do not fit into the registers."""

GPU_HEADS_FEATURES = 1152
"""The largest number of features on a GPU under several queries: more do not fit into shared memory and registers."""

DTYPES = ("float32", "bfloat16", "float16")

INTERPRET = "ATTNPOOL_PALLAS_INTERPRET"
"""Environment variable that runs the kernels on a CPU, interpreted, if it is 1."""

INSTEAD = 'pass None, "einsum" or "tiles"'

SECOND = 'kernels have no second derivatives; pass implementation="einsum"'


def kernel(x, mask, has_query, queries, multiplier, bias, precision):
    """Computes :func:`attnpool_flax.reductions.softmax.plain` by a kernel; a second one computes the scores.

    XLA removes the second kernel if the scores are not used. Without tokens, queries or features it calls ``plain``.

    Raises:
      KernelRefusal: no kernel supports these arguments.
    """
    check(x, queries, precision)
    sizes = x.shape, queries.shape
    if 0 in (*sizes[0], *sizes[1]):
        return plain(x, mask, has_query, queries, multiplier, bias, precision)
    batch = next((a.shape[0] for a in (mask, queries, multiplier, bias) if a is not None and a.shape[0] != 1), 1)
    if batch != 1 and math.prod(x.shape[:-2]) == 1:
        x = jnp.broadcast_to(flatten_batch(x), (batch, *x.shape[-2:]))
    return _ruled(x, mask, has_query, queries, multiplier, bias, kernel_precision(precision))


def check(x, queries, precision):
    """Raises an error for tokens, queries [B or 1, h, d] or a precision that no kernel supports.

    Limits of GPUs, and float16 on TPUs, are checked when a program is lowered.

    Raises:
      KernelRefusal: with the reason and what to write instead.
    """
    reason = None
    if not known(*x.shape, *queries.shape):
        reason = "needs sizes that are known, not symbols"
    elif x.dtype.name not in DTYPES:
        reason = f"takes float32, bfloat16 and float16, not {x.dtype.name}"
    elif queries.shape[1] > QUERIES:
        reason = f"takes at most {QUERIES} queries in all, not {queries.shape[1]}"
    elif not pallas_tpu.fits(x):
        reason = (
            f"takes at most {pallas_tpu.LARGEST // pallas_tpu.LANES // x.dtype.itemsize} features, not {x.shape[-1]}"
        )
    elif not is_named(precision):
        reason = f"takes a precision by one name, not {precision!r}"
    if reason:
        raise KernelRefusal(f"`implementation` is 'pallas', which {reason}; {INSTEAD}")


def is_named(precision):
    """Returns whether a precision is None, a ``jax.lax.Precision`` or a name that kernels know, not a pair."""
    return precision is None or isinstance(precision, lax.Precision) or precision in _NAMES


_NAMES = {"default": lax.Precision.DEFAULT, "fastest": lax.Precision.DEFAULT, "bfloat16": lax.Precision.DEFAULT}
_NAMES |= dict.fromkeys(("high", "highest", "float32", "tensorfloat32", "bfloat16_3x"), lax.Precision.HIGHEST)
"""Precisions by name. Kernels for TPUs have two: one pass of the matrix unit, or full float32. GPUs ignore them."""


def kernel_precision(precision):
    """Returns the precision of products in a kernel: None, DEFAULT or HIGHEST."""
    if precision is None:
        return None
    named = _NAMES[precision] if isinstance(precision, str) else precision
    return lax.Precision.DEFAULT if named == lax.Precision.DEFAULT else lax.Precision.HIGHEST


# --------------------------------------------------------------------------------------------------------------
# Gradient rule


def _softmax(x, mask, has_query, queries, multiplier, bias, precision):
    x = flatten_batch(x)
    codes = _codes(mask, has_query, x)
    queries = jnp.asarray(queries, jnp.float32)
    forward = _on_platforms("forward", x, queries, precision)
    state = OnlineSoftmax(*forward(x, codes, queries, _rows_of(multiplier), _rows_of(bias)))
    scores = _on_platforms("scores", x, queries, precision)(x, codes, queries, _rows_of(bias))
    return jnp.swapaxes(scores, 1, 2), state


def _softmax_fwd(x, mask, has_query, queries, multiplier, bias, precision):
    arrays = primals(x, mask, has_query, queries, multiplier, bias)
    scores, state = _softmax(*arrays, precision=precision)
    return (scores, state), (*arrays, state.max_score)


def primals(*arguments) -> Any:
    """Returns the arrays in the arguments of a forward rule with ``symbolic_zeros``, which JAX wraps; None stays."""
    return jax.tree.map(lambda array: array.value, arguments, is_leaf=lambda array: hasattr(array, "perturbed"))


def _softmax_bwd(precision, residuals, cotangents: Any):
    x, mask, has_query, queries, multiplier, bias, max_score = residuals
    shape, x = x.shape, flatten_batch(x)
    dscores, (_, *dsums) = cotangents  # the maximum is a constant
    dscores = None if isinstance(dscores, SymbolicZero) else jnp.swapaxes(dscores, 1, 2)
    ddenominator, dnumerator = (
        jnp.zeros(array.shape, jnp.float32) if isinstance(array, SymbolicZero) else array for array in dsums
    )
    codes = _codes(mask, has_query, x)
    backward = _on_platforms("backward", x, queries, precision)
    arrays = x, codes, queries, _rows_of(multiplier), _rows_of(bias), max_score, dscores, ddenominator, dnumerator
    dx, dqueries, dbias, dmultiplier = backward(*arrays)
    dbias, dmultiplier = (None if array is None else jnp.swapaxes(array, 1, 2) for array in (dbias, dmultiplier))
    return jnp.reshape(dx, shape), None, None, dqueries, dmultiplier, dbias


_ruled = reverse_rule(_softmax, _softmax_fwd, _softmax_bwd, nondiff_argnums=(6,), symbolic_zeros=True)


def _codes(mask, has_query, x):
    """Returns codes of padding and of missing queries for the kernels, int32 [B, 1, L]; None if there are neither."""
    if mask is None and has_query is None:
        return None
    real = jnp.ones((x.shape[0], x.shape[1]), bool) if mask is None else mask
    codes = jnp.where(real, pallas_tpu.REAL, pallas_tpu.PADDING)
    if has_query is not None:
        codes = jnp.where(real & ~has_query[:, None], pallas_tpu.WITHOUT_QUERY, codes)
    return codes.astype(jnp.int32)[:, None]


def _rows_of(numbers):
    """Returns numbers [B, L, h] in the kernels' layout, float32 [B, h, L]; None for None."""
    return None if numbers is None else jnp.swapaxes(numbers, 1, 2).astype(jnp.float32)


# --------------------------------------------------------------------------------------------------------------
# Platforms


def _on_platforms(name, x, queries, precision):
    """Returns the kernel called ``name`` for the platform that the program is lowered for, without a second derivative."""
    width, count = x.shape[2], queries.shape[1]

    def on_tpu(*arrays, interpret=False):
        return getattr(pallas_tpu, name)(*arrays, precision=precision, interpret=interpret)

    def on_gpu(*arrays):
        from attnpool_flax.kernels import triton as pallas_triton  # late, because JAX deprecates Triton

        return getattr(pallas_triton, name)(*arrays, precision=precision)

    kernels = {"tpu": on_tpu, "cuda": on_gpu, "cpu": functools.partial(on_tpu, interpret=True)}
    if x.dtype == jnp.float16:
        kernels["tpu"] = _refusing(on_tpu, "takes no float16 on a TPU; pass bfloat16, or")
    if count > 1 and width > GPU_HEADS_FEATURES:
        kernels["cuda"] = _refusing(
            on_tpu, f"takes at most {GPU_HEADS_FEATURES} features with several queries on a GPU"
        )
    elif width > GPU_FEATURES:
        kernels["cuda"] = _refusing(on_tpu, f"takes at most {GPU_FEATURES} features on a GPU")
    if os.environ.get(INTERPRET) != "1":
        reason = f"needs an accelerator: on a CPU it runs only interpreted, with {INTERPRET}=1"
        kernels["cpu"] = _refusing(on_tpu, reason)
    kernels["default"] = _refusing(on_tpu, "has kernels for TPUs and NVIDIA GPUs only")
    return first_order(lambda *arrays: platforms.choose(*arrays, **kernels))


def _refusing(function, reason):
    """Returns a function whose results have the shapes of the given one's, and whose lowering raises a KernelRefusal.

    The branches of ``lax.platform_dependent`` need equal shapes. ``reason`` is the text of the error.
    """

    def refusing(x, *others):
        shapes = jax.eval_shape(function, x, *others)
        x, *_ = unify_varying(x, *others)
        refused = jnp.ravel(_REFUSED.bind(x, reason=reason))[0]
        return jax.tree.map(lambda leaf: jnp.broadcast_to(refused.astype(leaf.dtype), leaf.shape), shapes)

    return refusing


def _refused(*args, reason, **kwargs):
    joint = " " if reason.endswith("or") else "; "
    raise KernelRefusal(f"attnpool_flax: `implementation` is 'pallas', which {reason}{joint}{INSTEAD}")


_REFUSED = Primitive("attnpool_pallas_refused")
_REFUSED.def_impl(_refused)
_REFUSED.def_abstract_eval(lambda array, reason: array)
batching.defvectorized(_REFUSED)
mlir.register_lowering(_REFUSED, _refused)


def first_order(function):
    """Returns the function with a derivative that raises a TypeError.

    Kernels are only differentiated in second derivatives, because the first derivative has a rule.
    """
    ruled = jax.custom_jvp(function)

    @ruled.defjvp
    def refuse(primals, tangents):
        raise TypeError(f"attnpool_flax: {SECOND}")

    return ruled
