"""The table: one row per variant, in the order of the documentation.

A row names things and computes nothing. The argument checks, the tests, the command line, the type stubs and the
conformance kit all read it, and find the function itself by its name in any namespace.

:mod:`attnpool_ref.language` says how ``shapes`` and ``rules`` are written.
"""

from dataclasses import dataclass, field
from typing import Any

from attnpool_ref import language

SOURCES = {
    "bahdanau2015": "Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate. ICLR 2015.",
    "d2l": "Zhang, Lipton, Li, Smola: Dive into Deep Learning, chapter Attention Mechanisms and Transformers. 2023.",
    "liu2022": "Liu, Du, Li, Pan, Ming: Augmenting legal judgment prediction with contrastive case relations. "
    "COLING 2022.",
    "luong2015": "Luong, Pham, Manning: Effective approaches to attention-based neural machine translation. EMNLP 2015.",
    "martins2016": "Martins, Astudillo: From softmax to sparsemax: a sparse model of attention and multi-label classification. ICML 2016.",
    "notebook000": "Notebook 'Attention pooling achievement' (seed 000): cross pooling of two sequences for SimKGC.",
    "notebook001": "Notebook 'Attention_pooling' (seed 001): fixed weights, and one learned query.",
    "notebook002": "Notebook 'Attention mechanism' (seed 002): three rules, and the class Attn.",
    "patro2018": "Patro, Namboodiri: Differential attention for visual question answering. CVPR 2018.",
    "peters2019": "Peters, Niculae, Martins: Sparse sequence-to-sequence models. ACL 2019.",
    "reimers2019": "Reimers, Gurevych: Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.",
    "seo2017": "Seo, Kembhavi, Farhadi, Hajishirzi: Bidirectional attention flow for machine comprehension. ICLR 2017.",
    "vaswani2017": "Vaswani et al.: Attention is all you need. NeurIPS 2017.",
    "wang2016": "Wang, Mi, Ittycheriah: Sentence similarity learning by lexical decomposition and composition. "
    "COLING 2016.",
    "wang2022": "Wang, Zhao, Wei, Liu: SimKGC: simple contrastive knowledge graph completion with pre-trained language models. ACL 2022.",
    "yue2021": "Yue et al.: NeurJudge: a circumstance-aware neural framework for legal judgment prediction. "
    "SIGIR 2021.",
    "zhang2021": "Zhang et al.: Multi-interactive attention network for fine-grained feature learning in CTR prediction. "
    "WSDM 2021.",
}
"""What the rows' ``source`` keys stand for."""


@dataclass(frozen=True)
class Variant:
    """One row.

    Attributes:
      name: the function's name in every namespace.
      family: the file in which it stands.
      shapes: arguments and result, in the language above.
      source: a key of :data:`SOURCES`.
      equation: the definition in one line of plain text; the docstring has it in full.
      weights: shape of what ``return_weights=True`` adds, where there is such an argument.
      rules: what the shapes cannot say.
      options: static arguments: a tuple of names, or "flag", "axis", "size" or "count".
      refused: (option, value, reason) of what a neighbouring row takes and this one cannot.
      module: the class that owns the parameters, if any.
      state: the dense row to whose result the function's states finalize, which ``shapes`` shows; it gives a state then.
      ordered: "always", or an option such as "method=local", where the order of the real tokens matters.
      norms: divides by a norm: vectors of 1e-30 and 1e30 are ordinary, and so is the zero vector.
      arguments: what ``shapes`` says of each argument, by name.
      results: the axes of each array of the result.
      weight_results: the axes of each array that ``return_weights=True`` adds.
      relations: the rules as objects.
      sizes: sizes of axes that are what they are, as a module's own parameters make them; empty in the table.
    """

    name: str
    family: str
    shapes: str
    source: str
    equation: str
    weights: str = ""
    rules: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    refused: tuple[tuple[str, str, str], ...] = ()
    module: str = ""
    state: str = ""
    ordered: str = ""
    norms: bool = False
    arguments: dict[str, language.Argument] = field(init=False, repr=False, compare=False)
    results: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    weight_results: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    relations: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    sizes: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self):
        arguments, results = language.parse_shapes(self.shapes)
        relations = (*map(language.parse_rule, self.rules), *language.exclusions(arguments))
        language.check_names(relations, arguments, self.options)
        parsed = {"arguments": arguments, "results": results, "relations": relations}
        for name, value in (parsed | {"weight_results": language.parse_results(self.weights)}).items():
            object.__setattr__(self, name, value)  # the row is frozen for everybody else

    @property
    def batched(self):
        """Whether any argument has batch axes."""
        return any(argument.batched for argument in self.arguments.values())


