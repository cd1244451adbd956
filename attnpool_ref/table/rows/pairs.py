"""Table rows of pooling of two sequences."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "pairs",
    cross_attention_pooling=dict(
        shapes="x[..., L, d] y[..., T, e] x_mask?[..., L] x_lengths?:lengths[...] y_mask?[..., T] "
        "y_lengths?:lengths[...] x_kernel?[d, c] y_kernel?[e, c] scale?[] x_dropout_multiplier?~[..., L] "
        "y_dropout_multiplier?~[..., T] -> ([..., d], [..., e])",
        weights="([..., L], [..., T])",
        source="notebook000",
        equation="o_x = sum_l w_l x_l, w = softmax_l(reduce_t scale (x_l W_x) . (y_t W_y)); o_y with x and y exchanged",
        rules=("c=d unless x_kernel", "c=e unless y_kernel", "scale at 0"),
        options={"reduction": ("sum", "mean", "max")},
        module="CrossAttentionPool",
        layouts=("segments", "mesh"),
        facts={"ties"},
    ),
    cross_attention_pooling_all_pairs=dict(
        shapes="x[B, L, d] y[C, T, e] x_mask?[B, L] x_lengths?:lengths[B] y_mask?[C, T] y_lengths?:lengths[C] "
        "x_kernel?[d, c] y_kernel?[e, c] scale?[] -> ([B, C, d], [B, C, e])",
        weights="([B, C, L], [B, C, T])",
        source="notebook000",
        equation="(o_x, o_y)_bc = cross_attention_pooling(x_b, y_c)",
        rules=("c=d unless x_kernel", "c=e unless y_kernel", "scale at 0"),
        options={"reduction": ("sum", "mean", "max")},
        facts={"ties"},
    ),
    code_wise_attention=dict(
        shapes="query[..., k, d] context[..., n, d] query_mask?[..., k] query_lengths?:lengths[...] "
        "context_mask?[..., n] context_lengths?:lengths[...] scale?[] -> [..., d]",
        weights="[..., n]",
        source="yue2021",
        equation="o = sum_i w_i d_i, w = softmax_i(max_j scale d_i . g_j), d the context, g the query",
        rules=("scale at 0",),
        module="CodeWiseAttention",
        facts={"ties"},
    ),
    mask_attention=dict(
        shapes="query[..., k, d] context[..., n, d] query_mask?[..., k] query_lengths?:lengths[...] "
        "context_mask?[..., n] context_lengths?:lengths[...] scale?[] -> [..., n, d]",
        weights="[..., n, k]",
        source="yue2021",
        equation="o_i = sum_j w_ij c_j, w_i = softmax_j(scale d_i . c_j), d the context, c the query",
        rules=("scale at 0",),
        module="MaskAttention",
    ),
    bidaf_attention=dict(
        shapes="context[..., T, d] query[..., J, d] kernel[3d] context_mask?[..., T] context_lengths?:lengths[...] "
        "query_mask?[..., J] query_lengths?:lengths[...] -> [..., T, 4d]",
        weights="([..., T, J], [..., T])",
        source="seo2017",
        equation="G_t = [h_t; u~_t; h_t * u~_t; h_t * h~], u~_t = sum_j softmax_j(S_tj) u_j, "
        "h~ = sum_t softmax_t(max_j S_tj) h_t, S_tj = w . [h_t; u_j; h_t * u_j]",
        module="BiDAFAttention",
        facts={"ties"},
    ),
    maxsim_score=dict(
        shapes="x[..., L, d] y[..., T, d] x_mask?[..., L] x_lengths?:lengths[...] y_mask?[..., T] "
        "y_lengths?:lengths[...] -> [...]",
        source="khattab2020",
        equation="s = sum over real l of max over real t of x_l . y_t",
        options={"mean": "flag", "result_dtype": "dtype"},
        facts={"ties"},
    ),
    muvera_query_encoding=dict(
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] planes:constant[R, b, d] projection?[R, d, p] "
        "-> [..., R*2^b*p]",
        source="muvera2024",
        equation="block (r, c) = (sum of the real x_l in bucket c) P_r; bit j of the bucket of x_l is [planes_rj . x_l > 0]",
        rules=("p=d unless projection", "b at most 12"),
        layouts=("segments",),
    ),
    muvera_document_encoding=dict(
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] planes:constant[R, b, d] projection?[R, d, p] "
        "-> [..., R*2^b*p]",
        source="muvera2024",
        equation="block (r, c) = (mean of the real x_l in bucket c, or of none the x_l with the most bits of c) P_r; "
        "buckets as in muvera_query_encoding",
        rules=("p=d unless projection", "b at most 12"),
        layouts=("segments",),
        ordered="always",
        averaged=None,
    ),
    maxsim_score_all_pairs=dict(
        shapes="x[B, L, d] y[C, T, d] x_mask?[B, L] x_lengths?:lengths[B] y_mask?[C, T] y_lengths?:lengths[C] -> [B, C]",
        source="khattab2020",
        equation="s_bc = maxsim_score(x_b, y_c)",
        options={"mean": "flag", "result_dtype": "dtype"},
        facts={"ties"},
    ),
)
