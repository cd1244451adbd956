"""Keys and values of attention that no query sees: 0 only where a sum over tokens or a gradient needs it.

A token that no query sees is one that the mask hides from every query. XLA fuses no selection into a product on GPUs,
and not into each on TPUs: it would write a copy of the tokens for each product.
"""

import functools

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import unify_varying


@jax.custom_jvp
def zero_unseen(x, seen):
    """Zeroes tokens [..., m, d] where ``seen`` [..., m] is False; the batch axes broadcast.

    On GPUs the cotangents of these tokens are not set to 0 again, which would be one more copy: in attention they are
    sums under weights of 0, and already 0.
    """
    return jnp.where(seen[..., None], x, 0)


@zero_unseen.defjvp
def _zero_unseen_jvp(primals, tangents):
    dx, seen = unify_varying(tangents[0], primals[1])
    return zero_unseen(*primals), platforms.choose(dx, seen, cpu=zero_unseen, tpu=zero_unseen, default=_zero_tangents)


def _as_it_is(x, seen):
    return jnp.broadcast_to(x, jnp.broadcast_shapes(x.shape, (*seen.shape, 1)))


def _zero_tangents(dx, seen):
    dx = _as_it_is(dx, seen)
    return _ZEROED.bind(dx, jnp.broadcast_to(seen[..., None], dx.shape))


def _select(dx, seen):
    return jnp.where(seen, dx, 0)


def _mapped(arrays, axes):
    size = next(array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None)
    dx, seen = (
        jnp.broadcast_to(array, (size, *array.shape)) if axis is None else jnp.moveaxis(array, axis, 0)
        for array, axis in zip(arrays, axes, strict=True)
    )
    return _ZEROED.bind(dx, seen), 0


_ZEROED = Primitive("attnpool_zero_unseen")
"""Zeroes tangents, and passes cotangents as they are; both arguments have one shape."""
_ZEROED.def_impl(jax.jit(_select))
_ZEROED.def_abstract_eval(lambda dx, seen: dx)
ad.defjvp(_ZEROED, lambda tangent, dx, seen: _ZEROED.bind(tangent, seen), None)
ad.primitive_transposes[_ZEROED] = lambda cotangent, dx, seen: [cotangent, None]
batching.primitive_batchers[_ZEROED] = _mapped
mlir.register_lowering(_ZEROED, mlir.lower_fun(_select, multiple_results=False))


def of_seen(function, x, seen, *others, gpus_alone=False):
    """Computes ``function(x, *others)`` of tokens that are 0 where ``seen`` is False.

    The function gets x with its own values there instead of 0, unless it is differentiated: in a gradient, 0 times NaN
    would be NaN.

    Args:
      function: from tokens [..., m, d] and other arrays to an array. The values of unseen tokens reach only elements of
        the result that the caller replaces.
      x: [..., m, d], in any floating dtype.
      seen: bool [..., m], or None if all tokens are seen.
      *others: arrays, or None. The function closes over no other traced array.
      gpus_alone: whether x is 0 there except on GPUs: elsewhere the function chooses by the values of all tokens.
    """
    return function(x, *others) if seen is None else _of_seen(function, gpus_alone, x, seen, *others)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _of_seen(function, gpus_alone, x, seen, *others):
    x, seen = unify_varying(x, seen)
    if gpus_alone:
        return function(platforms.choose(x, seen, cpu=zero_unseen, tpu=zero_unseen, default=_as_it_is), *others)
    return function(_as_it_is(x, seen), *others)


@functools.partial(_of_seen.defjvp, symbolic_zeros=True)
def _of_seen_jvp(function, gpus_alone, primals, tangents):
    del gpus_alone
    (x, seen, *others), (dx, _, *dothers) = primals, tangents
    leaves, shape = jax.tree.flatten((x, *others))
    dleaves = shape.flatten_up_to((dx, *dothers))
    moving = [i for i, leaf in enumerate(dleaves) if not isinstance(leaf, SymbolicZero)]

    def of_moving(*some):
        given = dict(zip(moving, some, strict=True))
        x, *others = jax.tree.unflatten(shape, [given.get(i, leaf) for i, leaf in enumerate(leaves)])
        return function(zero_unseen(x, seen), *others)

    return jax.jvp(of_moving, [leaves[i] for i in moving], [dleaves[i] for i in moving])
