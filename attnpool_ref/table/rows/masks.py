"""Table rows of functions that make masks."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "masks",
    lengths_to_mask=dict(
        shapes="lengths:int[...] -> [..., max_length]",
        source="d2l",
        equation="mask_j = (j < length); with the padding on the left, (max_length - 1 - j < length)",
        options={"max_length": "size", "side": ("right", "left")},
    ),
    spans_to_mask=dict(
        shapes="spans:index[..., S, ends] span_mask?[..., S] -> [..., S, max_length]",
        source="gardner2018",
        equation="mask_sl = (a_s <= l <= b_s)",
        options={"max_length": "size"},
        sizes={"ends": 2},
    ),
    token_positions=dict(
        shapes="mask:bool[..., L] -> [..., L]",
        source="muennighoff2022",
        equation="p_l = the number of real tokens before l where l is real, else -1",
        ordered="always",
    ),
)
