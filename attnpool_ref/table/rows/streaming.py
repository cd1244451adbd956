"""Table rows of functions that return the state of one chunk, derived from those of the dense functions.

An equation says what a state of ``attnpool_flax`` holds; a state of ``attnpool_ref`` holds its chunks.
"""

import re

from attnpool_ref.table.row import TOKENS, Variant
from attnpool_ref.table.rows import additive, means, pooling, readouts, statistics

_ATTENTION = "sum = sum over real l of exp(s_l - top) x_l, total = sum over real l of exp(s_l - top), top = max s"
_EXPONENTIALS = (
    "top = max scale x_l, sum over real l of exp(scale x_l - top) and of (exp(scale x_l - top) - 1) / (2 N |scale|), N"
)
_MOMENTS = "W = sum w, sum w^2, mu = sum_l w_l x_l / W, and sum_l w_l (x_l - mu)^2"

EQUATIONS = {
    "mean_pooling": "(1/N) sum over real l of x_l, and N, the number of real tokens",
    "max_pooling": "max over real l of x_lc, whether any l is real, and how many tokens reach the max",
    "first_pooling": "start + l and x_l, l the first real position",
    "last_pooling": "start + l and x_l, l the last real position",
    "weighted_pooling": "sum over real l of w_l x_l, and sum over real l of w_l",
    "mean_max_pooling": "the states of mean_pooling and of max_pooling together",
    "attention_pooling": f"{_ATTENTION}, s = scale (x W_k) . (q W_q) + bias; with normalize_query LN(q) for q",
    "multi_head_attention_pooling": f"{_ATTENTION}, for each head h and query i: "
    "s = scale (q_i W_q^h + b_q^h) . (x W_k^h) + bias",
    "additive_attention_pooling": f"{_ATTENTION.replace('x_l', 'v_l')}, for each hop: "
    "s = (act(x W + b) * sigmoid(x U + g)) . k + c",
    "latent_attention_pooling": "the mean of h_l + MLP(LN(h_l)) over real l, and their number; "
    "h_l as in latent_attention_pooling",
    "vlad_pooling": "sum = sum over real l of exp(log a_lj - top_j) (x_l - c_j), top_j = max log a_lj",
    "gated_sum_pooling": "sum over real l of sigmoid(x_l W_g + b_g) * tanh(x_l W_v + b_v)",
    "sum_pooling": "sum over real l of x_l",
    "min_pooling": "min over real l of x_lc, whether any l is real, and how many tokens reach the min",
    "noisy_or_pooling": "1 - product over real l of (1 - x_lc)",
    "power_mean_pooling": f"{_EXPONENTIALS}, of ln max(x_l, epsilon) under the scale p",
    "logsumexp_pooling": _EXPONENTIALS,
    "softmax_pooling": "top = max scale x_l, T = sum over real l of exp(scale x_l - top), "
    "sum over real l of exp(scale x_l - top) x_l / T",
    "std_pooling": _MOMENTS,
    "statistics_pooling": _MOMENTS,
    "attentive_statistics_pooling": f"top = max s, {_MOMENTS.replace('W', 'T')}, w = exp(s - top), s = act(x W + b) V",
}
"""What a state holds, by the dense function to whose result it finalizes."""

_STARTS = {"shapes": f"{TOKENS} start:position[] -> [..., d]"}
CHANGED = {
    "first_pooling": _STARTS,
    "last_pooling": _STARTS,
    "attention_pooling": {
        "shapes": f"{TOKENS} query[..., q] query_kernel?[d, c] key_kernel?[d, c] query_norm_scale?[q] "
        "query_norm_bias?[q] epsilon[] scale?[] bias?~[..., L] -> [..., d]",
        "rules": (
            "q=d if query_kernel",
            "q=c unless query_kernel",
            "c=d unless key_kernel",
            "query_norm_scale needs normalize_query",
            "query_norm_bias needs normalize_query",
            "scale at 0",
        ),
        "refused": (("query", None, "the mean of all tokens is not known before the last chunk"),),
    },
    "multi_head_attention_pooling": {
        "shapes": f"{TOKENS} query[..., n, q]|[n, H, c] query_kernel?[q, H, c] key_kernel[d, H, c] query_bias?[H, c] "
        "key_bias?[H, c] scale?[] bias?~[..., H, n, L] -> [..., n, H, d]",
        "rules": ("query[n, H, c] unless query_kernel", "query_bias needs query_kernel", "scale at 0"),
    },
    "vlad_pooling": {"rules": ()},
    "attentive_statistics_pooling": {
        "shapes": f"{TOKENS} kernel[d, h] out_kernel[h]|[h, d] bias?[h] out_bias?[]|[d] norm_scale?[h] norm_bias?[h] "
        "epsilon[] -> [..., 2d]",
        "rules": ("norm_scale needs activation=tanh", "norm_bias needs norm_scale"),
        "refused": (
            ("global_context", True, "the statistics of the whole sequence are known only after its last chunk"),
        ),
    },
}
"""What differs from the row of the dense function, besides dropout, normalizers and sinks, which no state has."""


def chunked(row):
    """Returns the row of ``…_state``, derived from that of the dense function."""
    if row.name not in EQUATIONS:
        raise ValueError(
            f'{row.name}: its layouts have "states", but EQUATIONS in attnpool_ref/table/rows/streaming.py does not '
            "say what its state holds; add a line"
        )
    derived = {
        "shapes": re.sub(r" (sink|dropout_multiplier)\?~\[[^\]]*\]", "", row.shapes),
        "source": row.source,
        "equation": EQUATIONS[row.name],
        "rules": tuple(rule for rule in row.rules if not rule.startswith("sink ")),
        "options": {key: values for key, values in row.options.items() if key != "normalizer"},
        "state": row.name,
        "ordered": row.ordered,
        "unit": row.unit,
        "facts": row.facts,
        "sharpened": row.sharpened,
        "averaged": row.averaged,
    }
    name = f"{row.name.removesuffix('_pooling')}_state"
    return Variant(name, family="streaming", **(derived | CHANGED.get(row.name, {})))


ROWS = tuple(
    chunked(row)
    for family in (pooling, additive, readouts, means, statistics)
    for row in family.ROWS
    if "states" in row.layouts
)
