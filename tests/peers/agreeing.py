"""Whether a peer and both packages agree on a case, to rounding."""

import numpy as np

CANCELLED = {"key_bias": "key_kernel", "gate_bias": "gate_kernel"}
"""A softmax cancels the first: its gradient is a sum of 0, of the terms of the second's without their factors."""


def assert_agree(case):
    """The result, by our definition as well, and the gradient of every array."""
    arrays, rng = case.draw()
    theirs, factors, their_gradients = case.of_theirs(arrays, rng)
    run = case.of_ours(factors)
    ours, *gradients = run(arrays)
    exact, *_ = case.definition(arrays)
    assert theirs.dtype == ours.dtype == exact.dtype == case.dtype
    assert theirs.shape == ours.shape == exact.shape
    assert np.isfinite(exact).all() and np.any(exact != 0)
    (error,) = case.allowed(case.definition, arrays, rng)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=error)
    np.testing.assert_allclose(exact, theirs, rtol=0, atol=error)
    errors = dict(zip(arrays, case.allowed(run, arrays, rng)[1:], strict=True))
    for name, gradient in zip(arrays, gradients, strict=True):
        error = errors[CANCELLED.get(name, name)]
        assert gradient.shape == their_gradients[name].shape
        np.testing.assert_allclose(gradient, their_gradients[name], rtol=0, atol=error, err_msg=name)
        if name not in CANCELLED:
            assert np.max(np.abs(gradient)) > 2 * error, name
