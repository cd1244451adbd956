"""Agreement of attnpool's Pallas kernels, in Pallas' interpreter, with whole products computed in float64."""

import jax
import jax.numpy as jnp
import numpy as np

LIMITS = {"float32": 1e-5, "bfloat16": 4e-5, "float16": 1e-5}
"""By the tokens' dtype: allowed errors of sums, relative to the largest expected number."""

UNIT = {"float32": 1e-6, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""By the tokens' dtype: further error of gradients of the tokens, which are rounded to this dtype."""


def assert_near(got, want, limit):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert np.isfinite(got).all()
    assert np.max(np.abs(got - want), initial=0) <= limit * max(np.max(np.abs(want), initial=0), 1e-3)


def with_gradients(kernel, given, shapes, widened=None):
    """Computes a kernel's results, and the gradients of a weighted sum of them.

    Args:
      kernel: from arrays by name to (scores, state).
      given: the arrays, or None, which are not differentiated.
      shapes: of the scores, the denominator, the numerator and the averages.
      widened: a dtype to which the arrays are converted first.

    Returns:
      ((scores, state), gradients by name), NumPy arrays.
    """
    random = np.random.default_rng(8)
    cotangents = [random.normal(size=shape).astype(widened or "float32") for shape in shapes]
    given = {key: array if array is None else jnp.asarray(array, widened) for key, array in given.items()}
    names = [key for key, array in given.items() if array is not None]

    def loss(*arrays):
        scores, state = kernel(**given | dict(zip(names, arrays, strict=True)))
        found = jnp.where(scores == -jnp.inf, 0, scores), state.denominator, state.numerator, state.finalize()
        found = [part.astype(cotangents[0].dtype) for part in found]
        return sum(jnp.sum(part * own) for part, own in zip(found, cotangents, strict=True)), (scores, state)

    gradient = jax.value_and_grad(loss, range(len(names)), has_aux=True)
    (_, found), gradients = jax.jit(gradient)(*(given[name] for name in names))
    return jax.tree.map(np.asarray, (found, dict(zip(names, gradients, strict=True))))


def assert_agreement(found, expected, dtype, real, empty):
    """Compares results of :func:`with_gradients` with those in float64.

    Args:
      found: a kernel's.
      expected: those of whole products in float64.
      dtype: the name of the tokens' dtype.
      real: which tokens are real; the gradients of the others are 0.
      empty: indices of fully masked rows, whose sums are 0.
    """
    ((scores, state), gradients), ((want_scores, want), want_gradients) = found, expected
    assert gradients["x"].dtype == dtype
    np.testing.assert_array_equal(scores == -np.inf, want_scores == -np.inf)
    pairs = [(np.where(scores == -np.inf, 0, scores), np.where(want_scores == -np.inf, 0, want_scores))]
    pairs += [(state.denominator, want.denominator), (state.numerator, want.numerator)]
    pairs += [(gradients[key], own) for key, own in want_gradients.items() if key != "x"]
    for got, own in pairs:
        assert_near(got, own, LIMITS[dtype])
    assert_near(gradients["x"], want_gradients["x"], LIMITS[dtype] + UNIT[dtype])
    assert not np.asarray(gradients["x"], np.float32)[~real].any()
    for row in empty:
        assert not state.denominator[row].any() and not state.numerator[row].any()
