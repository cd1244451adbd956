"""Table rows of sums, order statistics and generalized means, feature by feature."""

from attnpool_ref.table.row import LAYOUTS, TOKENS, of_family

ROWS = of_family(
    "means",
    sum_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="zaheer2017",
        equation="o = sum over real l of x_l",
        layouts=LAYOUTS,
        averaged="",
    ),
    min_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="corso2020",
        equation="o_c = min over real l of x_lc",
        layouts=LAYOUTS,
        facts={"copies", "ties"},
        averaged="",
    ),
    quantile_pooling=dict(
        shapes=f"{TOKENS} q[] -> [..., d]",
        source="hyndman1996",
        equation="o_c = x_(j)c + (i - j) (x_(j+1)c - x_(j)c), i = (N - 1) q, j = floor(i), x_(0) <= x_(1) <= ... the real tokens",
        rules=("q at 0 and 1",),
        options={"method": ("linear", "lower", "higher", "nearest", "midpoint")},
        facts={"copies"},
    ),
    top_k_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="durand2016",
        equation="o_c = (1/m) sum of the m largest real x_lc, m = min(k, N)",
        rules=("k at 9",),
        options={"k": "positive"},
        facts={"copies", "ties"},
    ),
    noisy_or_pooling=dict(
        shapes=f"{TOKENS} -> [..., d]",
        source="maron1997",
        equation="o_c = 1 - product over real l of (1 - x_lc)",
        layouts=LAYOUTS,
        unit=True,
    ),
    power_mean_pooling=dict(
        shapes=f"{TOKENS} p[]|[d] epsilon[] -> [..., d]",
        source="radenovic2019",
        equation="o_c = ((1/N) sum over real l of max(x_lc, epsilon)^p)^(1/p)",
        rules=("p at 0",),
        layouts=LAYOUTS,
        module="PowerMeanPool",
    ),
    logsumexp_pooling=dict(
        shapes=f"{TOKENS} scale[]|[d] -> [..., d]",
        source="pinheiro2015",
        equation="o_c = (1/scale) ln((1/N) sum over real l of exp(scale x_lc)); "
        "without mean the factor 1/N is left out",
        rules=("scale is not 0 unless mean",),
        options={"mean": "flag"},
        layouts=LAYOUTS,
        module="LogSumExpPool",
    ),
    softmax_pooling=dict(
        shapes=f"{TOKENS} scale[]|[d] -> [..., d]",
        weights="[..., L, d]",
        source="mcfee2018",
        equation="o_c = sum_l w_lc x_lc, w_c = softmax over real l of scale x_lc",
        rules=("scale at 0",),
        layouts=LAYOUTS,
        module="SoftmaxPool",
        averaged="scale",
    ),
)
