"""Seventeen ordinary mistakes, each as an engineer would write it for NumPy or JAX, and in PyTorch; one has two functions.

Each function has the imperfections that come with its framework: fully masked rows that are NaN, sums in a narrow dtype,
products with the mask.
"""

import warnings
from unittest import mock

from attnpool_ref import conformance
from attnpool_ref.conformance.causes import diagnosis
from attnpool_ref.conformance.running import runner

PRODUCT = "multiplies padding by 0, but 0 times NaN is NaN: use where(mask, x, 0) before the product"
INVERTED = "equals the definition with `~mask`: its masks mean the opposite"
IGNORED = "ignores the mask"
NAN = "NaN for a fully masked row"
FILLED = "replaces padding by a finite number before the maximum or minimum"

ORDINARY = {
    "mean_over_the_padded_length": (
        "mean_pooling",
        "takes the mean over the padded length: divides by all tokens, not the real ones",
    ),
    "product_with_the_mask": ("mean_pooling", PRODUCT),
    "mask_inverted": ("mean_pooling", INVERTED),
    "mask_ignored": ("mean_pooling", IGNORED),
    "minus_infinity": ("attention_pooling", NAN),
    "attention_with_the_mask_inverted": ("dot_product_attention", INVERTED),
    "std_with_n_minus_1": ("std_pooling", "divides by N - 1: `ddof` is always 1"),
    "not_scaled": ("dot_product_attention", "no 1/sqrt(d)"),
    "first_at_0": ("first_pooling", IGNORED),
    "last_at_minus_1": ("last_pooling", IGNORED),
    "last_by_count": (
        "last_pooling",
        "takes the token at index (number of real tokens - 1): wrong unless all padding is on the right",
    ),
    "padded_scores_of_0": ("attention_pooling", "multiplies scores by the mask: padding gets the score 0"),
    "masked_after_the_softmax": (
        "attention_pooling",
        "applies the mask after the normalizer, without normalizing again",
    ),
    "minus_1e9": (
        "attention_pooling",
        (
            "averages the padding of a fully masked row, as a finite number in place of -inf does",
            "a finite number in place of -inf for padding",  # which scores below it also show
        ),
    ),
    "maximum_filled_with_0": ("max_pooling", FILLED),
    "maximum_filled_with_minus_1e9": ("max_pooling", FILLED),
    "moments": ("std_pooling", "subtracts the squared mean from the mean of squares, which cancels far from 0"),
    "packed_count": ("segment_mean_pooling", "counts the masked tokens: divides by all tokens, not the real ones"),
}
"""For each function its variant, and the words of its cause, or of causes of which one is named."""

BESIDE = {
    PRODUCT,
    diagnosis.IN_MAXIMUM,
    NAN,
    "NaN at length 0",
    "the result is float32: convert it to the dtype of `x`",  # of bfloat16 and float16
    "only as accurate as the input's dtype: accumulate scores and sums in float32 or wider",
}
"""Causes that are true of some of these functions as well."""

BATCHED = ("first_at_0", "last_at_minus_1", "last_by_count")
"""Functions that index [B, L, d]."""

SAME_EVIDENCE = {"laws": False, "long": False}
"""Checks that add nothing to what causes are found by, and are left out for time."""


def assert_named(name, function, arrays, scopes):
    """Asserts that the right cause of a function is named in each scope of ``judge``, and no wrong one."""
    row, right = ORDINARY[name]
    for scope in scopes:
        assert_causes(function, row, right, {"arrays": arrays, "batched": name in BATCHED} | scope)


def assert_causes(function, row, right, options):
    """Asserts that the cause ``right``, or one of several, is named by ``judge`` with ``options``, and no wrong one."""
    right = {right} if isinstance(right, str) else set(right)
    with mock.patch.object(runner, "shrink", lambda case, fails: case), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an ordinary function divides by 0
        (report,) = conformance.judge(function, only=(row,), **options).rows
    assert report.status == "fail"
    assert right & set(report.causes)
    assert set(report.causes) <= BESIDE | right, "a wrong cause"
