"""Bad input: one table of calls that must be refused, with the type and the message; what looks like it and is taken.

What is no array of numbers is a TypeError, any other disagreement a ValueError.
"""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
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

FLAX = (attnpool_flax,)
TAKEN = "float16, bfloat16, float32, float64 or integers"

ONES = np.ones((3, 5, 4), np.float32)
NUMBER = "has shape (1,), needs a number"
PRECISION = "needs None, a name such as 'highest', a jax.lax.Precision or a pair of names or of these"


class Tensor:
    """An array of another library: no NumPy dtype, and JAX does not know it."""

    shape, ndim = (3, 5), 2
    dtype = type("dtype", (), {"__str__": lambda self: "torch.float32"})()


class Series:
    """An array of another library, with a NumPy dtype."""

    shape, ndim, dtype = (3, 5), 2, np.dtype(np.float32)


def narrow(dtype):
    return jnp.ones((3, 5), dtype)


BAD = [
    # no numeric array at all
    Call("mean_pooling", None).raises(TypeError, "`x` is None, needs an array"),
    Call("mean_pooling", "text").raises(TypeError, "`x` is a str, needs an array of numbers"),
    Call("mean_pooling", np.array([["a"]])).raises(TypeError, "`x` has dtype <U1, needs an array of numbers"),
    Call("attention_pooling", X, "text").raises(TypeError, "`mask` is a str, needs a boolean array"),
    Call("logsumexp_pooling", X, scale=None).raises(TypeError, "`scale` is None, needs an array"),
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
        ValueError,
        "`lengths` has dtype float32, needs integers; did you mean `lengths.astype(int)`, or "
        "`np.round(lengths * L).astype(int)` for shares of L tokens?",
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
    # lengths
    Call("masked_softmax", SCORES, np.ones(5, bool), lengths=3).raises(
        ValueError, "`mask` and `lengths` are both given, needs at most one of them"
    ),
    Call("masked_softmax", SCORES, lengths=6).raises(ValueError, "`lengths` has the value 6, needs 0 to 5"),
    Call("cross_attention_pooling", X, X, y_mask=MASK, y_lengths=3).raises(
        ValueError, "`y_mask` and `y_lengths` are both given, needs at most one of them"
    ),
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
    Call("dot_product_attention", *[np.stack([X, X], 1)] * 3, sink=np.zeros(2, np.float32)).raises(
        ValueError,
        "`sink` has shape (2,), needs a shape that broadcasts to [..., n] = (3, 2, 5); "
        "`multi_head_attention` takes one for each head; did you mean `sink[:, None]`?",
    ),
    Call("dot_product_attention", X, X, X, sink=np.zeros(2, np.float32)).raises(
        ValueError,
        "`sink` has shape (2,), needs a shape that broadcasts to [..., n] = (3, 5); "
        "`multi_head_attention` takes one for each head",
    ),
    # names of options
    Call("cross_attention_pooling", X, X, reduction="avg").raises(
        ValueError, "`reduction` is 'avg', needs one of 'sum', 'mean', 'max'"
    ),
    Call("attention_pooling", X, query_norm_scale=QUERY).raises(
        ValueError, "`query_norm_scale` is given without `normalize_query`; did you mean `normalize_query=True`?"
    ),
    Call("attention_pooling", X, normalize_query="yes").raises(
        ValueError, "`normalize_query` is 'yes', needs True or False"
    ),
    # no numeric array at all
    Call("mean_pooling", Tensor()).raises(TypeError, "`x` is a Tensor, needs an array of numbers", FLAX),
    Call("mean_pooling", ONES, Tensor()).raises(TypeError, "`mask` is a Tensor, needs a boolean array", FLAX),
    Call("mean_pooling", Series()).raises(TypeError, "`x` is a Series, needs an array of numbers", FLAX),
    Call("mean_pooling", jax.random.key(0)).raises(TypeError, "`x` has dtype key<fry>, needs an array of numbers"),
    Call("mean_pooling", ONES, jax.random.split(jax.random.key(0), 5)).raises(
        TypeError, "`mask` has dtype key<fry>, needs a boolean array"
    ),
    Call("mean_pooling", np.ones((3, 5), "m8[s]")).raises(
        TypeError, "`x` has dtype timedelta64[s], needs an array of numbers"
    ),
    # numbers, but none that can be used
    *(
        Call("mean_pooling", narrow(dtype)).raises(
            ValueError,
            f"`x` has dtype {dtype}, which is too narrow, needs integers of at least 8 bits; "
            "did you mean `x.astype('int8')`?",
        )
        for dtype in ("int2", "int4", "uint4")
    ),
    *(
        Call("mean_pooling", narrow(dtype)).raises(
            ValueError,
            f"`x` has dtype {dtype}, which is too narrow, needs one of {TAKEN}; did you mean `x.astype('float32')`?",
        )
        for dtype in ("float8_e4m3fn", "float8_e5m2")
    ),
    Call("mean_pooling", np.ones((3, 5), np.longdouble)).raises(
        ValueError,
        f"`x` has dtype {np.dtype(np.longdouble)}, which is too wide, needs one of {TAKEN}; "
        "did you mean `x.astype('float64')`?",
    ),
    # numbers
    Call("scaled_dot_score", ONES, ONES, scale=np.ones(1)).raises(ValueError, f"`scale` {NUMBER}"),
    # an adjacency is no mask of padding
    Call("graph_decomposition", np.ones((2, 4)), 2 * np.eye(2, dtype=int)).raises(
        ValueError,
        "`adjacency` has the value 2, but an adjacency is boolean, True = neighbour, or 0/1 integers; "
        "did you mean `adjacency != 0`?",
    ),
    Call("graph_decomposition", np.ones((2, 4)), np.eye(2)).raises(
        ValueError,
        "`adjacency` has dtype float64, but an adjacency is boolean, True = neighbour; did you mean `adjacency != 0`?",
    ),
    # static arguments
    Call("l2_normalize", ONES, axis=np.asarray(1.0)).raises(ValueError, "`axis` is 1.0, needs an integer"),
    Call("l2_normalize", ONES, axis=jnp.asarray(3)).raises(
        ValueError, "`axis` is 3, needs -3 to 2 for an array with 3 axes"
    ),
    Call("lengths_to_mask", 3, np.asarray(-1)).raises(ValueError, "`max_length` is -1, needs an integer of at least 0"),
    Call("lengths_to_mask", 3, np.True_).raises(ValueError, "`max_length` is True, needs an integer of at least 0"),
    Call("attend", SCORES, ONES, return_weights=np.asarray(1)).raises(
        ValueError, "`return_weights` is 1, needs True or False"
    ),
    # precision
    Call("dot_score", ONES, ONES, precision=["highest"]).raises(
        ValueError, f"`precision` is ['highest'], {PRECISION}", FLAX
    ),
    Call("dot_score", ONES, ONES, precision=("high",)).raises(
        ValueError, f"`precision` is ('high',), {PRECISION}", FLAX
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


TRACED = [
    ("lengths_to_mask", "max_length", lambda n: attnpool_flax.lengths_to_mask(np.arange(3), n), "an integer"),
    ("l2_normalize", "axis", lambda n: attnpool_flax.l2_normalize(ONES, axis=n), "an integer"),
    (
        "semantic_match",
        "window",
        lambda n: attnpool_flax.semantic_match(ONES, ONES, method="local", window=n),
        "an integer",
    ),
    ("attend", "return_weights", lambda n: attnpool_flax.attend(SCORES, ONES, return_weights=n > 0), "True or False"),
]


@pytest.mark.parametrize(("name", "key", "call", "needs"), TRACED, ids=[row[0] for row in TRACED])
def test_a_traced_static_argument_is_refused_by_name(name, key, call, needs):
    message = f"{name}: `{key}` is traced, needs {needs} whose value is known while JAX traces; did you mean `static_argnames`?"
    for transformed, value in ((jax.jit(call), jnp.asarray(1)), (jax.vmap(call), jnp.arange(2))):
        with pytest.raises(ValueError, match="^" + re.escape(message)):
            transformed(value)


@every_package
@pytest.mark.parametrize("static", [np.asarray, np.int8, jnp.asarray, jnp.uint8])
def test_a_static_argument_may_be_an_array_without_axes(package, static):
    lengths, labels, edges = np.array([1, 3]), np.eye(4, dtype=np.float32), np.ones((4, 4), bool)
    flag = jnp.asarray(True) if static is jnp.asarray else static(1).astype(bool)
    pairs = [
        (package.lengths_to_mask(lengths, static(3)), package.lengths_to_mask(lengths, 3)),
        (package.l2_normalize(ONES, axis=static(1)), package.l2_normalize(ONES, axis=1)),
        (
            package.semantic_match(ONES, ONES, method="local", window=static(2)),
            package.semantic_match(ONES, ONES, method="local", window=2),
        ),
        (
            package.graph_decomposition(labels, edges, num_layers=static(1)),
            package.graph_decomposition(labels, edges, num_layers=1),
        ),
        (
            package.attend(SCORES, ONES, return_weights=flag)[1],
            package.attend(SCORES, ONES, return_weights=True)[1],
        ),
    ]
    for got, want in pairs:
        assert np.array_equal(got, want)


@every_package
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i4"])
def test_the_byte_order_does_not_matter(package, dtype):
    native = np.arange(60).reshape(3, 5, 4).astype(dtype[1:])
    mask = np.arange(15).reshape(3, 5) % 2
    got, want = (package.mean_pooling(native.astype(d), mask.astype(m)) for d, m in ((dtype, ">i4"), (dtype[1:], "i4")))
    assert got.dtype == want.dtype
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.uint32])
def test_integers_on_the_host_do_not_wrap_on_their_way_to_the_device(dtype):
    tokens = (np.arange(12).reshape(3, 4) + 2**31).astype(dtype)
    want = attnpool_ref.mean_pooling(tokens)
    got = np.asarray(attnpool_flax.mean_pooling(tokens), np.float64)
    assert np.max(np.abs(got - want)) <= rounded(want, tokens.size)
    scale = 2**40
    assert float(attnpool_flax.rigid_decomposition(ONES, -ONES, atol=scale)[0].sum()) == ONES.size


