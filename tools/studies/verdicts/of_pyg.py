"""Aggregations of PyTorch Geometric: tokens of all examples in one array, with the example's number for each token."""

import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.parameters import eighths, heads
from verdicts.table import Entry


def _aggregated(aggregation, **how):
    def pool(x, segment_ids, num_segments):
        return aggregation(x, segment_ids.long(), dim_size=num_segments)

    return Candidate(pool, arrays="torch", mask_form="segments", **how)


def mean(dtype):
    """Averages each set of elements. `dim_size` is the number of sets, so that empty sets at the end are included."""
    del dtype
    from torch_geometric.nn import aggr

    return _aggregated(aggr.MeanAggregation())


def maximum(dtype):
    """Takes the maximum of each set of elements, feature by feature."""
    del dtype
    from torch_geometric.nn import aggr

    return _aggregated(aggr.MaxAggregation())


def softmax(dtype):
    """Averages each set of elements, feature by feature, weighted by a softmax of the elements times an inverse
    temperature `t`. It is judged with one feature, where this is attention with `t` as the query.
    """
    from torch_geometric.nn import aggr

    own = {"query": np.array([0.75], heads(dtype)["out_bias"].dtype)}
    return _aggregated(aggr.SoftmaxAggregation(t=0.75), parameters=lambda _: own, fixed={"scale": 1.0})


def attentional(dtype):
    """Averages each set of elements, weighted by a softmax of the scores that `gate_nn` computes, here a linear map whose
    weight is the `query` of attnpool's function.
    """
    import torch
    from torch_geometric.nn import aggr

    query = eighths(np.random.default_rng(0), 4)
    gate = torch.nn.Linear(4, 1, bias=False, dtype=getattr(torch, dtype))
    gate.load_state_dict({"weight": torch.tensor(query[None])})
    own = {"query": query.astype(heads(dtype)["out_bias"].dtype)}
    return _aggregated(aggr.AttentionalAggregation(gate), parameters=lambda _: own, fixed={"scale": 1.0})


NOTHING = "In float32 and float64, nothing is needed: packed tokens have no padding."
DRIFT = " But averages of very many tokens drift in float32; [peers.md](peers.md) has an example."
ENTRIES = (
    Entry("MeanAggregation (PyG)", "mean_pooling", mean, ("torch_geometric", "torch"), NOTHING + DRIFT, long=True),
    Entry("MaxAggregation (PyG)", "max_pooling", maximum, ("torch_geometric", "torch"), "Nothing is needed."),
    Entry("SoftmaxAggregation (PyG)", "attention_pooling", softmax, ("torch_geometric", "torch"), NOTHING),
    Entry(
        "AttentionalAggregation (PyG)",
        "attention_pooling",
        attentional,
        ("torch_geometric", "torch"),
        NOTHING,
    ),
)
