"""Option ``--scale`` of the suite, and information about the machine in its JSON."""

import datetime
import os

import jax
import pytest

from bench import peers, versions
from bench.table import SCALES


def pytest_addoption(parser):
    """Adds ``--scale``, the size of the run."""
    parser.addoption("--scale", choices=list(SCALES), default="full")


def pytest_configure(config):
    """A tiny run, which only tests that everything runs, takes XLA's older way to write loops: it compiles twice as fast."""
    if config.getoption("--scale") == "tiny" and jax.__version_info__ < (0, 11):
        os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), "--xla_cpu_use_fusion_emitters=false"])


def pytest_generate_tests(metafunc):
    """Sets the lengths of the pictures by the scale."""
    if "point" in metafunc.fixturenames:
        from bench.table import SWEEPS

        count = SCALES[metafunc.config.getoption("--scale")].lengths
        points = [(sweep, length) for sweep in SWEEPS for length in sweep.lengths[:count]]
        metafunc.parametrize("point", points, ids=[f"{sweep.name}-{length}" for sweep, length in points])


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
        versions=versions.installed(),
        threads=versions.threads(),
        missing=peers.missing(),
    )


def pytest_benchmark_update_json(config, benchmarks, output_json):
    """Removes pytest-benchmark's own statistics, which are those of whole rounds."""
    output_json["commit_info"] = {key: output_json["commit_info"].get(key) for key in ("id", "dirty")}
    for benchmark in output_json["benchmarks"]:
        benchmark["stats"] = {key: benchmark["stats"][key] for key in ("rounds", "median")}
        for key in ("param", "params", "options"):
            benchmark.pop(key, None)
