"""Command that runs the README's commands in an empty folder and times each: installation, pooling, a head, a verdict.

``python tools/studies/readme_walk.py`` copies the checkout into a temporary folder, installs it into a new environment,
and runs every block of the README there, in the README's order after the installation. ``--here`` uses the running
Python and its installed attnpool, and installs nothing.

The trained heads that the README loads are made first, with random weights. Nothing is downloaded.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HEADS = """
import pathlib
import attnpool_flax
from attnpool_flax.modules.sentences import SentencePool
from attnpool_ref.formats.sentences import Stage
from flax import nnx

head = attnpool_flax.MAPHead(in_features=768, num_heads=12, hidden_features=3072, rngs=nnx.Rngs(0))
attnpool_flax.save(head, "siglip2.safetensors", "siglip")
pathlib.Path("models").mkdir()
stages = Stage("pooling", modes=("mean",), width=384), Stage("normalize")
attnpool_flax.save(SentencePool(stages, rngs=nnx.Rngs(0)), "models/all-MiniLM-L6-v2", "sentence_transformers")
"""


def main(arguments=None):
    """Runs the steps, prints the seconds of each, and returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--here", action="store_true", help="use this Python and install nothing")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        python, clone = (Path(sys.executable), ROOT) if options.here else prepared(home)
        work = home / "work"
        work.mkdir()
        environment = {key: value for key, value in os.environ.items() if options.here or not key.startswith("PYTHON")}
        failed, total = [], 0.0
        walk = list(steps(work, python, options.here))
        for title, command, wanted in sorted(
            walk, key=lambda step: step[0] != "install"
        ):  # the installation comes first
            if "attnpool_flax.load" in title:
                subprocess.run([python, "-c", HEADS], cwd=work, env=environment, check=True)
            seconds, status = timed(command, clone if title == "install" else work, environment)
            total += seconds
            said = "" if status == wanted else f"  FAILED: status {status}, needs {wanted}"
            failed += [title] * bool(said)
            print(f"{seconds:6.1f} s  {title}{said}", flush=True)
        print(f"{total:6.1f} s  from an empty folder to the last verdict")
    return int(bool(failed))


def prepared(home):
    """Makes a copy of the checkout and an empty environment.

    Returns:
      (the environment's Python, the copy).
    """
    skipped = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, home / "attnpool", ignore=skipped)
    venv.create(home / "env", with_pip=True)
    return home / "env" / "bin" / "python", home / "attnpool"


def steps(work, python, here):
    """Yields (title, command, expected exit status) in the README's order, and writes the README's file."""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S):
        name = re.match(r"# (\w+\.py)\n", text)
        if name:
            (work / name[1]).write_text(text)
        elif language == "python":
            yield f"python: {text.strip().splitlines()[-1].split('  # ')[0]}", [python, "-c", text], 0
        elif language == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line)
                if program == "pip":
                    if not here:
                        yield "install", [python, "-m", "pip", "install", "-q", *words[1:]], 0
                else:
                    yield line, [python, "-m", "attnpool_ref", *words], 1  # the README shows a function that fails


def timed(command, folder, environment):
    """Returns (seconds, exit status) of a command; prints its output if it failed."""
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.stderr and done.returncode:
        print(done.stderr, file=sys.stderr)
    return time.perf_counter() - begin, done.returncode


if __name__ == "__main__":
    sys.exit(main())
