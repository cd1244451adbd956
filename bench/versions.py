"""Versions and threads of a measurement."""

import os
import platform
import sys
from importlib import metadata

import attnpool_ref

PACKAGES = ("jax", "jaxlib", "flax", "numpy", "torch", "torch-geometric", "keras", "equinox", "pytest-benchmark")


def installed():
    """Returns the version of Python and those of the installed packages."""
    found = {"python": platform.python_version(), "attnpool": attnpool_ref.__version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def threads():
    """Returns the numbers of threads of NumPy's products and of PyTorch; XLA has one for each core."""
    found = {"NumPy's BLAS": os.environ.get("OPENBLAS_NUM_THREADS", "not pinned")}
    if "torch" in sys.modules:
        found["PyTorch"] = sys.modules["torch"].get_num_threads()
    return found
