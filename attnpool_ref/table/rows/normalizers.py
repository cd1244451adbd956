"""Table rows of normalizers."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "normalizers",
    masked_softmax=dict(
        shapes="scores[...] mask?[...] lengths?:int[...] sink?~[...] -> [...]",
        source="d2l",
        equation="w_j = exp(s_j) / (exp(b) + sum over real i of exp(s_i)), 0 where not real; b the sink, -inf without it",
        rules=("not mask with lengths", "sink without axis"),
        options={"axis": "axis"},
        absolute=("sink",),
        averaged="scores",
    ),
    masked_log_softmax=dict(
        shapes="scores[...] mask?[...] lengths?:int[...] -> [...]",
        source="onnx",
        equation="log w_j = s_j - log sum over real i of exp(s_i), -inf where not real",
        rules=("not mask with lengths",),
        options={"axis": "axis"},
        facts={"bounded terms"},
    ),
    segment_softmax=dict(
        shapes="scores[N, h?] segment_ids:segments[N] mask?[N] -> [N, h?]",
        source="fey2019",
        equation="w_j = exp(s_j) / sum over the real i of the segment of j of exp(s_i), 0 where not real",
        options={"num_segments": "size", "indices_are_sorted": "flag"},
        averaged="scores",
    ),
    segment_log_softmax=dict(
        shapes="scores[N, h?] segment_ids:segments[N] mask?[N] -> [N, h?]",
        source="fey2019",
        equation="log w_j = s_j - log sum over the real i of the segment of j of exp(s_i), -inf where not real",
        options={"num_segments": "size", "indices_are_sorted": "flag"},
        facts={"bounded terms"},
    ),
    sparsemax=dict(
        shapes="scores[...] mask?[...] -> [...]",
        source="martins2016",
        equation="w_j = max(0, s_j - tau), tau such that the w_j of the real j sum to 1",
        options={"axis": "axis"},
    ),
    entmax15=dict(
        shapes="scores[...] mask?[...] -> [...]",
        source="peters2019",
        equation="w_j = max(0, s_j/2 - tau)^2, tau such that the w_j of the real j sum to 1",
        options={"axis": "axis"},
    ),
    entmax=dict(
        shapes="scores[...] mask?[...] alpha[] -> [...]",
        source="peters2019",
        equation="w_j = max(0, (alpha - 1) s_j - tau)^(1/(alpha - 1)), tau such that the w_j of the real j sum to 1",
        rules=("alpha at 1 and 2",),
        options={"axis": "axis"},
    ),
    top_k_softmax=dict(
        shapes="scores[...] mask?[...] -> [...]",
        source="shazeer2017",
        equation="w = softmax over the real j whose s_j is at least the k-th largest real one, 0 elsewhere",
        rules=("k at 9",),
        options={"k": "positive", "axis": "axis"},
    ),
    gumbel_softmax=dict(
        shapes="scores[...] mask?[...] noise?~[...] temperature[] -> [...]",
        source="jang2017",
        equation="w = softmax over the real j of (s_j + noise_j) / temperature; with hard the value of hardmax(s + noise)",
        surrogate="hard",
        options={"hard": "flag", "axis": "axis"},
        averaged="scores",
    ),
    masked_sigmoid=dict(
        shapes="scores[...] mask?[...] -> [...]",
        source="ramapuram2025",
        equation="w_j = 1 / (1 + exp(-s_j)), 0 where not real; with normalize divided by the sum of the real ones",
        absolute=("always",),
        options={"normalize": "flag", "axis": "axis"},
        facts={"underflows"},
    ),
    hardmax=dict(
        shapes="scores[...] mask?[...] -> [...]",
        source="onnx",
        equation="w_j = 1 for the first j among the real ones whose s_j is the largest, 0 for the others",
        ordered="always",
        options={"axis": "axis"},
    ),
    l2_normalize=dict(
        shapes="x[...] -> [...]",
        source="wang2022",
        equation="x / |x|_2, and 0 for the zero vector",
        norms=True,
        options={"axis": "axis"},
    ),
)
