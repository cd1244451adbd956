"""Code around other libraries' kernels in attention of many queries: shapes, fully masked queries, errors.

The kernels are :mod:`attnpool_flax.reductions.cudnn_attention` and :mod:`attnpool_flax.reductions.splash_attention`.
They run only on request (``implementation="cudnn"`` or ``"splash"``) and have not been timed in this project. Two
guarantees of docs/contract.md that they do not give are added around them: callers set keys and values that no query
sees to 0, and :func:`surrounded` sets the result of a query that sees no key to 0.

B is the number of examples, h of heads, n of queries, m of keys, d and v the widths of keys and of values.
"""

import math

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.dispatch import PLATFORMS, KernelRefusal

INSTEAD = 'pass None, "einsum" or "tiles"'


def surrounded(kernel, query, key, value, mask, dtype):
    """Computes attention by a kernel: [..., h, n, v], in the dtype of the queries; 0 if a query sees no key.

    Args:
      kernel: from arrays with one batch axis (query [B, h, n, d], key [B, h, m, d] and value [B, h, m, v] in ``dtype``,
        mask bool [B or 1, h or 1, n or 1, m] or None) to [B, h, n, v].
      query: [..., h, n, d], scaled, unless ``kernel`` does it.
      key: [..., h, m, d].
      value: [..., h, m, v].
      mask: bool [..., h or 1, n or 1, m], or None.
      dtype: the dtype to which query, key and value are cast for the kernel.
    """
    own = (query, key, value) if mask is None else (query, key, value, mask)
    batch = jnp.broadcast_shapes(*(array.shape[:-3] for array in own))

    def flat(array):
        return jnp.reshape(jnp.broadcast_to(array, (*batch, *array.shape[-3:])), (-1, *array.shape[-3:]))

    operands = (flat(array).astype(dtype) for array in (query, key, value))
    if mask is None:
        rows = None
    else:
        shared = math.prod(mask.shape[:-3]) == 1
        rows = jnp.reshape(mask, (1, *mask.shape[-3:])) if shared else flat(mask)
    found = kernel(*operands, rows)
    found = jnp.reshape(found.astype(query.dtype), (*batch, *found.shape[1:]))
    return found if mask is None else jnp.where(jnp.any(mask, -1)[..., None], found, 0)


def refused_sizes(*arrays):
    """Returns why no kernel supports arrays of these shapes, as text for :func:`refusal`; None if kernels may."""
    if not known(*(size for array in arrays for size in array.shape)):
        return "needs sizes that are known, not symbols"
    return "takes no empty arrays" if any(0 in array.shape for array in arrays) else None


def refusal(kernel, reason):
    """Returns the :class:`KernelRefusal` that says why a kernel does not support a call, and what to write instead."""
    return KernelRefusal(f"`implementation` is {kernel!r}, which {reason}; {INSTEAD}")


def refuse_arguments(kernel, arguments):
    """Raises an error if an argument that a kernel does not support is given.

    Args:
      kernel: the kernel's name.
      arguments: by name; each must be None.

    Raises:
      KernelRefusal: one of them is not None.
    """
    for name, value in arguments.items():
        if value is not None:
            raise refusal(kernel, f"takes no `{name}`")


def only_on(platform, array, kernel, reason):
    """Returns the array. Lowering for another platform than ``platform`` raises the :func:`refusal` of the kernel.

    Args:
      platform: "cpu", "cuda" or "tpu".
      array: an array on which the kernel's result depends.
      kernel: the kernel's name.
      reason: the text of the error.
    """
    return _ONLY_ON.bind(array, platform=platform, kernel=kernel, reason=reason)


def _lowered_for(own):
    """Returns the rule that lowers :func:`only_on` for the platform ``own``; for None, the rule of all others."""

    def rule(context, array, *, platform, kernel, reason):
        if platform != own:
            raise KernelRefusal(f"attnpool_flax: {refusal(kernel, reason)}")
        return [array]

    return rule


_ONLY_ON = Primitive("attnpool_only_on_platform")
"""Identity that can be lowered for one platform only."""

_ONLY_ON.def_impl(lambda array, **params: jax.jit(lambda array: _ONLY_ON.bind(array, **params))(array))
_ONLY_ON.def_abstract_eval(lambda array, **params: array)
ad.deflinear2(_ONLY_ON, lambda cotangent, array, **params: [cotangent])
batching.defvectorized(_ONLY_ON)
mlir.register_lowering(_ONLY_ON, _lowered_for(None))
for _platform in PLATFORMS:
    mlir.register_lowering(_ONLY_ON, _lowered_for(_platform), platform=_platform)
