"""Entries of the index of names (``attnpool find``): sets and graphs, padded or packed."""

from attnpool_ref.table.names.entry import entries

SETS = entries("""
DeepSets | sum pooling | global_add_pool of a padded batch
  call: sum_pooling(f(x), mask)
  source: Zaheer et al. 2017
  differs: f is applied to each element before the sum. An empty set gives 0.
min pooling
  call: min_pooling(x, mask)
  source: Corso et al. 2020; PyG's MinAggregation
  differs: A fully masked row gives 0. Tied tokens share the gradient.
PMA | Set Transformer | pooling by multihead attention
  call: residual = seeds @ W_q + b_q
    pooled = residual + multi_head_attention_pooling(x, mask, query=seeds, scale=1 / sqrt(d), query_kernel=Q,
    key_kernel=K, value_kernel=V, query_bias=b1, key_bias=b2, value_bias=b3)
    residual_feed_forward(pooled, W, b, normalize=False, activation="relu")
  source: Lee et al. 2019; juho-lee/set_transformer
  differs: `seeds` are learned, `d` is the width of all heads together. As in the authors' code, there is no output
    projection.
  module: PMA
PyG SetTransformerAggregation | PyG PoolingByMultiheadAttention | PyG PMA
  call: clean = relu(where(mask[..., None], x, 0) @ W_r + b_r)
    pooled = seeds + multi_head_attention_pooling(clean, mask, query=seeds, **maps)
    residual_feed_forward(pooled, W, b, normalize=False, activation="relu")
  source: PyG's `PoolingByMultiheadAttention`
  differs: Unlike the authors' PMA: a layer on tokens, an output projection, raw seeds added. Norms (`layer_norm=True`)
    are left out.
  module: PMA
Set2Set
  call: set2set_pooling(x, mask, input_kernel=W, recurrent_kernel=R, bias=b, num_steps=3)
  source: Vinyals, Bengio, Kudlur 2016; PyG, DGL
  differs: `b` is the sum of the two biases of torch's LSTM. A fully masked row gives 0.
PNA | principal neighbourhood aggregation | MultiAggregation
  call: concatenate([mean_pooling(x, mask), max_pooling(x, mask), min_pooling(x, mask), std_pooling(x, mask)], -1)
  source: Corso et al. 2020
  differs: PNA concatenates the result times each of its degree scalers (factors from the number of neighbors), left out
    here.
PyG SoftmaxAggregation | DeeperGCN | GENConv
  call: softmax_pooling(x, mask, t)
  source: Li et al. 2020; PyG's `SoftmaxAggregation`
  differs: No difference in the result. `t` multiplies the tokens in the softmax.
PyG PowerMeanAggregation
  call: power_mean_pooling(x, mask, p)
  source: Li et al. 2020; PyG's `PowerMeanAggregation`
  differs: Except for a fixed p = 1, PyG by default clamps the mean of x**p to 100 before the root: (10, 10) with p = 3
    gives 4.64.
PyG StdAggregation | PyG VarAggregation
  call: std_pooling(x, mask)
  source: PyG's `StdAggregation`
  differs: PyG's E[x^2] - mean^2 is 0 in float32 for (4096, 4096.25, 4096.5), whose std is 0.204. The variance is the
    square.
median pooling | quantile pooling | PyG MedianAggregation | PyG QuantileAggregation
  call: quantile_pooling(x, mask, 0.5)
  source: Hyndman, Fan 1996; NumPy's quantile
  differs: Of two middle values it takes the mean, like PyG's `QuantileAggregation` by default; `MedianAggregation`
    takes the lower.
global attention | GlobalAttention | AttentionalAggregation | gated readout
  call: weighted_pooling(f(x), masked_softmax(gate, mask), mask)
  source: Li et al. 2016; PyG's `AttentionalAggregation`
  differs: `gate` are scores [..., L]. If they are x @ w, and without f, write `attention_pooling(x, mask, w,
    scale=1.0)`.
  module: none
GGNN readout | MPNN readout | gated sum | gated graph readout
  call: gated_sum_pooling(x, mask, gate_kernel=W_g, value_kernel=W_v, gate_bias=b_g, value_bias=b_v)
  source: Li et al. 2016; Gilmer et al. 2017
  differs: GGNN's outer tanh is left out. MPNN has no tanh; for it write `sum_pooling(sigmoid(g(x)) * f(x), mask)`.
LSTMAggregation | SortAggregation | GRUAggregation | MulAggregation | SortPool | SortPooling | DGCNN
  source: PyG's aggregations
  differs: attnpool has no LSTM or GRU over the tokens, does not sort tokens, and has no product.
""")

PACKED = entries("""
readout | global_mean_pool | scatter_mean | segment_mean
  call: segment_mean_pooling(x, batch, num_graphs)
  source: PyG's `global_mean_pool`; torch_scatter
  differs: `batch` [N] is the graph of each token. You pass `num_graphs`, so empty graphs are in the result, and
    `jax.jit` works.
global_max_pool | scatter_max
  call: segment_max_pooling(x, batch, num_graphs)
  source: PyG's `global_max_pool`; torch_scatter
  differs: An empty segment gives 0. Tied tokens share the gradient.
global_add_pool | scatter_add | segment_sum
  call: segment_sum_pooling(x, batch, num_graphs)
  source: PyG's `global_add_pool`; jax.ops.segment_sum
  differs: A mask excludes padding, or an id out of range, which in a NumPy array is an error. NaN in padding has no
    effect.
EmbeddingBag | nn.EmbeddingBag | offsets
  call: segment_mean_pooling(table[ids], segment_ids, B, mask)
  source: torch.nn.EmbeddingBag
  differs: Of the offsets of B bags: `np.repeat(np.arange(B), np.diff(offsets, append=len(ids)))`. `mask` is for
    `padding_idx`.
packed attention pooling | varlen | cu_seqlens | sequence packing
  call: segment_attention_pooling(x, segment_ids, num_segments, mask, q)
  source: packed batches; PyG's batch vector
  differs: Segment ids are [N tokens], in any order: of B sequences `np.repeat(np.arange(B), np.diff(cu_seqlens))`.
  module: AttentionPool
PackedSequence | pack_sequence | pack_padded_sequence | jagged tensor
  call: x, segment_ids, num_segments = pack(sequences)
  source: torch.nn.utils.rnn
  differs: All tokens are in one array, with a segment id for each token. `unpack` is the inverse.
pad_sequence | collate | ragged list
  call: x, mask = pad(sequences)
  source: torch.nn.utils.rnn.pad_sequence
  differs: `pad` also returns the mask [B, L]; torch returns only x.
streaming | chunks | online softmax | longer than memory
  call: state = merge_states(attention_state(x1, mask1, q), attention_state(x2, mask2, q))
    finalize_state(state)
  source: Milakov, Gimelshein 2018
  differs: `x1` and `x2` are chunks of one sequence, merged in any order. attnpool_ref keeps all chunks. See also
    `mean_state`.
""")
