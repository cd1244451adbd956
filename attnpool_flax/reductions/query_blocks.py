"""Blocks of queries: loops that hold arrays of queries times keys for one block of queries at a time."""

import functools
import math
import os
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known, resized, smaller
from attnpool_flax.numerics.varying import cast_varying, varying_axes
from attnpool_flax.reductions.blocks import Blocks, inside_loop
from attnpool_flax.reductions.dispatch import IMPLEMENTATIONS, log_dispatch, on_several_devices, only_platform, platform

LARGEST = 2**20
"""The largest number of elements of a block on CPUs, which fits their caches; smaller arrays need no loop."""


def _budget(environment):
    """Returns the bytes of a block on TPUs and on GPUs: 1/16 of the memory of a v5e (16 GB) and of a GPU of 80 GB.

    ``ATTNPOOL_BLOCK_BYTES`` in ``environment`` replaces both; it is a ValueError if this is not a number.
    """
    budget = {"tpu": 2**30, "default": 5 * 2**30}
    requested = environment.get("ATTNPOOL_BLOCK_BYTES")
    if requested is None:
        return budget
    if not requested.isdecimal():
        raise ValueError(f"attnpool_flax: ATTNPOOL_BLOCK_BYTES is {requested!r}, needs a number of bytes")
    return dict.fromkeys(budget, int(requested))


BUDGET = _budget(os.environ)
"""Bytes of a block on accelerators; the environment variable ``ATTNPOOL_BLOCK_BYTES`` replaces them at import."""

ON_CHIP = 2**24
"""The number of float32 elements of a block that XLA leaves in a TPU's on-chip memory: 64 MiB of 128 MiB on v5e and v6e."""

FEW = 64
"""The number of queries of a block if their number of elements, ``keys``, is a symbol of ``jax.export``."""


def over_queries(function, parts, masks=(), *, keys, implementation=None, on_gpus=None, on_tpus=None):
    """Applies a function to n queries in blocks, each with all m keys; returns arrays [..., n, v].

    The backward pass recomputes each full block, except its saveable arrays. JAX differentiates the loop, so forward
    mode and ``shard_map`` work.

    Args:
      function: from the block's ``parts`` and ``masks`` to arrays [..., rows, v].
      parts: arrays [..., n, d], or None; the first one is not None.
      masks: boolean arrays [..., n or 1, m], or None, without gradient.
      keys: the number of elements that the function holds for one query, over all examples.
      implementation: "einsum" computes all queries at once; "tiles" and None loop over blocks if there is more than
        one. Without this loop, or if n is a symbol, all platforms use ``function``.
      on_gpus: a function for GPUs that computes the same in another way; None is ``function``.
      on_tpus: a function for TPUs, whose gradient must be that of ``function``; None is ``function``.
    """
    count = parts[0].shape[-2]
    blocked = implementation != "einsum" and exceeds_a_block(count, keys)
    log_dispatch(implementation if implementation in IMPLEMENTATIONS else "tiles" if blocked else "einsum")
    if not blocked:
        return function(*parts, *masks)
    if not known(count):
        return _over_unknown(function, parts, masks, count, rows_of(keys))
    # rematerialized: for other platforms nothing is saved, and in a whole step XLA computes it once
    on_gpus = function if on_gpus is None else remat(on_gpus)
    functions = function, on_gpus, function if on_tpus is None else on_tpus
    compute, on_gpus, on_tpus = (functools.partial(_over_blocks, own) for own in functions)
    return by_budget(compute, keys, parts, tuple(masks), on_gpus=on_gpus, on_tpus=on_tpus)


def by_budget(compute, cost, *arrays, on_gpus=None, on_tpus=None, count=None):
    """Calls ``compute(size, *arrays)`` with the block size for the platform that the program is lowered for.

    Args:
      compute: from the size of a block and the arrays to arrays. Only its memory depends on the size.
      cost: the number of array elements that are held for one item of a block, such as a query.
      *arrays: pytrees of arrays.
      on_gpus: ``compute`` for GPUs; by default the same.
      on_tpus: ``compute`` for TPUs; by default the same.
      count: the number of items, from which accelerators choose the block size (:func:`items_on`); None takes as many
        items as fit.
    """
    computes = {"cpu": compute, "tpu": on_tpus or compute, "default": on_gpus or compute}
    kernels = {name: functools.partial(own, items_on(name, cost, count)) for name, own in computes.items()}
    only = only_platform()
    return kernels[only](*arrays) if only else lax.platform_dependent(*arrays, **kernels)


