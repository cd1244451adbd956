"""Table rows of standard deviations and attentive statistics."""

from attnpool_ref.table.row import ACTIVATIONS, LAYOUTS, TOKENS, of_family

_WEIGHTED = f"{TOKENS} weights?[..., L]|[..., L, d] ddof[] epsilon[]"
_STD = "sigma^2 = sum_l w_l (x_l - mu)^2 / (W - ddof W2 / W), W = sum w, W2 = sum w^2"

ROWS = of_family(
    "statistics",
    std_pooling=dict(
        shapes=f"{_WEIGHTED} -> [..., d]",
        source="snyder2018",
        equation=f"o = sigma, {_STD}, and sqrt(epsilon) where sigma^2 <= epsilon",
        layouts=LAYOUTS,
    ),
    statistics_pooling=dict(
        shapes=f"{_WEIGHTED} -> [..., 2d]",
        source="snyder2018",
        equation=f"o = [mu; sigma], mu = sum_l w_l x_l / W, {_STD}",
        layouts=LAYOUTS,
    ),
    attentive_statistics_pooling=dict(
        shapes=f"{TOKENS} kernel[d, h]|[3d, h] out_kernel[h]|[h, d] bias?[h] out_bias?[]|[d] norm_scale?[h] "
        "norm_bias?[h] context_ddof[] epsilon[] -> [..., 2d]",
        weights="[..., L]|[..., L, d]",
        source="okabe2018",
        equation="o = [mu; sigma] under w = softmax_l(act(u_l W + b) V), u_l = x_l, or [x_l; mean; std] with the context",
        rules=(
            "kernel[3d, h] if global_context",
            "norm_scale needs activation=tanh",
            "norm_bias needs norm_scale",
        ),
        options={"activation": ACTIVATIONS, "global_context": "flag"},
        layouts=LAYOUTS,
        module="AttentiveStatisticsPool",
        sharpened="out_kernel",
    ),
)
