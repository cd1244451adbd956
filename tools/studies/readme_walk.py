"""Command that runs the README's blocks in an empty folder with this Python, and times each: pooling, a head, a verdict.

``make dist`` runs it with the Python into which it has installed the wheel. The trained heads that the README loads are
made first, with random weights. Nothing is downloaded.
"""

import re
import shlex
import subprocess
import sys
import tempfile
import time
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


def main():
    """Runs the steps, prints the seconds of each, and returns 1 if one failed."""
    with tempfile.TemporaryDirectory() as folder:
        failed, total, work = 0, 0.0, Path(folder)
        for title, command, wanted in steps(work):
            if "attnpool_flax.load" in title:
                subprocess.run([sys.executable, "-c", HEADS], cwd=work, check=True)
            seconds, status = timed(command, work)
            total += seconds
            said = "" if status == wanted else f"  FAILED: status {status}, needs {wanted}"
            failed += bool(said)
            print(f"{seconds:6.1f} s  {title}{said}", flush=True)
        print(f"{total:6.1f} s  in all")
    return int(bool(failed))


def steps(work):
    """Yields (title, command, expected exit status) in the README's order, and writes the README's file."""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S):
        name = re.match(r"# (\w+\.py)\n", text)
        if name:
            (work / name[1]).write_text(text)
        elif language == "python":
            yield f"python: {text.strip().splitlines()[-1].split('  # ')[0]}", [sys.executable, "-c", text], 0
        elif language == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line)
                if program != "pip":  # the README shows a function that fails
                    yield line, [sys.executable, "-m", "attnpool_ref", *words], 1


def timed(command, folder):
    """Returns (seconds, exit status) of a command; prints its output if it failed."""
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.stderr and done.returncode:
        print(done.stderr, file=sys.stderr)
    return time.perf_counter() - begin, done.returncode


if __name__ == "__main__":
    sys.exit(main())
