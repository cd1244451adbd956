"""Two sequences, labels, fields, and relations between examples."""

from attnpool_ref.table.names.entry import Entry

RETRIEVAL = (
    Entry(
        ("MaxSim", "ColBERT", "late interaction", "ColPali", "PyLate"),
        "maxsim_score(l2_normalize(q), l2_normalize(x), q_mask, mask)",
        "Khattab, Zaharia 2020; ColBERT, PyLate",
        "Padding never is the maximum: PyLate makes it 0, which wins over negative similarities.",
    ),
    Entry(
        ("MaxSim of all pairs", "ColBERT in-batch scores", "mean_maxsim"),
        "maxsim_score_all_pairs(l2_normalize(q), l2_normalize(x), q_mask, mask)",
        "Khattab, Zaharia 2020; sentence-transformers' maxsim",
        "[B, C], in blocks; `mean=True` divides by the number of real query tokens.",
    ),
    Entry(
        ("XTR",),
        "",
        "Lee et al. 2023",
        "Needs the whole corpus, to impute the similarities that were not retrieved; attnpool has MaxSim.",
    ),
    Entry(
        ("cross attention pooling", "cross pooling"),
        "cross_attention_pooling(x, y, x_mask, y_mask)",
        "Notebook 000, for SimKGC (notebook000)",
        "Padding has no weight, where the notebook's softmax runs over it.",
        "CrossAttentionPool",
    ),
    Entry(
        ("cross attention pooling of all pairs", "each with each of another batch"),
        "cross_attention_pooling_all_pairs(x, y, x_mask, y_mask)",
        "Notebook 000, for SimKGC (notebook000)",
        "What a loop over all pairs gives.",
    ),
)

MATCHING = (
    Entry(
        ("BiDAF", "bidirectional attention flow", "trilinear attention"),
        "bidaf_attention(context, query, w, context_mask, query_mask)",
        "Seo et al. 2017 (seo2017)",
        "Both sides are masked; the scores alone are `trilinear_score`.",
        "BiDAFAttention",
    ),
    Entry(
        ("soft alignment", "ESIM", "decomposable attention"),
        "dot_product_attention(f(x), f(y), y, y_mask[..., None, :], scale=1.0)",
        "Parikh et al. 2016; Chen et al. 2017",
        "The other direction is the same call with x and y exchanged; f is the identity in ESIM.",
    ),
    Entry(
        ("lexical decomposition", "sentence similarity by decomposition"),
        "orthogonal_decomposition(x, semantic_match(x, y, x_mask, y_mask))",
        "Wang, Mi, Ittycheriah 2016 (wang2016)",
        "`linear_decomposition` and `rigid_decomposition` are the other two; a zero vector has cosine 0.",
    ),
    Entry(
        ("linear decomposition",),
        "linear_decomposition(x, semantic_match(x, y, x_mask, y_mask))",
        "Wang, Mi, Ittycheriah 2016 (wang2016)",
        "A zero vector has cosine 0, with a finite gradient.",
    ),
    Entry(
        ("rigid decomposition",),
        "rigid_decomposition(x, semantic_match(x, y, x_mask, y_mask), atol=1e-6)",
        "Wang, Mi, Ittycheriah 2016 (wang2016)",
        "`atol` says how near is equal; the paper's is 0.",
    ),
    Entry(
        ("NeurJudge separation", "fact separation", "mask attention"),
        "orthogonal_decomposition(d, mask_attention(c, d, c_mask, d_mask))",
        "Yue et al. 2021 (yue2021)",
        "Each token of the fact chooses softly among the real tokens of the verdict.",
        "MaskAttention",
    ),
    Entry(
        ("code-wise attention", "label-aware pooling"),
        "code_wise_attention(labels, x, label_mask, mask)",
        "Yue et al. 2021 (yue2021)",
        "The maximum is over real labels alone.",
        "CodeWiseAttention",
    ),
    Entry(
        ("graph decomposition", "NeurJudge label graph"),
        "graph_decomposition(labels, adjacency, num_layers=2)",
        "Yue et al. 2021 (yue2021)",
        "A label without neighbours stays as it is.",
    ),
    Entry(
        ("label attention", "LEMM"),
        "label_attention(dot_product_attention(labels, x, x, mask[..., None, :]), query_kernel=Q, key_kernel=K, "
        "value_kernel=V)",
        "Vaswani et al. 2017, for want of one; LEMM (Zhong et al. 2020) has no public code",
        "Makes no claim to reproduce LEMM.",
        "LabelAttention",
    ),
    Entry(
        ("DVQA attention", "visual question answering", "attention over image regions"),
        "additive_attention(f[..., None, :], g, g, W_q, W_i, w, mask[..., None, :], bias=b)",
        "Patro, Namboodiri 2018 (patro2018)",
        "Its outer bias cancels in the softmax.",
        "AdditiveAttention",
    ),
)

RELATIONS = (
    Entry(
        ("MIAN", "field attention", "item-behaviour interaction", "CTR attention"),
        "field_attention_pooling(item, fields, kernel, bias, mask)",
        "Zhang et al. 2021 (zhang2021)",
        "The kernel is one for each field [J, d + e], or shared [d + e].",
        "FieldAttentionPool",
    ),
    Entry(
        ("differential attention", "DAN", "attention triplet loss"),
        "attention_triplet_loss(anchor, positive, negative, margin=0.2)",
        "Patro, Namboodiri 2018 (patro2018)",
        "One loss for each example; the mean is yours.",
    ),
    Entry(
        ("differential context", "DCN of visual question answering"),
        "differential_context(attention, supporting, opposing, mask)",
        "Patro, Namboodiri 2018 (patro2018)",
        "A zero vector is no division by 0.",
    ),
    Entry(
        ("contrastive case relations", "CTM relation vector"),
        "relation_vector(x, y, W1, W2, W3, b)",
        "Liu et al. 2022 (liu2022)",
        "The sigmoid stays finite for any input.",
        "RelationVector",
    ),
    Entry(
        ("CTM triplet loss", "relation triplet loss"),
        "relation_triplet_loss(x, similar, dissimilar, W1, W2, W3, b, margin=1.0)",
        "Liu et al. 2022 (liu2022)",
        "One loss for each example; the parameters are those of `relation_vector`.",
    ),
)
