"""Sizes of blocks: how many elements of an axis a loop computes at a time, for the memory of each platform."""

import functools
import os

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import on_several_devices
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known

LARGEST = 2**20
"""The largest number of elements of a block on CPUs, which fits their caches."""

WHOLE_BLOCKS = 2
"""The number of blocks up to which CPUs compute all queries at once: that is faster, and compiles in half the time."""


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
    return platforms.choose(*arrays, **kernels)


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


def exceeds_a_block(count, keys, name="cpu"):
    """Returns whether ``count`` queries, with ``keys`` elements each, are computed in blocks on a platform.

    On CPUs they are if they exceed WHOLE_BLOCKS of them, elsewhere if they exceed one. A symbolic count always does.
    """
    largest = WHOLE_BLOCKS * LARGEST if name == "cpu" else elements_on(name)
    return not (known(count) and rows_of(keys, largest) >= count)


def rows_of(keys, largest=None):
    """Returns the number of queries in a block of ``largest`` elements, with ``keys`` elements each, at least 1.

    The default of ``largest`` is the limit on CPUs. If ``keys`` is a symbol, the number is FEW.
    """
    return max(1, (LARGEST if largest is None else largest) // max(1, keys)) if known(keys) else FEW


def even_rows(most, count):
    """Returns the largest size up to ``most``, above half of it, that divides ``count``; ``most`` if there is none."""
    return next((rows for rows in range(most, most // 2, -1) if count % rows == 0), most)


def in_blocks(part, whole, rows):
    """Reshapes the first ``whole`` rows of [..., n, d] to [whole // rows, ..., rows, d]; None stays None."""
    if part is None:
        return None
    blocks = jnp.reshape(part[..., :whole, :], (*part.shape[:-2], whole // rows, rows, part.shape[-1]))
    return jnp.moveaxis(blocks, -3, 0)


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
