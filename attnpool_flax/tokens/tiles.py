"""The one loop over tokens, for CPUs: a piece is copied into the cache once, masked, computed and differentiated there.

XLA's CPU backend cannot fuse the ``where`` of a mask into a product, so outside of a loop a mask costs a copy of x. The
backward pass computes each piece again (``jax.checkpoint``) and adds its gradient to that of x in place, because JAX
transposes a slice inside of a loop to an addition in place.

A piece is a part of one example or several short examples (:class:`Tiling`); of packed tokens it is a run of them
(:func:`over_runs`). Of exactly divided arrays the loop slices the pieces itself, which spares the addition.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics.platforms import cast_varying, varying_axes
from attnpool_flax.numerics.products import is_narrow
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.sums import LONGEST

WHOLE = 2**20
"""Bytes of x up to which a loop does not pay."""

PIECE = 2**19
"""The largest number of elements of a piece that is a part of one example, unless LEAST tokens have more."""

EXAMPLES = 2**16
"""The largest number of elements of a piece with several short examples."""

LEAST = 16
"""The smallest number of tokens of a piece of a longer example."""

RUN = 2048
"""The largest number of packed tokens of a piece."""


class Tiling(NamedTuple):
    """Division of [B, L, ...] into pieces: ``rows`` examples with all their tokens, or ``size`` tokens of one example.

    The last piece of an example, or of the batch, starts earlier where it would not be full.
    """

    batch: Any
    length: int
    rows: int
    size: int

    @property
    def parts(self):
        """The number of pieces of an example."""
        return -(-self.length // self.size)

    def over(self, function, of_tokens, of_examples, skip=False):
        """Maps a function over all pieces.

        Args:
          function: from bool [1, size], the tokens of the piece that no earlier piece has (None: all), and the slices of
            all arrays to (a tree of values of tokens [rows, size, ...], a tree of states of examples [rows, ...]).
          of_tokens: arrays [B or 1, L, ...], or None; those of one example are shared.
          of_examples: arrays [B or 1, ...], or None.
          skip: whether of a piece behind whose first quarter no token is real only this quarter is read; the second of
            ``of_tokens`` is the mask then. The values of the other tokens are -inf. It is fast only without gradients.

        Returns:
          (values [B, L, ...], states [B, parts, ...]).
        """
        batch, length, rows, size = self
        groups, parts, quarter = -(-batch // rows), self.parts, size // 4
        skip = skip and rows == 1 and quarter >= LEAST
        exact = length % size == 0 and (rows == 1 or batch % rows == 0) and not skip

        def split(array):  # an axis of size 1 would be another layout, and a copy
            if array is None or not exact or array.shape[0] != batch or is_narrow(array):
                return None
            tile = (rows, size) if rows > 1 else (size,)
            return jnp.reshape(array, (groups * parts, *tile, *array.shape[2:]))

        def piece(given):
            index, own = given
            row = jnp.minimum(lax.div(index, jnp.int32(parts)) * rows, batch - rows)
            first = lax.rem(index, jnp.int32(parts)) * size
            start = jnp.minimum(first, length - size)

            def of_first(count):
                new = None if length % size == 0 else (start + lax.iota(jnp.int32, count) >= first)[None]
                tokens = [
                    cut(array, (row, start), (rows, count)) if part is None else part if rows > 1 else part[None]
                    for array, part in zip(of_tokens, own, strict=True)
                ]
                return function(new, *tokens, *(cut(array, (row,), (rows,)) for array in of_examples))

            def of_quarter():
                values, states = of_first(quarter)
                rest = [(0, 0), (0, size - quarter), (0, 0)]
                return jax.tree.map(lambda array: jnp.pad(array, rest, constant_values=-jnp.inf), values), states

            if not skip:
                return of_first(size)
            mask: Any = cut(of_tokens[1], (row, start), (rows, size))
            return lax.cond(jnp.any(mask[:, quarter:]), lambda: of_first(size), of_quarter)

        def in_groups(array):  # [groups * parts, ...]
            return jnp.moveaxis(jnp.reshape(array, (groups, parts, *array.shape[1:])), 1, 2)

        steps = lax.iota(jnp.int32, groups * parts), [split(array) for array in of_tokens]
        values, states = lax.map(remat(piece), steps)
        values = jax.tree.map(lambda array: joined(joined(in_groups(array), 2, length), 0, batch), values)
        return values, jax.tree.map(lambda array: joined(in_groups(array), 0, batch), states)


def tiling_of(x, batch, width=None):
    """Returns the :class:`Tiling` of tokens [B or 1, L, d] of B examples; None if a loop does not pay.

    It does not for few tokens, nor if L or d is a symbol. ``width`` is the number of elements that are held for one token,
    if they are more than d.
    """
    length = x.shape[1]
    width = max(width or 0, x.shape[2]) if known(x.shape[2]) else x.shape[2]
    if not known(length, width) or not length * width:
        return None
    if known(batch) and batch * length * width * x.dtype.itemsize <= WHOLE:
        return None
    if known(batch) and length * width <= EXAMPLES // 2 and length <= LONGEST:
        return Tiling(batch, length, min(batch, EXAMPLES // (length * width)), length)
    longest = LONGEST if x.shape[2] >= 8 else LONGEST // 2  # XLA adds narrow tokens one after another
    size = min(length, longest, max(LEAST, PIECE // width))
    return Tiling(batch, length, 1, math.ceil(length / -(-length // size)))


def cut(array, start, sizes):
    """Slices the first axes of an array by their starts and sizes; a first axis of size 1 is shared; None stays None."""
    if array is None:
        return None
    shared = array.shape[0] == 1
    starts = [jnp.int32(0) if shared else start[0], *start[1:], *[jnp.int32(0)] * (array.ndim - len(start))]
    if is_narrow(array):  # XLA's CPU backend would widen the whole array outside of the loop, as it depends on no step
        array, starts = lax.optimization_barrier((array, starts))
    sizes = (1 if shared else sizes[0], *sizes[1:], *array.shape[len(sizes) :])
    return lax.dynamic_slice(array, starts, sizes, allow_negative_indices=False)


def joined(array, axis, length):
    """Joins an axis of parts with the next axis, of their elements: ``length`` of them; the last part starts earlier."""
    lead, (parts, size, *rest) = array.shape[:axis], array.shape[axis:]
    if not known(length, parts) or parts * size == length:
        return jnp.reshape(array, (*lead, length, *rest))
    done = (parts - 1) * size
    before = jnp.reshape(lax.slice_in_dim(array, 0, parts - 1, axis=axis), (*lead, done, *rest))
    last = lax.index_in_dim(array, parts - 1, axis, keepdims=False)
    return jnp.concatenate([before, lax.slice_in_dim(last, size - (length - done), size, axis=axis)], axis)


def run_of(x, heads):
    """Returns the number of packed tokens [N, d] of a piece with ``heads`` sums; None if a loop does not pay."""
    if not known(*x.shape) or x.size * x.dtype.itemsize <= WHOLE:
        return None
    return min(x.shape[0], RUN, max(LEAST, PIECE // (x.shape[1] * heads)))


def over_runs(function, segments, arrays, run, largest=False):
    """Maps a function over runs of packed tokens, and adds its terms to the sums of their segments.

    Args:
      function: from ids [run], bool [run] (True for real tokens that no earlier run has) and the slices of all arrays to
        (a tree of values of tokens [run, ...], a tree of terms [run, ...], 0 at padding).
      segments: the :class:`~attnpool_flax.tokens.segments.Segments`.
      arrays: [N, ...], or None.
      run: the number of tokens of a piece.
      largest: whether the largest terms of each segment are taken, -inf at padding, in place of their sums.

    Returns:
      (values [N, ...], a tree of sums [count, ...]).
    """
    length = segments.ids.shape[0]
    steps, exact = -(-length // run), length % run == 0 and not any(a is not None and is_narrow(a) for a in arrays)
    owner, count = (segments.ids, segments.count) if largest else (segments.chain[0], segments.sizes[0])
    of_all = segments.ids, segments.real, owner, *arrays

    def split(array):
        return None if array is None else jnp.reshape(array, (steps, run, *array.shape[1:]))

    def piece(given):
        index, own = given
        if not exact:
            start = jnp.minimum(index * run, length - run)
            own = [cut(array, (start,), (run,)) for array in of_all]
        ids, real, owner, *slices = own
        if length % run:
            real = real & (start + lax.iota(jnp.int32, run) >= index * run)
        return owner, function(ids, real, *slices)

    def step(sums, given):
        owner, (values, terms) = piece(given)

        def added(total, own):
            options = {"indices_are_sorted": segments.ordered, "mode": "promise_in_bounds"}
            return total.at[owner].max(own, **options) if largest else total.at[owner].add(own, **options)

        return jax.tree.map(added, sums, terms), values

    given = lax.iota(jnp.int32, steps), [split(array) for array in of_all] if exact else None
    _, (_, terms) = jax.eval_shape(piece, jax.tree.map(lambda array: array[0], given))
    axes = frozenset().union(*(varying_axes(array) for array in arrays if array is not None))
    fill = -jnp.inf if largest else 0
    start = jax.tree.map(lambda own: cast_varying(jnp.full((count, *own.shape[1:]), fill, own.dtype), axes), terms)
    sums, values = lax.scan(remat(step), start, given)
    values = jax.tree.map(lambda array: joined(array, 0, length), values)
    return values, sums if largest else jax.tree.map(segments.sum_slots, sums)


def unless_differentiated(first, loop):
    """Returns ``first``, from tokens and other arrays to results, with the derivatives of ``loop``, which has the same results.

    Tokens narrower than float32 are widened before a loop that is differentiated by them: XLA's CPU backend cannot add to
    a slice of a narrow array in place, and would widen the whole gradient in each step.
    """
    computed = jax.custom_jvp(first)

    def jvp(primals, tangents):
        leaves, shape = jax.tree.flatten(primals)
        dleaves = shape.flatten_up_to(tangents)
        moving = [i for i, leaf in enumerate(dleaves) if not isinstance(leaf, SymbolicZero)]

        def of_moving(*some):
            given = dict(zip(moving, some, strict=True))
            x, *others = jax.tree.unflatten(shape, [given.get(i, leaf) for i, leaf in enumerate(leaves)])
            return loop(x.astype(jnp.float32) if 0 in moving and is_narrow(x) else x, *others)

        return jax.jvp(of_moving, [leaves[i] for i in moving], [dleaves[i] for i in moving])

    computed.defjvp(jvp, symbolic_zeros=True)
    return computed


def folding(function, batch, count):
    """Returns ``function(batch, *arrays)`` as a function of the arrays; an axis of ``vmap`` becomes a part of the batch.

    A mapped loop would hold the pieces of all mapped elements in each step. The first ``count`` arrays are
    [batch or 1, ...], or None; the others belong to all examples.
    """

    @custom_vmap
    def folded(*arrays):
        return function(batch, *arrays)

    @folded.def_vmap
    def _(size, mapped, *arrays):
        def fold(array, is_mapped):
            if array is None or (not is_mapped and array.shape[0] == 1):
                return array
            array = array if is_mapped else array[None]
            array = jnp.broadcast_to(array, (size, batch, *array.shape[2:]))
            return jnp.reshape(array, (size * batch, *array.shape[2:]))

        if any(jax.tree.leaves(mapped[count:])) or (known(size) and size == 0):
            axes = [0 if own else None for own in mapped]
            results = jax.vmap(functools.partial(function, batch), axes, axis_size=size)(*arrays)
            return results, jax.tree.map(lambda _: True, results)
        own = (fold(array, is_mapped) for array, is_mapped in zip(arrays[:count], mapped[:count], strict=True))
        results = folding(function, size * batch, count)(*own, *arrays[count:])
        results = jax.tree.map(lambda array: jnp.reshape(array, (size, batch, *array.shape[1:])), results)
        return results, jax.tree.map(lambda _: True, results)

    return folded
