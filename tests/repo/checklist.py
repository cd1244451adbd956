"""Follows "A new function" of CONTRIBUTING.md in a copy of the repository: adds a pooling, runs the section's commands.

``PYTHONPATH=. python tests/repo/checklist.py`` prints the files that the commands write, then fails if a command fails or
if a file that was edited or written is not in the section. ``--without NUMBERS`` leaves out one edit.
"""

import argparse
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
ENTRY = """Hurwicz criterion | alpha maximin
  call: hurwicz_pooling(x, mask, optimism=0.25)
  source: Hurwicz 1951
  differs: The result lies between `min_pooling` and `max_pooling`.
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
    return optimism * max_pooling.body(x, mask) + (1 - optimism) * min_pooling.body(x, mask)
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

FORMULA = """def hurwicz_pooling(x, mask, optimism):
    return (optimism * max_pooling(x, mask) + (1 - optimism) * min_pooling(x, mask)).astype(x.dtype)


"""
PACKED_FORMULA = """def hurwicz_pooling(x, segments, optimism):
    return (optimism * max_pooling(x, segments) + (1 - optimism) * min_pooling(x, segments)).astype(x.dtype)


"""

EDITS = {
    "row": (f"attnpool_ref/table/rows/{FAMILY}.py", "    quantile_pooling=dict(", ROW),
    "NUMBERS": ("attnpool_ref/table/row.py", '    "bandwidth"', '    "optimism": 0.375,\n'),
    "names": ("attnpool_ref/table/names/images.py", '""")\n\nHEADS = ', ENTRY),
    "paper": ("docs/references.bib", "@article{hyndman1996", PAPER),
    "oracle": (f"attnpool_ref/{FAMILY}.py", "", ORACLE),
    "twin": (f"attnpool_flax/{FAMILY}.py", "", TWIN),
    "golden": (f"tests/functions/golden/test_golden_{FAMILY}.py", '    ("top_k_pooling", {"k": 1}', GOLDEN),
    "mutants": (f"tests/conformance/mutants/{FAMILY}.py", "", MUTANTS),
    "formula": ("bench/plain.py", "def first_pooling", FORMULA),
    "packed formula": ("bench/plain_packed.py", "def first_pooling", PACKED_FORMULA),
    "changelog": ("CHANGELOG.md", "### Changed", f"* `{NAME}`.\n\n"),
}
"""The edits by hand: (file, the text before which it is inserted, the text); "" is the end of the file."""

OF_A_MACHINE = {"docs/interactive/cases.json", "docs/pictures/terminal.svg"}
"""Files that differ between environments: the last digits of numbers, and NumPy's version."""


def section():
    """Returns the text of the section, and its commands."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## A new function\n")[1].split("\n## ")[0]
    commands = text.split("```sh\n")[1].split("```")[0].replace("\\\n ", "").splitlines()
    return text, [command.replace("STEM", STEM).replace("FAMILY", FAMILY) for command in commands]


def contents(folder):
    """Returns the bytes of each file that git lists, and of each that is new."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def edit(folder, without=()):
    """Copies the repository into an empty folder, and edits the copy."""
    for name, content in contents(ROOT).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for name, (path, anchor, new) in EDITS.items():
        old = (folder / path).read_text(encoding="utf-8")
        assert anchor in old, f"{path} has no {anchor!r}, before which {name} is inserted"
        if name not in without:
            changed = old.replace(anchor, new + anchor, 1) if anchor else old + new
            (folder / path).write_text(changed, encoding="utf-8")


def follow(folder, without=()):
    """Edits a copy and runs the section's commands in it; returns what fails as text, "" if nothing does."""
    edit(folder, without)
    edited, (text, commands) = contents(folder), section()
    binaries = Path(sys.executable).parent
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment |= {"PYTHONPATH": str(folder), "PATH": f"{binaries}:{environment['PATH']}"}
    for command in commands:
        installs_nothing = command.replace("make ", f"make -o {binaries.parent}/dev.stamp VENV={binaries.parent} ")
        options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": False}
        start = time.perf_counter()
        done = subprocess.run(["bash", "-c", installs_nothing], **options)
        print(f"{time.perf_counter() - start:5.0f} s  {command}", flush=True)
        if done.returncode:
            return f"`{command}` fails:\n{done.stdout[-8000:]}{done.stderr[-8000:]}"
    written = {name for name, content in contents(folder).items() if edited.get(name) != content} - OF_A_MACHINE
    print("written:", *sorted(written))
    paths = [*(path.replace(FAMILY, "FAMILY") for path, *_ in EDITS.values()), *sorted(written)]
    return "\n".join(f"CONTRIBUTING.md does not name {path}" for path in paths if path not in text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", choices=EDITS, default=[], help="leave out an edit")
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(follow(Path(temporary), parser.parse_args().without) or 0)
