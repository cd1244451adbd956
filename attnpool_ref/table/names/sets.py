"""Entries of the index of names (``attnpool find``): sets and graphs, padded or packed."""

from attnpool_ref.table.names.entry import Entry

SETS = (
    Entry(
        ("DeepSets", "sum pooling", "global_add_pool of a padded batch"),
        "sum_pooling(f(x), mask)",
        "Zaheer et al. 2017",
        "f is applied to each element before the sum. An empty set gives 0.",
    ),
    Entry(
        ("min pooling",),
        "min_pooling(x, mask)",
        "Corso et al. 2020; PyG's MinAggregation",
        "A fully masked row gives 0. Tied tokens share the gradient.",
    ),
    Entry(
        ("PMA", "Set Transformer", "pooling by multihead attention"),
        "residual = seeds @ W_q + b_q\n"
        "pooled = residual + multi_head_attention_pooling(x, mask, query=seeds, scale=1 / sqrt(d), query_kernel=Q, "
        "key_kernel=K, value_kernel=V, query_bias=b1, key_bias=b2, value_bias=b3)\n"
        'residual_feed_forward(pooled, W, b, normalize=False, activation="relu")',
        "Lee et al. 2019; juho-lee/set_transformer",
        "`seeds` are learned, `d` is the width of all heads together. As in the authors' code, there is no output projection.",
        "PMA",
    ),
    Entry(
        ("PyG SetTransformerAggregation", "PyG PoolingByMultiheadAttention", "PyG PMA"),
        "clean = relu(where(mask[..., None], x, 0) @ W_r + b_r)\n"
        "pooled = seeds + multi_head_attention_pooling(clean, mask, query=seeds, **maps)\n"
        'residual_feed_forward(pooled, W, b, normalize=False, activation="relu")',
        "PyG's `PoolingByMultiheadAttention`",
        "Unlike the authors' PMA: a layer on tokens, an output projection, raw seeds added. Norms (`layer_norm=True`) "
        "are left out.",
        "PMA",
    ),
    Entry(
        ("Set2Set",),
        "set2set_pooling(x, mask, input_kernel=W, recurrent_kernel=R, bias=b, num_steps=3)",
        "Vinyals, Bengio, Kudlur 2016; PyG, DGL",
        "`b` is the sum of the two biases of torch's LSTM. A fully masked row gives 0.",
        "Set2SetPool",
    ),
    Entry(
        ("PNA", "principal neighbourhood aggregation", "MultiAggregation"),
        "concatenate([mean_pooling(x, mask), max_pooling(x, mask), min_pooling(x, mask), std_pooling(x, mask)], -1)",
        "Corso et al. 2020",
        "PNA concatenates the result times each of its degree scalers (factors from the number of neighbors), left out here.",
    ),
    Entry(
        ("PyG SoftmaxAggregation", "DeeperGCN", "GENConv"),
        "softmax_pooling(x, mask, t)",
        "Li et al. 2020; PyG's `SoftmaxAggregation`",
        "No difference in the result. `t` multiplies the tokens in the softmax.",
        "SoftmaxPool",
    ),
    Entry(
        ("PyG PowerMeanAggregation",),
        "power_mean_pooling(x, mask, p)",
        "Li et al. 2020; PyG's `PowerMeanAggregation`",
        "Except for a fixed p = 1, PyG by default clamps the mean of x**p to 100 before the root: (10, 10) with p = 3 gives 4.64.",
        "PowerMeanPool",
    ),
    Entry(
        ("PyG StdAggregation", "PyG VarAggregation"),
        "std_pooling(x, mask)",
        "PyG's `StdAggregation`",
        "PyG's E[x^2] - mean^2 is 0 in float32 for (4096, 4096.25, 4096.5), whose std is 0.204. The variance is the "
        "square.",
    ),
    Entry(
        ("median pooling", "quantile pooling", "PyG MedianAggregation", "PyG QuantileAggregation"),
        "quantile_pooling(x, mask, 0.5)",
        "Hyndman, Fan 1996; NumPy's quantile",
        "Of two middle values it takes the mean, like PyG's `QuantileAggregation` by default; `MedianAggregation` "
        "takes the lower.",
    ),
    Entry(
        ("global attention", "GlobalAttention", "AttentionalAggregation", "gated readout"),
        "weighted_pooling(f(x), masked_softmax(gate, mask), mask)",
        "Li et al. 2016; PyG's `AttentionalAggregation`",
        "`gate` are scores [..., L]. If they are x @ w, and without f, write `attention_pooling(x, mask, w, "
        "scale=1.0)`.",
    ),
    Entry(
        ("GGNN readout", "MPNN readout", "gated sum", "gated graph readout"),
        "gated_sum_pooling(x, mask, gate_kernel=W_g, value_kernel=W_v, gate_bias=b_g, value_bias=b_v)",
        "Li et al. 2016; Gilmer et al. 2017",
        "GGNN's outer tanh is left out. MPNN has no tanh; for it write `sum_pooling(sigmoid(g(x)) * f(x), mask)`.",
        "GatedSumPool",
    ),
    Entry(
        ("LSTMAggregation", "SortAggregation", "GRUAggregation", "MulAggregation", "SortPool", "SortPooling", "DGCNN"),
        "",
        "PyG's aggregations",
        "attnpool has no LSTM or GRU over the tokens, does not sort tokens, and has no product.",
    ),
)

