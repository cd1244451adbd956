"""docs/performance.md from the JSON of a run: the same JSON gives the same page, byte for byte."""

import json
from itertools import groupby
from pathlib import Path

from bench import accelerator_page, plots
from bench.aot import page as compiled_page
from bench.timing import exponent, ratio

ROOT = Path(__file__).resolve().parent.parent

HEAD = """# Performance

Written by `make bench` from `bench/results.json`. The page has ratios, because times differ between machines, and
between the hours of one. All ways of doing one thing run in one process, in rounds of shuffled order, with the caches
swept between. Before they are timed, the results of each are compared with the oracle, and its gradients with those of
attnpool.

* **14× faster** than a library or a formula: attnpool takes 1/14 of its time. **0.9× as fast**: attnpool takes longer.
* **1.5× the floor**: attnpool takes 1.5 times as long as what no implementation can do without. This floor is measured
  in the same rounds:
  * **one read**: a sum of x over its tokens; in a step **a read and a write** of an array like x;
  * **the products alone**: where every pair of tokens has a product, the matrix products, in blocks.
* A number is the median over the rounds; the lowest and the highest round are in parentheses.
* **forward** computes the result, **step** the result and the gradients of all floating arrays.

The libraries and formulas, all with the same parameters:

* **plain**: the formula as one would write it in JAX, with the full matrix of scores. For `attention_pooling` it
  computes a key for each token.
* **einsum**: attnpool with `implementation="einsum"`. The other rows use the default, which was "tiles" here.
* **PyTorch**: `nn.MultiheadAttention`, `F.scaled_dot_product_attention`, or the notebook's formula with its masks
  corrected; for MaxSim `torch.einsum` in blocks of 64 documents.
* **PyG**: `AttentionalAggregation`. **jax.nn**: `jax.nn.dot_product_attention`.

The letters of the sizes: B examples, L and T tokens, d features, n queries, m or k keys, H heads, h hidden units, C
candidates, N packed tokens.
"""

UNMEASURED = "Not measured yet: `make bench` writes its figures here.\n"


def paths(folder=None):
    """(JSON, page) in a folder, or where the repository has them."""
    if folder is None:
        return ROOT / "bench" / "results.json", ROOT / "docs" / "performance.md"
    return Path(folder) / "results.json", Path(folder) / "performance.md"


def write(results, document, redraw=True):
    """Writes the page, and its pictures if they are to be drawn anew, from the JSON files that are there."""
    files = [results, results.with_name("accelerator.json"), results.with_name("aot.json")]
    found, measured, compiled = (json.loads(file.read_text()) if file.exists() else None for file in files)
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(page(found, measured, compiled))
    if found and redraw:
        plots.draw(benchmarks_of(found, "sweep"), document.parent / "performance")


def page(found, accelerator=None, compiled=None):
    """The text."""
    parts = [HEAD]
    if found is None:
        parts.append(UNMEASURED)
    else:
        drawn = dict.fromkeys(race["function"] for race in benchmarks_of(found, "sweep"))
        parts += [about(found["machine_info"])]
        parts += [f"![{name}: time against length](performance/{name}.svg)\n" for name in drawn]
        parts += [cases(found), oracle(found), memory(found), growth(found), eager(found), lines(found)]
    text = "\n".join([*parts, accelerator_page.section(accelerator)])
    return compiled_page.joined(text, compiled_page.section(compiled) if compiled else "")


def benchmarks_of(found, part):
    """The races of one part, in the order of the table."""
    return [b["extra_info"] for b in found["benchmarks"] if b["extra_info"]["part"] == part]


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def about(machine):
    """What it was measured with."""
    threads = ", ".join(f"{name} {count}" for name, count in machine["threads"].items())
    lines = [
        f"* {machine['date']}, {machine['cpu']} ({machine['device']}), {machine['cores']} cores",
        f"* {', '.join(f'{name} {version}' for name, version in machine['versions'].items())}",
        f"* threads: XLA {machine['cores']}, {threads}",
        f"* missing peers: {', '.join(machine['missing']) or 'none'}",
    ]
    if machine["scale"] != "full":
        lines.insert(
            0, f"**A {machine['scale']} run, of small sizes and few rounds: that it runs, not how fast it is.**\n"
        )
    return "\n".join(lines) + "\n"


