"""What was measured with: versions and threads."""

import os
import platform
import sys
from importlib import metadata

import attnpool_ref

PACKAGES = ("jax", "jaxlib", "flax", "numpy", "torch", "torch-geometric", "keras", "equinox", "pytest-benchmark")


def installed():
    """Python's version and those of the packages that are there."""
    found = {"python": platform.python_version(), "attnpool": attnpool_ref.__version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def threads():
    """How many threads NumPy's products and PyTorch use; XLA has one for each core."""
    found = {"NumPy's BLAS": os.environ.get("OPENBLAS_NUM_THREADS", "not pinned")}
    if "torch" in sys.modules:
        found["PyTorch"] = sys.modules["torch"].get_num_threads()
    return found
