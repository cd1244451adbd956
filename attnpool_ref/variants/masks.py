"""The table's rows: masks."""

from attnpool_ref.variants.row import Variant

ROWS = (
    Variant(
        "lengths_to_mask",
        family="masks",
        shapes="lengths:int[...] -> [..., max_length]",
        source="d2l",
        equation="mask_j = (j < length); with the padding on the left, (max_length - 1 - j < length)",
        options={"max_length": "size", "side": ("right", "left")},
    ),
)
