"""Attention of many queries by JAX's splash attention for TPUs: ``implementation="splash"``, on request only.

:mod:`jax.experimental.pallas.ops.tpu.splash_attention` is the same in JAX 0.10 to 0.12, apart from its scratch memory.
It needs lengths that are multiples of its blocks, so queries and keys are padded, and padding is masked.

* A mask of keys, [..., 1, m], is passed as segment numbers, m for each example.
* A mask of pairs, [..., n, m], is copied into blocks of 4 bytes for each pair. Heads share them if the mask is one for
  all heads, and then examples do as well if it has no batch axes. Numbers of these blocks are prefetched: the examples
  become one long sequence, in which a block of queries visits the keys of its own example. Blocks without a pair are
  skipped.

On a CPU the kernel runs interpreted, slowly, if the environment variable ``ATTNPOOL_PALLAS_INTERPRET`` is 1 when a call
is traced. The rest is in :mod:`attnpool_flax.reductions.attention_kernels`.

B is the number of examples, h of heads, n of queries, m of keys, d and v the widths of keys and of values.
"""

import contextlib
import functools
import math
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.pallas.ops.tpu.splash_attention import BlockSizes, SegmentIds
from jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import SplashAttentionKernel
from jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info import MaskInfo

from attnpool_flax.numerics.one_pass import exact_tokens
from attnpool_flax.numerics.varying import varying_axes
from attnpool_flax.reductions.attention_kernels import only_on, refusal, refused_sizes, surrounded
from attnpool_flax.reductions.dispatch import SPLASH, inputs_dtype, on_cpu
from attnpool_flax.reductions.pallas_products import LANES, SUBLANES, rounded_up
from attnpool_flax.reductions.pallas_softmax import INTERPRET, first_order, is_named, kernel_precision
from attnpool_flax.reductions.rules import reverse_rule

_SETTINGS: Any = jax.config

DTYPES = ("float32", "bfloat16")

BLOCK = 512
"""The most queries, and keys, of a block."""

WIDEST = 256
"""The largest width of a head: blocks of more do not fit the on-chip memory."""

SCALARS = 960 * 2**10
"""The most bytes of prefetched numbers: a TPU has 1 MiB of scalar memory."""

LOWEST = float(np.finfo(np.float32).min)
"""The score of padding; no finite score is less."""


def attention(query, key, value, mask, scale, precision):
    """Averages values under the softmax of products: [..., h, n, v], in the computing dtype; 0 if a query sees no key.

    Args:
      query: [..., h, n, d], as key and value in the computing dtype (float32).
      key: [..., h, m, d].
      value: [..., h, m, v].
      mask: bool [..., h or 1, n or 1, m], or None.
      scale: the scale of the products, multiplied with the queries before they are rounded.
      precision: of the products. At full float32, operands of all dtypes are float32.

    Raises:
      KernelRefusal: splash attention does not support these arguments.
    """
    dtype = inputs_dtype()
    check(query, key, value, mask, dtype, precision)
    precision = _precision(precision)
    interpret = os.environ.get(INTERPRET) == "1" and on_cpu()
    if interpret:
        query = only_on("cpu", query, SPLASH, f"is interpreted, for a CPU only, because {INTERPRET} is 1")
    else:
        query = only_on("tpu", query, SPLASH, f"is for TPUs only; on a CPU it runs interpreted, with {INTERPRET}=1")
    kernel = functools.partial(_padded, precision=precision, interpret=interpret)
    return surrounded(kernel, query * scale, key, value, mask, jnp.float32 if precision == "highest" else dtype)


def check(query, key, value, mask, dtype, precision):
    """Raises an error for arguments of :func:`attention` that splash attention does not support.

    ``dtype`` is that of the function's inputs.

    Raises:
      KernelRefusal: with the reason and what to write instead.
    """
    reason, widest = None, max(query.shape[-1], value.shape[-1])
    if dtype.name not in DTYPES:
        reason = f"takes float32 and bfloat16, not {dtype.name}"
    elif sizes := refused_sizes(query, key, value):
        reason = sizes
    elif widest > WIDEST:
        reason = f"takes widths up to {WIDEST}, not {widest}"
    elif mask is not None and mask.shape[-2] != 1 and _scalars(query, key, mask) > SCALARS:
        reason = "takes fewer examples, or shorter ones, with a mask of pairs: numbers of its blocks exceed 1 MiB"
    elif not is_named(_requested(precision)):
        reason = f"takes a precision by one name, not {_requested(precision)!r}"
    elif any(map(varying_axes, (query, key, value))):
        reason = "needs `check_vma=False` inside of jax.shard_map"
    if reason:
        raise refusal(SPLASH, reason)


