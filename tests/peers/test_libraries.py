"""PyTorch's and Flax's attention with our parameters: the same numbers and gradients, and where theirs are not."""

import zlib
from dataclasses import dataclass

import jax
import libraries
import numpy as np
import pytest

import attnpool_ref
from attnpool_ref.conformance.checks import tolerances


def affine(d, e, v, o):
    """Shapes of `multi_head_attention` for queries, keys and values of these widths."""
    data = {"query": (3, 4, d), "key": (3, 6, e), "value": (3, 6, v)}
    kernels = {"query_kernel": (d, 2, 5), "key_kernel": (e, 2, 5), "value_kernel": (v, 2, 5), "out_kernel": (2, 5, o)}
    return data | kernels


BIASES = {"query_bias": (2, 5), "key_bias": (2, 5), "value_bias": (2, 5)}
HEADS = {"query": (3, 2, 4, 7), "key": (3, 2, 6, 7), "value": (3, 2, 6, 8)}


@dataclass(frozen=True)
class Case:
    """A peer beside ours.

    Attributes:
      title: what is compared.
      theirs: the peer.
      ours: the same of attnpool_flax.
      function: its name in attnpool_ref.
      shapes: of the arrays.
    """

    title: str
    theirs: libraries.Library
    ours: libraries.Library
    function: str
    shapes: dict

    def __str__(self):
        return self.title

    def rng(self):
        return np.random.default_rng(zlib.crc32(self.title.encode()))

    def draw(self):
        """Arrays in float32, kernels by their fan-in, and a mask by which the examples differ."""
        rng = self.rng()
        fans = {name: shape[0] if len(shape) == 3 else 1 for name, shape in self.shapes.items() if "kernel" in name}
        fans["out_kernel"] = 10
        arrays = {
            name: (rng.normal(size=shape) * fans.get(name, 1) ** -0.5).astype(np.float32)
            for name, shape in self.shapes.items()
        }
        return arrays, self.mask([6, 3, 2])

    def mask(self, lengths):
        """[3, 6], True for the first keys of each example; [3, 4, 6] where it may differ from query to query."""
        mask = np.arange(6) < np.array(lengths)[:, None]
        if self.function == "multi_head_attention":
            return mask
        return mask[:, None] & (np.arange(6) != np.arange(4)[:, None] + 2)

    def definition(self, arrays, mask):
        """What the oracle says, with weights where the peer has them."""
        mask = mask[:, None] if self.function == "dot_product_attention" else mask[..., None, :]
        result = getattr(attnpool_ref, self.function)(mask=mask, return_weights=True, **arrays)
        return list(result)

    def allowed(self, function, arrays):
        """Twice, for either may be wrong, what rounding explains of each result of a function in float64."""
        wide = {name: x.astype(np.float64) for name, x in arrays.items()}
        terms = 8 + sum(sum(shape) for shape in self.shapes.values())
        sensitive = tolerances.sensitivity(function, wide, self.rng())
        return [
            2 * tolerances.allowed_error(float(np.max(np.abs(exact))), float(np.max(moved)), terms, "float32")
            for exact, moved in zip(function(wide), sensitive, strict=True)
        ]


