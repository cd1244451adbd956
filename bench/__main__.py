"""Command ``python -m bench``, which runs the suite and writes the page from its results.

A full run writes bench/results.json and docs/performance.md; ``make docs`` then draws docs/pictures/speed.svg. With
``--tiny`` it tests that everything runs, and writes into build/bench, which git ignores. ``--page`` only writes the page
again, from the existing JSON file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import page

ROOT = page.ROOT


def main():
    """Runs pytest in a child process, because the numbers of threads must be set before NumPy is imported."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="tiny arrays and one round: its times mean nothing")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--output", type=Path, help="a folder for everything that is written")
    given, rest = parser.parse_known_args()  # the rest is pytest's, such as -k
    folder = given.output or (ROOT / "build" / "bench" if given.tiny else None)
    results, document = page.paths(folder)
    status = 0 if given.page else run(results, given.tiny, rest)
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(page.page(json.loads(results.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"wrote {document}")
    sys.exit(status)


def run(results, tiny, rest):
    """Runs the suite and writes its results, also if some cases failed; returns pytest's exit status."""
    variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "KERAS_BACKEND": "jax"}
    if tiny:
        variables["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        full = Path(temporary) / "benchmark.json"
        options = ["--scale", "tiny" if tiny else "full", "--benchmark-json", full, "--benchmark-disable-gc"]
        command = [sys.executable, "-m", "pytest", "-c", ROOT / "bench" / "pytest.ini", ROOT / "bench", *options]
        status = subprocess.call([*map(str, command), "--benchmark-quiet", *rest], env=os.environ | variables, cwd=ROOT)
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(compact(json.loads(full.read_text(encoding="utf-8"))), encoding="utf-8")
    return status


def compact(found):
    """Returns the text of the results: pytest-benchmark's JSON without its own statistics, a line for each race."""
    head = {"machine": found["machine_info"], "commit": found["commit_info"].get("id")}
    lines = [f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in head.items()]
    races = ",\n".join(json.dumps(benchmark["extra_info"]) for benchmark in found["benchmarks"])
    return "{" + ",\n".join([*lines, f'"races": [\n{races}\n]']) + "}\n"


if __name__ == "__main__":
    main()