def _requested(precision):
    """Returns the precision in JAX's terms; if it is None, JAX's setting, which may be None as well."""
    precision = exact_tokens(precision)
    return _SETTINGS.jax_default_matmul_precision if precision is None else precision


def _precision(precision):
    """Returns the name of the precision inside of the kernel, "default" (one pass) or "highest"."""
    wide = kernel_precision(_requested(precision)) == lax.Precision.HIGHEST
    return "highest" if wide else "default"


# --------------------------------------------------------------------------------------------------------------
# Gradient rule


def _forward(query, key, value, mask, precision, interpret):
    query, key, value = _once(query, key, value)
    with _tracing(precision):
        return jax.vjp(lambda query, key, value: _call(query, key, value, mask, interpret), query, key, value)


def _backward(precision, interpret, pullback, cotangent):
    del interpret
    with _tracing(precision):  # JAX traces this rule later, with its own settings
        return *pullback(*_once(cotangent)), None


@reverse_rule(_forward, _backward, nondiff_argnums=(4, 5))
def _ruled(query, key, value, mask, precision, interpret):
    with _tracing(precision):
        return _call(query, key, value, mask, interpret)


@contextlib.contextmanager
def _tracing(precision):
    """Makes JAX trace products with ``precision`` by default, and indices of blocks as int32, which a TPU needs."""
    with jax.default_matmul_precision(precision), jax.enable_x64(False):
        yield


_once: Any = first_order(lambda *arrays: arrays)
"""Identity function whose derivative raises a TypeError: only a second derivative differentiates the rule."""


# --------------------------------------------------------------------------------------------------------------
# Blocks and masks


def _padded(query, key, value, mask, precision, interpret):
    """Pads queries and keys to whole blocks and computes attention, as a kernel of :func:`surrounded`."""
    count, keys = query.shape[2], key.shape[2]
    rows, columns = (size * number for size, number in (_blocks(count), _blocks(keys)))
    if mask is None and columns != keys:
        mask = jnp.ones((1, 1, 1, keys), bool)
    if mask is not None:
        if mask.shape[1] != 1:
            mask = jnp.broadcast_to(mask, (len(query), *mask.shape[1:]))
        mask = _lengthened(_lengthened(mask, 2, rows if mask.shape[2] != 1 else 1), 3, columns)
    arrays = _lengthened(query, 2, rows), _lengthened(key, 2, columns), _lengthened(value, 2, columns)
    return _ruled(*arrays, mask, precision, interpret)[:, :, :count]