WIDTHS_DIFFER, ONE_WIDTH, KEYS_LIKE_VALUES = affine(10, 7, 8, 10), affine(10, 10, 10, 10), affine(7, 8, 8, 11)
MULTI_HEAD = [
    ("MultiheadAttention, weights", libraries.torch_module, libraries.ours, WIDTHS_DIFFER, 10),
    ("MultiheadAttention, one width, weights", libraries.torch_module, libraries.ours, ONE_WIDTH, 10),
    *(
        (
            f"MultiheadAttention{kind}",
            libraries.torch_module_without_weights,
            libraries.ours_without_weights,
            shapes,
            10,
        )
        for kind, shapes in ((", one width", ONE_WIDTH), ("", WIDTHS_DIFFER))
    ),
    ("linen.MultiHeadDotProductAttention", libraries.linen_module, libraries.ours, KEYS_LIKE_VALUES, 11),
    ("nnx.MultiHeadAttention", libraries.nnx_module, libraries.ours_without_weights, KEYS_LIKE_VALUES, 11),
]
CASES = [
    *(
        Case(title + ending, theirs, ours, "multi_head_attention", shapes | biases)
        for title, theirs, ours, shapes, width in MULTI_HEAD
        for ending, biases in ((", biases", BIASES | {"out_bias": (width,)}), ("", {}))
    ),
    *(
        Case(title, libraries.torch_function, libraries.our_function, "dot_product_attention", HEADS | bias)
        for title, bias in (
            ("scaled_dot_product_attention, mask", {}),
            ("scaled_dot_product_attention, mask in the bias", {"bias": (3, 2, 4, 6)}),
        )
    ),
]
EACH = pytest.mark.parametrize("case", CASES, ids=str)


@EACH
def test_the_same_parameters_give_the_same_numbers(case):
    arrays, mask = case.draw()
    theirs, ours = case.theirs.forward(arrays, mask), case.ours.forward(arrays, mask)
    errors = case.allowed(lambda wide: case.definition(wide, mask), arrays)
    wide = {name: x.astype(np.float64) for name, x in arrays.items()}
    assert len(theirs) == len(ours) <= len(errors)
    for got, also, exact, error in zip(theirs, ours, case.definition(wide, mask), errors, strict=False):
        assert got.shape == also.shape == exact.shape
        assert got.dtype == also.dtype == np.float32
        np.testing.assert_allclose(also, got, rtol=0, atol=error)
        np.testing.assert_allclose(also, exact, rtol=0, atol=error)


@EACH
def test_the_same_parameters_give_the_same_gradients(case):
    arrays, mask = case.draw()
    factors = [case.rng().normal(size=part.shape).astype(np.float32) for part in case.ours.forward(arrays, mask)]
    theirs, ours = case.theirs.gradients(arrays, mask, factors), case.ours.gradients(arrays, mask, factors)
    assert theirs.keys() == ours.keys() == arrays.keys()

    def in_float64(wide):
        with jax.enable_x64(True):
            found = case.ours.gradients(wide, mask, [factor.astype(np.float64) for factor in factors])
        return [found[name] for name in arrays]

    errors = dict(zip(arrays, case.allowed(in_float64, arrays), strict=True))
    for name, error in errors.items():
        assert theirs[name].shape == ours[name].shape
        if name == "key_bias":  # the softmax cancels it: the sum is 0, the terms are the kernel's without its factors
            error = errors["key_kernel"]
        else:
            assert np.max(np.abs(ours[name])) > 2 * error
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=error, err_msg=name)


@dataclass(frozen=True)
class Difference:
    """What a peer gives where ours is right.

    Attributes:
      case: title of the case.
      situation: the key of ``SITUATIONS``.
      result: what stands in the one example that it is about: `ours`, `nan`, or `average` of the padding.
      gradients: whether they are finite.
    """

    case: str
    situation: str
    result: str
    gradients: bool

    def __str__(self):
        return f"{self.situation}: {self.case}"


