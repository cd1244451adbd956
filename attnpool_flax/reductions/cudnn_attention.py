"""Attention of many queries by cuDNN's flash attention: ``implementation="cudnn"``, on request only.

:func:`jax.nn.dot_product_attention` calls cuDNN. Its operands are bfloat16 or float16, so projected queries, keys and
values are rounded to the inputs' dtype, as are the weights inside of cuDNN. The rest is in
:mod:`attnpool_flax.reductions.attention_kernels`.
"""

import jax
import jax.numpy as jnp

from attnpool_flax.reductions.attention_kernels import only_on, refusal, refused_sizes, surrounded
from attnpool_flax.reductions.dispatch import CUDNN, inputs_dtype

DTYPES = ("bfloat16", "float16")

MULTIPLE, WIDEST = 8, 256
"""The width of a head must be a multiple of the first, up to the second; before Hopper, JAX supports at most 128."""


def attention(query, key, value, mask, scale, precision):
    """Averages values under the softmax of products: [..., h, n, d], in the computing dtype; 0 if a query sees no key.

    Args:
      query: [..., h, n, d], as key and value in the computing dtype (float32).
      key: [..., h, m, d].
      value: [..., h, m, d].
      mask: bool [..., h or 1, n or 1, m], or None.
      scale: the scale of the products. A Python float is passed to cuDNN; an array is multiplied with the queries
        before they are rounded.
      precision: ignored, because cuDNN has only one.

    Raises:
      KernelRefusal: cuDNN does not support these arguments.
    """
    del precision
    dtype = inputs_dtype()
    check(query, key, value, mask, dtype)
    if not isinstance(scale, float):
        query, scale = query * scale, 1.0
    query = only_on("cuda", query, CUDNN, "is for NVIDIA GPUs only")

    def kernel(query, key, value, mask):
        operands = (jnp.swapaxes(array, 1, 2) for array in (query, key, value))
        rows = mask
        if mask is not None:
            rows = jnp.broadcast_to(mask, (query.shape[0], mask.shape[1], query.shape[2], mask.shape[3]))
        found = jax.nn.dot_product_attention(*operands, mask=rows, scale=scale, implementation="cudnn")
        return jnp.swapaxes(found, 1, 2)

    try:
        return surrounded(kernel, query, key, value, mask, dtype)
    except (RuntimeError, NotImplementedError) as error:  # there is no cuDNN, or it has no kernel for these sizes
        raise refusal(CUDNN, f"JAX refuses here ({error})") from error


def check(query, key, value, mask, dtype):
    """Raises an error for arguments of :func:`attention` that cuDNN does not support.

    ``dtype`` is that of the function's inputs.

    Raises:
      KernelRefusal: with the reason and what to write instead.
    """
    (count, width), (keys, others) = query.shape[-2:], value.shape[-2:]
    reason = None
    if dtype.name not in DTYPES:
        reason = f"takes bfloat16 and float16, not {dtype.name}"
    elif sizes := refused_sizes(query, key, value):
        reason = sizes
    elif others != width:
        reason = f"takes queries and values of one width, not {width} and {others}"
    elif width % MULTIPLE or width > WIDEST:
        reason = f"takes widths that are multiples of {MULTIPLE} up to {WIDEST}, not {width}"
    elif mask is not None and (count % 2 or keys % 2):
        reason = f"takes even numbers of queries and keys with a mask, not {count} and {keys}"
    if reason:
        raise refusal(CUDNN, reason)
