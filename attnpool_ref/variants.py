"""The table: one row per variant, in the order of the documentation.

A row names things and computes nothing. The argument checks, the tests, the command line, the type stubs and the
conformance kit all read it, and find the function itself by its name in any namespace.

``shapes`` is a small language:

* ``x[..., L, d]``: an array; ``...`` are its batch axes, which all data arguments share or do not have at all.
* ``query_kernel[d, c]``: without ``...`` the shape is exact. Axes may be sums and multiples: ``[d+e, m]``, ``[3d]``.
* ``mask?[..., L]``: ``?`` marks an argument that may be None. ``mask`` and ``*_mask`` are masks: they broadcast.
* ``bias?~[..., n, m]``: ``~`` marks a floating array that broadcasts and never widens the result.
* ``scale?[]``: a number. ``kernel[J, d+e]|[d+e]``: either shape. ``adjacency:bool[k, k]``: an exact boolean array.
* ``lengths?:int[...]``: integers on some leading axes.

``rules`` say what the shapes cannot: ``c=d unless x_kernel`` (an absent kernel leaves the width as it is),
``q=d if query_kernel``, ``not mask with lengths``, ``epsilon needs normalize_query``, ``d may be 0``.
"""

from dataclasses import dataclass, field
from typing import Any

SOURCES = {
    "bahdanau2015": "Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate. ICLR 2015.",
    "d2l": "Zhang, Lipton, Li, Smola: Dive into Deep Learning, chapter Attention Mechanisms and Transformers. 2023.",
    "luong2015": "Luong, Pham, Manning: Effective approaches to attention-based neural machine translation. EMNLP 2015.",
    "notebook000": "Notebook 'Attention pooling achievement' (seed 000): cross pooling of two sequences for SimKGC.",
    "notebook001": "Notebook 'Attention_pooling' (seed 001): fixed weights, and one learned query.",
    "reimers2019": "Reimers, Gurevych: Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.",
    "vaswani2017": "Vaswani et al.: Attention is all you need. NeurIPS 2017.",
    "wang2022": "Wang, Zhao, Wei, Liu: SimKGC: simple contrastive knowledge graph completion with pre-trained language models. ACL 2022.",
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
      module: the class that owns the parameters, if any.
      ordered: "always", or an option such as "method=local", where the order of the real tokens matters.
      norms: divides by a norm: vectors of 1e-30 and 1e30 are ordinary, and so is the zero vector.
    """

    name: str
    family: str
    shapes: str
    source: str
    equation: str
    weights: str = ""
    rules: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    module: str = ""
    ordered: str = ""
    norms: bool = False


VARIANTS = (
    # masks
    Variant(
        "lengths_to_mask",
        family="masks",
        shapes="lengths:int[...] -> [..., max_length]",
        source="d2l",
        equation="mask_j = (j < length)",
        options={"max_length": "size"},
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
    # attention
    Variant(
        "attend",
        family="attention",
        shapes="scores[..., n, m] value[..., m, v] mask?[..., n, m] dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="vaswani2017",
        equation="o_i = sum_j w_ij v_j, w_i = normalizer(s_i)",
        options={"normalizer": ("softmax",)},
    ),
    Variant(
        "dot_product_attention",
        family="attention",
        shapes="query[..., n, d] key[..., m, d] value[..., m, v] mask?[..., n, m] bias?~[..., n, m] scale?[] "
        "dropout_multiplier?~[..., n, m] -> [..., n, v]",
        weights="[..., n, m]",
        source="vaswani2017",
        equation="o = softmax(scale q k^T + bias) v, scale = 1/sqrt(d)",
    ),
    # pooling
    Variant(
        "mean_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] -> [..., d]",
        source="reimers2019",
        equation="o = (1/N) sum over real l of x_l, N the number of real tokens",
    ),
    Variant(
        "max_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] -> [..., d]",
        source="reimers2019",
        equation="o_c = max over real l of x_lc",
    ),
    Variant(
        "first_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] -> [..., d]",
        source="reimers2019",
        equation="o = x_l, l the first real position",
        ordered="always",
    ),
    Variant(
        "last_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] -> [..., d]",
        source="reimers2019",
        equation="o = x_l, l the last real position",
        ordered="always",
    ),
    Variant(
        "weighted_pooling",
        family="pooling",
        shapes="x[..., L, d] weights?[..., L] mask?[..., L] -> [..., d]",
        source="notebook001",
        equation="o = sum over real l of w_l x_l / sum over real l of w_l",
        module="WeightedPool",
    ),
    Variant(
        "attention_pooling",
        family="pooling",
        shapes="x[..., L, d] mask?[..., L] query?[..., q] query_kernel?[d, c] key_kernel?[d, c] "
        "query_norm_scale?[q] query_norm_bias?[q] epsilon[] scale?[] dropout_multiplier?~[..., L] -> [..., d]",
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
    # pairs
    Variant(
        "cross_attention_pooling",
        family="pairs",
        shapes="x[..., L, d] y[..., T, e] x_mask?[..., L] y_mask?[..., T] x_kernel?[d, c] y_kernel?[e, c] scale[] "
        "-> ([..., d], [..., e])",
        weights="([..., L], [..., T])",
        source="notebook000",
        equation="o_x = sum_l w_l x_l, w = softmax_l(reduce_t scale (x_l W_x) . (y_t W_y)); o_y likewise",
        rules=("c=d unless x_kernel", "c=e unless y_kernel"),
        options={"reduction": ("sum", "mean", "max")},
        module="CrossAttentionPool",
    ),
)
"""The rows, in the order in which the documentation shows them."""

BY_NAME = {row.name: row for row in VARIANTS}


def get(name):
    """Returns the row called ``name``; a ValueError lists the nearest names."""
    if name in BY_NAME:
        return BY_NAME[name]
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise ValueError(f"no variant is called {name!r}{hint}")
