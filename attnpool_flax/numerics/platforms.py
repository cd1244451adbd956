"""All that depends on where a program runs: its platform, the devices of its arrays, and the version of JAX.

The rest of the package computes one thing on all platforms. It differs in two ways, which are decided here: CPUs loop over
pieces that fit their caches, because XLA's CPU backend does not fuse a mask into a product (:func:`by_pieces`); and blocks
of scores are as large as the memory of a platform allows (:func:`in_blocks`). A program has the functions of all platforms;
the one for which it is lowered is compiled.

Varying manual axes are the mesh axes over which an array varies inside of ``jax.shard_map``. They have other names in
JAX before 0.10.
"""

import functools
import os
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics.sizes import known

_BEFORE_0_10 = jax.__version_info__ < (0, 10)

BLOCK = 2**20
"""The number of elements of a block of scores that fits the cache of a CPU."""


def _budget(environment):
    """Returns the bytes of a block on TPUs and on GPUs: 1/16 of the memory of a v5e (16 GB) and of a GPU of 80 GB.

    ``ATTNPOOL_BLOCK_BYTES`` in ``environment`` replaces both; it is a ValueError if this is not a number.
    """
    requested = environment.get("ATTNPOOL_BLOCK_BYTES")
    if requested is None:
        return {"tpu": 2**30, "default": 5 * 2**30}
    if not requested.isdecimal():
        raise ValueError(f"attnpool_flax: ATTNPOOL_BLOCK_BYTES is {requested!r}, needs a number of bytes")
    return dict.fromkeys(("tpu", "default"), int(requested))


BUDGET = _budget(os.environ)
"""Bytes of a block on accelerators; the environment variable ``ATTNPOOL_BLOCK_BYTES`` replaces them at import."""


ON_CHIP = 2**23
"""The number of float32 elements of a block that XLA leaves in a TPU's on-chip memory together with their gradient."""


def by_pieces(loop, whole, *arrays):
    """Calls ``loop(*arrays)`` on CPUs and ``whole(*arrays)`` elsewhere, which have results of the same shapes."""
    return lax.platform_dependent(*arrays, cpu=loop, default=whole)


def on_matrix_units(exact, narrow, *arrays):
    """Calls ``narrow(*arrays)`` on GPUs and TPUs, which multiply bfloat16 numbers, and ``exact(*arrays)`` elsewhere."""
    return lax.platform_dependent(*arrays, cpu=exact, default=narrow)


def in_one_kernel(apart, fused, *arrays):
    """Calls ``fused(*arrays)`` on GPUs, whose compiler makes one kernel of it, and ``apart(*arrays)`` elsewhere."""
    return lax.platform_dependent(*arrays, cpu=apart, tpu=apart, default=fused)


