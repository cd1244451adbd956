"""Devices that programs are compiled for; none of them needs to exist here."""

import importlib.metadata
import re
from pathlib import Path

from bench.aot.calls import DEVICES_OF_MESH

V5E, V6E, H200 = "TPU v5e", "TPU v6e", "H200"
DEVICES = (V5E, H200, V6E)
DEFAULT = (V5E, H200)
TPUS = (V5E, V6E)

_FOLDER = Path(__file__).parents[2]

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",  # cuDNN and cuBLAS are not needed for compiling
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": re.escape(f"{_FOLDER}/"),  # no kernel's text names it
}
"""Environment of a process that compiles, to be set before JAX is imported."""

PINNED = {"jax": "0.11.2", "libtpu": "0.0.52", "jax-cuda13-plugin": "0.11.2", "nvidia-cuda-nvcc": "13.5.37"}
"""Packages that must be installed, as the extra ``aot`` pins them."""

_DESCRIPTION = Path(__file__).with_name("h200.textproto")
_TOPOLOGIES = {V5E: "v5e:2x2", V6E: "v6e:2x2"}


def missing(version=None):
    """Returns why nothing can be compiled here, or None; ``version`` returns the installed version of a package."""
    version = version or importlib.metadata.version
    for name, wanted in PINNED.items():
        try:
            found = version(name)
        except importlib.metadata.PackageNotFoundError:
            return f"{name} is not installed: `make aot` installs the extra `aot` (Python 3.12 or later)"
        if found != wanted:
            return f"{name} is {found}, needs {wanted}: `make aot` installs the extra `aot`"
    return None


def topology(device, count):
    """Returns descriptions of a given number of devices of a kind; the devices themselves do not exist here."""
    from jax.experimental import topologies

    if device == H200:
        config = _DESCRIPTION.read_text()
        return topologies.get_topology_desc(platform="cuda", topology=f"1x{count}x1", target_config=config).devices
    return topologies.get_topology_desc(_TOPOLOGIES[device], platform="tpu").devices[:count]


def mesh(device, split):
    """Returns a mesh of one device, or of four devices, over which tokens are split."""
    import numpy as np
    from jax.sharding import AxisType, Mesh

    from bench.aot.calls import AXIS

    count = DEVICES_OF_MESH if split else 1
    found = np.array(topology(device, count))
    return Mesh(found, (AXIS,), axis_types=(AxisType.Auto,))
