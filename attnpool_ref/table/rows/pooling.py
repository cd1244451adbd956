"""Table rows of pooling of one sequence."""

from attnpool_ref.table.row import ABSOLUTE, LAYOUTS, NORMALIZERS, TOKENS, of_family

ROWS = of_family(
    "pooling",
    mean_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="reimers2019",
        equation="o = (1/N) sum over real l of x_l, N the number of real tokens",
        layouts=LAYOUTS,
        averaged="",
    ),
    max_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="reimers2019",
        equation="o_c = max over real l of x_lc",
        layouts=LAYOUTS,
        facts={"copies", "ties"},
        averaged="",
    ),
    first_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="reimers2019",
        equation="o = x_l, l the first real position",
        layouts=LAYOUTS,
        ordered="always",
        averaged="",
    ),
    last_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="reimers2019",
        equation="o = x_l, l the last real position",
        layouts=LAYOUTS,
        ordered="always",
        averaged="",
    ),
    weighted_pooling=dict(
        shapes="x[..., L, d] weights?[..., L]|[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="muennighoff2022",
        equation="o = sum over real l of w_l x_l / sum over real l of w_l",
        layouts=LAYOUTS,
        module="WeightedPool",
        averaged="",
    ),
    mean_max_pooling=dict(
        shapes=f"{TOKENS} -> [..., 2d]",
        source="howard2018",
        equation="o = [mean over real l of x_l; max over real l of x_l]",
        layouts=LAYOUTS,
        facts={"copies", "ties"},
        averaged="",
    ),
    attention_pooling=dict(
        shapes=f"{TOKENS} query?[..., q] query_kernel?[d, c] "
        "key_kernel?[d, c] query_norm_scale?[q] query_norm_bias?[q] epsilon[] scale?[] "
        "bias?~[..., L] sink?~[...] dropout_multiplier?~[..., L] -> [..., d]",
        weights="[..., L]",
        source="vaswani2017",
        equation="o = sum_l w_l x_l, w = normalizer(scale (x_l W_k) . (q W_q) + bias_l), scale = 1/sqrt(c); "
        "with normalize_query LN(q) for q",
        layouts=LAYOUTS,
        rules=(
            "q=d if query_kernel",
            "q=c unless query_kernel",
            "q=d unless query",
            "c=d unless key_kernel",
            "query_norm_scale needs normalize_query",
            "query_norm_bias needs normalize_query",
            "sink needs normalizer=softmax",
            "scale at 0",
        ),
        options={"normalize_query": "flag", "normalizer": NORMALIZERS},
        absolute=ABSOLUTE,
        module="AttentionPool",
    ),
    multi_head_attention_pooling=dict(
        shapes=f"{TOKENS} query[..., n, q]|[n, H, c] query_kernel?[q, H, c] "
        "key_kernel[d, H, c] value_kernel[d, H, c'] out_kernel?[H, c', o] query_bias?[H, c] key_bias?[H, c] "
        "value_bias?[H, c'] out_bias?[o] scale?[] bias?~[..., H, n, L] sink?~[H] "
        "dropout_multiplier?~[..., H, n, L] -> [..., n, o]",
        weights="[..., H, n, L]",
        source="vaswani2017",
        equation="o = multi-head attention of n learned queries over x; o = Hc' without out_kernel: "
        "the outputs of the heads concatenated",
        rules=(
            "query[n, H, c] unless query_kernel",
            "query_bias needs query_kernel",
            "out_bias needs out_kernel",
            "sink needs normalizer=softmax",
            "scale at 0",
        ),
        options={"normalizer": NORMALIZERS},
        absolute=ABSOLUTE,
        layouts=LAYOUTS,
        module="MultiHeadAttentionPool",
    ),
)
