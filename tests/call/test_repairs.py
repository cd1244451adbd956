"""What is refused comes with what should have been written: arrays of other libraries, masked arrays, ragged lists."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from packages import every_package
from refusals import Call, every_refusal

import attnpool_flax
import attnpool_ref
from attnpool_ref.contract.text import type_of

X = np.ones((3, 5, 4), np.float32)
QUERY = np.ones(4, np.float32)
MASKED = np.ma.array(X, mask=np.arange(5)[:, None] > [[[2]], [[0]], [[4]]] * np.ones(4, int))
IDS = np.zeros(5, int)
FLOATS = (
    "`mask` has dtype float32, but a mask is boolean, True = real (`~mask` where True means padding); did you mean "
)
UNKNOWN = (
    "`mask.astype(bool)` for 0.0 and 1.0, `mask == 0` for an additive mask, or `dtype=bool` in Flax's mask helpers?"
)
INTEGERS = "but a mask is boolean, True = real (`~mask` where True means padding), or 0/1 integers; did you mean "
REAL = np.arange(5) < np.array([[5], [2], [3]])
PACKED, OFFSETS = np.arange(36, dtype=np.float32).reshape(9, 4), np.array([0, 3, 4, 6, 9])
OF_PACKED = np.repeat(np.arange(4), np.diff(OFFSETS))
LOST = "is a masked array, whose mask would be lost, needs a plain one; did you mean"
RAGGED = (
    "needs an array of numbers; did you mean `pad`, which makes an array and its mask from a list of [L, d], or `pack`?"
)
NO_ARRAY = "needs an array of numbers"


class Tensor:
    """As torch has it: a dtype without a name, and a gradient that NumPy does not hold."""

    shape, ndim, requires_grad, device = (5, 4), 2, True, "cuda:0"
    dtype = type("dtype", (), {"__str__": lambda self: "torch.bfloat16"})()
    detach = numpy = lambda self: None

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


class Frame:
    """As pandas has it."""

    def to_numpy(self):
        return X

    def __array__(self, dtype=None, copy=None):
        return X


HEADS = np.ones((3, 5, 2, 4), np.float32)
"""Tokens before heads, as jax.nn.dot_product_attention takes them."""


class Column:
    """As pandas has one whose NumPy array holds objects, such as lists or nullable integers."""

    def __init__(self, *objects):
        self.objects = objects

    def to_numpy(self):
        array = np.empty(len(self.objects), object)
        array[:] = self.objects
        return array

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()


class Series(Column):
    """A column that is one of pandas."""


Series.__module__ = "pandas.core.series"


class ListArray(Column):
    """As pyarrow has it, whose elements NumPy cannot stack."""

    def to_pylist(self):
        return list(self.objects)


class TensorArray(ListArray):
    """As pyarrow has it: each row of its NumPy array is flat."""

    to_numpy_ndarray = None


class ChunkedArray(ListArray):
    """As pyarrow has it, here with one chunk of tensors."""

    def combine_chunks(self):
        return TensorArray(*self.objects)


class Broken:
    """What says that it is an array and is none."""

    def __array__(self, dtype=None, copy=None):
        raise AttributeError("no attribute")


RAGGED_OBJECTS = np.empty(2, object)
RAGGED_OBJECTS[:] = [np.ones((2, 4)), np.ones((3, 4))]
UNFIT = "has shape (3,), needs a shape that broadcasts to [..., L] = (3, 5)"
RAGGED_MASKS = [[True], [False, True]]

BAD = [
    # a query where the mask stands
    Call("attention_pooling", X, QUERY).raises(ValueError, FLOATS + "`query=`?"),
    Call("attention_pooling", X[:, :4], QUERY).raises(ValueError, FLOATS + "`query=`, or `mask.astype(bool)`?"),
    Call("attention_pooling", X, QUERY, QUERY).raises(ValueError, FLOATS + "`mask.astype(bool)`?"),
    Call("segment_attention_pooling", X[0], IDS, 2, X[:2, 0]).raises(ValueError, FLOATS + "`query=`?"),
    Call("weighted_pooling", X, mask=X[0, :, 0]).raises(ValueError, FLOATS + "`weights=`, or `mask.astype(bool)`?"),
    # masks of numbers, whose values say what they mean
    Call("mean_pooling", X, np.where(REAL, 0, -np.inf)).raises(
        ValueError, FLOATS.replace("32", "64") + "`mask == 0` for an additive mask?"
    ),
    Call("mean_pooling", X, np.zeros((3, 5), np.float32)).raises(ValueError, FLOATS + UNKNOWN),
    Call("mean_pooling", X, jnp.where(REAL, 0, -np.inf)).raises(ValueError, FLOATS + UNKNOWN, (attnpool_flax,)),
    Call("mean_pooling", X, np.float32(0.5) * X[0, :, 0]).raises(ValueError, FLOATS.removesuffix("; did you mean ")),
    Call("mean_pooling", X, np.where(REAL, 0, -10000)).raises(
        ValueError, f"`mask` has the value -10000, {INTEGERS}`mask == 0` for an additive mask?"
    ),
    Call("mean_pooling", X, np.array([[5], [2], [0]])).raises(
        ValueError, f"`mask` has the value 5, {INTEGERS}`lengths=mask[:, 0]`?"
    ),
    Call("mean_pooling", PACKED, OF_PACKED).raises(
        ValueError,
        f"`mask` has the value 3, {INTEGERS}`mask != 0`, or `segment_mean_pooling` for segment numbers?",
    ),
    Call("token_positions", np.array([[0, 7]])).raises(
        ValueError, f"`mask` has the value 7, {INTEGERS}`mask != 0`, or `lengths_to_mask` for lengths?"
    ),
    # masked arrays
    Call("mean_pooling", MASKED).raises(
        ValueError, f"`x` {LOST} `x.filled(0)`, and `mask=~np.ma.getmaskarray(x).any(-1)`?"
    ),
    Call("cross_attention_pooling_all_pairs", X, MASKED).raises(
        ValueError, f"`y` {LOST} `y.filled(0)`, and `y_mask=~np.ma.getmaskarray(y).any(-1)`?"
    ),
    Call("masked_softmax", MASKED).raises(
        ValueError, f"`scores` {LOST} `scores.filled(0)`, and `mask=~np.ma.getmaskarray(scores)`?"
    ),
    Call("dot_product_attention", X, MASKED, X).raises(
        ValueError, f"`key` {LOST} `key.filled(0)`, and `mask=~np.ma.getmaskarray(key).any(-1)[..., None, :]`?"
    ),
    Call("mean_pooling", X, mask=np.ma.ones(5, bool)).raises(ValueError, f"`mask` {LOST} `mask.filled(0)`?"),
    Call("dot_score", X, MASKED).raises(ValueError, f"`key` {LOST} `key.filled(0)`?"),
    Call("pad", [X[0], MASKED[1]]).raises(ValueError, f"`sequences[1]` {LOST} `sequences[1].filled(0)`?"),
    # ragged lists
    Call("mean_pooling", [X[0], X[0, :3]]).raises(TypeError, f"`x` is a ragged list, {RAGGED}"),
    Call("mean_pooling", RAGGED_OBJECTS).raises(TypeError, f"`x` has dtype object, {RAGGED}"),
    Call("mean_pooling", X, ([1], [1, 1])).raises(
        TypeError,
        "`mask` is a ragged tuple, needs a boolean array; did you mean `lengths=np.array([len(row) for row in mask])`?",
    ),
    Call("pad", [[[1.0], [2.0, 3.0]]]).raises(TypeError, f"`sequences[0]` is a ragged list, {NO_ARRAY}"),
    Call("mean_pooling", X, RAGGED_MASKS).raises(
        TypeError,
        "`mask` is a ragged list, needs a boolean array; did you mean to pad each row with False to the length of the tokens?",
    ),
    # columns and tables whose NumPy array holds objects
    Call("mean_pooling", Column([1.0, 2.0], [3.0, 4.0])).raises(
        TypeError, f"`x` is a Column, {NO_ARRAY}; did you mean `np.stack(list(x))`?"
    ),
    Call("mean_pooling", Column([1.0], [3.0, 4.0])).raises(TypeError, f"`x` is a Column, {RAGGED}"),
    Call("mean_pooling", X, Column(1, 1, 0, 0, 0)).raises(
        TypeError, "`mask` is a Column, needs a boolean array; did you mean `mask.astype(bool)`?"
    ),
    Call("mean_pooling", X, lengths=Column(1, 1, 0)).raises(
        TypeError, f"`lengths` is a Column, {NO_ARRAY}; did you mean `lengths.astype(int)`?"
    ),
    Call("mean_pooling", X.astype(object)).raises(
        TypeError, f"`x` has dtype object, {NO_ARRAY}; did you mean `x.astype(float)`?"
    ),
    Call("mean_pooling", np.array([[None, 1.0]])).raises(TypeError, f"`x` has dtype object, {NO_ARRAY}"),
    Call("mean_pooling", X, np.array(["1"] * 5, object)).raises(
        TypeError, "`mask` has dtype object, needs a boolean array"
    ),
    Call("mean_pooling", ListArray([1.0, 2.0], [3.0, 4.0])).raises(
        TypeError, f"`x` is a ListArray, {NO_ARRAY}; did you mean `np.stack(x.to_pylist())`?"
    ),
    Call("mean_pooling", TensorArray([1.0, 2.0], [3.0, 4.0])).raises(
        TypeError, f"`x` is a TensorArray, {NO_ARRAY}; did you mean `x.to_numpy_ndarray()`?"
    ),
    Call("mean_pooling", ChunkedArray([1.0, 2.0], [3.0, 4.0])).raises(
        TypeError, f"`x` is a ChunkedArray, {NO_ARRAY}; did you mean `x.combine_chunks().to_numpy_ndarray()`?"
    ),
    # arguments in the place of others
    Call("mean_pooling", X, np.array([5, 2, 0])).raises(ValueError, f"`mask` {UNFIT}; did you mean `lengths=`?"),
    Call("masked_softmax", X, np.array([4, 2, 0])).raises(
        ValueError,
        "`mask` has shape (3,), needs a shape that broadcasts to [...] = (3, 5, 4); did you mean `lengths=`?",
    ),
    Call("cross_attention_pooling", X, X[:, :4], y_mask=np.array([4, 2, 0])).raises(
        ValueError,
        "`y_mask` has shape (3,), needs a shape that broadcasts to [..., T] = (3, 4); did you mean `y_lengths=`?",
    ),
    Call("mean_pooling", X[:, :3], np.array([3, 2, 0])).raises(
        ValueError,
        "`mask` has the value 3, but a mask is boolean, True = real (`~mask` where True means padding), or 0/1 integers; "
        "did you mean `mask != 0`, or `lengths=` for lengths?",
    ),
    Call("mean_pooling", X[..., 0], np.ones((3, 5), bool)).raises(
        ValueError, "`x` has shape (3, 5), needs [..., L, d]; did you mean `x[..., None]`?"
    ),
    Call("mean_pooling", X[..., 0] > 0, X).raises(
        ValueError,
        "`mask` has dtype float32, but a mask is boolean, True = real (`~mask` where True means padding); "
        "did you mean to exchange `x` and `mask`?",
    ),
    Call("cross_attention_pooling", X, X[:, :4], np.ones((3, 4), bool), np.ones((3, 5), bool)).raises(
        ValueError,
        "`x_mask` has shape (3, 4), needs a shape that broadcasts to [..., L] = (3, 5); "
        "did you mean to exchange `x_mask` and `y_mask`?",
    ),
    Call("mean_pooling", X, lengths=np.ones((3, 1), int)).raises(
        ValueError, "`lengths` has shape (3, 1), needs () or (3,); did you mean `lengths[:, 0]`?"
    ),
    Call("mean_pooling", X, lengths=REAL.astype(int)).raises(
        ValueError, "`lengths` has shape (3, 5), needs () or (3,); did you mean `mask=`?"
    ),
    Call("mean_pooling", X.swapaxes(1, 2), REAL).raises(
        ValueError,
        "`mask` has shape (3, 5), needs a shape that broadcasts to [..., L] = (3, 4); "
        "did you mean `x.swapaxes(-1, -2)`?",
    ),
    Call("attention_pooling", X, REAL[..., None] & (X > 0), QUERY).raises(
        ValueError,
        "`mask` has shape (3, 5, 4), needs a shape that broadcasts to [..., L] = (3, 5); "
        "did you mean `mask[..., 0]`, or a mask for each feature (docs/masks.md)?",
    ),
    Call("weighted_pooling", X, X[..., :1]).raises(
        ValueError,
        "`weights` has shape (3, 5, 1) but `x` has (3, 5, 4): `weights` needs [..., L] or [..., L, d] with d = 4; "
        "did you mean `weights[:, :, 0]`?",
    ),
    Call("attention_pooling", X, None, QUERY[:, None]).raises(
        ValueError,
        "`query` has batch axes (4,) but `x` has (3,); batch axes are equal or absent, none is stretched; "
        "did you mean `query[:, 0]`?",
    ),
    Call("segment_mean_pooling", PACKED, np.diff(OFFSETS), 4).raises(
        ValueError,
        "`segment_ids` has shape (4,) but `x` has (9, 4): `segment_ids` needs [N] with N = 9; "
        "did you mean `np.repeat(np.arange(4), segment_ids)` for lengths?",
    ),
    Call("segment_cross_attention_pooling", PACKED, OF_PACKED, PACKED[:7], np.minimum(OFFSETS, 7), 4).raises(
        ValueError,
        "`y_segment_ids` has shape (5,) but `y` has (7, 4): `y_segment_ids` needs [M] with M = 7; "
        "did you mean `np.repeat(np.arange(4), np.diff(y_segment_ids))` for offsets?",
    ),
    Call("mean_pooling", PACKED, lengths=np.diff(OFFSETS)).raises(
        ValueError,
        "`lengths` has shape (4,), needs (); "
        "did you mean `segment_mean_pooling(x, np.repeat(np.arange(4), lengths), 4)` for packed tokens?",
    ),
    Call("segment_mean_pooling", PACKED, np.minimum(OF_PACKED, 2), 2).raises(
        ValueError,
        "`segment_ids` has the value 2, needs 0 to `num_segments` - 1 = 1; "
        "did you mean to drop the tokens that `pack` appended, by `real = segment_ids < 2`?",
    ),
    Call("segment_mean_pooling", PACKED, np.array([0] * 8 + [-1]), 2).raises(
        ValueError,
        "`segment_ids` has the value -1, needs 0 to `num_segments` - 1 = 1; "
        "did you mean to drop the tokens of no segment, by `real = segment_ids >= 0`?",
    ),
    Call("segment_mean_pooling", PACKED, np.array(list("aaabbcccc")), 3).raises(
        TypeError,
        f"`segment_ids` has dtype <U1, {NO_ARRAY}; did you mean `np.unique(segment_ids, return_inverse=True)[1]`?",
    ),
    Call("segment_mean_pooling", PACKED, np.array(list("aaabbcccc"), object), 3).raises(
        TypeError,
        f"`segment_ids` has dtype object, {NO_ARRAY}; did you mean `np.unique(segment_ids, return_inverse=True)[1]`?",
    ),
    Call("segment_mean_pooling", PACKED, Series(*"aaabbcccc"), 3).raises(
        TypeError, f"`segment_ids` is a Series, {NO_ARRAY}; did you mean `pd.factorize(segment_ids)[0]`?"
    ),
    Call("segment_mean_pooling", PACKED, OF_PACKED).raises(
        TypeError, "missing a required argument: 'num_segments', such as `segment_ids.max() + 1`"
    ),
    Call("segment_mean_pooling", X, np.zeros((3, 5), int), 2).raises(
        ValueError,
        "`x` has shape (3, 5, 4), needs [N, d]; did you mean `jax.vmap(lambda x, segment_ids: "
        "segment_mean_pooling(x, segment_ids, 2))(x, segment_ids)`, for the segments of each row?",
    ),
    Call("pad", [X[0], np.array([])]).raises(
        ValueError,
        "`sequences[1]` has shape (0,), needs [L, d]; did you mean `[np.reshape(each, (-1, 4)) for each in sequences]`?",
    ),
    # heads after the tokens, and relative lengths
    Call("dot_product_attention", HEADS[:, :4], HEADS, HEADS, REAL).raises(
        ValueError,
        "`key` has batch axes (3, 5) but `query` has (3, 4); batch axes are equal or absent, none is stretched; "
        "did you mean `query.swapaxes(-2, -3)`, and `key.swapaxes(-2, -3)` and `value.swapaxes(-2, -3)`, as heads are an "
        "axis before the tokens?",
    ),
    Call("dot_product_attention", HEADS, HEADS, HEADS, np.ones((3, 1, 5, 5), bool)).raises(
        ValueError,
        "`mask` has shape (3, 1, 5, 5), needs a shape that broadcasts to [..., n, m] = (3, 5, 2, 2); "
        "did you mean `query.swapaxes(-2, -3)`, and `key.swapaxes(-2, -3)` and `value.swapaxes(-2, -3)`, as heads are an "
        "axis before the tokens?",
    ),
    *(
        Call("mean_pooling", X, lengths=np.array(lengths)).raises(
            ValueError, f"`lengths` has dtype float64, needs integers{meant}"
        )
        for lengths, meant in (
            ([1.0, 0.4, 0.0], "; did you mean `np.round(lengths * L).astype(int)` for shares of L tokens?"),
            ([5.0, 2.0, 0.0], "; did you mean `lengths.astype(int)`?"),
            ([4.5, 2.0, 0.0], ""),
        )
    ),
    # other libraries
    Call("mean_pooling", Tensor()).raises(
        TypeError, f"`x` is a Tensor, {NO_ARRAY}; did you mean `x.detach().cpu().float().numpy()`?"
    ),
]


@every_refusal(BAD)
def test_the_message_says_what_should_have_been_written(package, refusal):
    refusal.check(package)


@every_package
def test_following_a_suggestion_gives_what_was_meant(package):
    x = np.random.default_rng(0).standard_normal((3, 5, 4)).astype(np.float32)
    meant = package.mean_pooling(x, REAL)
    for mask, boolean in (
        (np.where(REAL, 0, -10000), lambda mask: mask == 0),
        (np.where(REAL, 0, -np.inf), lambda mask: mask == 0),
        (REAL.astype(float), lambda mask: mask.astype(bool)),
        (2 * REAL, lambda mask: mask != 0),
        (np.broadcast_to(REAL[..., None], x.shape), lambda mask: mask[..., 0]),
    ):
        assert np.array_equal(package.mean_pooling(x, boolean(mask)), meant)
    counts = REAL.sum(1, keepdims=True)
    assert np.array_equal(package.mean_pooling(x, lengths=counts[:, 0]), meant)
    ids = np.repeat(np.arange(3), counts[:, 0])
    assert np.allclose(package.segment_mean_pooling(x[REAL], ids, 3), meant, atol=1e-6)


@every_package
def test_following_a_suggestion_about_packed_tokens_gives_what_was_meant(package):
    keys = np.repeat(["b", "a", "c", "d"], np.diff(OFFSETS))
    meant = package.segment_mean_pooling(PACKED, OF_PACKED, 4)
    ids = np.unique(keys, return_inverse=True)[1]
    assert np.array_equal(package.segment_mean_pooling(PACKED, ids, ids.max() + 1), np.asarray(meant)[[1, 0, 2, 3]])
    dropped = np.where(OF_PACKED == 3, -1, OF_PACKED)
    real = dropped >= 0
    assert np.array_equal(package.segment_mean_pooling(PACKED[real], dropped[real], 3), np.asarray(meant)[:3])
    columns = [np.reshape(each, (-1, 4)) for each in ([[1.0, 2, 3, 4]], [])]
    assert np.array_equal(package.pad(columns)[1], [[True], [False]])


def test_following_a_suggestion_about_rows_of_packed_tokens_gives_what_was_meant():
    x, segment_ids = np.stack([PACKED, PACKED[::-1]]), np.stack([OF_PACKED, OF_PACKED[::-1]])
    pool = jax.vmap(lambda x, segment_ids: attnpool_flax.segment_mean_pooling(x, segment_ids, 4))
    meant = attnpool_ref.segment_mean_pooling(PACKED, OF_PACKED, 4)
    assert np.allclose(pool(x, segment_ids), [meant, meant], atol=1e-5)


@every_package
def test_the_repair_of_a_masked_array_says_what_its_mask_said(package):
    x = np.ma.array(np.where(MASKED.mask, np.nan, X), mask=MASKED.mask)
    got = package.mean_pooling(x.filled(0), mask=~np.ma.getmaskarray(x).any(-1))
    assert np.array_equal(got, X[:, 0])


def test_a_module_that_casts_refuses_a_masked_array_too():
    module = attnpool_flax.WeightedPool(5, dtype=jnp.float32)
    with pytest.raises(ValueError, match=r"^weighted_pooling: `x` is a masked array"):
        module(MASKED)


def test_what_numpy_takes_the_oracle_takes_and_jax_refuses_with_the_repair():
    for value, repair in (([[1.0]], "np.asarray(x)"), (Frame(), "x.to_numpy()"), (([1.0],), "np.asarray(x)")):
        assert attnpool_ref.mean_pooling(value).shape[-1:] == np.asarray(value).shape[-1:]
        words = f"mean_pooling: `x` is {type_of(value)}, {NO_ARRAY}; did you mean `{repair}`?"
        with pytest.raises(TypeError, match="^" + re.escape(words) + "$"):
            attnpool_flax.mean_pooling(value)
    words = f"mean_pooling: `x` is a Broken, {NO_ARRAY}"
    for package, rest in ((attnpool_ref, ": no attribute"), (attnpool_flax, "; did you mean `np.asarray(x)`?")):
        with pytest.raises(TypeError, match="^" + re.escape(words + rest) + "$"):
            package.mean_pooling(Broken())
    with pytest.raises(ValueError, match=r"^mean_pooling: `x` is a list of masked arrays, .* `np.ma.stack\(x\)`\?$"):
        attnpool_ref.mean_pooling([MASKED[0], MASKED[1]])
    with pytest.raises(TypeError, match=r"^attention_pooling: `x` is a Frame, .* `x.to_numpy\(\)`\?$"):
        attnpool_flax.AttentionPool(4, rngs=nnx.Rngs(0))(Frame())
