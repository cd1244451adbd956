"""What every test runs under: no implicit rank promotion, quick compiling.

Compiling is most of a test's time, so LLVM's optimisations are off: ``attnpool check`` judges what users run. So are XLA's
checks of itself between its passes, and each program is one LLVM module: neither changes what is computed. Programs are kept
in ``.pytest_cache/d/jax``, so a second run compiles only those that have changed; ``pytest --cache-clear`` removes them.
"""

import atexit
import contextlib
import gc
import mmap
import os
from pathlib import Path

import jax
import numpy as np
import pytest
from replacements import as_found, current_folder, full_disk, judged, set_mean, watched, without  # noqa: F401

collect_ignore = ["typing"]  # is read by the type checker, not run

DEVICES = 8
"""The number of devices for tests over a mesh."""

IS_QUICK = jax.__version_info__ < (0, 11)
"""Whether XLA has the older way to write loops, which compiles three times as fast."""

FLAGS = ["--xla_cpu_parallel_codegen_split_count=1", "--xla_cpu_emitter_verification_level=0"]
if IS_QUICK:
    FLAGS += ["--xla_cpu_use_fusion_emitters=false"]
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS])

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_disable_most_optimizations", True)


PROCESS = Path("/proc/self")  # of Linux alone
MOST_MAPS = 30_000
"""Linux gives a process 65,530 memory maps, and each compiled program takes several: without them compiling ends the process."""

MOST_PAGES = 2 * 2**30 // mmap.PAGESIZE
"""Memory of 2 GiB: two processes that kept all their programs would need 10, which many machines do not have."""


def pytest_configure(config):
    if hasattr(config, "workerinput"):  # a process of pytest-xdist ends at once: freeing its programs takes seconds
        atexit.register(os._exit, 0)
    with contextlib.suppress(AttributeError, OSError):  # pytest has no cache, or cannot write it
        jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        # of a file that another process is still writing, or that is broken: the program is then compiled
        config.addinivalue_line("filterwarnings", "ignore:Error (reading|writing) persistent compilation cache")


def pytest_collection_modifyitems(items):
    """Runs the guarantees first; skips tests over a mesh in a process with one device, as users have."""
    items.sort(key=lambda item: item.path.name != "test_guarantees.py")
    lacking = pytest.mark.skip(reason=f"needs {DEVICES} devices: JAX_NUM_CPU_DEVICES={DEVICES} pytest -m mesh")
    for item in items:
        if item.get_closest_marker("mesh") and jax.config.jax_num_cpu_devices != DEVICES:
            item.add_marker(lacking)


def pytest_collection_finish():
    """What is there stays: JAX makes many objects, and looking through all others for garbage was a twelfth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture
def rng(request):
    """Random numbers that derive from the test's name."""
    return np.random.default_rng(list(request.node.name.encode()))


def pytest_runtest_teardown(item, nextitem):
    """After a file, whose tests share most programs, frees them where the process has too many memory maps or too much memory."""
    if nextitem is None or nextitem.path == item.path or not PROCESS.exists():
        return
    maps = len((PROCESS / "maps").read_bytes().splitlines())
    pages = int((PROCESS / "statm").read_text().split()[1])
    if maps > MOST_MAPS or pages > MOST_PAGES:
        jax.clear_caches()
        gc.collect()
