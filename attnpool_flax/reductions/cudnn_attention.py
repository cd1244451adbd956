"""Attention of many queries by cuDNN's flash attention: ``implementation="cudnn"``, on request only.

:func:`jax.nn.dot_product_attention` calls cuDNN. Its operands are bfloat16 or float16, so projected queries, keys and
values are rounded to the inputs' dtype, as are the weights inside of cuDNN. Two guarantees of the contract that cuDNN
does not give are added around it: callers set keys and values that no query sees to 0, and the result of a query that
sees no key is set to 0. It has not been timed in this project, so it is never the default.
"""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.dispatch import CUDNN, KernelRefusal, inputs_dtype

DTYPES = ("bfloat16", "float16")

MULTIPLE, WIDEST = 8, 256
"""The width of a head must be a multiple of the first, up to the second; before Hopper, JAX supports at most 128."""

INSTEAD = 'pass None, "einsum" or "tiles"'


def attention(query, key, value, mask, scale):
    """Averages values under the softmax of products: [..., h, n, d], in the computing dtype; 0 if a query sees no key.

    Args:
      query: [..., h, n, d], as key and value in the computing dtype.
      key: [..., h, m, d].
      value: [..., h, m, d].
      mask: bool [..., h or 1, n or 1, m], or None.
      scale: the scale of the products. A Python float is passed to cuDNN; an array is multiplied with the queries
        before they are rounded.

    Raises:
      KernelRefusal: cuDNN does not support these arguments.
    """
    dtype = inputs_dtype()
    check(query, key, value, mask, dtype)
    own = (query, key, value) if mask is None else (query, key, value, mask)
    batch = jnp.broadcast_shapes(*(array.shape[:-3] for array in own))
    if not isinstance(scale, float):
        query, scale = query * scale, 1.0

    def flat(array):
        return jnp.reshape(jnp.broadcast_to(array, (*batch, *array.shape[-3:])), (-1, *array.shape[-3:]))

    def operand(array):
        return jnp.swapaxes(flat(array), 1, 2).astype(dtype)

    rows = None if mask is None else flat(jnp.broadcast_to(mask, (*mask.shape[:-2], query.shape[-2], mask.shape[-1])))
    try:
        found = jax.nn.dot_product_attention(
            _ON_GPUS.bind(operand(query)),
            operand(key),
            operand(value),
            mask=rows,
            scale=scale,
            implementation="cudnn",
        )
    except (RuntimeError, NotImplementedError) as error:  # there is no cuDNN, or it has no kernel for these sizes
        raise KernelRefusal(f"`implementation` is 'cudnn', which JAX refuses here ({error}); {INSTEAD}") from error
    found = jnp.reshape(jnp.swapaxes(found, 1, 2).astype(query.dtype), (*batch, *query.shape[-3:]))
    return found if mask is None else jnp.where(jnp.any(mask, -1)[..., None], found, 0)


def check(query, key, value, mask, dtype):
    """Raises an error for arguments that cuDNN does not support.

    Raises:
      KernelRefusal: with the reason and what to write instead.
    """
    (count, width), (keys, others) = query.shape[-2:], value.shape[-2:]
    reason = None
    if dtype.name not in DTYPES:
        reason = f"takes bfloat16 and float16, not {dtype.name}"
    elif not known(*query.shape, *key.shape, *value.shape):
        reason = "needs sizes that are known, not symbols"
    elif others != width:
        reason = f"takes queries and values of one width, not {width} and {others}"
    elif width % MULTIPLE or width > WIDEST:
        reason = f"takes widths that are multiples of {MULTIPLE} up to {WIDEST}, not {width}"
    elif mask is not None and (count % 2 or keys % 2):
        reason = f"takes even numbers of queries and keys with a mask, not {count} and {keys}"
    elif 0 in (*query.shape, *key.shape):
        reason = "takes no empty arrays"
    if reason:
        raise KernelRefusal(f"`implementation` is {CUDNN!r}, which {reason}; {INSTEAD}")


def refuse(name, value):
    """Raises an error if an argument that cuDNN does not support is given.

    Raises:
      KernelRefusal: the value is not None.
    """
    if value is not None:
        raise KernelRefusal(f"`implementation` is {CUDNN!r}, which takes no `{name}`; {INSTEAD}")


def _refused(*args, **kwargs):
    raise KernelRefusal(f"attnpool_flax: `implementation` is {CUDNN!r}, which is for NVIDIA GPUs only; {INSTEAD}")


_ON_GPUS = Primitive("attnpool_on_nvidia_gpus")
"""Identity that can be lowered only for NVIDIA GPUs: for other platforms it raises an error."""

_ON_GPUS.def_impl(jax.jit(lambda array: _ON_GPUS.bind(array)))
_ON_GPUS.def_abstract_eval(lambda array: array)
ad.deflinear2(_ON_GPUS, lambda cotangent, array: [cotangent])
batching.defvectorized(_ON_GPUS)
mlir.register_lowering(_ON_GPUS, _refused)
mlir.register_lowering(_ON_GPUS, lambda context, array: [array], platform="cuda")