SITUATIONS = ("no real key", "NaN in a padded value", "NaN in a padded key")
DIFFERENCES = [
    Difference("MultiheadAttention, weights, biases", "no real key", "nan", False),
    Difference("MultiheadAttention, biases", "no real key", "ours", True),
    Difference("linen.MultiHeadDotProductAttention, biases", "no real key", "average", True),
    Difference("nnx.MultiHeadAttention, biases", "no real key", "average", True),
    Difference("scaled_dot_product_attention, mask", "no real key", "ours", True),
    Difference("scaled_dot_product_attention, mask in the bias", "no real key", "ours", True),
    Difference("MultiheadAttention, weights, biases", "NaN in a padded value", "nan", False),
    Difference("MultiheadAttention, biases", "NaN in a padded value", "nan", False),
    Difference("linen.MultiHeadDotProductAttention, biases", "NaN in a padded value", "nan", False),
    Difference("nnx.MultiHeadAttention, biases", "NaN in a padded value", "nan", False),
    Difference("scaled_dot_product_attention, mask", "NaN in a padded value", "nan", False),
    Difference("MultiheadAttention, weights, biases", "NaN in a padded key", "nan", False),
    Difference("MultiheadAttention, biases", "NaN in a padded key", "nan", False),
    Difference("linen.MultiHeadDotProductAttention, biases", "NaN in a padded key", "ours", False),
    Difference("nnx.MultiHeadAttention, biases", "NaN in a padded key", "ours", False),
    Difference("scaled_dot_product_attention, mask", "NaN in a padded key", "nan", False),
]
"""All of it as it is today: a row that does not hold any more fails, and goes or changes."""


def situation(case, name):
    """Arrays and a mask: example 2 is the one that it is about."""
    arrays, mask = case.draw()
    if name == "no real key":
        return arrays, case.mask([6, 3, 0])
    poisoned = name.removeprefix("NaN in a padded ")
    arrays[poisoned][2, ..., 4, :] = np.nan
    return arrays, mask


@pytest.mark.parametrize("row", DIFFERENCES, ids=str)
def test_where_a_peer_differs_ours_is_right(row):
    case = next(case for case in CASES if case.title == row.case)
    arrays, mask = situation(case, row.situation)
    clean, _ = case.draw()
    theirs, ours = case.theirs.forward(arrays, mask)[0], case.ours.forward(arrays, mask)[0]
    wide = {name: x.astype(np.float64) for name, x in clean.items()}
    right = case.definition(wide, mask)[0]
    error = case.allowed(lambda wide: case.definition(wide, mask), clean)[0]
    np.testing.assert_allclose(ours, right, rtol=0, atol=error)  # the poison has changed nothing
    np.testing.assert_allclose(theirs[:2], right[:2], rtol=0, atol=error)  # nobody's other examples suffer
    if row.situation == "no real key":
        np.testing.assert_array_equal(ours[2], np.broadcast_to(clean.get("out_bias", np.float32(0)), ours[2].shape))
    if row.result == "nan":
        assert np.isnan(theirs[2]).all() if row.situation == "no real key" else np.isnan(theirs[2]).any()
    elif row.result == "ours":
        np.testing.assert_allclose(theirs[2], right[2], rtol=0, atol=error)
    else:
        everywhere = case.definition({**wide, "query": 0 * wide["query"], "query_bias": 0 * wide["query_bias"]}, ~mask)[
            0
        ]
        np.testing.assert_allclose(theirs[2], everywhere[2], rtol=0, atol=error)
        assert np.max(np.abs(theirs[2] - ours[2])) > 2 * error


@pytest.mark.parametrize("row", DIFFERENCES, ids=str)
def test_where_a_peers_gradients_are_not_finite_ours_are(row):
    case = next(case for case in CASES if case.title == row.case)
    arrays, mask = situation(case, row.situation)
    factors = [np.ones_like(part) for part in case.ours.forward(arrays, mask)]
    theirs, ours = case.theirs.gradients(arrays, mask, factors), case.ours.gradients(arrays, mask, factors)
    assert all(np.isfinite(x).all() for x in ours.values())
    assert all(np.isfinite(x).all() for x in theirs.values()) == row.gradients
    if row.situation == "no real key":
        assert not any(ours[name][2].any() for name in ("query", "key", "value"))


def test_the_table_of_differences_covers_each_peer():
    assert {row.situation for row in DIFFERENCES} == set(SITUATIONS)
    assert {row.case for row in DIFFERENCES} <= {case.title for case in CASES}
    assert {case.theirs for case in CASES if case.title in {row.case for row in DIFFERENCES}} == {
        case.theirs for case in CASES
    }
    assert len({str(row) for row in DIFFERENCES}) == len(DIFFERENCES)