SEGMENTS = {"num_segments": "size", "indices_are_sorted": "flag"}
"""The options of every packed row."""

VARIANTS = (
    # masks
    Variant(
        "lengths_to_mask",
        family="masks",
        shapes="lengths:int[...] -> [..., max_length]",
        source="d2l",
        equation="mask_j = (j < length); with the padding on the left, (max_length - 1 - j < length)",
        options={"max_length": "size", "side": ("right", "left")},
    ),
    # normalizers
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
        "l2_normalize",
        family="normalizers",
        shapes="x[...] -> [...]",
        source="wang2022",
        equation="x / |x|_2, and 0 for the zero vector",
        norms=True,
        options={"axis": "axis"},
    ),
    # scores
    Variant(
        "dot_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, d] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = q_i . k_j",
    ),
    Variant(
        "scaled_dot_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, d] scale?[] -> [..., n, m]",
        source="vaswani2017",
        equation="s_ij = scale (q_i . k_j), scale = 1/sqrt(d)",
    ),
    Variant(
        "bilinear_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, e] kernel[d, e] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = q_i^T W k_j",
        module="BilinearScore",
    ),
    Variant(
        "cosine_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, d] -> [..., n, m]",
        source="wang2016",
        equation="s_ij = q_i . k_j / (|q_i| |k_j|), and 0 for a zero vector",
        norms=True,
    ),
    Variant(
        "additive_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, e] query_kernel[d, h] key_kernel[e, h] out_kernel[h] bias?[h] -> [..., n, m]",
        source="bahdanau2015",
        equation="s_ij = w . tanh(q_i W_q + k_j W_k + b)",
        module="AdditiveScore",
    ),
    Variant(
        "concat_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, e] kernel[d+e, h] out_kernel[h] bias?[h] -> [..., n, m]",
        source="luong2015",
        equation="s_ij = w . tanh([q_i; k_j] W + b)",
        module="ConcatScore",
    ),
    Variant(
        "tanh_sum_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, e] kernel[d+e, h] bias?[h] -> [..., n, m]",
        source="notebook002",
        equation="s_ij = sum_h tanh([q_i; k_j] W + b)_h",
        module="TanhSumScore",
    ),
    Variant(
        "location_score",
        family="scores",
        shapes="query[..., n, d] state[..., n, e] kernel[d+e, m] bias?[m] -> [..., n, m]",
        source="notebook002",
        equation="s_ij = ([q_i; k_i] W + b)_j, j a slot",
        module="LocationScore",
    ),
    Variant(
        "trilinear_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, d] kernel[3d] -> [..., n, m]",
        source="seo2017",
        equation="s_ij = w . [q_i; k_j; q_i * k_j]",
        module="TrilinearScore",
    ),
    Variant(
        "gaussian_score",
        family="scores",
        shapes="query[..., n, d] key[..., m, d] bandwidth[] -> [..., n, m]",
        source="d2l",
        equation="s_ij = -|q_i - k_j|^2 / (2 bandwidth^2)",
    ),
    # attention
    Variant(
        "attend",
        family="attention",
        shapes="scores[..., n, m] value[..., m, v] mask?[..., n, m] lengths?:lengths[..., n] "
        "dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="vaswani2017",
        equation="o_i = sum_j w_ij v_j, w_i = normalizer(s_i)",
        options={"normalizer": ("softmax", "sparsemax", "entmax15")},
    ),
    Variant(
        "dot_product_attention",
        family="attention",
        shapes="query[..., n, d] key[..., m, d] value[..., m, v] mask?[..., n, m] lengths?:lengths[..., n] "
        "bias?~[..., n, m] scale?[] dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="vaswani2017",
        equation="o = softmax(scale q k^T + bias) v, scale = 1/sqrt(d)",
    ),
    Variant(
        "additive_attention",
        family="attention",
        shapes="query[..., n, d] key[..., m, e] value[..., m, v] query_kernel[d, h] key_kernel[e, h] out_kernel[h] "
        "mask?[..., n, m] lengths?:lengths[..., n] bias?[h] dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="bahdanau2015",
        equation="o_i = sum_j w_ij v_j, w_i = softmax_j(w . tanh(q_i W_q + k_j W_k + b))",
        module="AdditiveAttention",
    ),
    Variant(
        "tanh_sum_attention",
        family="attention",
        shapes="query[..., n, d] key[..., m, e] value[..., m, v] kernel[d+e, h] mask?[..., n, m] "
        "lengths?:lengths[..., n] bias?[h] -> [..., n, v]",
        weights="[..., n, m]",
        source="notebook002",
        equation="o_i = sum_j w_ij v_j, w_i = softmax_j(sum_h tanh([q_i; k_j] W + b)_h)",
        module="TanhSumAttention",
    ),
    Variant(
        "location_attention",
        family="attention",
        shapes="query[..., n, d] state[..., n, e] value[..., m, v] kernel[d+e, m] bias[m] out_kernel[d+v, o] "
        "out_bias[o] mask?[..., m] -> [..., n, o]",
        weights="[..., n, m]",
        source="notebook002",
        equation="o_i = [q_i; sum_j w_ij v_j] W_o + b_o, w_i = softmax([q_i; k_i] W + b)",
        module="LocationAttention",
    ),
    Variant(
        "multi_head_attention",
        family="attention",
        shapes="query[..., n, d] key[..., m, e] value[..., m, v] mask?[..., n, m]|[..., H, n, m] "
        "lengths?:lengths[..., n] query_kernel[d, H, c] key_kernel[e, H, c] value_kernel[v, H, c'] "
        "out_kernel[H, c', o] query_bias?[H, c] key_bias?[H, c] value_bias?[H, c'] out_bias?[o] "
        "dropout_multiplier?~[..., H, n, m] -> [..., n, o]",
        weights="[..., H, n, m]",
        source="vaswani2017",
        equation="o = sum_h softmax(q_h k_h^T / sqrt(c)) v_h W_o^h + b_o, q_h = q W_q^h + b_q^h; k_h, v_h likewise",
        module="MultiHeadAttention",
    ),
    Variant(
        "kernel_regression",
        family="attention",
        shapes="query[..., n, d] key[..., m, d] value[..., m, v] mask?[..., n, m] lengths?:lengths[..., n] "
        "bandwidth[] -> [..., n, v]",
        weights="[..., n, m]",
        source="d2l",
        equation="o_i = sum_j K(u_ij) v_j / sum_j K(u_ij), u_ij = |q_i - k_j| / bandwidth",
        options={"kernel": ("gaussian", "boxcar", "triangular", "epanechnikov", "constant")},
    ),
    # pooling
    Variant(
        "mean_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="o = (1/N) sum over real l of x_l, N the number of real tokens",
    ),
    Variant(
        "max_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="o_c = max over real l of x_lc",
    ),
    Variant(
        "first_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="o = x_l, l the first real position",
        ordered="always",
    ),
    Variant(
        "last_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="o = x_l, l the last real position",
        ordered="always",
    ),
    Variant(
        "weighted_pooling",
        family="pooling",
        shapes="x[..., L, d] weights?[..., L] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="notebook001",
        equation="o = sum over real l of w_l x_l / sum over real l of w_l",
        module="WeightedPool",
    ),
    Variant(
        "attention_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] query?[..., q] query_kernel?[d, c] "
        "key_kernel?[d, c] query_norm_scale?[q] query_norm_bias?[q] epsilon[] scale?[] "
        "dropout_multiplier?~[..., L] -> [..., d]",
        weights="[..., L]",
        source="notebook001",
        equation="o = sum_l w_l x_l, w = softmax(scale (x_l W_k) . (LN(q) W_q)), scale = 1/sqrt(c)",
        rules=(
            "q=d if query_kernel",
            "q=c unless query_kernel",
            "q=d unless query",
            "c=d unless key_kernel",
            "query_norm_scale needs normalize_query",
            "query_norm_bias needs normalize_query",
        ),
        options={"normalize_query": "flag"},
        module="AttentionPool",
    ),
    Variant(
        "multi_head_attention_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] query[n, d] query_kernel[d, H, c] "
        "key_kernel[d, H, c] value_kernel[d, H, c'] out_kernel[H, c', o] query_bias?[H, c] key_bias?[H, c] "
        "value_bias?[H, c'] out_bias?[o] dropout_multiplier?~[..., H, n, L] -> [..., n, o]",
        weights="[..., H, n, L]",
        source="vaswani2017",
        equation="o = multi-head attention of n learned queries over x",
        module="MultiHeadAttentionPool",
    ),
    # segments
    Variant(
        "segment_mean_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] mask?[N] -> [num_segments, d]",
        source="reimers2019",
        equation="o_s = mean_pooling of the tokens of segment s",
        options=SEGMENTS,
    ),
    Variant(
        "segment_max_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] mask?[N] -> [num_segments, d]",
        source="reimers2019",
        equation="o_s = max_pooling of the tokens of segment s",
        options=SEGMENTS,
    ),
    Variant(
        "segment_first_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] mask?[N] -> [num_segments, d]",
        source="reimers2019",
        equation="o_s = first_pooling of the tokens of segment s",
        options=SEGMENTS,
        ordered="always",
    ),
    Variant(
        "segment_last_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] mask?[N] -> [num_segments, d]",
        source="reimers2019",
        equation="o_s = last_pooling of the tokens of segment s",
        options=SEGMENTS,
        ordered="always",
    ),
    Variant(
        "segment_weighted_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] weights?[N] mask?[N] -> [num_segments, d]",
        source="notebook001",
        equation="o_s = weighted_pooling of the tokens of segment s",
        options=SEGMENTS,
    ),
    Variant(
        "segment_attention_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] mask?[N] query?[q]|[num_segments, q] query_kernel?[d, c] "
        "key_kernel?[d, c] query_norm_scale?[q] query_norm_bias?[q] epsilon[] scale?[] "
        "dropout_multiplier?~[N] -> [num_segments, d]",
        weights="[N]",
        source="notebook001",
        equation="o_s = attention_pooling of the tokens of segment s",
        rules=(
            "q=d if query_kernel",
            "q=c unless query_kernel",
            "q=d unless query",
            "c=d unless key_kernel",
            "query_norm_scale needs normalize_query",
            "query_norm_bias needs normalize_query",
        ),
        options=SEGMENTS | {"normalize_query": "flag"},
    ),
    Variant(
        "segment_multi_head_attention_pooling",
        family="segments",
        shapes="x[N, d] segment_ids:segments[N] mask?[N] query[n, d] query_kernel[d, H, c] key_kernel[d, H, c] "
        "value_kernel[d, H, c'] out_kernel[H, c', o] query_bias?[H, c] key_bias?[H, c] value_bias?[H, c'] "
        "out_bias?[o] dropout_multiplier?~[H, n, N] -> [num_segments, n, o]",
        weights="[H, n, N]",
        source="vaswani2017",
        equation="o_s = multi_head_attention_pooling of the tokens of segment s",
        options=SEGMENTS,
    ),
    Variant(
        "segment_cross_attention_pooling",
        family="segments",
        shapes="x[N, d] x_segment_ids:segments[N] y[M, e] y_segment_ids:segments[M] x_mask?[N] y_mask?[M] "
        "x_kernel?[d, c] y_kernel?[e, c] scale[] -> ([num_segments, d], [num_segments, e])",
        weights="([N], [M])",
        source="notebook000",
        equation="(o_x, o_y)_s = cross_attention_pooling of the tokens of segment s",
        rules=("c=d unless x_kernel", "c=e unless y_kernel"),
        options=SEGMENTS | {"reduction": ("sum", "mean")},
        refused=(
            (
                "reduction",
                "max",
                "the largest score needs every pair of tokens, and a sum of each side does not tell it",
            ),
        ),
    ),
    # pairs
    Variant(
        "cross_attention_pooling",
        family="pairs",
        shapes="x[..., L, d] y[..., T, e] x_mask?[..., L] x_lengths?:lengths[...] y_mask?[..., T] "
        "y_lengths?:lengths[...] x_kernel?[d, c] y_kernel?[e, c] scale[] -> ([..., d], [..., e])",
        weights="([..., L], [..., T])",
        source="notebook000",
        equation="o_x = sum_l w_l x_l, w = softmax_l(reduce_t scale (x_l W_x) . (y_t W_y)); o_y likewise",
        rules=("c=d unless x_kernel", "c=e unless y_kernel"),
        options={"reduction": ("sum", "mean", "max")},
        module="CrossAttentionPool",
    ),
    Variant(
        "cross_attention_pooling_all_pairs",
        family="pairs",
        shapes="x[B, L, d] y[C, T, e] x_mask?[B, L] x_lengths?:lengths[B] y_mask?[C, T] y_lengths?:lengths[C] "
        "x_kernel?[d, c] y_kernel?[e, c] scale[] -> ([B, C, d], [B, C, e])",
        weights="([B, C, L], [B, C, T])",
        source="notebook000",
        equation="(o_x, o_y)_bc = cross_attention_pooling(x_b, y_c)",
        rules=("c=d unless x_kernel", "c=e unless y_kernel"),
        options={"reduction": ("sum", "mean", "max")},
    ),
    Variant(
        "code_wise_attention",
        family="pairs",
        shapes="query[..., k, d] context[..., n, d] query_mask?[..., k] query_lengths?:lengths[...] "
        "context_mask?[..., n] context_lengths?:lengths[...] scale[] -> [..., d]",
        weights="[..., n]",
        source="yue2021",
        equation="o = sum_i w_i d_i, w = softmax_i(max_j scale d_i . g_j), d the context, g the query",
        module="CodeWiseAttention",
    ),
    Variant(
        "mask_attention",
        family="pairs",
        shapes="query[..., k, d] context[..., n, d] query_mask?[..., k] query_lengths?:lengths[...] "
        "context_mask?[..., n] context_lengths?:lengths[...] scale[] -> [..., n, d]",
        weights="[..., n, k]",
        source="yue2021",
        equation="o_i = sum_j w_ij c_j, w_i = softmax_j(scale d_i . c_j), d the context, c the query",
        module="MaskAttention",
    ),
    Variant(
        "bidaf_attention",
        family="pairs",
        shapes="context[..., T, d] query[..., J, d] kernel[3d] context_mask?[..., T] context_lengths?:lengths[...] "
        "query_mask?[..., J] query_lengths?:lengths[...] -> [..., T, 4d]",
        weights="([..., T, J], [..., T])",
        source="seo2017",
        equation="G_t = [h_t; u~_t; h_t * u~_t; h_t * h~], u~_t = sum_j softmax_j(S_tj) u_j, "
        "h~ = sum_t softmax_t(max_j S_tj) h_t, S_tj = w . [h_t; u_j; h_t * u_j]",
        module="BiDAFAttention",
    ),
    # decomposition
    Variant(
        "orthogonal_decomposition",
        family="decomposition",
        shapes="x[..., d] reference[..., d] -> ([..., d], [..., d])",
        source="wang2016",
        equation="similar = (x . r / r . r) r, dissimilar = x - similar, r the reference",
        norms=True,
    ),
    Variant(
        "linear_decomposition",
        family="decomposition",
        shapes="x[..., d] reference[..., d] -> ([..., d], [..., d])",
        source="wang2016",
        equation="similar = cos(x, reference) x, dissimilar = x - similar",
        norms=True,
    ),
    Variant(
        "rigid_decomposition",
        family="decomposition",
        shapes="x[..., d] reference[..., d] atol[] -> ([..., d], [..., d])",
        source="wang2016",
        equation="similar = x if all |x_c - reference_c| <= atol, else 0; dissimilar = x - similar",
    ),
    Variant(
        "semantic_match",
        family="decomposition",
        shapes="x[..., L, d] y[..., T, d] x_mask?[..., L] x_lengths?:lengths[...] y_mask?[..., T] "
        "y_lengths?:lengths[...] -> [..., L, d]",
        source="wang2016",
        equation="o_i = y_k, k = argmax_j a_ij, or sum_j a_ij y_j / sum_j a_ij over all j or those near k; "
        "a_ij = cos(x_i, y_j)",
        options={"method": ("max", "global", "local"), "window": "count", "normalize": "flag"},
        norms=True,
        ordered="method=local",
    ),
    Variant(
        "graph_decomposition",
        family="decomposition",
        shapes="labels[k, d] adjacency:bool[k, k] -> [k, d]",
        source="yue2021",
        equation="l_i <- l_i - mean over neighbours j of (l_i . l_j / l_j . l_j) l_j, num_layers times",
        options={"num_layers": "count"},
        norms=True,
    ),
    # relations
    Variant(
        "attention_triplet_loss",
        family="relations",
        shapes="anchor[..., m] positive[..., m] negative[..., m] margin[] -> [...]",
        source="patro2018",
        equation="max(0, |a - p|^2 + margin - |a - n|^2)",
    ),
    Variant(
        "differential_context",
        family="relations",
        shapes="attention[..., m] supporting[..., m] opposing[..., m] mask?[..., m] weight[] -> [..., m]",
        source="patro2018",
        equation="s + weight d or s * (weight d), d = r+ - r-, r+ = proj_s(s+) + proj_s(s-), "
        "r- = (s+ - proj_s(s+)) + (s- - proj_s(s-))",
        options={"mode": ("add", "mul")},
        norms=True,
    ),
    Variant(
        "relation_vector",
        family="relations",
        shapes="x[..., f] y[..., f] x_kernel[f, h] y_kernel[f, h] out_kernel[h, o] bias[h] -> [..., o]",
        source="liu2022",
        equation="sigmoid(x W1 + y W2 + b) W3",
        module="RelationVector",
    ),
    Variant(
        "relation_triplet_loss",
        family="relations",
        shapes="x[..., f] similar[..., f] dissimilar[..., f] x_kernel[f, h] y_kernel[f, h] out_kernel[h, o] bias[h] "
        "margin[] -> [...]",
        source="liu2022",
        equation="max(0, margin + |a(x, x) - a(x, similar)|^2 - |a(x, x) - a(x, dissimilar)|^2), a = relation_vector",
    ),
    Variant(
        "field_attention_pooling",
        family="relations",
        shapes="target[..., d] fields[..., J, e] kernel[J, d+e]|[d+e] bias[J]|[] mask?[..., J] -> [..., d+e]",
        weights="[..., J]",
        source="zhang2021",
        equation="o = sum_j w_j [target; f_j], w = softmax_j(tanh([target; f_j] . W_j + b_j))",
        rules=("d may be 0",),
        module="FieldAttentionPool",
    ),
    Variant(
        "label_attention",
        family="relations",
        shapes="labels[..., M, d] mask?[..., M] query_kernel[d, c] key_kernel[d, c] value_kernel[d, v] -> [..., M, v]",
        weights="[..., M, M]",
        source="vaswani2017",
        equation="o = softmax((R Wq)(R Wk)^T / sqrt(c)) R Wv, R the label vectors",
        module="LabelAttention",
    ),
)
"""The rows, in the order in which the documentation shows them."""

