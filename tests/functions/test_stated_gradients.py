"""Gradients at points where a function has no derivative: ``attnpool_flax`` has those that the contract states.

The judge does not require them of other implementations. Ties of two tokens and hinges it compares with central
differences, in the cases of ``values.tied``.
"""

import jax
import numpy as np
import pytest
from rounding import rounded

import attnpool_flax

pytestmark = pytest.mark.thorough

UNSTATED = np.nan
"""Mark of elements whose gradient the contract does not state."""

STATED = {
    "l2_normalize": [("a zero vector", {"x": [[0, 0], [3, 0]]}, {"axis": -1}, {"x": [[0, 0], [0, 1 / 3]]})],
    "cosine_score": [
        ("a zero query", {"query": [[0, 0]], "key": [[1, 2]]}, {}, {"query": [[0, 0]], "key": [[0, 0]]}),
        ("a zero key", {"query": [[1, 2]], "key": [[0, 0]]}, {}, {"query": [[0, 0]], "key": [[0, 0]]}),
    ],
    "orthogonal_decomposition": [
        ("a zero reference", {"x": [3, 4], "reference": [0, 0]}, {}, {"x": [1, 1], "reference": [0, 0]}),
    ],
    "linear_decomposition": [
        ("a zero reference", {"x": [3, 4], "reference": [0, 0]}, {}, {"x": [1, 1], "reference": [0, 0]}),
        ("a zero vector", {"x": [0, 0], "reference": [3, 4]}, {}, {"x": [1, 1], "reference": [0, 0]}),
    ],
    "semantic_match": [
        (
            "two largest cosines, of which the first is chosen",
            {"x": [[1, 0]], "y": [[0, 1], [1, 0], [2, 0]]},
            {"method": "max", "window": 2},
            {"x": [[0, 0]], "y": [[0, 0], [1, 1], [0, 0]]},
        ),
    ],
    "graph_decomposition": [
        (
            "a zero neighbour",
            {"labels": [[0, 0], [3, 4]], "adjacency": np.array([[False, True], [True, False]])},
            {"num_layers": 1},
            {"labels": [[0.16, -0.12], [1, 1]]},
        ),
    ],
    "max_pooling": [
        (
            "three tokens that are the largest",
            {"x": [[1, 1], [1, 0], [1, 1], [0, 1]]},
            {},
            {"x": [[1 / 3, 1 / 3], [1 / 3, 0], [1 / 3, 1 / 3], [0, 1 / 3]]},
        ),
        (
            "a token and padding that are the largest",
            {"x": [[1], [1], [0]], "mask": np.array([True, False, True])},
            {"implementation": "tiles"},
            {"x": [[1], [0], [0]]},
        ),
    ],
    "segment_max_pooling": [
        (
            "two tokens that are the largest, and padding that equals them",
            {"x": [[1], [1], [1], [0]], "segment_ids": np.zeros(4, int), "mask": np.array([True, True, False, True])},
            {"num_segments": 1, "implementation": "tiles"},
            {"x": [[0.5], [0.5], [0], [0]]},
        ),
    ],
    "weighted_pooling": [
        ("weights that sum to 0", {"x": [[1, 2], [3, 4]], "weights": [1, -1]}, {}, {"x": [[0, 0], [0, 0]]}),
    ],
    "std_pooling": [
        ("a constant", {"x": [[0.7]] * 7, "ddof": 0, "epsilon": 0}, {}, {"x": [[0]] * 7}),
        ("one token", {"x": [[3, 4]], "ddof": 1, "epsilon": 0}, {}, {"x": [[0, 0]]}),
        ("the floor", {"x": [[1], [2], [3]], "ddof": 0, "epsilon": 1}, {}, {"x": [[0]] * 3}),
    ],
    "statistics_pooling": [
        ("a constant", {"x": [[0.7]] * 7, "ddof": 0, "epsilon": 0}, {}, {"x": [[1 / 7]] * 7}),
    ],
    "kernel_regression": [
        (
            "the weights of a boxcar",
            {"query": [[0, 0]], "key": [[1, 0], [0, 3], [0, 1]], "value": [[1], [2], [4]], "bandwidth": 2},
            {"kernel": "boxcar"},
            {"query": [[0, 0]], "key": [[0, 0]] * 3, "value": [[0.5], [0], [0.5]]},
        ),
        *(
            (
                f"a key at the edge of the {kernel} kernel",
                {"query": [[0]], "key": [[0], [1]], "value": [[0], [1]], "bandwidth": 1},
                {"kernel": kernel},
                {"query": [[inside / 2]], "key": [[UNSTATED], [-inside / 2]]},
            )
            for kernel, inside in (("triangular", 1), ("epanechnikov", 2))
        ),
    ],
    "attention_triplet_loss": [
        (
            "the hinge at 0",
            {"anchor": [0, 0], "positive": [1, 0], "negative": [0, 1], "margin": 0},
            {},
            {"anchor": [-1, 1], "positive": [1, 0], "negative": [0, -1], "margin": 0.5},
        ),
    ],
    "relation_triplet_loss": [
        (
            "the hinge at 0",
            {"x": [1], "similar": [2], "dissimilar": [2], "x_kernel": [[0]], "y_kernel": [[0]]}
            | {"out_kernel": [[1]], "bias": [0], "margin": 0},
            {},
            {"margin": 0.5},
        ),
    ],
    "differential_context": [
        (
            "a zero attention vector",
            {"attention": [0, 0], "supporting": [1, 2], "opposing": [3, 1], "weight": 0.5},
            {"mode": "add"},
            {"attention": [1, 1], "supporting": [-0.5, -0.5], "opposing": [-0.5, -0.5]},
        ),
    ],
}
"""For each function a list of (title, arguments, options, gradient of the sum of all results by argument)."""


def as_float32(value):
    """A number or list as float32; an array of booleans as it is."""
    return value if isinstance(value, np.ndarray) else np.asarray(value, np.float32)


@pytest.mark.parametrize(
    ("name", "values", "options", "expected"),
    [pytest.param(name, *call, id=f"{name}, {title}") for name, calls in STATED.items() for title, *call in calls],
)
def test_a_gradient_without_a_derivative_is_that_of_the_contract(name, values, options, expected):
    arrays = {key: as_float32(value) for key, value in values.items()}

    def total(traced):
        results = getattr(attnpool_flax, name)(**arrays | traced, **options)
        return sum(map(jax.numpy.sum, jax.tree.leaves(results)))

    found = jax.grad(total)({key: arrays[key] for key in expected})
    for key, value in expected.items():
        want = np.asarray(value, np.float64)
        stated = ~np.isnan(want)
        error = np.abs(np.float64(found[key]) - want)[stated]
        assert (error <= rounded(want[stated], 16)).all(), (key, found[key])
