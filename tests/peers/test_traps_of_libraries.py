"""Rows of docs/traps.md whose source is installed: the library itself gives what the table says that it gives."""

import numpy as np
import pytest
import torch
import traps
from flax import linen
from imported import (
    Pooling,
    Siglip2MultiheadAttentionPoolingHead,
    Siglip2VisionConfig,
    WeightedLayerPooling,
    aggr,
    entmax,
)
from pools import called
from pools_of_transformers import sized, x_vector
from printed_text import agree
from torch.nn import functional

ROWS = {trap.name: trap for trap in traps.TRAPS}


def graph(aggregation, index=None):
    """An aggregation of all tokens, or of those of some graphs."""

    def pool(x):
        of = torch.zeros(len(x), dtype=torch.long) if index is None else torch.tensor(index)
        return aggregation(x, of, dim_size=None if index is None else max(index) + 1)

    return pool


def both_p_of_one(x):
    return torch.stack([graph(aggr.PowerMeanAggregation(1.0, learn))(x).detach() for learn in (True, False)])


def modes(mode, **more):
    def pool(x, mask):
        features = {"token_embeddings": x[None], "attention_mask": mask.long()[None], **more}
        return Pooling(1, mode, include_prompt=not more)(features)["sentence_embedding"]

    return pool


def layers(layers, weights):
    given = {"all_layer_embeddings": list(layers[:, None, None])}
    return called(WeightedLayerPooling(1, 1, 0), {"layer_weights": weights}, given)["token_embeddings"]


def siglip2(alone):
    """A head whose scores are 0, and in which nothing else changes the values."""

    def pool(x, mask):
        config = sized(Siglip2VisionConfig, 2, 1, None if alone else "sdpa", intermediate_size=2)
        head = Siglip2MultiheadAttentionPoolingHead(config)
        parameters = {name: torch.zeros_like(value).double() for name, value in head.named_parameters()}
        parameters["attention.in_proj_weight"][4:] = parameters["attention.out_proj.weight"][:] = torch.eye(2)
        return called(head, parameters, x[None], mask[None])

    return pool


LIBRARIES = {
    "P-1a": graph(aggr.PowerMeanAggregation(3.0)),
    "P-1b": graph(aggr.PowerMeanAggregation(3.0)),
    "P-1c": both_p_of_one,
    "P-1e": lambda x: aggr.PowerMeanAggregation(3.0)(x, torch.zeros(0, dtype=torch.long), dim_size=1),
    "P-2a": graph(aggr.VarAggregation()),
    "P-2b": graph(aggr.StdAggregation()),
    "P-6c": lambda x: x_vector({"x": x[None]}, torch.ones(1, 1))[0, 1],
    "P-9a": modes("max"),
    "P-9b": modes("cls"),
    "P-9c": modes("mean"),
    "P-9d": modes("weightedmean"),
    "P-14c": lambda x: functional.lp_pool1d(x.T, 3.0, len(x)),
    "P-14d": lambda x: functional.lp_pool1d(x.T, 3.0, len(x)),
    "P-19": layers,
    "P-20": lambda x, _: functional.avg_pool1d(x.T, 2, 2, padding=1),
    "P-24a": siglip2(False),
    "P-24b": siglip2(True),
    "P-25b": lambda s, mask: entmax.entmax_bisect(torch.where(mask, s, -torch.inf), 1.3),
    "P-25c": lambda s: entmax.entmax_bisect(s, 1.0),
}
FAILING = {
    "P-1d": graph(aggr.PowerMeanAggregation(3.0, clamp_min=None, clamp_max=None)),
    "P-21": lambda x: x.topk(8, 0),
    "P-23": lambda x, mask: graph(aggr.MedianAggregation(), index=[1, 1])(x[mask]),
    "P-25a": lambda s, mask: entmax.entmax15(torch.where(mask, s, -torch.inf)),
}


def given(name):
    """The row's input, as tensors in the order of its statements."""
    names = {"np": np}
    exec("\n".join(ROWS[name].given), names)
    return [torch.tensor(value) for key, value in names.items() if key not in ("np", "__builtins__")]


@pytest.mark.filterwarnings("ignore:std\\(\\)")
@pytest.mark.parametrize("name", LIBRARIES)
def test_the_library_gives_what_the_table_says(name):
    result = np.asarray(LIBRARIES[name](*given(name)).detach())
    assert agree(ROWS[name].was, result, str(result.dtype)), result


@pytest.mark.parametrize("name", FAILING)
def test_the_library_fails_as_the_table_says(name):
    with pytest.raises((RuntimeError, IndexError)) as failed:
        FAILING[name](*given(name))
    assert failed.type.__name__ in ROWS[name].was


def test_what_flax_and_sentence_transformers_give():
    x = given("P-20")[0].numpy()
    assert agree(ROWS["P-20"].was, linen.avg_pool(x[None], (2,), (2,), ((1, 1),)), "float32")
    x, mask, _ = given("P-9e")
    assert agree(ROWS["P-9e"].now, modes("weightedmean", prompt_length=1)(x, mask), "float64")
