"""Table rows of packed functions. Those of one sequence are derived from the rows of the dense functions."""

import re

from attnpool_ref.table.row import Variant
from attnpool_ref.table.rows import additive, means, pairs, pooling, readouts, statistics

_SORTS = "it compares the scores of a segment with one another, so sums over the segment are not enough"
_NOT_ALONE = tuple(("normalizer", name, _SORTS) for name in ("sparsemax", "entmax15", "hardmax", "a function"))

OPTIONS = {"num_segments": "size", "indices_are_sorted": "flag"}
"""Options of every packed row."""


def packed(row):
    """Returns the row of ``segment_…``, derived from that of the dense function.

    Tokens [..., L, d] become [N, d], and other arrays [..., q] become [q] or [num_segments, q], of which those that
    broadcast are only the latter. ``lengths`` are left
    out, and of the normalizers only softmax and sigmoid remain, which sums over segments can compute.
    """
    arguments, _, result = row.shapes.partition(" -> ")
    arguments = re.sub(r" lengths\?:lengths\[\.\.\.\]", "", arguments)
    arguments = re.sub(r"~?\[\.\.\.[^\]]*\]", _packed_argument, arguments)
    return Variant(
        f"segment_{row.name}",
        family="segments",
        shapes=f"{arguments.replace('] ', '] segment_ids:segments[N] ', 1)} -> {result.replace('...', 'num_segments')}",
        source=row.source,
        equation=f"o_s = {row.name} of the tokens of segment s",
        weights=re.sub(r"\[\.\.\.[^\]]*\]", _packed_argument, row.weights),
        rules=row.rules,
        options=OPTIONS | row.options | ({"normalizer": ("softmax", "sigmoid")} if "normalizer" in row.options else {}),
        refused=_NOT_ALONE if "normalizer" in row.options else (),
        ordered=row.ordered,
        absolute=row.absolute,
        norms=row.norms,
        unit=row.unit,
        facts=row.facts,
        sharpened=row.sharpened,
        averaged=row.averaged,
    )


def _packed_argument(match):
    """Converts one shape: [..., L, d] to [N, d], and [..., q] of each example to [q] or [num_segments, q]."""
    _, *own = match[0].strip("~[]").split(", ")
    axes = ", ".join("N" if axis == "L" else axis for axis in own)
    if match[0][0] == "~":
        return f"~[{axes}]" if "L" in own else f"~[{', '.join(['num_segments', *own])}]"
    return f"[{axes}]" if "L" in own else f"[{axes}]|[num_segments, {axes}]"


_CROSS = Variant(
    "segment_cross_attention_pooling",
    family="segments",
    shapes="x[N, d] x_segment_ids:segments[N] y[M, e] y_segment_ids:segments[M] x_mask?[N] y_mask?[M] "
    "x_kernel?[d, c] y_kernel?[e, c] scale[] x_dropout_multiplier?~[N] y_dropout_multiplier?~[M] "
    "-> ([num_segments, d], [num_segments, e])",
    weights="([N], [M])",
    source="notebook000",
    equation="(o_x, o_y)_s = cross_attention_pooling of the tokens of segment s",
    rules=("c=d unless x_kernel", "c=e unless y_kernel", "scale at 0"),
    options=OPTIONS | {"reduction": ("sum", "mean")},
    refused=(
        ("reduction", "max", "the largest score needs every pair of tokens, so a sum over each sequence is not enough"),
    ),
)

_DENSE = (*pooling.ROWS, *means.ROWS, *statistics.ROWS, *additive.ROWS, *readouts.ROWS, *pairs.ROWS)
"""Dense rows of one sequence."""

ROWS = (*(packed(row) for row in _DENSE if "segments" in row.layouts and "y" not in row.arguments), _CROSS)
