"""Where a peer means something else, or an edge of it is another one: rows of the last table of docs/peers.md."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from imported import SpladePooling, aggr, maxsim
from packages import every_package
from printed_text import agree

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "peers.md").read_text()


@dataclass(frozen=True)
class Difference:
    """One row.

    Attributes:
      peer: what is called.
      situation: the input, in words.
      was: the peer's numbers, as they are printed.
      now: ours.
      theirs: gives the peer's.
      ours: gives a package's.
    """

    peer: str
    situation: str
    was: str
    now: str
    theirs: Callable
    ours: Callable

    def __str__(self):
        return f"{self.peer}, {self.situation}"


def row(*numbers):
    return torch.tensor([[number] for number in numbers], dtype=torch.float64)


def set2set():
    module = aggr.Set2Set(1, 1).double()
    module.load_state_dict({name: torch.ones_like(value) for name, value in module.state_dict().items()})
    return module(row(1), torch.tensor([1]), dim_size=2)[0].detach()


LSTM = {"input_kernel": np.ones((2, 4)), "recurrent_kernel": np.ones((1, 4)), "bias": np.full(4, 2.0)}
MANY = np.full((10**6, 1), 0.1, np.float32)
ONE, NAN, FIRST = np.ones((1, 1, 1)), np.array([[[1.0], [np.nan]]]), np.array([[True, False]])
NOTHING = np.array([[False]])

DIFFERENCES = [
    Difference(
        "PyG `MedianAggregation`",
        "(1, 2, 3, 10)",
        "2",
        "2.5",
        lambda: aggr.MedianAggregation()(row(1, 2, 3, 10), torch.zeros(4, dtype=torch.long)),
        lambda package: package.quantile_pooling(row(1, 2, 3, 10).numpy()),
    ),
    Difference(
        "PyG `Set2Set`",
        "an empty graph, all parameters 1, one step",
        "0.608283 0",
        "0 0",
        set2set,
        lambda package: package.set2set_pooling(ONE[0], NOTHING[0], num_steps=1, **LSTM),
    ),
    Difference(
        "PyG `MeanAggregation`",
        "a million times 0.1 in float32",
        "0.1010",
        "0.100000",
        lambda: aggr.MeanAggregation()(torch.tensor(MANY), torch.zeros(len(MANY), dtype=torch.long)),
        lambda package: package.mean_pooling(MANY),
    ),
    Difference(
        "sentence-transformers `maxsim`",
        "a document without tokens",
        "-1e9",
        "0",
        lambda: maxsim(torch.tensor(ONE), torch.tensor(ONE), None, torch.tensor(NOTHING)),
        lambda package: package.maxsim_score_all_pairs(ONE, ONE, None, NOTHING),
    ),
    Difference(
        "sentence-transformers `maxsim`",
        "NaN in a padded token of the query",
        "nan",
        "1",
        lambda: maxsim(torch.tensor(NAN), torch.tensor(ONE), torch.tensor(FIRST)),
        lambda package: package.maxsim_score_all_pairs(NAN, ONE, FIRST),
    ),
    Difference(
        "sentence-transformers `SpladePooling`",
        "NaN in a padded token",
        "nan",
        "0.693147",
        lambda: SpladePooling()({"token_embeddings": torch.tensor(NAN), "attention_mask": torch.tensor(FIRST)})[
            "sentence_embedding"
        ],
        lambda package: package.max_pooling(np.log1p(np.maximum(NAN, 0)), FIRST),
    ),
]


@every_package
@pytest.mark.parametrize("difference", DIFFERENCES, ids=str)
def test_the_peer_and_ours_are_as_the_page_says(difference, package):
    theirs, ours = difference.theirs(), difference.ours(package)
    assert agree(difference.was, theirs.numpy(), "float32"), theirs
    assert agree(difference.now, ours, "float32"), ours
    cells = (difference.peer, difference.situation, *map(flat, (difference.was, difference.now)))
    assert f"| {' | '.join(cells)} |" in PAGE


def flat(printed):
    numbers = printed.split()
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
