"""Checked sizes: integers of at least 1 (some of at least 0) that fit an axis, and the width of a head."""

import operator
from typing import Any

from attnpool_ref import contract


def checked_size(module: str, argument: str, value: Any, least: int = 1) -> int:
    """Returns ``value`` as an int; raises a ValueError if it is not an integer, too small, or larger than any axis."""
    try:
        size = operator.index(value)
    except TypeError:
        size = least - 1
    if isinstance(value, bool) or size < least:
        none = "; None makes one query, without an axis for it" if argument == "num_queries" else ""
        raise ValueError(f"{module}: `{argument}` is {value!r}, needs an integer of at least {least}{none}")
    if size > contract.LARGEST_SIZE:
        raise ValueError(f"{module}: `{argument}` is {value!r}, needs an integer of at most {contract.LARGEST_SIZE}")
    return size


def head_features(module: str, num_heads: int, qkv_features: int) -> int:
    """Returns the width of one head; raises a ValueError unless ``num_heads`` divides ``qkv_features``."""
    heads = checked_size(module, "num_heads", num_heads)
    width = checked_size(module, "qkv_features", qkv_features)
    if width % heads:
        raise ValueError(f"{module}: `qkv_features` is {width}, needs a multiple of `num_heads`, {heads}")
    return width // heads
