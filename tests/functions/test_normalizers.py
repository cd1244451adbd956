"""Functions in a normaliser's place, and what normalisers are to each other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import every_package
from rounding import assert_close

import attnpool_flax
import attnpool_ref

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng(0)
SCORES, X = (RNG.normal(size=shape).astype(np.float32) for shape in ((3, 2, 7), (3, 7, 4)))
MASK = RNG.random((3, 2, 7)) < 0.7
MASK[1] = False


def test_entmax_is_softmax_entmax15_and_sparsemax_where_they_are():
    """With their gradients."""

    def weighed(normalize, scores):
        return jnp.sum(normalize(scores, MASK) * SCORES**2)

    for alpha, other in ((1, "masked_softmax"), (1.5, "entmax15"), (2, "sparsemax")):
        own, other = functools.partial(attnpool_flax.entmax, alpha=alpha), getattr(attnpool_flax, other)
        assert_close(own(SCORES, MASK), other(SCORES, MASK))
        assert_close(*(jax.grad(functools.partial(weighed, function))(SCORES) for function in (own, other)))
        oracle = attnpool_ref.entmax(SCORES, MASK, alpha=alpha)
        assert_close(own(SCORES, MASK), oracle)
    for alpha in (1.0, 1 + 1e-5):  # where 1 / (alpha - 1) is no number, or too large a one
        assert_close(attnpool_flax.entmax(SCORES, alpha=alpha), attnpool_ref.masked_softmax(SCORES), 256)


def test_log_softmax_ignores_cotangents_where_it_is_minus_inf():
    """At padding, in a fully masked row and at a real -inf; elsewhere the gradient is c_j - w_j times the sum of c."""
    scores = np.where(np.arange(7) == 2, -np.inf, SCORES)
    logarithms, pull = jax.vjp(lambda scores: attnpool_flax.masked_log_softmax(scores, MASK), scores)
    finite, cotangents = np.isfinite(logarithms), np.cos(np.arange(logarithms.size)).reshape(logarithms.shape)
    assert not np.array_equal(finite, MASK)
    kept = np.where(finite, cotangents, 0)
    expected = kept - attnpool_ref.masked_softmax(scores, MASK) * kept.sum(-1, keepdims=True)
    for ignored in (0, 1, np.inf, np.nan):
        (slopes,) = pull(np.where(finite, cotangents, ignored).astype(np.float32))
        assert_close(slopes, expected)
        assert not np.any(np.asarray(slopes)[~finite])


@every_package
def test_a_function_gets_the_whole_mask_and_zeros_at_padding(package):
    """None of the mask is None, and what the function returns at padding, NaN too, is dropped."""
    seen = []

    def everywhere(scores, mask):
        seen.append((scores.shape, mask.shape, mask.dtype))
        assert isinstance(scores, jax.core.Tracer) or not np.any(scores[~mask])
        return abs(scores) / (scores * 0 + mask.astype(scores.dtype))  # NaN or infinite at padding

    with np.errstate(all="ignore"):
        for mask in (MASK, None, MASK[:, :1]):
            spoiled = SCORES if mask is None else np.where(mask, SCORES, np.nan).astype(np.float32)
            pooled, weights = package.attend(spoiled, X, mask, normalizer=everywhere, return_weights=True)
            real = True if mask is None else mask
            assert_close(weights, np.where(real, np.abs(SCORES), 0))
            assert_close(pooled, np.where(real, np.abs(SCORES), 0) @ X)
        if package is attnpool_flax:
            of_scores = jax.grad(lambda scores: jnp.sum(package.attend(scores, X, MASK, normalizer=everywhere)))(SCORES)
            assert not np.any(np.asarray(of_scores)[~MASK])
    assert {(*shapes, dtype) for *shapes, dtype in seen} == {((3, 2, 7), (3, 2, 7), np.dtype(bool))}


def test_a_function_is_compiled_once_and_works_under_transformations():
    traces = []

    def counted(scores, mask):
        traces.append(None)
        return attnpool_flax.entmax(scores, mask, alpha=1.3)

    pool = functools.partial(attnpool_flax.attention_pooling, query=X[0, 0], normalizer=counted)
    want = pool(X, MASK[:, 0])
    pool(2 * X, MASK[:, 0])
    assert len(traces) == 1
    assert_close(jax.vmap(pool)(X, MASK[:, 0]), want)
    assert_close(jax.jit(jax.checkpoint(pool))(X, MASK[:, 0]), want)
    partial = functools.partial(attnpool_ref.entmax, alpha=1.3)
    assert_close(want, attnpool_ref.attention_pooling(X, MASK[:, 0], X[0, 0], normalizer=partial))


@every_package
def test_what_is_no_normalizer_is_refused(package):
    names = "'softmax', 'sparsemax', 'entmax15', 'sigmoid', 'hardmax', or a function"
    for wrong in (3, None, "entmax"):
        with pytest.raises(ValueError, match=f"^attend: `normalizer` is {wrong!r}, needs one of {names}"):
            package.attend(SCORES, X, normalizer=wrong)
    with pytest.raises(
        ValueError, match=r"^short: `weights` has shape \(3, 2\), needs that of the scores, \(3, 2, 7\)"
    ):
        package.attend(SCORES, X, normalizer=_short)
    with pytest.raises(TypeError, match=r"^listed: `weights` is a list, needs an array of numbers"):
        package.attend(SCORES, X, normalizer=_listed)
    with pytest.raises(ValueError, match="without a hash, needs a function that has one"):
        package.attend(SCORES, X, normalizer=_Unhashable())
    for wrong in ("hardmax", _short):
        with pytest.raises(ValueError, match=r"needs one of 'softmax', 'sigmoid': it compares the scores of a segment"):
            package.segment_attention_pooling(X[0], np.zeros(7, int), 1, normalizer=wrong)


def _short(scores, mask):
    del mask
    return scores[..., 0]


def _listed(scores, mask):
    return [scores, mask]


_short.__name__, _listed.__name__ = "short", "listed"


class _Unhashable:
    __hash__ = None

    def __call__(self, scores, mask):
        return scores * mask
