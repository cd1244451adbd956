"""Text of docs/performance.md from the JSON of a run: the same JSON gives the same page, byte for byte."""

from itertools import groupby
from pathlib import Path

from bench.aot import FACTOR
from bench.programs import FLOOR, FORWARD, OURS, PEER, PLAIN, STEP
from bench.timing import ratio

ROOT = Path(__file__).resolve().parent.parent

HEAD = """# Performance

`make bench` times functions of `attnpool_flax` and writes this page from `bench/results.json`.

![Time of a training step of multi-head pooling, beside the layers of other libraries](pictures/speed.svg)

The picture shows `{shown}`; the lines are the range over the rounds.

## Time
"""

READING = """
* **forward** computes the result, **step** the result and the gradients of all floating arrays.
* **÷ floor**: attnpool's time divided by that of a computation that no implementation can avoid, except by skipping padding:
  one read of the tokens, in a step a read and a write; with † the matrix products of all pairs of tokens, with ‡ the writing
  of the results, which are larger than the tokens.
* **faster than**: the time of another implementation divided by attnpool's. Below 1× attnpool is slower. *plain* is the usual
  formula in JAX, with the full matrix of scores.
* **memory**: temporaries of the compiled step, as XLA reports them, divided by the bytes of the tokens.
* A dash: nothing was compared.

B examples, L and T tokens, d features, n queries, m keys, H heads, h hidden units, C candidates, N packed tokens; of
`mask_attention` k tokens of the query and n of the context. Masks leave between half of the tokens and all, unless the table
says otherwise.

All implementations of a case have the same parameters and run in one process, in rounds of random order with cold caches; a
ratio is the median over the rounds, because times differ between machines and hours
([decision 0008](decisions/0008-ratios-by-pytest-benchmark.md)). Before the timing, results are compared with the oracle, the
definitions in `attnpool_ref`, and gradients with attnpool's.

## GPU and TPU

No function was timed on a GPU or a TPU. `make accelerator` judges and times functions on yours in 8 minutes. `make aot` compiles
every function for a TPU v5e and an H200 without one, and fails if a program needs more than {factor:g} times the bytes, operations or
cycles of its plain formula; `bench/aot/rule.py` has the exceptions and their reasons.
"""

SHOWN = "multi_head_attention_pooling", "B=64 L=196 d=1152 n=1 H=16"
"""The case of docs/pictures/speed.svg and README.md: SigLIP's head."""

MARKS = {"the products alone": "†", "writing the results": "‡"}

NAMED = ("python", "numpy", "jax", "flax", "torch", "torch-geometric", "keras", "equinox")
"""Packages whose versions the page has."""


def paths(folder=None):
    """Returns the paths of (JSON, page) in a folder, or in the repository."""
    if folder is None:
        return ROOT / "bench" / "results.json", ROOT / "docs" / "performance.md"
    return Path(folder) / "results.json", Path(folder) / "performance.md"


def page(found):
    """Returns the text of the page."""
    head = [
        "function and sizes",
        "forward ÷ floor",
        "step ÷ floor",
        "forward faster than",
        "step faster than",
        "memory",
    ]
    lines = [head, ["---"] * len(head), *rows(found["races"])]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    shown = f"{SHOWN[0]}, {SHOWN[1]}"
    return "\n".join([HEAD.format(shown=shown), about(found), table]) + READING.format(factor=FACTOR)


def about(found):
    """Returns the lines about hardware, versions and threads."""
    machine = found["machine"]
    tiny = "**A tiny run: its times mean nothing.** " if machine["scale"] != "full" else ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if name in NAMED)
    threads = ", ".join(f"{name} {count}" for name, count in machine["threads"].items())
    missing = f" Not installed: {', '.join(machine['missing'])}." if machine["missing"] else ""
    return (
        f"{tiny}Measured on {machine['date']} at commit {(found['commit'] or 'unknown')[:10]} on {machine['cores']} cores of an "
        f"{machine['cpu']}; threads: XLA {machine['cores']}, {threads}; {versions}.{missing}\n"
    )


def rows(races):
    """Yields a row of the table for each case."""
    for (function, title), of_case in groupby(races, key=lambda race: (race["function"], race["title"])):
        by = {race["direction"]: race for race in of_case}
        directions = [by.get(FORWARD), by.get(STEP)]
        memory = "-"
        if by.get(STEP):
            memory = f"{by[STEP]['ways'][OURS]['temporaries'] / by[STEP]['token_bytes']:.2f}"
        yield [f"`{function}` {title}", *map(_of_floor, directions), *map(_faster, directions), memory]


def _of_floor(race):
    floors = [(name, way) for name, way in (race["ways"].items() if race else ()) if way["kind"] == FLOOR]
    return "".join(f"{number(median(race, OURS, name))}{MARKS.get(name, '')}" for name, _ in floors) or "-"


def _faster(race):
    others = [name for name, way in (race["ways"].items() if race else ()) if way["kind"] in (PLAIN, PEER)]
    return ", ".join(f"{name} {number(median(race, name, OURS))}×" for name in others) or "-"


def median(race, name, other):
    """Returns the time of a way divided by that of another, the median over the rounds."""
    return ratio(race["ways"][name]["seconds"], race["ways"][other]["seconds"])[0]


def number(value):
    """Returns a ratio with two digits."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"
