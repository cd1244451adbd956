"""What is refused comes with what should have been written: arrays of other libraries, masked arrays, ragged lists."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from packages import every_package
from refusals import Call, every_refusal

import attnpool_flax
import attnpool_ref
from attnpool_ref.contract.type_names import type_of

X = np.ones((3, 5, 4), np.float32)
QUERY = np.ones(4, np.float32)
MASKED = np.ma.array(X, mask=np.arange(5)[:, None] > [[[2]], [[0]], [[4]]] * np.ones(4, int))
IDS = np.zeros(5, int)
FLOATS = (
    "`mask` has dtype float32, but a mask is boolean, True = real (`~mask` where True means padding); did you mean "
)
MASKS = "`mask.astype(bool)`, `additive == 0` for an additive mask, or `dtype=bool` in Flax's mask helpers?"
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


class Broken:
    """What says that it is an array and is none."""

    def __array__(self, dtype=None, copy=None):
        raise AttributeError("no attribute")


RAGGED_OBJECTS = np.empty(2, object)
RAGGED_OBJECTS[:] = [np.ones((2, 4)), np.ones((3, 4))]

BAD = [
    # a query where the mask stands
    Call("attention_pooling", X, QUERY).raises(ValueError, FLOATS + "`query=`?"),
    Call("attention_pooling", X[:, :4], QUERY).raises(ValueError, FLOATS + "`query=`, " + MASKS),
    Call("attention_pooling", X, QUERY, QUERY).raises(ValueError, FLOATS + MASKS),
    Call("attention_pooling", X, X[:, :, 0]).raises(ValueError, FLOATS + MASKS),
    Call("attention_state", X, X[:, 0]).raises(ValueError, FLOATS + "`query=`?"),
    Call("segment_attention_pooling", X[0], IDS, 2, X[:2, 0]).raises(ValueError, FLOATS + "`query=`?"),
    Call("weighted_pooling", X, mask=X[0, :, 0]).raises(ValueError, FLOATS + "`weights=`, " + MASKS),
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
    Call("mean_pooling", X, ([1], [1, 0])).raises(TypeError, f"`mask` is a ragged tuple, {RAGGED}"),
    Call("pad", [[[1.0], [2.0, 3.0]]]).raises(TypeError, f"`sequences[0]` is a ragged list, {NO_ARRAY}"),
    # other libraries
    Call("mean_pooling", Tensor()).raises(
        TypeError, f"`x` is a Tensor, {NO_ARRAY}; did you mean `x.detach().cpu().float().numpy()`?"
    ),
]


@every_refusal(BAD)
def test_the_message_says_what_should_have_been_written(package, refusal):
    refusal.check(package)


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
