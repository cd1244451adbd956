"""Table rows of scores."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "scores",
    dot_score=dict(
        shapes="query[..., n, d] key[..., m, d] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = q_i . k_j",
        options={"result_dtype": "dtype"},
    ),
    scaled_dot_score=dict(
        shapes="query[..., n, d] key[..., m, d] scale?[] -> [..., n, m]",
        source="vaswani2017",
        equation="s_ij = scale (q_i . k_j), scale = 1/sqrt(d)",
        rules=("scale at 0",),
        options={"result_dtype": "dtype"},
    ),
    bilinear_score=dict(
        shapes="query[..., n, d] key[..., m, e] kernel[d, e] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = q_i^T W k_j",
        module="BilinearScore",
        options={"result_dtype": "dtype"},
    ),
    cosine_score=dict(
        shapes="query[..., n, d] key[..., m, d] -> [..., n, m]",
        source="wang2016",
        equation="s_ij = q_i . k_j / (|q_i| |k_j|), and 0 for a zero vector",
        norms=True,
        options={"result_dtype": "dtype"},
    ),
    additive_score=dict(
        shapes="query[..., n, d] key[..., m, e] query_kernel[d, h] key_kernel[e, h] out_kernel[h] bias?[h] -> [..., n, m]",
        source="bahdanau2015",
        equation="s_ij = w . tanh(q_i W_q + k_j W_k + b)",
        module="AdditiveScore",
    ),
    concat_score=dict(
        shapes="query[..., n, d] key[..., m, e] kernel[d+e, h] out_kernel[h] bias?[h] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = w . tanh([q_i; k_j] W + b)",
        module="ConcatScore",
    ),
    tanh_sum_score=dict(
        shapes="query[..., n, d] key[..., m, e] kernel[d+e, h] bias?[h] -> [..., n, m]",
        source="bahdanau2015",
        equation="s_ij = sum_h tanh([q_i; k_j] W + b)_h",
        module="TanhSumScore",
        facts={"bounded terms"},
    ),
    location_score=dict(
        shapes="query[..., n, d] state[..., n, e] kernel[d+e, m] bias?[m] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = ([q_i; k_i] W + b)_j, j a slot",
        module="LocationScore",
    ),
    trilinear_score=dict(
        shapes="query[..., n, d] key[..., m, d] kernel[3d] -> [..., n, m]",
        source="seo2017",
        equation="s_ij = w . [q_i; k_j; q_i * k_j]",
        module="TrilinearScore",
        options={"result_dtype": "dtype"},
    ),
    gaussian_score=dict(
        shapes="query[..., n, d] key[..., m, d] bandwidth[] -> [..., n, m]",
        source="d2l",
        equation="s_ij = -|q_i - k_j|^2 / (2 bandwidth^2)",
    ),
)
