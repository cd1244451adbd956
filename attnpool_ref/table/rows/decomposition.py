"""Table rows of decompositions."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "decomposition",
    orthogonal_decomposition=dict(
        shapes="x[..., d] reference[..., d] -> ([..., d], [..., d])",
        source="wang2016",
        equation="similar = (x . r / r . r) r, dissimilar = x - similar, r the reference",
        norms=True,
    ),
    linear_decomposition=dict(
        shapes="x[..., d] reference[..., d] -> ([..., d], [..., d])",
        source="wang2016",
        equation="similar = cos(x, reference) x, dissimilar = x - similar",
        norms=True,
    ),
    rigid_decomposition=dict(
        shapes="x[..., d] reference[..., d] atol[] -> ([..., d], [..., d])",
        source="wang2016",
        equation="similar = x if all |x_c - reference_c| <= atol, else 0; dissimilar = x - similar",
        facts={"comparison"},
    ),
    semantic_match=dict(
        shapes="x[..., L, d] y[..., T, d] x_mask?[..., L] x_lengths?:lengths[...] y_mask?[..., T] "
        "y_lengths?:lengths[...] -> [..., L, d]",
        source="wang2016",
        equation="o_i = y_k, k = argmax_j a_ij, or sum_j a_ij y_j / sum_j a_ij over all j or those near k; "
        "a_ij = cos(x_i, y_j)",
        rules=("window at 5",),
        options={"method": ("max", "global", "local"), "window": "count", "normalize": "flag"},
        norms=True,
        ordered="method=local",
        facts={"chooses"},
    ),
    graph_decomposition=dict(
        shapes="labels[k, d] adjacency:bool[k, k] -> [k, d]",
        source="yue2021",
        equation="l_i <- l_i - mean over neighbors j of (l_i . l_j / l_j . l_j) l_j, num_layers times",
        rules=("num_layers at 5",),
        options={"num_layers": "count"},
        norms=True,
    ),
)