def number(value):
    """A ratio with three digits at most."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def spread(numbers):
    """The lowest and the highest round in parentheses."""
    return f"({number(numbers[1])} to {number(numbers[2])})"


def faster(theirs, ours):
    """How much faster ours is, from times by round."""
    numbers = ratio(theirs, ours)
    words = "faster" if numbers[0] >= 1 else "as fast"
    return f"{number(numbers[0])}× {words} {spread(numbers)}"


def times(ours, floor, name):
    """How many times as long as a floor ours takes, from times by round."""
    numbers = ratio(ours, floor)
    return f"{number(numbers[0])}× {name} {spread(numbers)}"


def is_other(name, race):
    """Whether a way is another program than the default of attnpool: only einsum is, where tiles are the default."""
    way, ours = race["ways"][name], race["ways"]["attnpool"]
    return name != "attnpool" and (way["kind"] != ours["kind"] or way["temporaries"] != ours["temporaries"])


def where(found):
    """The hardware of the run, as the beginning of a sentence."""
    machine = found["machine_info"]
    return f"On {machine['cores']} cores of an {machine['cpu']} ({machine['device']})"


def cards(found, head, cells):
    """A section for each case, with a row for each way and a column for each direction.

    Args:
      found: the JSON of a run.
      head: title of the column of ways.
      cells: from a race to (way, cell) pairs.
    """
    races = [race for race in benchmarks_of(found, "case") if "attnpool_ref" not in race["ways"]]
    parts = []
    for (function, title), of_case in groupby(races, key=lambda race: (race["function"], race["title"])):
        rows, directions = {}, []
        for race in of_case:
            directions.append(race["direction"])
            for way, cell in cells(race):
                rows.setdefault(way, {})[race["direction"]] = cell
        lines = [[way, *(cell.get(direction, "-") for direction in directions)] for way, cell in rows.items()]
        parts.append(f"### {function}: {title}\n\n" + table([head, *directions], lines))
    return "\n".join(parts)


def _compared(race):
    ours = race["ways"]["attnpool"]["seconds"]
    for name, way in race["ways"].items():
        if way["kind"] == "floor":
            yield "the floor", times(ours, way["seconds"], name)
        elif is_other(name, race):
            yield name.removeprefix("attnpool, "), faster(way["seconds"], ours)


def cases(found):
    """Times of the cases, forward and step."""
    text = f"{where(found)}, a call with attnpool's default takes:\n\n"
    return "## Time\n\n" + text + cards(found, "compared with", _compared)


def oracle(found):
    """The oracle beside the notebook's NumPy."""
    rows = []
    for race in benchmarks_of(found, "case"):
        if "attnpool_ref" in race["ways"]:
            ways = race["ways"]
            cell = times(
                ways["attnpool_ref"]["seconds"], ways["the notebook's NumPy"]["seconds"], "the notebook's time"
            )
            rows.append([race["function"], race["title"].partition(", ")[0], cell])
    text = (
        f"{where(found)}, compared with the NumPy code of the notebooks that attnpool began with, which computes in\n"
        "float32. The definition computes in float64 and checks its arguments.\n\n"
    )
    return "## The oracle\n\n" + text + table(["function", "sizes", "the oracle takes"], rows)


def memory(found):
    """Temporaries and compile times of every compiled way."""
    text = (
        "Bytes that the compiled program needs besides its inputs and outputs, as XLA reports them, and the time to compile it. Bytes are\n"
        "divided by those of an array that the row names, such as x or the scores [n, k].\n\n"
    )
    return "## Memory and compile time\n\n" + text + cards(found, "program", _compiled)


def _compiled(race):
    for name, way in race["ways"].items():
        if (
            way["compile_seconds"] is not None
            and way["kind"] != "floor"
            and (name == "attnpool" or is_other(name, race))
        ):
            share = f"{way['temporaries'] / race['unit_bytes']:.3f} {race['unit']}"
            yield name.removeprefix("attnpool, "), f"{share}, {way['compile_seconds']:.2f} s"


def growth(found):
    """The power of the length with which the time grows."""
    lines = []
    for name, points in groupby(benchmarks_of(found, "sweep"), key=lambda race: race["function"]):
        points = list(points)
        lengths = [point["length"] for point in points]
        if len(lengths) < 2:
            continue
        ways = [way for way in points[0]["ways"] if all(way in point["ways"] for point in points)]
        powers = {way: exponent(lengths, [point["ways"][way]["seconds"] for point in points]) for way in ways}
        letters = " = ".join(points[0]["letters"])
        fixed = " ".join(p for p in points[0]["title"].split() if p[0] not in points[0]["letters"])
        said = ", ".join(f"{way} {power:.1f}" for way, power in powers.items())
        lines.append(f"* `{name}`, {fixed}, {letters} from {lengths[-2]} to {lengths[-1]}: {said}\n")
    text = "The time grows as the length to the power of (1 is linear, 2 is quadratic):\n\n"
    return "## Growth with the length\n\n" + text + "".join(lines)


def eager(found):
    """Eager calls on small arrays."""
    rows = []
    for race in benchmarks_of(found, "eager"):
        ours, jitted = (way["seconds"] for way in race["ways"].values())
        cell = times(ours, jitted, "the jitted call")
        rows.append([race["function"], race["title"], f"{min(ours) * 1e6:.0f} µs", cell])
    text = f"{where(found)}, calls with `return_weights=True` are compared with the same calls under `jax.jit`.\n\n"
    head = ["function", "sizes", "the eager call takes", "which is"]
    return "## An eager call on small arrays\n\n" + text + table(head, rows)


def lines(found):
    """One line for every function of the table."""
    rows = []
    for race in benchmarks_of(found, "line"):
        ours, ways = race["ways"]["attnpool"]["seconds"], race["ways"]
        read = f"{ratio(ours, ways['one read']['seconds'])[0]:.1f}×" if "one read" in ways else "-"
        speed = ratio(ways["attnpool_ref"]["seconds"], ours)[0]
        rows.append([race["function"], read, f"{speed:.1f}×" if speed < 10 else f"{speed:.0f}×"])
    text = (
        f"{where(found)}, forward, on small arrays (a few MB, with padding). One read is a sum of all floating\n"
        "inputs, compiled as attnpool's function is. Below 1× in the last column the oracle is faster.\n\n"
    )
    head = ["function", "times as long as one read", "times faster than the oracle"]
    return "## Every function\n\n" + text + table(head, rows)
