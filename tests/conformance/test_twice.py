"""The judge's checks of second derivatives reject every kind of mistake, and nothing that is right or refuses aloud."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differentiated_twice import CHECKS, judged, why_not

import attnpool_ref
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.checks.gradients import FORWARD, REVERSE
from attnpool_ref.conformance.checks.tolerances import FINER, STEP, derivative_of_arrays


def mean(x, mask=None):
    real = jnp.ones(x.shape[:-1], bool) if mask is None else jnp.broadcast_to(mask, x.shape[:-1]).astype(bool)
    return jnp.sum(jnp.where(real[..., None], x, 0), -2) / jnp.maximum(jnp.sum(real, -1), 1)[..., None]


def with_rule(forward, backward=None):
    """The mean with a gradient rule by ``jax.custom_vjp``: ``forward(rule, x, real)``, ``backward(residuals, g)``."""

    def spread(residuals, g):
        x, real = residuals
        terms = jnp.where(real[..., None], g[..., None, :], 0)
        return jnp.broadcast_to(terms / jnp.maximum(jnp.sum(real, -1), 1)[..., None, None], x.shape), None

    rule = jax.custom_vjp(mean)
    rule.defvjp(functools.partial(forward, rule), backward or spread)

    def pool(x, mask=None):
        real = jnp.ones(x.shape[:-1], bool) if mask is None else jnp.broadcast_to(mask, x.shape[:-1]).astype(bool)
        return rule(x, real)

    return pool


def right(rule, x, real):
    del rule
    return mean(x, real), (x, real)


def of_itself(rule, x, real):
    return rule(x, real), (x, real)


def beside_padding(residuals, g):
    """Padding is selected after the product: the first derivative is right, and 0 times NaN is in the second."""
    x, real = residuals
    share = jnp.where(real, 1 / jnp.maximum(jnp.sum(real, -1, keepdims=True), 1), 0)
    nothing = jnp.where(real, jnp.sum(x * g[..., None, :], -1), 0)
    return share[..., None] * g[..., None, :] + 0 * nothing[..., None], None


@jax.custom_jvp
def without_its_gradient(x):
    return x


@without_its_gradient.defjvp
def _without_its_gradient_jvp(primals, tangents):
    return jax.lax.stop_gradient(primals[0]), tangents[0]


def detached(x, mask=None):
    """A value whose rule for gradients gives it back without one: right once, 0 twice."""
    return without_its_gradient(mean(x, mask))


@pytest.mark.parametrize("check", CHECKS)
def test_a_right_function_passes(check):
    assert judged(mean, "mean_pooling", check) == []
    assert judged(with_rule(right), "mean_pooling", check) == []


@pytest.mark.parametrize("check", CHECKS)
def test_a_value_that_comes_back_without_its_gradient_is_rejected(check):
    (message,) = judged(detached, "mean_pooling", check)
    assert "the second derivative by `x` is" in message and "needs" in message


def test_a_second_derivative_that_is_nan_beside_nan_in_the_padding_is_rejected():
    (message,) = judged(with_rule(right, beside_padding), "mean_pooling", REVERSE)
    assert "NaN stands in the padding" in message


def test_a_gradient_without_forward_mode_is_not_applicable():
    assert judged(with_rule(of_itself), "mean_pooling", REVERSE) == []
    assert why_not(with_rule(of_itself), "mean_pooling", FORWARD).startswith(
        "its gradient has no forward mode (TypeError: can't apply forward-mode autodiff"
    )


def test_a_function_that_cannot_be_differentiated_twice_is_not_applicable():
    def refused(residuals, g):
        x, real = residuals
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        share = np.float64(1) / jnp.maximum(jnp.sum(real, -1), 1)[..., None, None]
        terms = jnp.where(real[..., None], g[..., None, :], 0) * share
        return jax.pure_callback(lambda terms: terms, shape, terms), None

    reason = why_not(with_rule(right, refused), "mean_pooling", REVERSE)
    assert reason.startswith("it cannot be differentiated twice (ValueError: Pure callbacks do not support JVP")


@pytest.mark.parametrize("check", CHECKS)
def test_arrays_without_second_derivatives_are_not_applicable(check):
    assert why_not(attnpool_ref.mean_pooling, "mean_pooling", check, adapter=NumpyArrays()).endswith(
        ("numpy arrays are not differentiated twice here", "forward mode of numpy arrays is not judged")
    )


@pytest.mark.parametrize("place", [2.0**-k for k in range(8, 24, 3)])
def test_a_kink_near_a_case_is_a_smaller_step_or_a_doubt_and_never_a_mistake(place):
    def first(arrays):
        a = arrays["a"]
        return {"a": np.sin(a) + (a > place)}

    at = {"a": np.array([0.0, 0.5, -0.5])}
    (value, doubt) = derivative_of_arrays(first, at, {"a": np.ones(3)}, 2.0**-48)["a"]
    assert np.all(np.abs(value - np.cos(at["a"])) <= doubt)
    assert place < STEP * FINER[-1] or np.all(doubt < 2.0**-18)