def in_blocks(compute, count, cost, *arrays, apart=False):
    """Calls ``compute(size, *arrays)`` with the number of items that a block has on the program's platform.

    Args:
      compute: from the size of a block and the arrays to arrays. Only its memory depends on the size.
      count: the number of items, such as queries; it may be a symbol.
      cost: the number of array elements that are held for one item; it may be a symbol.
      *arrays: trees of arrays.
      apart: whether blocks read no array in common, so that they may be small: on TPUs they stay on the chip, if one item
        does, and up to two blocks are one on CPUs.
    """
    if not known(count, cost):
        return compute(_items(cost, BLOCK), *arrays)
    budgets = {"cpu": BLOCK} | {name: number // 4 for name, number in BUDGET.items()}
    sizes = {name: _items(cost, elements) for name, elements in budgets.items()}
    if apart:
        sizes["tpu"] = (
            sizes["tpu"] if sizes["tpu"] >= count else max(1, min(sizes["tpu"], ON_CHIP // cost or sizes["tpu"]))
        )
        sizes["cpu"] = sizes["cpu"] if exceeds_a_block(count, cost) else count
    sizes = {name: count if size >= count else even_rows(size, count) for name, size in sizes.items()}
    if len(set(sizes.values())) == 1:
        return compute(sizes["cpu"], *arrays)
    if sizes["tpu"] == sizes["default"]:
        del sizes["tpu"]
    kernels = {name: functools.partial(compute, size) for name, size in sizes.items()}
    return lax.platform_dependent(*arrays, **kernels)


def exceeds_a_block(count, cost):
    """Returns whether ``count`` items, of ``cost`` elements each, are more than two blocks on a CPU.

    Fewer are computed at once, which is faster. A symbolic number always exceeds a block.
    """
    return not (known(count, cost) and (count <= 1 or count * cost <= 2 * BLOCK))


def _items(cost, elements):
    """Returns the number of items in a block of so many elements, at least 1; 64 if their cost is a symbol."""
    return max(1, elements // max(1, cost)) if known(cost) else 64


def even_rows(most, count):
    """Returns the largest size up to ``most``, above half of it, that divides ``count``; ``most`` if there is none."""
    return next((rows for rows in range(most, most // 2, -1) if count % rows == 0), most)


def may_be_split(array):
    """Returns whether an array on CPUs may be split over several devices, whose parts a loop would gather to slice them.

    Inside of ``shard_map`` each device loops over its own part. On how many devices an array of a ``jit`` is, a trace does
    not know.
    """
    return jax.device_count() > 1 and not varying_axes(array)


def varying_axes(array):
    """Returns the mesh axes over which an array varies inside of ``shard_map`` (its varying manual axes)."""
    kind: Any = jax.typeof(array)
    return kind.vma if _BEFORE_0_10 else kind.manual_axis_type.varying


def unify_varying(*arrays: Any) -> Any:
    """Casts arrays to vary over each axis over which one of them varies, as custom gradient rules need.

    None stays None.
    """
    axes = frozenset().union(*[varying_axes(array) for array in arrays if array is not None])
    if not axes:  # outside of ``shard_map``
        return arrays
    return tuple(array if array is None else cast_varying(array, axes - varying_axes(array)) for array in arrays)


def cast_varying(array, axes):
    """Casts an array to vary over these manual axes as well."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)


def mapped_first(arrays, axes):
    """Moves the mapped axes of arrays under ``vmap`` to the front; an array whose axis is None is broadcast."""
    size = next(array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None)
    return [
        jnp.broadcast_to(array, (size, *array.shape)) if axis is None else jnp.moveaxis(array, axis, 0)
        for array, axis in zip(arrays, axes, strict=True)
    ]


# --------------------------------------------------------------------------------------------------------------
# Two products whose transpose is one


def dot_and_pull(x, rows, weights, precision):
    """Computes the products of x [B, L, d] with rows [B or 1, h, d], and its sums under weights [B, L, h].

    It is linear in x, and its transpose is one product of 2 h terms: [weights, cotangents] with [cotangents, rows]. Of a
    sum of two products, XLA writes the first one to memory in float32: a step of multi-head pooling (16 heads, bfloat16,
    float32) moves 5.3, 5.2 bytes of x on a TPU v5e and 8.5, 7.6 on an H200, with two products 9.2, 7.1 and 16.3, 11.5.

    Returns:
      (products [B, L, h], sums [B, h, d]).
    """
    rows = jnp.broadcast_to(rows, (x.shape[0], *rows.shape[1:]))
    return _DOT_AND_PULL.bind(*unify_varying(x, rows, weights), precision=precision)


def _dot_and_pull(x, rows, weights, precision, product=lax.dot_general):
    batch, last = tuple(range(x.ndim - 2)), x.ndim - 1
    dot = product(x, rows, dimension_numbers=(((last,), (last,)), (batch, batch)), precision=precision)
    pull = product(weights, x, dimension_numbers=(((last - 1,), (last - 1,)), (batch, batch)), precision=precision)
    return [dot, pull]


def _types(x, rows, weights, precision):
    def product(x, y, **params):
        return lax.dot_general_p.abstract_eval(x, y, **params, preferred_element_type=None, out_sharding=None)[0]

    return _dot_and_pull(x, rows, weights, precision, product)


def _tangents(primals, tangents, precision):
    (x, *others), (dx, *dothers) = primals, map(ad.instantiate_zeros, tangents)
    through_others = jax.jvp(lambda rows, weights: _dot_and_pull(x, rows, weights, precision), others, dothers)[1]
    results, moved = (_DOT_AND_PULL.bind(own, *others, precision=precision) for own in (x, dx))
    return results, list(map(jnp.add, moved, through_others))


def _transposed(cotangents, _, rows, weights, precision):
    ddot, dpull = map(ad.instantiate_zeros, cotangents)
    batch, last = tuple(range(rows.ndim - 2)), rows.ndim - 1
    terms, of_terms = jnp.concatenate([weights, ddot], last), jnp.concatenate([dpull, rows], last - 1)
    return [lax.dot_general(terms, of_terms, (((last,), (last - 1,)), (batch, batch)), precision), None, None]


def _mapped(arrays, axes, precision):
    return _DOT_AND_PULL.bind(*mapped_first(arrays, axes), precision=precision), [0, 0]


_DOT_AND_PULL = Primitive("attnpool_dot_and_pull")
_DOT_AND_PULL.multiple_results = True
_DOT_AND_PULL.def_impl(jax.jit(_dot_and_pull, static_argnames="precision"))
_DOT_AND_PULL.def_abstract_eval(_types)
ad.primitive_jvps[_DOT_AND_PULL] = _tangents
ad.primitive_transposes[_DOT_AND_PULL] = _transposed
batching.primitive_batchers[_DOT_AND_PULL] = _mapped
mlir.register_lowering(_DOT_AND_PULL, mlir.lower_fun(_dot_and_pull, multiple_results=True))
