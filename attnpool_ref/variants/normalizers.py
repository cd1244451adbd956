"""The table's rows: normalisers."""

from attnpool_ref.variants.row import Variant

ROWS = (
    Variant(
        "masked_softmax",
        family="normalizers",
        shapes="scores[...] mask?[...] lengths?:int[...] -> [...]",
        source="d2l",
        equation="w_j = exp(s_j - max_real s) / sum over real i of exp(s_i - max_real s), 0 where not real",
        rules=("not mask with lengths",),
        options={"axis": "axis"},
    ),
    Variant(
        "sparsemax",
        family="normalizers",
        shapes="scores[...] mask?[...] -> [...]",
        source="martins2016",
        equation="w_j = max(0, s_j - tau), tau such that the w_j of the real j sum to 1",
        options={"axis": "axis"},
    ),
    Variant(
        "entmax15",
        family="normalizers",
        shapes="scores[...] mask?[...] -> [...]",
        source="peters2019",
        equation="w_j = max(0, s_j/2 - tau)^2, tau such that the w_j of the real j sum to 1",
        options={"axis": "axis"},
    ),
    Variant(
        "masked_sigmoid",
        family="normalizers",
        shapes="scores[...] mask?[...] -> [...]",
        source="ramapuram2025",
        equation="w_j = 1 / (1 + exp(-s_j)), 0 where not real; with normalize divided by the sum of the real ones",
        absolute=("always",),
        options={"normalize": "flag", "axis": "axis"},
    ),
    Variant(
        "hardmax",
        family="normalizers",
        shapes="scores[...] mask?[...] -> [...]",
        source="onnx",
        equation="w_j = 1 for the first j among the real ones whose s_j is the largest, 0 for the others",
        ordered="always",
        options={"axis": "axis"},
    ),
    Variant(
        "l2_normalize",
        family="normalizers",
        shapes="x[...] -> [...]",
        source="wang2022",
        equation="x / |x|_2, and 0 for the zero vector",
        norms=True,
        options={"axis": "axis"},
    ),
)
