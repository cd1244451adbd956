"""Blocks: loops over queries, each with all keys, and over examples, so that scores exist for one block at a time."""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import exceeds_a_block
from attnpool_flax.numerics.products import einsum, wide_gradients
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.rounding import largest_product, norm
from attnpool_flax.numerics.sizes import known, resized, smaller


def over_queries(function, parts, masks=(), *, keys):
    """Applies a function to n queries in blocks, each with all m keys; returns arrays [..., n, v].

    The backward pass recomputes each block, except its saveable arrays.

    Args:
      function: from the block's ``parts`` and ``masks`` to arrays [..., rows, v].
      parts: arrays [..., n, d], or None; the first one is not None.
      masks: boolean arrays [..., n or 1, m], or None.
      keys: the number of elements that the function holds for one query, over all examples.
    """
    count = parts[0].shape[-2]
    if not exceeds_a_block(count, keys):
        return function(*parts, *masks)
    arrays = *parts, *masks
    return platforms.in_blocks(functools.partial(_over_blocks, function, count), count, keys, *arrays)


def _over_blocks(function, count, most, *arrays):
    """Computes :func:`over_queries` in blocks of ``most`` of ``count`` queries; the last block is filled up."""
    number = -(-count // most)
    rows = smaller(most, count)  # one block of all queries where these are fewer

    def in_blocks(array):
        if array is None or array.shape[-2] == 1:
            return None
        filled = resized(array, -2, number * rows)
        blocks = jnp.reshape(filled, (*array.shape[:-2], number, rows, array.shape[-1]))
        return jnp.moveaxis(blocks, -3, 0)

    def joined(blocks):
        blocks = jnp.moveaxis(blocks, 0, -3)
        return resized(jnp.reshape(blocks, (*blocks.shape[:-3], number * rows, blocks.shape[-1])), -2, count)

    blocks = [in_blocks(array) for array in arrays]
    shared = [array if own is None else None for array, own in zip(arrays, blocks, strict=True)]

    def block_step(own):
        return function(*(a if b is None else b for a, b in zip(shared, own, strict=True)))

    return jax.tree.map(joined, lax.map(remat(block_step), blocks))


@dataclass(frozen=True)
class ForQueries:
    """Names of the arguments of a function whose scores are computed in blocks of queries or of examples.

    Attributes:
      queries: the name of the argument [..., n, d] whose tokens are split into blocks.
      keys: the name of the argument [..., m, d] whose tokens each query is compared with, or averages.
      heads: the letter of the axis of heads, or "".
    """

    queries: str
    keys: str
    heads: str = ""

    def scores(self, values, call):
        """Returns the number of scores of all examples.

        Args:
          values: every argument by name; arrays, or objects with a shape and a dtype.
          call: the resolved signature (:class:`attnpool_ref.contract.Call`).
        """
        heads = call.sizes[self.heads] if self.heads else 1
        return math.prod(call.batch) * values[self.queries].shape[-2] * heads * values[self.keys].shape[-2]


def size_of(*arrays_and_axes):
    """Returns the number of examples: the product of the batch axes to which those of the arrays broadcast.

    Args:
      *arrays_and_axes: each array, followed by the number of its last axes that are not batch axes.
    """
    pairs = zip(arrays_and_axes[::2], arrays_and_axes[1::2], strict=True)
    return math.prod(jnp.broadcast_shapes(*(array.shape[: array.ndim - own] for array, own in pairs)))


def over_examples(function, own, rows, axis):
    """Computes ``function(own)`` for ``rows`` examples along an axis at a time, then for the rest.

    The backward pass recomputes each full block, except its saveable arrays.

    Args:
      function: from a tree of arrays with some examples along the axis to another such tree.
      own: a tree of arrays of one length along the axis.
      rows: the number of examples of a block.
      axis: the axis, not negative.
    """
    count = jax.tree.leaves(own)[0].shape[axis]
    if rows >= count:
        return function(own)
    whole = count // rows * rows

    def split(array):
        array = lax.slice_in_dim(array, 0, whole, axis=axis)
        return jnp.moveaxis(jnp.reshape(array, (*array.shape[:axis], -1, rows, *array.shape[axis + 1 :])), axis, 0)

    def joined(blocks):
        array = jnp.moveaxis(blocks, 0, axis)
        return jnp.reshape(array, (*array.shape[:axis], whole, *array.shape[axis + 2 :]))

    results = jax.tree.map(joined, lax.map(remat(function), jax.tree.map(split, own)))
    if whole == count:
        return results
    rest = function(jax.tree.map(lambda array: lax.slice_in_dim(array, whole, None, axis=axis), own))
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis), results, rest)


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

    def by_blocks(at_once, *own):
        if count <= at_once:
            return jax.vmap(element, axis_size=count)(list(own))
        return lax.map(remat(element), list(own), batch_size=at_once if at_once > 1 else None)

    return platforms.in_blocks(by_blocks, count, cost, *own, apart=True)


# --------------------------------------------------------------------------------------------------------------
# The largest product of each token with those of the other sequence


def largest_of_both(x, y, x_mask, y_mask, precision):
    """Computes for each token its largest product with a real token of the other sequence; -inf where there is none.

    Products that differ only by rounding count as tied, and share the gradient evenly. If they exceed a block, they are
    computed twice, in blocks of either sequence's tokens.

    Args:
      x: [..., n, e] tokens, 0 at padding.
      y: [..., m, e] tokens, 0 at padding.
      x_mask: bool [..., n], or None.
      y_mask: bool [..., m], or None.
      precision: of the products.

    Returns:
      ([..., n], [..., m]), for the tokens of x and of y.
    """
    examples = math.prod(jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    if exceeds_a_block(x.shape[-2], examples * y.shape[-2]):
        sides = (x, y, y_mask), (y, x, x_mask)
        found = (
            over_queries(largest_with(other, mask, precision), (own,), keys=examples * other.shape[-2])
            for own, other, mask in sides
        )
        return tuple(own[..., 0] for own in found)
    scores = einsum("...nd,...md->...nm", x, y, precision)
    x_size, y_size = norm(x)[..., 0], norm(y)[..., 0]
    most = functools.partial(jnp.max, axis=-1, keepdims=True, initial=0)
    x_mask, y_mask = (None if m is None else jnp.expand_dims(m, axis) for m, axis in ((x_mask, -1), (y_mask, -2)))
    return (
        largest_product(scores, y_mask, x_size * most(y_size), x.shape[-1], -1),
        largest_product(scores, x_mask, y_size * most(x_size), x.shape[-1], -2),
    )


def largest_with(y, y_mask, precision, scale=None):
    """Returns a function from rows [..., n, d] to their largest products with real tokens of y [..., m, d]: [..., n, 1].

    Products that differ only by rounding share the gradient evenly; it needs padding of y to be 0. ``scale`` multiplies
    the rows; None is 1.
    """
    longest = jnp.max(norm(y), -2, initial=0)
    mask = None if y_mask is None else jnp.expand_dims(y_mask, -2)

    def largest(rows):
        scores = einsum("...nd,...md->...nm", rows if scale is None else scale * rows, y, wide_gradients(precision))
        size = norm(rows)[..., 0] if scale is None else jnp.abs(scale) * norm(rows)[..., 0]
        return largest_product(scores, mask, size * longest, rows.shape[-1])[..., None]

    return largest
