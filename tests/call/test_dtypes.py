"""The rules of dtype: what decides it, what never widens it, and that float32 means float32."""

import itertools

import chex
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from packages import every_package
from programs import precisions
from rounding import rounded

import attnpool_flax
import attnpool_ref

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
X = np.arange(40).reshape(2, 5, 4) % 7 - 3.0
QUERY = np.arange(4) - 1.0


def joined(*dtypes):
    """The rule in a second formulation: the smallest standard float that holds every value of all."""
    return np.dtype(np.float64 if np.float64 in dtypes else dtypes[0] if len(set(dtypes)) == 1 else np.float32)


@every_package
@pytest.mark.parametrize(("data", "query"), list(itertools.product(FLOATS, FLOATS)))
def test_data_and_parameters_decide_together(package, data, query):
    with jax.enable_x64(True):
        pooled, weights = package.attention_pooling(X.astype(data), None, QUERY.astype(query), return_weights=True)
    assert pooled.dtype == weights.dtype == joined(data, query)


@every_package
@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_numbers_bias_and_dropout_never_widen(package, dtype):
    wide = np.zeros((5, 5), np.float64)
    with jax.enable_x64(True):
        result = package.dot_product_attention(
            X.astype(dtype),
            X.astype(dtype),
            X.astype(np.int64),
            bias=wide,
            scale=np.float64(2),
            dropout_multiplier=wide,
        )
    assert result.dtype == dtype


def test_integers_alone_give_the_default_float():
    whole = X.astype(int)
    assert attnpool_ref.mean_pooling(whole).dtype == np.float64
    assert attnpool_flax.mean_pooling(whole).dtype == jnp.float32
    with jax.enable_x64(True):
        assert attnpool_flax.mean_pooling(whole).dtype == jnp.float64


def test_float64_needs_x64_in_jax():
    chex.assert_type(attnpool_flax.mean_pooling(X), jnp.float32)


@every_package
def test_counts_are_exact_in_narrow_dtypes(package):
    """2049 ones: float16 cannot count them, and a running sum in float16 stops at 2048."""
    ones = np.ones((2049, 1), np.float16)
    assert package.mean_pooling(ones).tolist() == [1.0]
    big = np.full((2049, 1), 60000, np.float16)
    assert package.mean_pooling(big).tolist() == [np.float16(60000)]


@every_package
def test_the_mean_that_serves_as_a_query_is_not_rounded(package):
    """The mean is (1, 1/3): rounded to bfloat16 it would move the second weight by 4 percent, ten times its rounding."""
    x = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]).astype(ml_dtypes.bfloat16)
    _, narrow = package.attention_pooling(x, scale=30.0, return_weights=True)
    _, wide = attnpool_ref.attention_pooling(x.astype(np.float64), scale=30.0, return_weights=True)
    assert np.array_equal(np.asarray(narrow).astype(np.float64), wide.astype(ml_dtypes.bfloat16).astype(np.float64))


def test_float32_products_are_full_unless_the_caller_says_otherwise():
    x, pooling = X.astype(np.float32), attnpool_flax.attention_pooling
    assert precisions(pooling, x) == {"HIGHEST"}
    assert precisions(lambda x: pooling(x, precision="high"), x) == {"HIGH"}
    with jax.default_matmul_precision("high"):
        assert precisions(pooling, x) == {"HIGH"}


def test_narrow_products_take_one_pass():
    x = X.astype(ml_dtypes.bfloat16)
    assert precisions(attnpool_flax.dot_score, x, x) == {"DEFAULT"}


@every_package
def test_float8_and_longer_floats_are_refused(package):
    with pytest.raises(ValueError, match=r"^mean_pooling: `x` has dtype float8_e4m3fn, which is too narrow, needs "):
        package.mean_pooling(X.astype(ml_dtypes.float8_e4m3fn))


def test_narrow_tokens_beside_wide_ones_are_summed_in_the_wide_dtype():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 4)).astype(np.float32), rng.standard_normal((6, 4))
    with jax.enable_x64(True):
        pooled = attnpool_flax.cross_attention_pooling(x, y)
    for got, want in zip(pooled, attnpool_ref.cross_attention_pooling(x, y), strict=True):
        assert got.dtype == np.float64
        # a score is a sum of 50 products, and its rounding is that of the weights
        chex.assert_trees_all_close(np.asarray(got), want, atol=rounded(50 * np.abs(want), 56, "float64"), rtol=0)


def test_an_overflow_of_finalized_chunks_is_reported_once_at_the_line_of_the_call():
    state = attnpool_ref.sum_state(np.full((3, 2), 60000, np.float16))
    with pytest.warns(RuntimeWarning, match="^finalize_state: overflow on the way to a float16 result$") as caught:
        attnpool_ref.finalize_state(state)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("examples", [1, 800], ids=["one block", "blocks"])
def test_an_overflow_is_reported_once_at_the_line_of_the_call(examples):
    x = np.full((examples, 1000, 1), 60000, np.float16)
    with pytest.warns(RuntimeWarning, match="^sum_pooling: overflow on the way to a float16 result$") as caught:
        attnpool_ref.sum_pooling(x)
    assert [warning.filename for warning in caught] == [__file__]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        attnpool_ref.sum_pooling(x)


SCORES = {
    "dot_score": (X, X),
    "scaled_dot_score": (X, X),
    "bilinear_score": (X, X, np.eye(4)),
    "cosine_score": (X, X),
    "trilinear_score": (X, X, np.ones(12)),
    "maxsim_score": (X, X),
    "maxsim_score_all_pairs": (X, X),
}


@every_package
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("wide", ["float32", np.float64])
def test_only_the_result_of_a_score_is_rounded_to_its_dtype(package, name, narrow, wide):
    given = [array.astype(narrow) for array in SCORES[name]]
    with jax.enable_x64(True):
        found = getattr(package, name)(*given, result_dtype=wide)
    exact = getattr(attnpool_ref, name)(*(array.astype(np.float64) for array in given))
    assert found.dtype == wide
    chex.assert_trees_all_close(np.float64(found), exact, atol=rounded(exact, 64, "float32"), rtol=0)


@every_package
def test_scores_of_near_documents_differ_in_float32(package):
    """64 documents whose sums of 32 cosines lie between 16 and 17, where bfloat16 has 9 numbers."""
    x = np.full((1, 32, 1), 1, ml_dtypes.bfloat16)
    y = (0.5 + np.arange(64)[:, None, None] / 2048).astype(ml_dtypes.bfloat16)
    assert len(np.unique(package.maxsim_score_all_pairs(x, y))) <= 9
    assert len(np.unique(package.maxsim_score_all_pairs(x, y, result_dtype="float32"))) == len(np.unique(y))


@every_package
def test_a_result_dtype_is_float32_or_float64_and_not_narrower(package):
    for name, text in [("float16", "is float16, needs None, float32 or float64"), (3, "is 3, needs None")]:
        with pytest.raises(ValueError, match=f"dot_score: `result_dtype` {text}"):
            package.dot_score(X, X, result_dtype=name)
    with pytest.raises(
        ValueError, match="`result_dtype` is float32, narrower than the arguments, needs None or float64"
    ):
        package.dot_score(X, X, result_dtype=np.float32)
