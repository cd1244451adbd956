"""Bad input: one table of calls that must be refused, with the type and the message, in both packages."""

import chex
import jax
import numpy as np
import pytest
from packages import every_package
from refusals import Call, every_refusal
from rounding import rounded

import attnpool_flax
import attnpool_ref

X = np.zeros((3, 5, 4), np.float32)
Y = np.zeros((3, 7, 6), np.float32)
MASK = np.ones((3, 5), bool)
QUERY = np.zeros(4, np.float32)
KERNEL = np.zeros((4, 2), np.float32)
SCORES = np.zeros((3, 2, 5), np.float32)
HEADS = {"query_kernel": np.zeros((4, 2, 3)), "key_kernel": np.zeros((6, 2, 3)), "value_kernel": np.zeros((6, 2, 8))}
HEADS |= {"out_kernel": np.zeros((2, 8, 9))}

BAD = [
    # no numeric array at all
    Call("mean_pooling", None).raises(TypeError, "`x` is None, needs an array"),
    Call("mean_pooling", "text").raises(TypeError, "`x` is a str, needs an array of numbers"),
    Call("mean_pooling", np.array([["a"]])).raises(TypeError, "`x` has dtype <U1, needs an array of numbers"),
    Call("attention_pooling", X, "text").raises(TypeError, "`mask` is a str, needs a boolean array"),
    Call("cross_attention_pooling", X, X, scale=None).raises(TypeError, "`scale` is None, needs an array"),
    # no such argument, or too few
    Call("mean_pooling", X, masks=MASK).raises(
        TypeError, "got an unexpected keyword argument 'masks'; did you mean `mask`?"
    ),
    Call("mean_pooling", embeddings=X).raises(
        TypeError, "got an unexpected keyword argument 'embeddings'; did you mean `x`?"
    ),
    Call("mean_pooling", X, MASK, MASK).raises(
        TypeError, "too many positional arguments; after `mask` all are keywords"
    ),
    Call("top_k_pooling", X, MASK, 2).raises(TypeError, "too many positional arguments; did you mean `k=`?"),
    Call("mean_pooling", X, np.array([["1", ""]])).raises(TypeError, "`mask` has dtype <U1, needs a boolean array"),
    Call("mean_pooling", X, MASK, mask=MASK).raises(TypeError, "multiple values for argument 'mask'"),
    Call("dot_score", X).raises(TypeError, "missing a required argument: 'key'"),
    # dtypes
    Call("mean_pooling", X * 1j).raises(ValueError, "`x` has dtype complex64, needs real numbers"),
    Call("weighted_pooling", X, MASK).raises(
        ValueError, "`weights` has dtype bool, needs numbers; did you mean `mask=`?"
    ),
    Call("lengths_to_mask", np.ones(3, np.float32), 5).raises(
        ValueError, "`lengths` has dtype float32, needs integers; did you mean `lengths.astype(int)`?"
    ),
    # masks
    Call("mean_pooling", X, MASK * 1j).raises(
        ValueError, "`mask` has dtype complex128, but a mask is boolean, True = real (`~mask` where True means padding)"
    ),
    Call("max_pooling", X, MASK * 2).raises(
        ValueError,
        "`mask` has the value 2, but a mask is boolean, True = real (`~mask` where True means padding), or 0/1 integers; "
        "did you mean `mask != 0`?",
    ),
    Call("last_pooling", X, MASK.T).raises(
        ValueError,
        "`mask` has shape (5, 3), needs a shape that broadcasts to [..., L] = (3, 5); "
        "did you mean `mask.swapaxes(-1, -2)`?",
    ),
    Call("attention_pooling", X, MASK[:, None, None]).raises(
        ValueError,
        "`mask` has shape (3, 1, 1, 5), needs a shape that broadcasts to [..., L] = (3, 5); "
        "did you mean `mask[:, 0, 0, :]`?",
    ),
    Call("dot_product_attention", X[:, :2], X, X, MASK).raises(
        ValueError,
        "`mask` has shape (3, 5), needs a shape that broadcasts to [..., n, m] = (3, 2, 5); "
        "did you mean `mask[..., None, :]`?",
    ),
    Call("attend", SCORES, X, np.ones((2, 3, 2, 5), bool)).raises(
        ValueError, "`mask` has shape (2, 3, 2, 5), needs a shape that broadcasts to [..., n, m] = (3, 2, 5)"
    ),
    # lengths
    Call("masked_softmax", SCORES, np.ones(5, bool), lengths=3).raises(
        ValueError, "`mask` and `lengths` are both given, needs at most one of them"
    ),
    Call("masked_softmax", SCORES, lengths=6).raises(ValueError, "`lengths` has the value 6, needs 0 to 5"),
    Call("cross_attention_pooling", X, X, y_mask=MASK, y_lengths=3).raises(
        ValueError, "`y_mask` and `y_lengths` are both given, needs at most one of them"
    ),
    Call("mean_pooling", X, lengths=-1).raises(ValueError, "`lengths` has the value -1, needs 0 to 5"),
    Call("mean_pooling", X, lengths=MASK).raises(
        ValueError, "`lengths` has dtype bool, needs integers; did you mean `mask=`?"
    ),
    Call("attend", SCORES, X, lengths=np.ones((3, 5), int)).raises(
        ValueError, "`lengths` has shape (3, 5), needs () or (3,) or (3, 2)"
    ),
    Call("masked_softmax", SCORES, lengths=np.array([1])).raises(
        ValueError,
        "`lengths` has shape (1,), needs () or the first axes of (3, 2), the axes of `scores` without axis -1",
    ),
    Call("lengths_to_mask", 7, 5).raises(ValueError, "`lengths` has the value 7, needs 0 to 5"),
    Call("lengths_to_mask", 3, 5, side="top").raises(ValueError, "`side` is 'top', needs one of 'right', 'left'"),
    Call("lengths_to_mask", 3, 5.0).raises(ValueError, "`max_length` is 5.0, needs an integer"),
    # ranks and widths
    Call("mean_pooling", X[0, 0]).raises(ValueError, "`x` has shape (4,), needs [..., L, d]"),
    Call("masked_softmax", np.float32(1)).raises(ValueError, "`scores` has shape (), needs at least one axis"),
    Call("mean_pooling", X[..., :0]).raises(ValueError, "`x` has shape (3, 5, 0), needs [..., L, d] with d at least 1"),
    Call("dot_score", X, Y).raises(
        ValueError, "`key` has shape (3, 7, 6) but `query` has (3, 5, 4): `key` needs [..., m, d] with d = 4"
    ),
    Call("dot_product_attention", X, X, Y).raises(
        ValueError, "`value` has shape (3, 7, 6) but `key` has (3, 5, 4): `value` needs [..., m, v] with m = 5"
    ),
    Call("attention_pooling", X, MASK, QUERY[:3]).raises(
        ValueError,
        "`query` has shape (3,) but `x` has (3, 5, 4): `query` needs [..., q] with q = 4 unless `key_kernel` is given",
    ),
    Call("attention_pooling", X, MASK, QUERY, key_kernel=KERNEL).raises(
        ValueError,
        "`key_kernel` has shape (4, 2) but `query` has (4,): `key_kernel` needs [d, c] with c = 4 unless `query_kernel` is given",
    ),
    Call("attention_pooling", X, MASK, key_kernel=KERNEL).raises(
        ValueError,
        "`key_kernel` has shape (4, 2) but `x` has (3, 5, 4): `key_kernel` needs [d, c] with c = 4 "
        "unless `query_kernel` or `query` is given",
    ),
    Call("attention_pooling", X, query_kernel=QUERY, key_kernel=KERNEL).raises(
        ValueError, "`query_kernel` has shape (4,), needs [d, c]"
    ),
    Call("cross_attention_pooling", X, Y).raises(
        ValueError,
        "`y` has shape (3, 7, 6) but `x` has (3, 5, 4): `y` needs [..., T, e] with e = 4 unless `x_kernel` or `y_kernel` is given",
    ),
    Call("cross_attention_pooling", X, Y, x_kernel=KERNEL).raises(
        ValueError,
        "`x_kernel` has shape (4, 2) but `y` has (3, 7, 6): `x_kernel` needs [d, c] with c = 6 unless `y_kernel` is given",
    ),
    Call("weighted_pooling", X, np.ones(4, np.float32)).raises(
        ValueError, "`weights` has shape (4,) but `x` has (3, 5, 4): `weights` needs [..., L] or [..., L, d] with L = 5"
    ),
    # batch axes
    Call("dot_score", X[:1], X).raises(
        ValueError,
        "`key` has batch axes (3,) but `query` has (1,); batch axes are equal or absent, none is stretched; "
        "did you mean `query[0]`, to share it, or `broadcast_to`?",
    ),
    Call("cross_attention_pooling", X, X[:2]).raises(
        ValueError, "`y` has batch axes (2,) but `x` has (3,); batch axes are equal or absent, none is stretched"
    ),
    Call("dot_product_attention", X, X, X, bias=np.zeros((4, 5), np.float32)).raises(
        ValueError, "`bias` has shape (4, 5), needs a shape that broadcasts to [..., n, m] = (3, 5, 5)"
    ),
    *(
        Call("attention_pooling", X, MASK, queries).raises(
            ValueError,
            f"`query` has batch axes {axes} but `x` has (3,); batch axes are equal or absent, none is stretched; did you mean "
            "`multi_head_attention_pooling`, or without kernels `dot_product_attention(query, x, x, mask[..., None, :])`, "
            "for 2 queries?",
        )
        for queries, axes in ((X[0, :2], "(2,)"), (X[:, :2], "(3, 2)"))
    ),
    # a mask of several heads, as torch takes it
    *(
        Call("multi_head_attention", X, Y, Y, np.ones(shape, bool), **HEADS).raises(ValueError, message)
        for shape, message in (
            (
                (6, 5, 7),
                "`mask` has shape (6, 5, 7), needs a shape that broadcasts to [..., n, m] or [..., H, n, m] = (3, 5, 7); "
                "did you mean `mask.reshape(3, 2, 5, 7)`?",
            ),
            (
                (9, 5, 7),
                "`mask` has shape (9, 5, 7), needs a shape that broadcasts to [..., n, m] or [..., H, n, m] = (3, 5, 7)",
            ),
        )
    ),
    Call("dot_product_attention", *[np.stack([X, X], 1)] * 3, np.ones((6, 5, 5), bool)).raises(
        ValueError,
        "`mask` has shape (6, 5, 5), needs a shape that broadcasts to [..., n, m] = (3, 2, 5, 5); "
        "did you mean `mask.reshape(3, 2, 5, 5)`?",
    ),
    # names of options
    Call("cross_attention_pooling", X, X, reduction="avg").raises(
        ValueError, "`reduction` is 'avg', needs one of 'sum', 'mean', 'max'"
    ),
    Call("cross_attention_pooling", X, X, reduction=None).raises(
        ValueError, "`reduction` is None, needs one of 'sum', 'mean', 'max'"
    ),
    Call("attention_pooling", X, query_norm_scale=QUERY).raises(
        ValueError, "`query_norm_scale` is given without `normalize_query`; did you mean `normalize_query=True`?"
    ),
    Call("attention_pooling", X, normalize_query="yes").raises(
        ValueError, "`normalize_query` is 'yes', needs True or False"
    ),
]


@every_refusal(BAD)
def test_bad_input_is_refused_by_name(package, refusal):
    refusal.check(package)


@every_package
def test_queries_of_a_batch_are_one_for_each_example(package):
    for tokens in (X, X[0]):
        assert package.attention_pooling(tokens, None, X[:, 0]).shape == (3, 4)


def test_bad_input_is_refused_while_jax_traces():
    with pytest.raises(ValueError, match=r"^mean_pooling: `mask` has dtype float32"):
        jax.jit(attnpool_flax.mean_pooling)(X, MASK.astype(np.float32))
    with pytest.raises(ValueError, match=r"^dot_score: `key` has batch axes"):
        jax.eval_shape(attnpool_flax.dot_score, X[:1], X)


def test_lists_are_arrays_for_the_oracle_alone():
    assert attnpool_ref.mean_pooling([[1.0], [3.0]]).tolist() == [2.0]
    with pytest.raises(TypeError, match=r"^mean_pooling: `x` is a list, needs an array of numbers; did you mean "):
        attnpool_flax.mean_pooling([[1.0], [3.0]])


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
