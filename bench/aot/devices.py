"""Devices that programs are compiled for; none of them needs to exist here."""

import importlib.metadata
import re
from pathlib import Path

V5E, H200 = "TPU v5e", "H200"
DEVICES = (V5E, H200)

MEMORY = {V5E: 16e9, H200: 151e9}
"""Bytes of each device's memory."""

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


def mesh(device):
    """Returns a mesh of one device, which does not exist here."""
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import AxisType, Mesh

    if device == H200:
        config = Path(__file__).with_name("h200.textproto").read_text(encoding="utf-8")
        found = topologies.get_topology_desc(platform="cuda", topology="1x1x1", target_config=config).devices
    else:
        found = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices
    return Mesh(np.array(found[:1]), ("device",), axis_types=(AxisType.Auto,))
