"""Mistakes about encodings by buckets (MUVERA): the order of buckets, padding in them, and how empty ones are filled."""

import numpy as np

from attnpool_ref.conformance.causes.mistake import BOTH, mistake
from attnpool_ref.primitives import bucket_numbers, nearest_token, sum_of_bucket
from attnpool_ref.primitives.buckets import ONES

COUNTS_PADDING = "padding is in bucket 0, because its bits are 0: it counts in the mean; assign real tokens only"
GRAY = "orders the buckets by the Gray code: attnpool's bucket is the binary number of the bits"


def _of_document(row):
    """Returns whether the first of the nearest tokens fills an empty bucket, so that the order of the tokens matters."""
    return row.ordered == "always"


@mistake(COUNTS_PADDING, sum_of_bucket, raw=BOTH)
def with_padding(a, x, mask, inside, mean):
    """All tokens are taken as real."""
    return a.right(x, np.ones_like(mask), inside, mean)


@mistake(
    lambda row: (
        "sums the tokens of a bucket, as a query's encoding does: a document's averages them"
        if _of_document(row)
        else "averages the tokens of a bucket, as a document's encoding does: a query's sums them"
    ),
    sum_of_bucket,
)
def as_of_the_other_side(a, x, mask, inside, mean):
    """The encodings of queries and documents are exchanged."""
    return a.right(x, mask, inside, not mean)


@mistake("leaves the empty buckets of a document at 0", sum_of_bucket, when=_of_document)
def never_filled(a, x, mask, inside, mean):
    """Each bucket is taken to have a token."""
    block, count = a.right(x, mask, inside, mean)
    return block, np.maximum(count, 1)


@mistake("fills empty buckets with padding, too: only real tokens may fill them", nearest_token, raw=BOTH)
def nearest_padding(a, buckets, mask, bucket):
    """The nearest token may be padding."""
    return a.right(buckets, np.ones_like(mask), bucket)


@mistake(
    "fills an empty bucket with the first token of the first of the nearest full buckets, not with the first of their tokens",
    nearest_token,
)
def first_of_the_nearest_bucket(a, buckets, mask, bucket):
    """Among equally near tokens that of the bucket with the least number is taken."""
    order = ONES[buckets ^ bucket] * len(ONES) + buckets
    return np.argmin(np.where(mask[..., None, :], order, order.max(initial=0) + 1), -1)


@mistake("fills an empty bucket with the last of the nearest tokens, not with the first", nearest_token)
def last_of_the_nearest(a, buckets, mask, bucket):
    """Ties go to the last token."""
    differing = np.where(mask[..., None, :], ONES[buckets ^ bucket], len(ONES))
    return buckets.shape[-1] - 1 - np.argmin(differing[..., ::-1], -1)


@mistake("compares the numbers of buckets, not their bits, to fill an empty bucket", nearest_token)
def nearest_number(a, buckets, mask, bucket):
    """The distance is that of the numbers."""
    return np.argmin(np.where(mask[..., None, :], abs(buckets - bucket), len(ONES)), -1)


@mistake(GRAY, bucket_numbers)
def decoded_gray(a, bits):
    """The bits are read as a Gray code: each is added to those before."""
    return a.right(np.cumsum(bits, -1) % 2 == 1)


@mistake(GRAY, bucket_numbers)
def gray(a, bits):
    """The number is encoded by the Gray code."""
    number = a.right(bits)
    return number ^ (number >> 1)


@mistake("the first plane is the lowest bit of the bucket, not the highest", bucket_numbers)
def lowest_first(a, bits):
    """The bits are read from the other end."""
    return a.right(bits[..., ::-1])


@mistake("a token on the negative side of a plane has the bit 1: the sides are exchanged", bucket_numbers)
def other_side(a, bits):
    """The bits are inverted."""
    return a.right(~bits)
