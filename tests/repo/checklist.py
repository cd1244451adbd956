"""Follows CONTRIBUTING.md in a copy of the repository: runs its commands, and adds a pooling as "A new function" says.

``python tests/repo/checklist.py`` runs every command of the page, with an environment of its own, in about half an hour. It
prints the seconds of each, and stops at one that fails.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME, STEM, FAMILY = "hurwicz_pooling", "hurwicz", "means"

ROW = """    hurwicz_pooling=dict(
        shapes=f"{TOKENS} optimism[] -> [..., d]",
        source="hurwicz1951",
        equation="o_c = optimism (max over real l of x_lc) + (1 - optimism) (min over real l of x_lc)",
        layouts=("segments", "mesh"),
    ),
"""
PAPER = """@misc{hurwicz1951,
  author = {Hurwicz},
  title = {{The generalized Bayes minimax principle: a criterion for decision making under uncertainty}},
  howpublished = {Cowles Commission discussion paper, statistics 355},
  year = {1951},
}

"""
ORACLE = '''

@definition
def hurwicz_pooling(x, mask=None, optimism=0.5, *, lengths=None):
    r"""Computes a weighted mean of the largest and the smallest real value of each feature (Hurwicz criterion).

    .. math:: o_c = \\alpha \\max_{l : k_l} x_{lc} + (1 - \\alpha) \\min_{l : k_l} x_{lc}

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      optimism: :math:`\\alpha`, a number from 0 to 1; the range is not checked.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Hurwicz 1951.

    >>> hurwicz_pooling([[1.0], [3.0], [99.0]], [True, True, False], 0.25)
    array([1.5])

    Packed:

    >>> segment_hurwicz_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2, optimism=0.25)
    array([[1.5],
           [5. ]])
    """
    return (1 - optimism) * minimum(x, mask) - optimism * minimum(-x, mask)
'''
TWIN = '''

@compiled(tokens=("x",), as_they_come=("x",))
def hurwicz_pooling(x, mask=None, optimism=0.5, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.hurwicz_pooling`.

    >>> hurwicz_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]), 0.25)
    Array([1.5], dtype=float32)

    Packed:

    >>> segment_hurwicz_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, optimism=0.25)
    Array([[1.5],
           [5. ]], dtype=float32)
    """
    return optimism * x.max() + (1 - optimism) * x.min()
'''
GOLDEN = """    ("hurwicz_pooling", {"optimism": 0.25}, (1.125, 0.25)),
"""
MUTANTS = """

@MUTANTS.of("hurwicz_pooling", "Hurwicz: maximum and minimum exchanged")
def hurwicz_exchanged(a):
    return a.oracle(optimism=1 - a.optimism)


@MUTANTS.of("hurwicz_pooling", "Hurwicz: padding as 0")
def hurwicz_with_padding(a):
    return a.oracle(x=_clean(a), mask=np.broadcast_to(np.any(a.mask, -1)[..., None], a.mask.shape))
"""

EDITS = {
    "row": (f"attnpool_ref/table/rows/{FAMILY}.py", "    quantile_pooling=dict(", ROW),
    "paper": ("docs/references.bib", "@article{hyndman1996", PAPER),
    "oracle": (f"attnpool_ref/{FAMILY}.py", "", ORACLE),
    "twin": (f"attnpool_flax/{FAMILY}.py", "", TWIN),
    "golden": (f"tests/functions/golden/test_golden_{FAMILY}.py", '    ("top_k_pooling", {"k": 1}', GOLDEN),
    "mutants": (f"tests/conformance/mutants/{FAMILY}.py", "", MUTANTS),
}
"""The edits by hand: (file, the text before which it is inserted, the text); "" is the end of the file."""

PATHS = [path for path, *_ in EDITS.values()]


def text():
    """Returns the text of CONTRIBUTING.md."""
    return (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def commands(title=""):
    """Returns the commands of the section with this title, or those before the first section."""
    part = text().split(f"\n## {title}\n")[1] if title else text()
    block = part.split("\n## ")[0].split("```sh\n")[1].split("```")[0]
    return [line.replace("STEM", STEM).replace("FAMILY", FAMILY) for line in block.splitlines()]


def contents(folder):
    """Returns the bytes of each file that git lists, and of each that is new."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def copy(folder):
    """Copies the repository into an empty folder."""
    for name, content in contents(ROOT).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod((ROOT / name).stat().st_mode)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def edit(folder, without=()):
    """Makes the edits by hand in a copy."""
    for name, (path, anchor, new) in EDITS.items():
        old = (folder / path).read_text(encoding="utf-8")
        assert anchor in old, f"{path} has no {anchor!r}, before which {name} is inserted"
        if name not in without:
            changed = old.replace(anchor, new + anchor, 1) if anchor else old + new
            (folder / path).write_text(changed, encoding="utf-8")


def run(lines, folder, binaries):
    """Runs commands in a copy, with the programs in ``binaries``; returns what fails as text, "" if nothing does.

    Without a folder ``.venv`` in the copy, ``make`` takes the environment of ``binaries`` and installs nothing.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "VIRTUAL_ENV"))}
    environment |= {"PATH": f"{binaries}:{environment['PATH']}", "PYTHONPATH": str(folder)}
    for line in lines:
        stamps = f"-o {binaries.parent}/dev.stamp VENV={binaries.parent} "
        command = line if binaries.is_relative_to(folder) else line.replace("make ", f"make {stamps}")
        options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": False}
        start = time.perf_counter()
        done = subprocess.run(["bash", "-c", command], **options)
        print(f"{time.perf_counter() - start:5.0f} s  {line}", flush=True)
        if done.returncode:
            return f"`{line}` fails:\n{done.stdout[-8000:]}{done.stderr[-8000:]}"
    return ""


def follow(folder, binaries):
    """Adds the function to a copy, and runs the section's commands; returns what fails as text, "" if nothing does."""
    edit(folder)
    return run(commands("A new function"), folder, binaries)


def main():
    """Runs all commands of CONTRIBUTING.md in a copy, with an environment of its own, and returns what fails."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy(folder)
        binaries = folder / ".venv" / "bin"
        first = [*commands(), *commands("A page")]
        return run(first, folder, binaries) or follow(folder, binaries)


if __name__ == "__main__":
    sys.exit(main() or 0)
