"""Operations of the Pallas kernels for TPUs on one block of tokens: products, sums under weights, padding as 0.

For products with bfloat16 tokens, float32 factors become two narrow rows
(:mod:`attnpool_flax.reductions.narrow_products`).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

LANES, SUBLANES = 128, 8
"""Width and height of a float32 register."""

ZERO = np.int32(0)
"""The index of a block: with ``jax_enable_x64`` a plain 0 is int64, which no kernel for a TPU takes."""


def rounded_up(size, unit):
    """Rounds a size up to a multiple of a unit."""
    return -(-size // unit) * unit


def zeroed(x, keep):
    """Returns the tokens [tokens, d], 0 where ``keep`` [1, tokens] is False."""
    real = keep.astype(jnp.float32)
    column = jnp.transpose(jnp.broadcast_to(real, (SUBLANES, x.shape[0])))[:, :1]
    return jnp.where(column != 0, x.astype(jnp.float32), 0).astype(x.dtype)


def block_products(factors, x, precision):
    """Computes products of float32 factors [rows, d] and tokens [tokens, d]: float32 [rows, tokens]."""
    return _contracted(factors, x, (1, 1), precision)


def block_sums(weights, x, precision):
    """Sums tokens [tokens, d] under float32 weights [rows, tokens]: float32 [rows, d]."""
    return _contracted(weights, x, (1, 0), precision)


def _contracted(factors, x, axes, precision):
    if x.dtype != jnp.bfloat16:
        return _dot(factors, x.astype(jnp.float32), axes, precision)
    high, low = _high_and_low(factors)
    both = _dot(jnp.concatenate([high, low], 0).astype(jnp.bfloat16), x, axes, None)
    return both[: len(factors)] + both[len(factors) :]


def outer_sums(weights, factors, dtype):
    """Computes sums of float32 factors [rows, d] under float32 weights [rows, tokens]: float32 [tokens, d].

    If ``dtype``, that of the tokens, is bfloat16, both are split into high and low rows, and three products are summed:
    that of the two low ones is below the rounding of the result.
    """
    if dtype != jnp.bfloat16:
        return _dot(weights, factors, (0, 0), lax.Precision.HIGHEST)
    (weights, few), (factors, rest) = _high_and_low(weights), _high_and_low(factors)
    left, right = jnp.concatenate([weights, few, weights], 0), jnp.concatenate([factors, factors, rest], 0)
    return _dot(left.astype(jnp.bfloat16), right.astype(jnp.bfloat16), (0, 0), None)


def _high_and_low(factors):
    """Returns (the factors rounded to bfloat16, the remainder), in float32."""
    high = factors.astype(jnp.bfloat16).astype(jnp.float32)
    return high, jnp.where(jnp.abs(high) < jnp.inf, factors - high, 0)  # inf - inf


def _dot(a: Any, b: Any, axes, precision):
    contracting = ((axes[0],), (axes[1],))
    return lax.dot_general(a, b, (contracting, ((), ())), precision, preferred_element_type=jnp.float32)
