"""What every test runs under: no implicit rank promotion, and warnings as errors (``warnings_allowed.py``)."""

import jax
from warnings_allowed import ALLOWED, AllowedWarnings

collect_ignore = ["typing"]  # is read by the type checker, not run

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 2)  # for the tests of shard_map


def pytest_configure(config):
    table = AllowedWarnings(ALLOWED)
    config.pluginmanager.register(table, "allowed-warnings")
