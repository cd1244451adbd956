"""What is no array of numbers is a TypeError, any other disagreement a ValueError; the words are one table."""

import re

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

FLAX = (attnpool_flax,)
TAKEN = "float16, bfloat16, float32, float64 or integers"

X = np.ones((3, 5, 4), np.float32)
SCORES = np.zeros((3, 2, 5), np.float32)
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
    Call("mean_pooling", Tensor()).raises(TypeError, "`x` is a Tensor, needs an array of numbers", FLAX),
    Call("mean_pooling", X, Tensor()).raises(TypeError, "`mask` is a Tensor, needs a boolean array", FLAX),
    Call("mean_pooling", Series()).raises(TypeError, "`x` is a Series, needs an array of numbers", FLAX),
    Call("mean_pooling", jax.random.key(0)).raises(TypeError, "`x` has dtype key<fry>, needs an array of numbers"),
    Call("mean_pooling", X, jax.random.split(jax.random.key(0), 5)).raises(
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
    Call("mean_pooling", X, narrow("int4")).raises(
        ValueError,
        "`mask` has dtype int4, which is too narrow, needs integers of at least 8 bits; "
        "did you mean `mask.astype('int8')`?",
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
    Call("scaled_dot_score", X, X, scale=np.ones(1)).raises(ValueError, f"`scale` {NUMBER}"),
    Call("rigid_decomposition", X, X, atol=np.ones(1)).raises(ValueError, f"`atol` {NUMBER}"),
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
    Call("l2_normalize", X, axis=np.asarray(1.0)).raises(ValueError, "`axis` is 1.0, needs an integer"),
    Call("l2_normalize", X, axis=jnp.asarray(3)).raises(
        ValueError, "`axis` is 3, needs -3 to 2 for an array with 3 axes"
    ),
    Call("lengths_to_mask", 3, np.asarray(-1)).raises(ValueError, "`max_length` is -1, needs an integer of at least 0"),
    Call("lengths_to_mask", 3, np.True_).raises(ValueError, "`max_length` is True, needs an integer of at least 0"),
    Call("attend", SCORES, X, return_weights=np.asarray(1)).raises(
        ValueError, "`return_weights` is 1, needs True or False"
    ),
    # precision
    Call("dot_score", X, X, precision=["highest"]).raises(ValueError, f"`precision` is ['highest'], {PRECISION}", FLAX),
    Call("dot_score", X, X, precision="fast").raises(ValueError, f"`precision` is 'fast', {PRECISION}", FLAX),
    Call("dot_score", X, X, precision=3).raises(ValueError, f"`precision` is 3, {PRECISION}", FLAX),
    Call("dot_score", X, X, precision=("high",)).raises(ValueError, f"`precision` is ('high',), {PRECISION}", FLAX),
]


@every_refusal(BAD)
def test_what_cannot_be_used_is_refused_by_name(package, refusal):
    refusal.check(package)


TRACED = [
    ("lengths_to_mask", "max_length", lambda n: attnpool_flax.lengths_to_mask(np.arange(3), n), "an integer"),
    ("l2_normalize", "axis", lambda n: attnpool_flax.l2_normalize(X, axis=n), "an integer"),
    ("semantic_match", "window", lambda n: attnpool_flax.semantic_match(X, X, method="local", window=n), "an integer"),
    ("attend", "return_weights", lambda n: attnpool_flax.attend(SCORES, X, return_weights=n > 0), "True or False"),
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
        (package.l2_normalize(X, axis=static(1)), package.l2_normalize(X, axis=1)),
        (
            package.semantic_match(X, X, method="local", window=static(2)),
            package.semantic_match(X, X, method="local", window=2),
        ),
        (
            package.graph_decomposition(labels, edges, num_layers=static(1)),
            package.graph_decomposition(labels, edges, num_layers=1),
        ),
        (
            package.attend(SCORES, X, return_weights=flag)[1],
            package.attend(SCORES, X, return_weights=True)[1],
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
    assert float(attnpool_flax.rigid_decomposition(X, -X, atol=scale)[0].sum()) == X.size


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
    assert attnpool_flax.dot_score(X, X, precision=precision).shape == (3, 5, 5)


@pytest.mark.parametrize("rngs", [0, jax.random.key(0), jax.random.PRNGKey(0)], ids=["seed", "key", "old key"])
@pytest.mark.parametrize(
    "make",
    [
        lambda rngs: attnpool_flax.AttentionPool(4, rngs=rngs),
        lambda rngs: attnpool_flax.WeightedPool(4, rngs=rngs),
        lambda rngs: attnpool_flax.MultiHeadAttention(num_heads=2, query_features=4, dropout_rate=0.5, rngs=rngs),
    ],
    ids=["AttentionPool", "WeightedPool", "MultiHeadAttention"],
)
def test_a_module_refuses_a_seed_in_place_of_rngs(make, rngs):
    with pytest.raises(TypeError, match=r"^\w+: `rngs` is an? \w+, needs an nnx.Rngs, such as `nnx.Rngs\(0\)`$"):
        make(rngs)
    assert make(nnx.Rngs(0)) is not None


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
    assert module(X).shape == (3, 4)


@every_package
def test_a_memmap_is_an_array(package, tmp_path):
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 4))
    x[:] = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(package.mean_pooling(x, lengths=2), [2, 3, 4, 5])
    np.testing.assert_array_equal(package.mean_pooling(x[1:]), [6, 7, 8, 9])
