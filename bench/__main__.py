"""Command ``python -m bench``, which runs the suite and writes the page from its results.

A full run writes bench/results.json, docs/performance.md and its pictures. A quick or a tiny run writes the same files
into build/bench, which git ignores. ``--page`` only writes the page again, from the existing JSON files.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from bench import page

ROOT = Path(__file__).resolve().parent.parent


def main():
    """Runs pytest in a child process, because the numbers of threads must be set before NumPy is imported."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    scales = parser.add_mutually_exclusive_group()
    scales.add_argument("--quick", dest="scale", action="store_const", const="quick", default="full")
    scales.add_argument("--tiny", dest="scale", action="store_const", const="tiny")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--output", type=Path, help="a folder for everything that is written")
    given, rest = parser.parse_known_args()  # the rest is pytest's, such as -k
    folder = given.output or (None if given.scale == "full" else ROOT / "build" / "bench")
    results, document = page.paths(folder)
    status = 0
    if not given.page:
        results.parent.mkdir(parents=True, exist_ok=True)
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "KERAS_BACKEND": "jax"}
        if given.scale != "full":
            threads["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # such a run only tests that everything runs
        options = ["--scale", given.scale, "--benchmark-json", results, "--benchmark-disable-gc", "--benchmark-quiet"]
        command = [sys.executable, "-m", "pytest", "-c", ROOT / "bench" / "pytest.ini", ROOT / "bench"]
        status = subprocess.call([*map(str, command + options), *rest], env=os.environ | threads, cwd=ROOT)
    page.write(results, document)  # also if some cases failed
    print(f"wrote {document}")
    sys.exit(status)


if __name__ == "__main__":
    main()
