"""Option ``--scale`` of the suite, and information about the machine in its JSON."""

import datetime
import os
import sys
from typing import NamedTuple

import jax
import pytest

from bench import peers


class Scale(NamedTuple):
    """Size of a run: whether arrays are tiny, seconds for the rounds of a race, the fewest and the most rounds."""

    tiny: bool
    budget: float
    rounds: tuple


SCALES = {"full": Scale(False, 12, (5, 15)), "tiny": Scale(True, 0, (1, 1))}


def pytest_addoption(parser):
    """Adds ``--scale``, the size of the run."""
    parser.addoption("--scale", choices=list(SCALES), default="full")


@pytest.fixture(scope="session")
def scale(pytestconfig):
    """Returns the scale of this run."""
    return SCALES[pytestconfig.getoption("--scale")]


def pytest_benchmark_update_machine_info(config, machine_info):
    """Replaces pytest-benchmark's details of the machine by those on the page."""
    brand = machine_info.get("cpu", {}).get("brand_raw", machine_info.get("machine", ""))
    machine_info.clear()
    machine_info.update(
        scale=config.getoption("--scale"),
        date=datetime.date.today().isoformat(),
        cpu=brand,
        device=jax.devices()[0].device_kind,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        versions=peers.installed(),
        threads=threads(),
        missing=peers.missing(),
    )


def threads():
    """Returns the numbers of threads of NumPy's products and of PyTorch; XLA has one for each core."""
    found = {"NumPy's BLAS": os.environ.get("OPENBLAS_NUM_THREADS", "not pinned")}
    if "torch" in sys.modules:
        found["PyTorch"] = sys.modules["torch"].get_num_threads()
    return found