def _blocks(length):
    """Returns (size, number) of the fewest blocks of at most BLOCK positions, all of one size, that cover the length."""
    number = -(-length // BLOCK)
    return rounded_up(-(-length // number), LANES), number


def _lengthened(array, axis, length):
    edges = [(0, 0)] * array.ndim
    edges[axis] = 0, length - array.shape[axis]
    return jnp.pad(array, edges) if length != array.shape[axis] else array


def _call(query, key, value, mask, interpret):
    """Calls the kernel: [B, h, n, v].

    Args:
      query: [B, h, n, d], scaled; n and m are multiples of the size of a block.
      key: [B, h, m, d].
      value: [B, h, m, v].
      mask: bool [B or 1, h or 1, n or 1, m], or None.
      interpret: whether the kernel runs interpreted, on a CPU.
    """
    rows, columns = _blocks(query.shape[2])[0], _blocks(key.shape[2])[0]
    kernel: Any = functools.partial(
        SplashAttentionKernel,
        block_sizes=BlockSizes(
            block_q=rows,
            block_kv=columns,
            block_q_dkv=rows,
            block_kv_dkv=columns,
            block_q_dq=rows,
            block_kv_dq=columns,
        ),
        is_mqa=False,
        save_residuals=False,
        mask_value=LOWEST,
        attn_logits_soft_cap=None,
        residual_checkpoint_name=None,
        mask_function=None,
        interpret=interpret,
    )
    shape = *query.shape[:3], value.shape[3]
    if mask is not None and mask.shape[2] != 1:
        found = _by_pairs(kernel, (rows, columns), query, key, value, mask)
    else:
        if mask is not None and mask.shape[1] != 1:  # heads differ: each is an example of its own
            query, key, value, mask = (jnp.reshape(a, (-1, 1, *a.shape[2:])) for a in (query, key, value, mask))
        found = _by_keys(kernel, query, key, value, mask)
    return jnp.reshape(found, shape)


def _by_keys(kernel, query, key, value, mask):
    """Calls the kernel with a mask [B or 1, 1, 1, m] or None; keys that are real get the queries' segment number, 0."""
    none = MaskInfo(None, None, None, None, None)
    attend = kernel(none, none, none)
    if mask is None:
        return jax.vmap(attend)(query, key, value)
    numbers = jnp.broadcast_to(jnp.where(mask[:, 0, 0], 0, 1).astype(jnp.int32), (query.shape[0], mask.shape[3]))
    ids: Any = SegmentIds  # of arrays, and of the axes that vmap maps
    return jax.vmap(attend, (0, 0, 0, ids(None, 0)))(
        query, key, value, ids(jnp.zeros(query.shape[2], jnp.int32), numbers)
    )


def _by_pairs(kernel, block, query, key, value, mask):
    """Calls the kernel once with a mask [B or 1, h or 1, n, m]: the examples follow each other in one long sequence.

    ``block`` has the numbers of queries and of keys of a block. The result is [B, h, n, v].
    """
    batch, heads = query.shape[:2]
    forward, backward = _described(mask, block, batch)
    operands = (jnp.reshape(jnp.swapaxes(a, 0, 1), (heads, -1, a.shape[3])) for a in (query, key, value))
    found = kernel(forward, forward, backward)(*operands)
    return jnp.swapaxes(jnp.reshape(found, (heads, batch, -1, value.shape[3])), 0, 1)


def _described(mask, block, batch):
    """Returns two ``MaskInfo`` of a mask of pairs: for the forward kernel and that of dq, and for that of dk and dv.

    Args:
      mask: [B or 1, h or 1, n, m].
      block: the numbers of queries and of keys of a block.
      batch: B.
    """
    (size, columns), (_, heads, count, keys) = block, mask.shape
    rows, blocks = count // size, keys // columns
    whole = jnp.reshape(mask, (-1, size, keys))
    tiles = jnp.stack([whole[..., start : start + columns] for start in range(0, keys, columns)], 1)
    kinds = jnp.any(tiles, (2, 3)).astype(jnp.int8) + jnp.all(tiles, (2, 3)).astype(
        jnp.int8
    )  # 0: no pair, 1: some, 2: all
    shape = len(mask), heads, rows, blocks
    numbers = jnp.reshape(jnp.arange(kinds.size, dtype=jnp.int32), shape)
    kinds, numbers = (
        jnp.swapaxes(jnp.broadcast_to(jnp.reshape(a, shape), (batch, *shape[1:])), 0, 1) for a in (kinds, numbers)
    )
    tiles = jnp.reshape(tiles, (-1, size, columns))
    of_keys = jnp.reshape(jnp.arange(batch * blocks, dtype=jnp.int32), (batch, 1, blocks))
    of_queries = jnp.reshape(jnp.arange(batch * rows, dtype=jnp.int32), (batch, rows, 1))

    def info(others, tiles, flat):
        visited, tile = jnp.where(kinds == 0, 0, others), jnp.where(kinds == 1, numbers, 0)
        limits = batch * max(rows, blocks), numbers.size, 2
        visited, tile, kind = (
            flat(a).astype(_integer(most)) for a, most in zip((visited, tile, kinds), limits, strict=True)
        )
        return MaskInfo(visited, tile, kind, tiles, None)

    forward = info(of_keys, tiles, lambda a: jnp.reshape(a, (heads, batch * rows, blocks)))
    backward = info(
        of_queries,
        jnp.swapaxes(tiles, 1, 2),
        lambda a: jnp.reshape(jnp.swapaxes(a, 1, 2), (heads, rows, batch * blocks)),
    )
    return forward, backward


def _integer(limit):
    """Returns the smallest signed integer dtype that holds numbers up to a limit, to save scalar memory."""
    return next(dtype for dtype in (jnp.int8, jnp.int16, jnp.int32) if limit <= jnp.iinfo(dtype).max)


def _scalars(query, key, mask):
    """Returns the bytes of the prefetched numbers of a mask of pairs, with their padding."""
    (_, rows), (_, blocks) = _blocks(query.shape[-2]), _blocks(key.shape[-2])
    batch, heads = math.prod(jnp.broadcast_shapes(*(a.shape[:-3] for a in (query, key, mask)))), mask.shape[-3]
    width = jnp.dtype(_integer(batch * heads * rows * blocks)).itemsize
    forward = rounded_up(batch * rows, SUBLANES) * rounded_up(blocks, LANES)
    backward = rounded_up(rows, SUBLANES) * rounded_up(batch * blocks, LANES)
    return heads * max(forward, backward) * (2 * width + 1)
