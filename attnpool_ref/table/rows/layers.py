"""Table rows of layers that heads put before and after a pooling."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "layers",
    layer_norm=dict(
        shapes="x[..., d] scale?[d] bias?[d] epsilon[] -> [..., d]",
        source="ba2016",
        equation="y = scale (x - mean(x)) / sqrt(var(x) + epsilon) + bias",
        norms=True,
    ),
    residual_feed_forward=dict(
        shapes="x[..., d] kernel[d, f]|[d, 2f] bias?[f]|[2f] out_kernel?[f, d] out_bias?[d] norm_scale?[d] norm_bias?[d] "
        "epsilon[] -> [..., d]",
        source="vaswani2017",
        equation="y = x + act(LN(x) W + b) W_o + b_o; without W_o: y = x + act(LN(x) W + b)",
        rules=(
            "kernel[d, 2f] if activation=geglu",
            "bias[2f] if activation=geglu",
            "f=d unless out_kernel",
            "out_bias needs out_kernel",
            "norm_scale needs normalize",
            "norm_bias needs norm_scale",
            "norm_bias needs normalize",
        ),
        options={"normalize": "flag", "activation": ("gelu", "gelu_tanh", "relu", "geglu")},
    ),
)
