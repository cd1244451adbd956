"""Buckets of tokens, by the sides of hyperplanes on which they lie."""

import numpy as np

from attnpool_ref.primitives.exchange import primitive

ONES = np.array([number.bit_count() for number in range(2**12)])
"""How many bits of a number of 12 bits are 1."""


@primitive
def bucket_numbers(bits):
    """Reads bits [..., b] as binary numbers, of which the first bit is the highest: [...]."""
    return bits @ (1 << np.arange(bits.shape[-1])[::-1])


@primitive
def sum_of_bucket(x, mask, inside, mean):
    """Sums the real tokens [..., L, d] inside of a bucket, bool [..., R, L], or takes their mean; 0 if there are none.

    Returns ([..., R, d], the number of real tokens in the bucket [..., R]).
    """
    real = mask[..., None, :] & inside
    count = np.sum(real, -1)
    total = np.sum(
        np.where(real[..., None], x[..., None, :, :] / (np.maximum(count, 1)[..., None, None] if mean else 1), 0), -2
    )
    return total, count  # a product with the tokens of other buckets would spread their NaN


@primitive
def nearest_token(buckets, mask, bucket):
    """Returns the index [..., R] of the first real token whose bucket [..., R, L] differs from ``bucket`` in fewest bits."""
    differing = np.where(mask[..., None, :], ONES[buckets ^ bucket], len(ONES))
    return np.argmin(differing, -1) if buckets.shape[-1] else np.zeros(buckets.shape[:-1], int)
