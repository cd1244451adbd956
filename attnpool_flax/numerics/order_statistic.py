"""k-th smallest numbers without sorting. XLA's sort takes as long as hundreds of passes over the array on a CPU."""

import jax.numpy as jnp
from jax import lax


def order_statistics(x, real, rank, following):
    """Finds the numbers of two ranks among the real tokens, along axis -2: a pair of [..., d]; if none is real, 0.

    Floating-point numbers map to integers in the same order. The integer of the first rank is found by bisection, from
    the smallest to the largest integer. The integer of the next rank is the same or the smallest one above.

    Args:
      x: [..., L, d], any floating dtype, arbitrary at padding. The gradient goes to the selected number; if several are
        equal, to the first.
      real: bool [..., L, 1], or None if all tokens are real.
      rank: k - 1 for the k-th smallest number, integers [..., 1, 1] from 0, and less than the number of real tokens.
      following: ``rank`` or one more, integers [..., 1, 1], less than the number of real tokens.
    """
    x = jnp.broadcast_to(x, jnp.broadcast_shapes(x.shape, rank.shape))
    padding, keys = jnp.iinfo(f"int{8 * x.dtype.itemsize}").max, _keys(lax.stop_gradient(x))
    keys = keys if real is None else jnp.where(real, keys, padding)
    found = _by_bisection(keys, rank)
    above = jnp.min(jnp.where(keys > found, keys, padding), -2, keepdims=True)
    both = found, jnp.where(_count(keys <= found, rank) > following, found, above)
    places = (jnp.argmax(keys == key, -2, keepdims=True) for key in both)
    numbers = (jnp.squeeze(jnp.take_along_axis(x, place, -2, mode="clip"), -2) for place in places)
    some = True if real is None else jnp.any(real, -2)
    return tuple(jnp.where(some, number, 0) for number in numbers)


def _count(selected, like):
    return jnp.sum(selected, -2, keepdims=True, dtype=like.dtype)


def _by_bisection(keys, rank):
    """Returns the integers of a rank, [..., 1, d]: each step halves the distance between its bounds."""

    def is_open(bounds):
        low, high = bounds
        return jnp.any(low < high)

    def bisect(bounds):
        low, high = bounds
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, which does not overflow
        enough = _count(keys <= middle, rank) > rank
        return jnp.where(enough, low, middle + 1), jnp.where(enough, middle, high)

    return lax.while_loop(is_open, bisect, (jnp.min(keys, -2, keepdims=True), jnp.max(keys, -2, keepdims=True)))[0]


def _keys(x):
    """Maps floating-point numbers to integers of as many bits in the same order; -0 comes before 0."""
    bits = lax.bitcast_convert_type(x, jnp.dtype(f"int{8 * x.dtype.itemsize}"))
    return bits ^ ((bits >> (8 * x.dtype.itemsize - 1)) & jnp.iinfo(bits.dtype).max)
