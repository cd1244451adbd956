"""The examples' libraries come with the extra ``examples``; ``make examples`` runs this directory alone."""

import sys
from pathlib import Path

from optional import collecting

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
pytest_collect_file = collecting("examples", ("dask", "distributed", "pyarrow", "psutil", "sklearn"))