def elements_on(name):
    """Returns the largest number of array elements of a block on a platform: "cpu", "tpu", or any other for GPUs."""
    return LARGEST if name == "cpu" else BUDGET.get(name, BUDGET["default"]) // 4


def items_on(name, cost, count=None):
    """Returns the number of items, of ``cost`` elements each, in a block on a platform.

    Without ``count``, and on CPUs, it is as many as fit. ``count`` is the number of all items: on accelerators the
    result is then all of them if they fit, else by :func:`even_rows`, on TPUs at most as many as stay on the chip,
    unless one does not.
    """
    most = rows_of(cost, elements_on(name))
    if count is None or name == "cpu":
        return most
    return count if most >= count else even_rows(min(most, ON_CHIP // cost or most) if name == "tpu" else most, count)


def _over_blocks(function, rows, parts, masks):
    count = parts[0].shape[-2]
    if rows >= count:
        return function(*parts, *masks)
    whole = count // rows * rows
    rematerialized = remat(function)

    def block_step(_, block):
        start, *own = block
        return None, rematerialized(*own, *(_rows_of_mask(mask, start, rows) for mask in masks))

    starts = jnp.arange(0, whole, rows)
    _, results = lax.scan(block_step, None, (starts, *(in_blocks(part, whole, rows) for part in parts)))
    results = jax.tree.map(lambda result: _from_blocks(result, whole), results)
    if whole == count:
        return results
    remaining = [part if part is None else part[..., whole:, :] for part in parts]
    last = function(*remaining, *(_rows_of_mask(mask, whole, count - whole) for mask in masks))
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b], -2), results, last)