_ATTENTION = "sum = sum over real l of exp(s_l - top) x_l, total = sum over real l of exp(s_l - top), top = max s"

STATES = (
    Variant(
        "mean_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="sum over real l of x_l, and their number",
        state="mean_pooling",
    ),
    Variant(
        "max_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="reimers2019",
        equation="max over real l of x_lc, and how many reach it",
        state="max_pooling",
    ),
    Variant(
        "first_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] start:position[] -> [..., d]",
        source="reimers2019",
        equation="start + l and x_l, l the first real position",
        state="first_pooling",
        ordered="always",
    ),
    Variant(
        "last_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] start:position[] -> [..., d]",
        source="reimers2019",
        equation="start + l and x_l, l the last real position",
        state="last_pooling",
        ordered="always",
    ),
    Variant(
        "weighted_state",
        family="streaming",
        shapes="x[..., L, d] weights?[..., L] mask?[..., L] lengths?:lengths[...] -> [..., d]",
        source="notebook001",
        equation="sum over real l of w_l x_l, and sum over real l of w_l",
        state="weighted_pooling",
    ),
    Variant(
        "attention_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] query[..., q] query_kernel?[d, c] key_kernel?[d, c] "
        "query_norm_scale?[q] query_norm_bias?[q] epsilon[] scale?[] -> [..., d]",
        source="notebook001",
        equation=f"{_ATTENTION}, s = scale (x W_k) . (LN(q) W_q)",
        rules=(
            "q=d if query_kernel",
            "q=c unless query_kernel",
            "c=d unless key_kernel",
            "query_norm_scale needs normalize_query",
            "query_norm_bias needs normalize_query",
        ),
        options={"normalize_query": "flag"},
        state="attention_pooling",
    ),
    Variant(
        "multi_head_attention_state",
        family="streaming",
        shapes="x[..., L, d] mask?[..., L] lengths?:lengths[...] query[n, d] query_kernel[d, H, c] "
        "key_kernel[d, H, c] query_bias?[H, c] key_bias?[H, c] -> [..., n, H, d]",
        source="vaswani2017",
        equation=f"{_ATTENTION}, for each head h and query i: s = (q_i W_q^h + b_q^h) . (x W_k^h) / sqrt(c)",
        state="multi_head_attention_pooling",
    ),
)
"""The rows whose functions give the state of one chunk; :func:`merge_states` and :func:`finalize_state` take it on."""

BY_NAME = {row.name: row for row in (*VARIANTS, *STATES)}


def get(name):
    """Returns the row called ``name``; a ValueError lists the nearest names."""
    if name in BY_NAME:
        return BY_NAME[name]
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise ValueError(f"no variant is called {name!r}{hint}")
