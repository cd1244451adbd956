"""Table rows of functions that return the state of one chunk; those of statistics are in ``statistics.py``.

An equation says what a state of ``attnpool_flax`` holds; a state of ``attnpool_ref`` holds its chunks.
"""

from attnpool_ref.table.row import ACTIVATIONS, Variant
from attnpool_ref.table.rows import means
from attnpool_ref.table.rows.readouts import LATENT

_ATTENTION = "sum = sum over real l of exp(s_l - top) x_l, total = sum over real l of exp(s_l - top), top = max s"


def _chunked(row, equation):
    """Returns the row of ``…_state`` with the arguments and options of a dense row."""
    return Variant(
        f"{row.name.removesuffix('_pooling')}_state",
        family="streaming",
        shapes=row.shapes,
        source=row.source,
        equation=equation,
        rules=row.rules,
        options=row.options,
        state=row.name,
        unit=row.unit,
    )


_EXPONENTIALS = (
    "top = max scale x_l, sum over real l of exp(scale x_l - top) and of (exp(scale x_l - top) - 1) / (2 N |scale|), N"
)
_OF_MEANS = {
    "sum_pooling": "sum over real l of x_l",
    "min_pooling": "min over real l of x_lc, whether any l is real, and how many tokens reach the min",
    "noisy_or_pooling": "1 - product over real l of (1 - x_lc)",
    "power_mean_pooling": f"{_EXPONENTIALS}, of ln max(x_l, epsilon) under the scale p",
    "logsumexp_pooling": _EXPONENTIALS,
    "softmax_pooling": "top = max scale x_l, T = sum over real l of exp(scale x_l - top), "
    "sum over real l of exp(scale x_l - top) x_l / T",
}

ROWS = (
    Variant(
        "mean_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="(1/N) sum over real l of x_l, and N, the number of real tokens",
        state="mean_pooling",
    ),
    Variant(
        "max_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="max over real l of x_lc, whether any l is real, and how many tokens reach the max",
        state="max_pooling",
    ),
    Variant(
        "first_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] start:position[] -> [..., d]",
        source="reimers2019",
        equation="start + l and x_l, l the first real position",
        state="first_pooling",
        ordered="always",
    ),
    Variant(
        "last_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] start:position[] -> [..., d]",
        source="reimers2019",
        equation="start + l and x_l, l the last real position",
        state="last_pooling",
        ordered="always",
    ),
    Variant(
        "weighted_state",
        family="streaming",
        shapes="x[..., L, d] weights?[..., L]|[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="muennighoff2022",
        equation="sum over real l of w_l x_l, and sum over real l of w_l",
        state="weighted_pooling",
    ),
    Variant(
        "mean_max_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., 2d]",
        source="howard2018",
        equation="the states of mean_pooling and of max_pooling together",
        state="mean_max_pooling",
    ),
    Variant(
        "attention_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] query[..., q] query_kernel?[d, c] key_kernel?[d, c] "
        "query_norm_scale?[q] query_norm_bias?[q] epsilon[] scale?[] bias?~[..., L] -> [..., d]",
        source="vaswani2017",
        equation=f"{_ATTENTION}, s = scale (x W_k) . (q W_q) + bias; with normalize_query LN(q) for q",
        rules=(
            "q=d if query_kernel",
            "q=c unless query_kernel",
            "c=d unless key_kernel",
            "query_norm_scale needs normalize_query",
            "query_norm_bias needs normalize_query",
        ),
        options={"normalize_query": "flag"},
        refused=(("query", None, "the mean of all tokens is not known before the last chunk"),),
        state="attention_pooling",
    ),
    Variant(
        "multi_head_attention_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] query[..., n, q]|[n, H, c] query_kernel?[q, H, c] "
        "key_kernel[d, H, c] query_bias?[H, c] key_bias?[H, c] scale?[] bias?~[..., H, n, L] -> [..., n, H, d]",
        source="vaswani2017",
        equation=f"{_ATTENTION}, for each head h and query i: s = scale (q_i W_q^h + b_q^h) . (x W_k^h) + bias",
        rules=("query[n, H, c] unless query_kernel", "query_bias needs query_kernel"),
        state="multi_head_attention_pooling",
    ),
    Variant(
        "additive_attention_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] kernel[d, h] out_kernel[h, n?] bias?[h] "
        "gate_kernel?[d, h] gate_bias?[h] out_bias?[n?] value?[..., L, v] -> [..., n?, v]",
        source="ilse2018",
        equation=f"{_ATTENTION.replace('x_l', 'v_l')}, for each hop: s = (act(x W + b) * sigmoid(x U + g)) . k + c",
        rules=("v=d unless value", "gate_bias needs gate_kernel"),
        options={"activation": ACTIVATIONS},
        state="additive_attention_pooling",
    ),
    Variant(
        "latent_attention_state",
        family="streaming",
        equation="the mean of h_l + MLP(LN(h_l)) over real l, and their number; h_l as in latent_attention_pooling",
        state="latent_attention_pooling",
        **LATENT,
    ),
    Variant(
        "vlad_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] assign_kernel[d, K+G] centers[K, d] assign_bias?[K+G] "
        "-> [..., K, d]",
        source="arandjelovic2016",
        equation="sum = sum over real l of exp(log a_lj - top_j) (x_l - c_j), top_j = max log a_lj",
        options={"normalize": "flag"},
        state="vlad_pooling",
    ),
    Variant(
        "gated_sum_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] gate_kernel[d, o] value_kernel[d, o] gate_bias?[o] "
        "value_bias?[o] -> [..., o]",
        source="li2016",
        equation="sum over real l of sigmoid(x_l W_g + b_g) * tanh(x_l W_v + b_v)",
        state="gated_sum_pooling",
    ),
    *(_chunked(row, _OF_MEANS[row.name]) for row in means.ROWS if "states" in row.layouts),
)