def test_lengths_of_any_size_are_clipped():
    assert attnpool_flax.lengths_to_mask(jnp.array([2**31, 2**32 - 1], jnp.uint32), 4).all()
    assert attnpool_flax.lengths_to_mask(jnp.array([200, 255], jnp.uint8), 4).all()
    assert not attnpool_flax.lengths_to_mask(jnp.array([-128, -(2**7)], jnp.int8), 4).any()
    with jax.enable_x64(True):
        assert attnpool_flax.lengths_to_mask(jnp.array([2**32, 2**63 - 1]), 4).all()
        assert not attnpool_flax.lengths_to_mask(jnp.array([-(2**32), 1 - 2**63]), 4).any()


@pytest.mark.parametrize(
    "precision",
    [None, "highest", "bfloat16", "BF16_BF16_F32", jax.lax.Precision.HIGH, ("high", "default")],
    ids=str,
)
def test_every_precision_that_jax_takes_is_taken(precision):
    assert attnpool_flax.dot_score(ONES, ONES, precision=precision).shape == (3, 5, 5)


def test_a_module_with_a_dtype_refuses_what_its_function_refuses():
    module = attnpool_flax.AttentionPool(5, dtype=jnp.float32, rngs=nnx.Rngs(0))
    for value, got in ((Tensor(), "is a Tensor"), (jax.random.key(0), "has dtype key<fry>")):
        with pytest.raises(TypeError, match=f"^attention_pooling: `x` {got}, needs an array of numbers$"):
            module(value)


def test_a_module_with_a_dtype_takes_large_integers_and_any_byte_order():
    module = attnpool_flax.WeightedPool(3, dtype=jnp.float32)
    tokens = (np.arange(12).reshape(3, 4) + 2**40).astype(">i8")
    want = attnpool_ref.mean_pooling(tokens)
    assert np.max(np.abs(np.asarray(module(tokens), np.float64) - want)) <= rounded(want, tokens.size)


def test_a_flag_of_a_module_may_be_numpys():
    module = attnpool_flax.AttentionPool(4, normalize_query=np.False_, rngs=nnx.Rngs(0))
    assert module.query_norm_scale is None
    assert module(ONES).shape == (3, 4)


@every_package
def test_a_memmap_is_an_array(package, tmp_path):
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 4))
    x[:] = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(package.mean_pooling(x, lengths=2), [2, 3, 4, 5])
    np.testing.assert_array_equal(package.mean_pooling(x[1:]), [6, 7, 8, 9])
