"""Bad input: one table of calls that must be refused, with the type and the message, in both packages."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import every_package
from rounding import rounded

import attnpool_flax
import attnpool_ref

X = np.zeros((3, 5, 4), np.float32)
Y = np.zeros((3, 7, 6), np.float32)
MASK = np.ones((3, 5), bool)
QUERY = np.zeros(4, np.float32)
KERNEL = np.zeros((4, 2), np.float32)
SCORES = np.zeros((3, 2, 5), np.float32)

BAD = [  # name, arguments, options, type, the whole message as a pattern
    # no numeric array at all
    ("mean_pooling", (None,), {}, TypeError, "`x` is None, needs an array"),
    ("mean_pooling", ("text",), {}, TypeError, "`x` is a str, needs an array of numbers"),
    ("mean_pooling", (np.array([["a"]]),), {}, TypeError, "`x` has dtype <U1, needs an array of numbers"),
    ("max_pooling", (np.array([[None]]),), {}, TypeError, "`x` has dtype object, needs an array of numbers"),
    ("attention_pooling", (X, "text"), {}, TypeError, "`mask` is a str, needs an array of numbers"),
    ("cross_attention_pooling", (X, X), {"scale": None}, TypeError, "`scale` is None, needs an array"),
    # no such argument, or too few
    (
        "mean_pooling",
        (X,),
        {"masks": MASK},
        TypeError,
        "got an unexpected keyword argument 'masks'; did you mean `mask`?",
    ),
    ("mean_pooling", (X, MASK, MASK), {}, TypeError, "too many positional arguments"),
    ("mean_pooling", (X, MASK), {"mask": MASK}, TypeError, "multiple values for argument 'mask'"),
    ("dot_score", (X,), {}, TypeError, "missing a required argument: 'key'"),
    # dtypes
    ("mean_pooling", (X * 1j,), {}, ValueError, "`x` has dtype complex64, needs real numbers"),
    ("weighted_pooling", (X, MASK), {}, ValueError, "`weights` has dtype bool, needs numbers; did you mean `mask=`?"),
    (
        "lengths_to_mask",
        (np.ones(3, np.float32), 5),
        {},
        ValueError,
        "`lengths` has dtype float32, needs integers; did you mean `lengths.astype(int)`?",
    ),
    (
        "masked_softmax",
        (SCORES,),
        {"lengths": np.ones(3)},
        ValueError,
        "`lengths` has dtype float64, needs integers; did you mean `lengths.astype(int)`?",
    ),
    # masks
    (
        "mean_pooling",
        (X, MASK.astype(np.float32)),
        {},
        ValueError,
        "`mask` has dtype float32, but a mask is boolean, True = real (`~mask` where True means padding); did you mean "
        "`mask.astype(bool)`, `additive == 0` for an additive mask, or `dtype=bool` in Flax's mask helpers?",
    ),
    (
        "mean_pooling",
        (X, MASK * 1j),
        {},
        ValueError,
        "`mask` has dtype complex128, but a mask is boolean, True = real (`~mask` where True means padding)",
    ),
    (
        "max_pooling",
        (X, MASK * 2),
        {},
        ValueError,
        "`mask` has the value 2, but a mask is boolean, True = real (`~mask` where True means padding), or 0/1 integers; "
        "did you mean `mask != 0`, or `lengths_to_mask` for lengths?",
    ),
    (
        "max_pooling",
        (X, -1 * MASK),
        {},
        ValueError,
        "`mask` has the value -1, but a mask is boolean, True = real (`~mask` where True means padding), or 0/1 integers; "
        "did you mean `mask != 0`, or `lengths_to_mask` for lengths?",
    ),
    (
        "first_pooling",
        (X, MASK[:, :4]),
        {},
        ValueError,
        "`mask` has shape (3, 4), needs a shape that broadcasts to [..., L] = (3, 5)",
    ),
    (
        "last_pooling",
        (X, MASK.T),
        {},
        ValueError,
        "`mask` has shape (5, 3), needs a shape that broadcasts to [..., L] = (3, 5); "
        "did you mean `mask.swapaxes(-1, -2)`?",
    ),
    (
        "attention_pooling",
        (X, MASK[:, None, None]),
        {},
        ValueError,
        "`mask` has shape (3, 1, 1, 5), needs a shape that broadcasts to [..., L] = (3, 5); "
        "did you mean `mask[:, 0, 0, :]`?",
    ),
    (
        "dot_product_attention",
        (X[:, :2], X, X, MASK),
        {},
        ValueError,
        "`mask` has shape (3, 5), needs a shape that broadcasts to [..., n, m] = (3, 2, 5); "
        "did you mean `mask[..., None, :]`?",
    ),
    (
        "attend",
        (SCORES, X, np.ones((2, 3, 2, 5), bool)),
        {},
        ValueError,
        "`mask` has shape (2, 3, 2, 5), needs a shape that broadcasts to [..., n, m] = (3, 2, 5)",
    ),
    (
        "cross_attention_pooling",
        (X, X, MASK, MASK[:, :2]),
        {},
        ValueError,
        "`y_mask` has shape (3, 2), needs a shape that broadcasts to [..., T] = (3, 5)",
    ),
    # lengths
    (
        "masked_softmax",
        (SCORES, np.ones(5, bool)),
        {"lengths": 3},
        ValueError,
        "`mask` and `lengths` are both given, needs at most one of them",
    ),
    ("masked_softmax", (SCORES,), {"lengths": 6}, ValueError, "`lengths` has the value 6, needs 0 to 5"),
    (
        "cross_attention_pooling",
        (X, X),
        {"y_mask": MASK, "y_lengths": 3},
        ValueError,
        "`y_mask` and `y_lengths` are both given, needs at most one of them",
    ),
    ("mean_pooling", (X,), {"lengths": -1}, ValueError, "`lengths` has the value -1, needs 0 to 5"),
    (
        "mean_pooling",
        (X,),
        {"lengths": MASK},
        ValueError,
        "`lengths` has dtype bool, needs integers; did you mean `mask=`?",
    ),
    ("mean_pooling", (X,), {"lengths": np.ones(5, int)}, ValueError, "`lengths` has shape (5,), needs () or (3,)"),
    (
        "attend",
        (SCORES, X),
        {"lengths": np.ones((3, 5), int)},
        ValueError,
        "`lengths` has shape (3, 5), needs () or (3,) or (3, 2)",
    ),
    (
        "masked_softmax",
        (SCORES,),
        {"lengths": np.array([1, -1, 2])},
        ValueError,
        "`lengths` has the value -1, needs 0 to 5",
    ),
    (
        "masked_softmax",
        (SCORES,),
        {"lengths": np.array([1])},
        ValueError,
        "`lengths` has shape (1,), needs () or the first axes of (3, 2), which are those of `scores` without axis -1",
    ),
    ("lengths_to_mask", (7, 5), {}, ValueError, "`lengths` has the value 7, needs 0 to 5"),
    ("lengths_to_mask", (np.array([-3]), 5), {}, ValueError, "`lengths` has the value -3, needs 0 to 5"),
    ("lengths_to_mask", (3, -1), {}, ValueError, "`max_length` is -1, needs an integer of at least 0"),
    ("lengths_to_mask", (3, 5), {"side": "top"}, ValueError, "`side` is 'top', needs one of 'right', 'left'"),
    ("lengths_to_mask", (3, 5.0), {}, ValueError, "`max_length` is 5.0, needs an integer"),
    # ranks and widths
    ("mean_pooling", (X[0, 0],), {}, ValueError, "`x` has shape (4,), needs [..., L, d]"),
    ("masked_softmax", (np.float32(1),), {}, ValueError, "`scores` has shape (), needs at least one axis"),
    ("mean_pooling", (X[..., :0],), {}, ValueError, "`x` has shape (3, 5, 0), needs [..., L, d] with d at least 1"),
    (
        "dot_score",
        (X, Y),
        {},
        ValueError,
        "`key` has shape (3, 7, 6) but `query` has (3, 5, 4): `key` needs [..., m, d] with d = 4",
    ),
    (
        "dot_product_attention",
        (X, X, Y),
        {},
        ValueError,
        "`value` has shape (3, 7, 6) but `key` has (3, 5, 4): `value` needs [..., m, v] with m = 5",
    ),
    (
        "attention_pooling",
        (X, MASK, QUERY[:3]),
        {},
        ValueError,
        "`query` has shape (3,) but `x` has (3, 5, 4): `query` needs [..., q] with q = 4",
    ),
    (
        "attention_pooling",
        (X, MASK, QUERY),
        {"key_kernel": KERNEL},
        ValueError,
        "`key_kernel` has shape (4, 2) but `query` has (4,): `key_kernel` needs [d, c] with c = 4",
    ),
    (
        "attention_pooling",
        (X, MASK),
        {"key_kernel": KERNEL},
        ValueError,
        "`key_kernel` has shape (4, 2) but `x` has (3, 5, 4): `key_kernel` needs [d, c] with c = 4",
    ),
    (
        "attention_pooling",
        (X,),
        {"query_kernel": QUERY, "key_kernel": KERNEL},
        ValueError,
        "`query_kernel` has shape (4,), needs [d, c]",
    ),
    (
        "cross_attention_pooling",
        (X, Y),
        {},
        ValueError,
        "`y` has shape (3, 7, 6) but `x` has (3, 5, 4): `y` needs [..., T, e] with e = 4",
    ),
    (
        "cross_attention_pooling",
        (X, Y),
        {"x_kernel": KERNEL},
        ValueError,
        "`x_kernel` has shape (4, 2) but `y` has (3, 7, 6): `x_kernel` needs [d, c] with c = 6",
    ),
    (
        "weighted_pooling",
        (X, np.ones(4, np.float32)),
        {},
        ValueError,
        "`weights` has shape (4,) but `x` has (3, 5, 4): `weights` needs [..., L] or [..., L, d] with L = 5",
    ),
    (
        "weighted_pooling",  # their rank says that they are of channels, and no [3, 5] for three examples of one x
        (X[0], np.ones((3, 5), np.float32)),
        {},
        ValueError,
        "`weights` has shape (3, 5) but `x` has (5, 4): `weights` needs [..., L] or [..., L, d] with L = 5",
    ),
    # batch axes
    (
        "dot_score",
        (X[:1], X),
        {},
        ValueError,
        "`key` has batch axes (3,) but `query` has (1,); batch axes are equal or absent, none is stretched; "
        "did you mean `query[0]`, to share it, or `broadcast_to`?",
    ),
    (
        "cross_attention_pooling",
        (X, X[:2]),
        {},
        ValueError,
        "`y` has batch axes (2,) but `x` has (3,); batch axes are equal or absent, none is stretched",
    ),
    (
        "dot_product_attention",
        (X, X, X),
        {"bias": np.zeros((4, 5), np.float32)},
        ValueError,
        "`bias` has shape (4, 5), needs a shape that broadcasts to [..., n, m] = (3, 5, 5)",
    ),
    (
        "scaled_dot_score",
        (X, X),
        {"scale": np.ones(3, np.float32)},
        ValueError,
        "`scale` has shape (3,), needs a number",
    ),
    # names of options
    (
        "cross_attention_pooling",
        (X, X),
        {"reduction": "avg"},
        ValueError,
        "`reduction` is 'avg', needs one of 'sum', 'mean', 'max'",
    ),
    (
        "cross_attention_pooling",
        (X, X),
        {"reduction": None},
        ValueError,
        "`reduction` is None, needs one of 'sum', 'mean', 'max'",
    ),
    ("attend", (SCORES, X), {"return_weights": 1}, ValueError, "`return_weights` is 1, needs True or False"),
    ("masked_softmax", (SCORES,), {"axis": 3}, ValueError, "`axis` is 3, needs -3 to 2 for an array with 3 axes"),
    ("l2_normalize", (X,), {"axis": 1.0}, ValueError, "`axis` is 1.0, needs an integer"),
    (
        "attention_pooling",
        (X,),
        {"query_norm_scale": QUERY},
        ValueError,
        "`query_norm_scale` is given without `normalize_query`; did you mean `normalize_query=True`?",
    ),
    (
        "attention_pooling",
        (X,),
        {"normalize_query": "yes"},
        ValueError,
        "`normalize_query` is 'yes', needs True or False",
    ),
]


@every_package
@pytest.mark.parametrize(("name", "args", "kwargs", "error", "message"), BAD, ids=[f"{r[0]}: {r[4][:40]}" for r in BAD])
def test_bad_input_is_refused_by_name(package, name, args, kwargs, error, message):
    with pytest.raises(error, match="^" + re.escape(f"{name}: {message}") + "$"):
        getattr(package, name)(*args, **kwargs)


def test_bad_input_is_refused_while_jax_traces():
    with pytest.raises(ValueError, match=r"^mean_pooling: `mask` has dtype float32"):
        jax.jit(attnpool_flax.mean_pooling)(X, MASK.astype(np.float32))
    with pytest.raises(ValueError, match=r"^dot_score: `key` has batch axes"):
        jax.eval_shape(attnpool_flax.dot_score, X[:1], X)


def test_lists_are_arrays_for_the_oracle_alone():
    assert attnpool_ref.mean_pooling([[1.0], [3.0]]).tolist() == [2.0]
    with pytest.raises(TypeError, match=r"^mean_pooling: `x` is a list, needs an array of numbers; did you mean "):
        attnpool_flax.mean_pooling([[1.0], [3.0]])


def test_values_of_masks_and_lengths_on_a_device_are_not_read_back():
    twos = jnp.full((3, 5), 2)
    assert np.array_equal(attnpool_flax.mean_pooling(X + 1, twos), attnpool_flax.mean_pooling(X + 1))
    beyond = attnpool_flax.lengths_to_mask(jnp.array([-1, 9]), 4)
    assert beyond.tolist() == [[False] * 4, [True] * 4]


@every_package
@pytest.mark.parametrize(
    "mask", [True, np.True_, np.ones(5, bool), np.ones((1, 5), np.uint8), np.ones((3, 1), np.int64)]
)
def test_masks_broadcast_as_numpy_does(package, mask):
    assert np.array_equal(package.mean_pooling(X + 1, mask), package.mean_pooling(X + 1, MASK))


@every_package
def test_an_array_without_batch_axes_is_shared_by_every_example(package):
    query = np.arange(4, dtype=np.float32)
    tokens = np.arange(60, dtype=np.float32).reshape(3, 5, 4) / 9
    shared = np.asarray(package.attention_pooling(tokens, MASK, query))
    each = package.attention_pooling(tokens, MASK, np.broadcast_to(query, (3, 4)))
    chex.assert_trees_all_close(np.asarray(each), shared, atol=rounded(shared, tokens.size), rtol=0)
    weights = np.arange(5, dtype=np.float32)
    shared = np.asarray(package.weighted_pooling(tokens, weights))
    each = package.weighted_pooling(tokens, np.broadcast_to(weights, (3, 5)))
    chex.assert_trees_all_close(np.asarray(each), shared, atol=rounded(shared, tokens.size), rtol=0)


def test_a_call_with_the_same_arrays_and_other_options_is_another_one():
    """What the oracle remembers of a call's shapes."""
    x, kernel = np.ones((2, 4)), np.ones((4, 4))
    for count in (1, 3):
        chex.assert_shape(attnpool_ref.segment_mean_pooling(x, np.full(2, count - 1), count), (count, 4))
    attnpool_ref.cross_attention_pooling(x, x, x_kernel=kernel, y_kernel=kernel)
    with pytest.raises(ValueError, match="kernel"):
        attnpool_ref.cross_attention_pooling(x, x, x_kernel=kernel[:3], y_kernel=kernel)
    attnpool_ref.mean_pooling(x)
    with pytest.raises(ValueError, match="needs real numbers"):
        attnpool_ref.mean_pooling(x * 1j)
