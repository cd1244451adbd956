"""Table rows of functions that make masks."""

from attnpool_ref.table.row import Variant

ROWS = (
    Variant(
        "lengths_to_mask",
        family="masks",
        shapes="lengths:int[...] -> [..., max_length]",
        source="d2l",
        equation="mask_j = (j < length); with the padding on the left, (max_length - 1 - j < length)",
        options={"max_length": "size", "side": ("right", "left")},
    ),
    Variant(
        "spans_to_mask",
        family="masks",
        shapes="spans:index[..., S, ends] span_mask?[..., S] -> [..., S, max_length]",
        source="gardner2018",
        equation="mask_sl = (a_s <= l <= b_s)",
        options={"max_length": "size"},
        sizes={"ends": 2},
    ),
    Variant(
        "token_positions",
        family="masks",
        shapes="mask:bool[..., L] -> [..., L]",
        source="muennighoff2022",
        equation="p_l = the number of real tokens before l where l is real, else -1",
        ordered="always",
    ),
)