def _over_unknown(function, parts, masks, count, most):
    """Computes :func:`over_queries` for a symbolic number of queries, padded to whole blocks of ``most`` queries."""
    number, rows = -(-count // most), smaller(most, count)  # one block of all queries where these are fewer

    def in_padded_blocks(array):
        if array is None or array.shape[-2] == 1:
            return None
        filled = resized(array, -2, number * rows)
        blocks = jnp.reshape(filled, (*array.shape[:-2], number, rows, array.shape[-1]))
        return jnp.moveaxis(blocks, -3, 0)

    def block_step(_, own):
        return None, rematerialized(*(a if b is None else b for a, b in zip(shared, own, strict=True)))

    arrays, rematerialized = (*parts, *masks), remat(function)
    own = [in_padded_blocks(array) for array in arrays]
    shared = [array if blocks is None else None for array, blocks in zip(arrays, own, strict=True)]
    _, results = lax.scan(block_step, None, own)
    return jax.tree.map(lambda result: resized(_from_blocks(result, number * rows), -2, count), results)


def exceeds_a_block(count, keys, largest=None):
    """Returns whether ``count`` queries, with ``keys`` elements each, exceed a block of ``largest`` elements.

    The default of ``largest`` is the limit on CPUs. A symbolic count always exceeds a block.
    """
    return not (known(count) and rows_of(keys, largest) >= count)


@dataclass(frozen=True)
class ForQueries:
    """Choice of an implementation for a function that loops over queries: the requested one, or the default.

    The default is "tiles" if the scores exceed a block, else "einsum".

    Attributes:
      queries: the name of the argument [..., n, d] whose tokens are split into blocks.
      keys: the name of the argument [..., m, d] whose tokens each query is compared with, or averages.
      heads: the letter of the axis of heads, or "".
    """

    queries: str
    keys: str
    heads: str = ""

    def __call__(self, values, call):
        """Returns "einsum" or "tiles", or another implementation if the call requests it.

        Args:
          values: every argument by name; arrays, or objects with a shape and a dtype.
          call: the resolved signature (:class:`attnpool_ref.contract.Call`).
        """
        if values["implementation"]:
            return values["implementation"]
        masks = [values[key] for key, own in call.arguments.items() if own.kind in ("mask", "lengths")]
        arrays = [values[self.queries], values[self.keys], *(mask for mask in masks if mask is not None)]
        shared = all(array.ndim <= 2 for array in arrays)
        held = self._keys(values, call) * (1 if shared else math.prod(call.batch))
        return "tiles" if exceeds_a_block(values[self.queries].shape[-2], held, elements_on(platform())) else "einsum"

    def scores(self, values, call):
        """Returns the number of scores of all examples, or 0 if "einsum" is requested, which computes all at once."""
        if values["implementation"] == "einsum":
            return 0
        return math.prod(call.batch) * values[self.queries].shape[-2] * self._keys(values, call)

    def _keys(self, values, call):
        """Returns the number of scores of one query in one example."""
        return (call.sizes[self.heads] if self.heads else 1) * values[self.keys].shape[-2]


def rows_of(keys, largest=None):
    """Returns the number of queries in a block of ``largest`` elements, with ``keys`` elements each, at least 1.

    The default of ``largest`` is the limit on CPUs. If ``keys`` is a symbol, the number is FEW.
    """
    return max(1, (LARGEST if largest is None else largest) // max(1, keys)) if known(keys) else FEW


def _rows_of_mask(mask, start, rows):
    if mask is None or mask.shape[-2] == 1:
        return mask
    return lax.dynamic_slice_in_dim(mask, start, rows, -2)


def in_blocks(part, whole, rows):
    """Reshapes the first ``whole`` rows of [..., n, d] to [whole // rows, ..., rows, d]; None stays None."""
    if part is None:
        return None
    blocks = jnp.reshape(part[..., :whole, :], (*part.shape[:-2], whole // rows, rows, part.shape[-1]))
    return jnp.moveaxis(blocks, -3, 0)


def _from_blocks(blocks, whole):
    """Reshapes [k, ..., rows, v] to [..., k rows, v]."""
    blocks = jnp.moveaxis(blocks, 0, -3)
    return jnp.reshape(blocks, (*blocks.shape[:-3], whole, blocks.shape[-1]))


def size_of(*arrays_and_axes):
    """Returns the number of examples: the product of the batch axes to which those of the arrays broadcast.

    Args:
      *arrays_and_axes: each array, followed by the number of its last axes that are not batch axes.
    """
    pairs = zip(arrays_and_axes[::2], arrays_and_axes[1::2], strict=True)
    return math.prod(jnp.broadcast_shapes(*(array.shape[: array.ndim - own] for array, own in pairs)))


def over_first(function, parts, cost):
    """Maps a function over the first axis of arrays, one block of elements at a time, like :func:`jax.lax.map`.

    Args:
      function: from one element of each array to arrays.
      parts: arrays (or None) of one length along the first axis; those of length 1 are shared.
      cost: the number of array elements that ``function`` holds for one element of the axis.
    """
    lengths = [part.shape[0] for part in parts if part is not None]
    count = next((length for length in lengths if not (known(length) and length == 1)), 1)
    single = known(count) and count == 1
    shared = [not single and part is not None and known(part.shape[0]) and part.shape[0] == 1 for part in parts]
    whole = [part[0] if is_shared else None for is_shared, part in zip(shared, parts, strict=True)]

    def element(own):
        return function(*(a if is_shared else b for is_shared, a, b in zip(shared, whole, own, strict=True)))

    own = [None if is_shared else part for is_shared, part in zip(shared, parts, strict=True)]
    if not known(count, cost):
        return lax.map(remat(element), own)

    def by_blocks(at_once, own):
        if count <= at_once:
            return jax.vmap(element, axis_size=count)(own)
        if at_once == 1:
            return lax.map(remat(element), own)
        return lax.map(remat(element), own, batch_size=at_once)

    if count <= rows_of(cost):
        return by_blocks(count, own)
    small = not on_several_devices(jax.tree.leaves(own))  # which may hold different parts of the axis
    return by_budget(by_blocks, cost, own, count=count if small else None)


def even_rows(most, count):
    """Returns the largest size up to ``most``, above half of it, that divides ``count``; ``most`` if there is none."""
    return next((rows for rows in range(most, most // 2, -1) if count % rows == 0), most)


def over_sequences(tiled, function, axis, own, shared):
    """Computes ``function(own, shared)`` of all sequences, on CPUs in blocks of sequences if ``tiled``.

    Args:
      tiled: whether to use blocks, if there is more than one and no size is a symbol.
      function: from the arrays of some sequences, and the shared arrays, to a tuple of arrays.
      axis: the axis of the sequences in the results.
      own: arrays [n, ...] of the sequences: tokens [n, L, d], mask [n, L] or None, scores [n, m, L] if given.
      shared: arrays that all sequences share: queries [m, d] first; may be empty.
    """
    count, length, width = own[0].shape
    partners = own[2].shape[1] if len(own) > 2 else shared[0].shape[0] if shared else 1
    cost = (length + partners) * width
    if tiled and known(count, cost) and rows_of(cost) < count:
        return written_in_blocks(function, even_rows(rows_of(cost), count), axis, own, shared)
    return placed(function, axis, own, shared)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def written_in_blocks(function, rows, axis, own, shared):
    """Computes ``function(own, shared)``, on CPUs in blocks of elements that are written into the results in place.

    A ``lax.scan`` would stack the results of its steps along a first axis, which only a copy moves elsewhere.

    Args:
      function: from (arrays with some elements along the first axis, the shared arrays) to arrays with these elements
        along the first axis.
      rows: the number of elements of a block, at most that of all.
      axis: the axis of the elements in the results.
      own: arrays of one length along the first axis, or None, varying over the same mesh axes as the shared ones.
      shared: arrays, or None.
    """
    by_blocks = functools.partial(_written, function, rows, axis)
    return lax.platform_dependent(own, shared, cpu=by_blocks, default=functools.partial(placed, function, axis))


def placed(function, axis, own, shared):
    """Computes ``function(own, shared)``, and swaps the first axis of each result with ``axis``."""
    return jax.tree.map(lambda result: jnp.swapaxes(result, 0, axis), function(own, shared))


def _written(function, rows, axis, own, shared):
    first, *_ = jax.tree.leaves(own)
    blocks = Blocks(first.shape[0], rows)

    def block_step(step, results):
        block = jax.tree.map(lambda array: blocks.slice(array, step), own)
        computed = placed(function, axis, block, shared)
        return jax.tree.map(lambda result, new: blocks.update(result, new, step, axis), results, computed)

    def place(result):
        # the axis as fill value, because XLA would merge equal arrays of several calls, and copy them for each loop
        return cast_varying(jnp.full(result.shape, axis, result.dtype), varying_axes(first))

    results = jax.eval_shape(functools.partial(placed, function, axis), own, shared)
    return lax.fori_loop(0, blocks.steps, block_step, jax.tree.map(place, results))


def _rows_from(start, rows, array):
    array, start = inside_loop(array, start)
    return lax.dynamic_slice_in_dim(array, start, rows)


@functools.partial(written_in_blocks.defjvp, symbolic_zeros=True)
def _written_jvp(function, rows, axis, primals, tangents):
    """Computes the tangent of :func:`written_in_blocks` by adding up that of each block; on GPUs, that of all at once.

    In reverse mode, the transpose of such an addition slices the cotangent of the results by index, without a copy.
    """
    result = written_in_blocks(function, rows, axis, *primals)
    tangents = jax.tree.map(lambda tangent: None if isinstance(tangent, SymbolicZero) else tangent, tangents)
    by_blocks = functools.partial(_tangents_added, function, rows, axis, result)
    at_once = remat(functools.partial(_tangents_at_once, function, axis))
    return result, lax.platform_dependent(primals, tangents, cpu=by_blocks, tpu=by_blocks, default=at_once)


def _tangents_at_once(function, axis, primals, tangents):
    """Returns the tangents of the results of :func:`placed`; tangents that are None are 0."""
    leaves, shape = jax.tree.flatten(primals)
    dleaves = shape.flatten_up_to(tangents)
    moving = [i for i, leaf in enumerate(dleaves) if leaf is not None]

    def of_moving(*some):
        given = dict(zip(moving, some, strict=True))
        every = [given.get(i, leaf) for i, leaf in enumerate(leaves)]
        return placed(function, axis, *jax.tree.unflatten(shape, every))

    return jax.jvp(of_moving, [leaves[i] for i in moving], [dleaves[i] for i in moving])[1]


def _tangents_added(function, rows, axis, result, primals, tangents):
    (own, shared), (d_own, dshared) = primals, tangents
    count = jax.tree.leaves(own)[0].shape[0]
    whole = count // rows * rows

    def add(total, start, block, dblock):
        tangent = _tangents_at_once(function, axis, (block, shared), (dblock, dshared))
        return jax.tree.map(lambda total, tangent: _scatter_add(total, tangent, start, axis), total, tangent)

    def block_step(total, place):
        start, dblock = place
        block = jax.tree.map(functools.partial(_rows_from, start, rows), own)
        return add(total, start, block, dblock), None

    dblocks = jax.tree.map(lambda array: jnp.reshape(array[:whole], (-1, rows, *array.shape[1:])), d_own)
    zero = jax.tree.map(jnp.zeros_like, result)
    total, _ = lax.scan(remat(block_step), zero, (jnp.arange(0, whole, rows), dblocks))
    if whole < count:
        total = add(total, whole, *jax.tree.map(lambda array: array[whole:], (own, d_own)))
    return total


def _scatter_add(total, block, start, axis):
    places = lax.ScatterDimensionNumbers(tuple(range(total.ndim)), (), (axis,))
    return lax.scatter_add(total, jnp.full(1, start, jnp.int32), block, places, mode="promise_in_bounds")
