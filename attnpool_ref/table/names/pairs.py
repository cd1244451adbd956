"""Entries of the index of names (``attnpool find``): two sequences, labels, fields, relations between examples."""

from attnpool_ref.table.names.entry import entries

RETRIEVAL = entries("""
MaxSim | ColBERT | late interaction | ColPali | PyLate
  call: maxsim_score(l2_normalize(q), l2_normalize(x), q_mask, mask)
  source: Khattab, Zaharia 2020; ColBERT, PyLate
  differs: Padding is never the maximum. In PyLate its similarity is 0, greater than negative similarities.
MaxSim of all pairs | ColBERT in-batch scores | mean_maxsim
  call: maxsim_score_all_pairs(l2_normalize(q), l2_normalize(x), q_mask, mask)
  source: Khattab, Zaharia 2020; sentence-transformers' maxsim
  differs: Returns [B queries, C texts], computed in blocks. `mean=True` divides by the number of real query tokens.
XTR
  source: Lee et al. 2023
  differs: XTR needs the whole corpus to estimate similarities that were not retrieved. attnpool only has MaxSim.
cross attention pooling | cross pooling
  call: cross_attention_pooling(x, y, x_mask, y_mask)
  source: Notebook 000, for SimKGC (notebook000)
  differs: `x` and `y` are two sequences. Padding has weight 0; in the notebook it has weight.
cross attention pooling of all pairs | each with each of another batch
  call: cross_attention_pooling_all_pairs(x, y, x_mask, y_mask)
  source: Notebook 000, for SimKGC (notebook000)
  differs: Pools each of B sequences x with each of C sequences y: results [B, C, d] and [B, C, e]. The notebook pools
    matching pairs.
""")

MATCHING = entries("""
BiDAF | bidirectional attention flow | trilinear attention
  call: bidaf_attention(context, query, w, context_mask, query_mask)
  source: Seo et al. 2017 (seo2017)
  differs: Context and query are both masked. `trilinear_score` computes only the scores.
soft alignment | ESIM | decomposable attention
  call: dot_product_attention(f(x), f(y), y, y_mask[..., None, :], scale=1.0)
  source: Parikh et al. 2016; Chen et al. 2017
  differs: Exchange x and y for the other direction. In ESIM, f is the identity.
lexical decomposition | sentence similarity by decomposition
  call: orthogonal_decomposition(x, semantic_match(x, y, x_mask, y_mask))
  source: Wang, Mi, Ittycheriah 2016 (wang2016)
  differs: The paper also has `linear_decomposition` and `rigid_decomposition`. A zero vector has cosine 0.
linear decomposition
  call: linear_decomposition(x, semantic_match(x, y, x_mask, y_mask))
  source: Wang, Mi, Ittycheriah 2016 (wang2016)
  differs: A zero vector has cosine 0, with a finite gradient.
rigid decomposition
  call: rigid_decomposition(x, semantic_match(x, y, x_mask, y_mask), atol=1e-6)
  source: Wang, Mi, Ittycheriah 2016 (wang2016)
  differs: Vectors are equal if no component differs by more than `atol`. In the paper `atol` is 0.
NeurJudge separation | fact separation | mask attention
  call: orthogonal_decomposition(d, mask_attention(c, d, c_mask, d_mask))
  source: Yue et al. 2021 (yue2021)
  differs: Each token of the fact `d` attends to the real tokens of the verdict `c`.
code-wise attention | label-aware pooling
  call: code_wise_attention(labels, x, label_mask, mask)
  source: Yue et al. 2021 (yue2021)
  differs: A token's score is the maximum of its dot products with the real labels. Labels may be masked.
graph decomposition | NeurJudge label graph
  call: graph_decomposition(labels, adjacency, num_layers=2)
  source: Yue et al. 2021 (yue2021)
  differs: `adjacency` [k, k] marks the neighbors of the k `labels` [k, d]. A label without neighbors stays unchanged.
label attention | LEMM
  call: label_attention(dot_product_attention(labels, x, x, mask[..., None, :]), query_kernel=Q, key_kernel=K,
    value_kernel=V)
  source: Vaswani et al. 2017, as LEMM (Zhong et al. 2020) has no public code
  differs: Labels attend to tokens, then to each other, as in Vaswani et al. This does not reproduce LEMM.
DVQA attention | visual question answering | attention over image regions
  call: additive_attention(f[..., None, :], g, g, W_q, W_i, w, mask[..., None, :], bias=b)
  source: Patro, Namboodiri 2018 (patro2018)
  differs: `f` is the vector of the question, and `g` [..., L, e] are the image regions. The bias of DVQA's scores
    cancels.
""")

RELATIONS = entries("""
MIAN | field attention | item-behaviour interaction | CTR attention
  call: field_attention_pooling(item, fields, kernel, bias, mask)
  source: Zhang et al. 2021 (zhang2021)
  differs: The kernel is [J, d + e] (J fields; widths of item and fields), or [d + e], shared by all fields.
differential attention | DAN | attention triplet loss
  call: attention_triplet_loss(anchor, positive, negative, margin=0.2)
  source: Patro, Namboodiri 2018 (patro2018)
  differs: `anchor`, `positive`, `negative` [..., m] are attentions over m regions. Average the losses [...] over the
    batch.
differential context | DCN of visual question answering
  call: differential_context(attention, supporting, opposing, mask)
  source: Patro, Namboodiri 2018 (patro2018)
  differs: If `attention` is a zero vector, its projections are 0, not NaN.
contrastive case relations | CTM relation vector
  call: relation_vector(x, y, W1, W2, W3, b)
  source: Liu et al. 2022 (liu2022)
  differs: `x` and `y` are [..., d], vectors of two cases. attnpool computes the sigmoid without overflow for any input.
CTM triplet loss | relation triplet loss
  call: relation_triplet_loss(x, similar, dissimilar, W1, W2, W3, b, margin=1.0)
  source: Liu et al. 2022 (liu2022)
  differs: Returns one loss for each example. The parameters are those of `relation_vector`.
""")
