"""Table rows of attention functions."""

from attnpool_ref.table.row import ABSOLUTE, NORMALIZERS, of_family

ROWS = of_family(
    "attention",
    attend=dict(
        shapes="scores[..., n, m] value[..., m, v] mask?[..., n, m] lengths?:lengths[..., n] "
        "sink?~[..., n] dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="vaswani2017",
        equation="o_i = sum_j w_ij v_j, w_i = normalizer(s_i)",
        rules=("sink needs normalizer=softmax",),
        options={"normalizer": NORMALIZERS},
        absolute=ABSOLUTE,
        averaged="scores",
    ),
    dot_product_attention=dict(
        shapes="query[..., n, d] key[..., m, d] value[..., m, v] mask?[..., n, m] lengths?:lengths[..., n] "
        "bias?~[..., n, m] scale?[] sink?~[..., n] dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="vaswani2017",
        equation="o = softmax(scale q k^T + bias) v, scale = 1/sqrt(d)",
        rules=("scale at 0",),
        absolute=("sink",),
        averaged="query",
    ),
    additive_attention=dict(
        shapes="query[..., n, d] key[..., m, e] value[..., m, v] query_kernel[d, h] key_kernel[e, h] out_kernel[h] "
        "mask?[..., n, m] lengths?:lengths[..., n] bias?[h] sink?~[..., n] dropout_multiplier?~[..., n, m] "
        "-> [..., n, v]",
        weights="[..., n, m]",
        source="bahdanau2015",
        equation="o_i = sum_j w_ij v_j, w_i = softmax_j(w . tanh(q_i W_q + k_j W_k + b))",
        absolute=("sink",),
        module="AdditiveAttention",
        sharpened="out_kernel",
        averaged="out_kernel",
    ),
    tanh_sum_attention=dict(
        shapes="query[..., n, d] key[..., m, e] value[..., m, v] kernel[d+e, h] mask?[..., n, m] "
        "lengths?:lengths[..., n] bias?[h] -> [..., n, v]",
        weights="[..., n, m]",
        source="bahdanau2015",
        equation="o_i = sum_j w_ij v_j, w_i = softmax_j(sum_h tanh([q_i; k_j] W + b)_h)",
        module="TanhSumAttention",
        averaged="kernel",
    ),
    location_attention=dict(
        shapes="query[..., n, d] state[..., n, e] value[..., m, v] kernel[d+e, m] bias[m] out_kernel[d+v, o] "
        "out_bias[o] mask?[..., m] -> [..., n, o]",
        weights="[..., n, m]",
        source="luong2015",
        equation="o_i = [q_i; sum_j w_ij v_j] W_o + b_o, w_i = softmax([q_i; k_i] W + b)",
        module="LocationAttention",
    ),
    multi_head_attention=dict(
        shapes="query[..., n, d] key[..., m, e] value[..., m, v] mask?[..., n, m]|[..., H, n, m] "
        "lengths?:lengths[..., n] query_kernel[d, H, c] key_kernel[e, H, c] value_kernel[v, H, c'] "
        "out_kernel[H, c', o] query_bias?[H, c] key_bias?[H, c] value_bias?[H, c'] out_bias?[o] "
        "sink?~[H] dropout_multiplier?~[..., H, n, m] -> [..., n, o]",
        weights="[..., H, n, m]",
        source="vaswani2017",
        equation="o = sum_h softmax(q_h k_h^T / sqrt(c)) v_h W_o^h + b_o, q_h = q W_q^h + b_q^h; "
        "k_h and v_h in the same way",
        absolute=("sink",),
        module="MultiHeadAttention",
    ),
    kernel_regression=dict(
        shapes="query[..., n, d] key[..., m, d] value[..., m, v] mask?[..., n, m] lengths?:lengths[..., n] "
        "bandwidth[] -> [..., n, v]",
        weights="[..., n, m]",
        source="d2l",
        equation="o_i = sum_j K(u_ij) v_j / sum_j K(u_ij), u_ij = |q_i - k_j| / bandwidth",
        options={"kernel": ("gaussian", "boxcar", "triangular", "epanechnikov", "constant")},
        facts={"differences"},
    ),
)