PACKED = (
    Entry(
        ("readout", "global_mean_pool", "scatter_mean", "segment_mean"),
        "segment_mean_pooling(x, batch, num_graphs)",
        "PyG's `global_mean_pool`; torch_scatter",
        "`batch` [N] is the graph of each token. You pass `num_graphs`, so empty graphs are in the result, and `jax.jit` works.",
    ),
    Entry(
        ("global_max_pool", "scatter_max"),
        "segment_max_pooling(x, batch, num_graphs)",
        "PyG's `global_max_pool`; torch_scatter",
        "An empty segment gives 0. Tied tokens share the gradient.",
    ),
    Entry(
        ("global_add_pool", "scatter_add", "segment_sum"),
        "segment_sum_pooling(x, batch, num_graphs)",
        "PyG's `global_add_pool`; jax.ops.segment_sum",
        "A mask excludes padding, or an id out of range, which in a NumPy array is an error. NaN in padding has no "
        "effect.",
    ),
    Entry(
        ("EmbeddingBag", "nn.EmbeddingBag", "offsets"),
        "segment_mean_pooling(table[ids], segment_ids, B, mask)",
        "torch.nn.EmbeddingBag",
        "Of the offsets of B bags: `np.repeat(np.arange(B), np.diff(offsets, append=len(ids)))`. `mask` is for `padding_idx`.",
    ),
    Entry(
        ("packed attention pooling", "varlen", "cu_seqlens", "sequence packing"),
        "segment_attention_pooling(x, segment_ids, num_segments, mask, q)",
        "packed batches; PyG's batch vector",
        "Segment ids are [N tokens], in any order: of B sequences `np.repeat(np.arange(B), np.diff(cu_seqlens))`.",
        "AttentionPool",
    ),
    Entry(
        ("PackedSequence", "pack_sequence", "pack_padded_sequence", "jagged tensor"),
        "x, segment_ids, num_segments = pack(sequences)",
        "torch.nn.utils.rnn",
        "All tokens are in one array, with a segment id for each token. `unpack` is the inverse.",
    ),
    Entry(
        ("pad_sequence", "collate", "ragged list"),
        "x, mask = pad(sequences)",
        "torch.nn.utils.rnn.pad_sequence",
        "`pad` also returns the mask [B, L]; torch returns only x.",
    ),
    Entry(
        ("streaming", "chunks", "online softmax", "longer than memory"),
        "state = merge_states(attention_state(x1, mask1, q), attention_state(x2, mask2, q))\nfinalize_state(state)",
        "Milakov, Gimelshein 2018",
        "`x1` and `x2` are chunks of one sequence, merged in any order. attnpool_ref keeps all chunks. See also `mean_state`.",
    ),
)
