"""A fixture for one's own tests: ``def test_pool(attnpool_check): attnpool_check(pool, "mean_pooling")``."""

import pytest


@pytest.fixture(scope="session")
def attnpool_check():
    """:func:`attnpool_ref.conformance.check`, as a fixture."""
    from attnpool_ref import conformance

    return conformance.check
