"""What every test runs under: no implicit rank promotion, warnings as errors (``warnings_allowed.py``), quick compiling.

Compiling is most of a test's time, so LLVM's optimisations are off: ``attnpool check`` judges what users run.
"""

import os

import jax
from warnings_allowed import ALLOWED, AllowedWarnings

collect_ignore = ["typing"]  # is read by the type checker, not run

if jax.__version_info__ < (0, 11):  # the older way to write loops compiles three times as fast; later versions lack it
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false"

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_num_cpu_devices", 4)  # for the tests of meshes
jax.config.update("jax_disable_most_optimizations", True)


def pytest_configure(config):
    table = AllowedWarnings(ALLOWED)
    config.pluginmanager.register(table, "allowed-warnings")
