"""What every test runs under: no implicit rank promotion, and warnings as errors (``warnings_allowed.py``)."""

import jax
import pytest
from warnings_allowed import ALLOWED, AllowedWarnings

collect_ignore = ["typing"]  # is read by the type checker, not run

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 4)  # for the tests of meshes


@pytest.fixture(scope="module")
def compiled_quickly():
    """Compiling is most of a test's time; ``attnpool check`` judges what users run, with XLA's optimisations."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def pytest_configure(config):
    table = AllowedWarnings(ALLOWED)
    config.pluginmanager.register(table, "allowed-warnings")
