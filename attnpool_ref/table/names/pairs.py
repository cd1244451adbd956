"""Entries of the index of names (``attnpool find``): two sequences, labels, fields, relations between examples."""

from attnpool_ref.table.names.entry import Entry

RETRIEVAL = (
    Entry(
        ("MaxSim", "ColBERT", "late interaction", "ColPali", "PyLate"),
        "maxsim_score(l2_normalize(q), l2_normalize(x), q_mask, mask)",
        "Khattab, Zaharia 2020; ColBERT, PyLate",
        "Padding is never the maximum. In PyLate its similarity is 0, greater than negative similarities.",
    ),
    Entry(
        ("MaxSim of all pairs", "ColBERT in-batch scores", "mean_maxsim"),
        "maxsim_score_all_pairs(l2_normalize(q), l2_normalize(x), q_mask, mask)",
        "Khattab, Zaharia 2020; sentence-transformers' maxsim",
        "Returns [B queries, C texts], computed in blocks. `mean=True` divides by the number of real query tokens.",
    ),
    Entry(
        ("XTR",),
        "",
        "Lee et al. 2023",
        "XTR needs the whole corpus to estimate similarities that were not retrieved. attnpool only has MaxSim.",
    ),
    Entry(
        ("cross attention pooling", "cross pooling"),
        "cross_attention_pooling(x, y, x_mask, y_mask)",
        "Notebook 000, for SimKGC (notebook000)",
        "`x` and `y` are two sequences. Padding has weight 0; in the notebook it has weight.",
        "CrossAttentionPool",
    ),
    Entry(
        ("cross attention pooling of all pairs", "each with each of another batch"),
        "cross_attention_pooling_all_pairs(x, y, x_mask, y_mask)",
        "Notebook 000, for SimKGC (notebook000)",
        "Pools each of B sequences x with each of C sequences y: results [B, C, d] and [B, C, e]. The notebook pools matching pairs.",
    ),
)

MATCHING = (
    Entry(
        ("BiDAF", "bidirectional attention flow", "trilinear attention"),
        "bidaf_attention(context, query, w, context_mask, query_mask)",
        "Seo et al. 2017 (seo2017)",
        "Context and query are both masked. `trilinear_score` computes only the scores.",
        "BiDAFAttention",
    ),
    Entry(
        ("soft alignment", "ESIM", "decomposable attention"),
        "dot_product_attention(f(x), f(y), y, y_mask[..., None, :], scale=1.0)",
        "Parikh et al. 2016; Chen et al. 2017",
        "Exchange x and y for the other direction. In ESIM, f is the identity.",
    ),
    Entry(
        ("lexical decomposition", "sentence similarity by decomposition"),
        "orthogonal_decomposition(x, semantic_match(x, y, x_mask, y_mask))",
        "Wang, Mi, Ittycheriah 2016 (wang2016)",
        "The paper also has `linear_decomposition` and `rigid_decomposition`. A zero vector has cosine 0.",
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
        "Vectors are equal if no component differs by more than `atol`. In the paper `atol` is 0.",
    ),
    Entry(
        ("NeurJudge separation", "fact separation", "mask attention"),
        "orthogonal_decomposition(d, mask_attention(c, d, c_mask, d_mask))",
        "Yue et al. 2021 (yue2021)",
        "Each token of the fact `d` attends to the real tokens of the verdict `c`.",
        "MaskAttention",
    ),
    Entry(
        ("code-wise attention", "label-aware pooling"),
        "code_wise_attention(labels, x, label_mask, mask)",
        "Yue et al. 2021 (yue2021)",
        "A token's score is the maximum of its dot products with the real labels. Labels may be masked.",
        "CodeWiseAttention",
    ),
    Entry(
        ("graph decomposition", "NeurJudge label graph"),
        "graph_decomposition(labels, adjacency, num_layers=2)",
        "Yue et al. 2021 (yue2021)",
        "`adjacency` [k, k] marks the neighbors of the k `labels` [k, d]. A label without neighbors stays unchanged.",
    ),
    Entry(
        ("label attention", "LEMM"),
        "label_attention(dot_product_attention(labels, x, x, mask[..., None, :]), query_kernel=Q, key_kernel=K, "
        "value_kernel=V)",
        "Vaswani et al. 2017, as LEMM (Zhong et al. 2020) has no public code",
        "Labels attend to tokens, then to each other, as in Vaswani et al. This does not reproduce LEMM.",
        "LabelAttention",
    ),
    Entry(
        ("DVQA attention", "visual question answering", "attention over image regions"),
        "additive_attention(f[..., None, :], g, g, W_q, W_i, w, mask[..., None, :], bias=b)",
        "Patro, Namboodiri 2018 (patro2018)",
        "`f` is the vector of the question, and `g` [..., L, e] are the image regions. The bias of DVQA's scores cancels.",
        "AdditiveAttention",
    ),
)

RELATIONS = (
    Entry(
        ("MIAN", "field attention", "item-behaviour interaction", "CTR attention"),
        "field_attention_pooling(item, fields, kernel, bias, mask)",
        "Zhang et al. 2021 (zhang2021)",
        "The kernel is [J, d + e] (J fields; widths of item and fields), or [d + e], shared by all fields.",
        "FieldAttentionPool",
    ),
    Entry(
        ("differential attention", "DAN", "attention triplet loss"),
        "attention_triplet_loss(anchor, positive, negative, margin=0.2)",
        "Patro, Namboodiri 2018 (patro2018)",
        "`anchor`, `positive`, `negative` [..., m] are attentions over m regions. Average the losses [...] over the batch.",
    ),
    Entry(
        ("differential context", "DCN of visual question answering"),
        "differential_context(attention, supporting, opposing, mask)",
        "Patro, Namboodiri 2018 (patro2018)",
        "If `attention` is a zero vector, its projections are 0, not NaN.",
    ),
    Entry(
        ("contrastive case relations", "CTM relation vector"),
        "relation_vector(x, y, W1, W2, W3, b)",
        "Liu et al. 2022 (liu2022)",
        "`x` and `y` are [..., d], vectors of two cases. attnpool computes the sigmoid without overflow for any input.",
        "RelationVector",
    ),
    Entry(
        ("CTM triplet loss", "relation triplet loss"),
        "relation_triplet_loss(x, similar, dissimilar, W1, W2, W3, b, margin=1.0)",
        "Liu et al. 2022 (liu2022)",
        "Returns one loss for each example. The parameters are those of `relation_vector`.",
    ),
)
