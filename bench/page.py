"""docs/performance.md from the JSON of a run: the same JSON gives the same page, byte for byte."""

import json
from itertools import groupby
from pathlib import Path

from bench import accelerator_page, plots
from bench.aot import page as compiled_page
from bench.timing import exponent, ratio

ROOT = Path(__file__).resolve().parent.parent

HEAD = """# Performance

Written by `make bench` from `bench/results.json`; `make accelerator` fills the last table. Ratios, not times: machines differ,
and so do one machine's hours. All ways of doing one thing run in one process, in rounds of shuffled order, caches swept
between; the results of each are held against the oracle first, and its gradients against ours. A ratio is the median over
rounds of what one round says; the lowest and the highest round and the ratio of the best times stand beside it.

* **One read** sums x over its tokens: no pooling can do with less. In a step (value and gradients of all floating arrays) the
  floor is **a read and a write** of an array like x. Where every pair of tokens has a product, the floor is **the products
  alone**, in blocks: the scores' and, where a row averages the columns, those of the average; in a step a block's scores are
  computed once more, as in ours, where no [n, k] is held. Each floor is measured in the same rounds.
* **Plain** is the formula as one would write it in JAX, the full score matrix included (for `attention_pooling` a key for each
  token, `x @ W`, then its score). **PyTorch** is `nn.MultiheadAttention`, `F.scaled_dot_product_attention` or the notebook's
  formula with its masks mended; of MaxSim `torch.einsum` in blocks of 64 documents. **PyG** is `AttentionalAggregation`,
  **jax.nn** is `jax.nn.dot_product_attention`. All have the same parameters.
* **Temporaries** are what the compiled program needs beside its inputs and outputs, as XLA says: free of noise.
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


def figures(numbers):
    """Median, spread and ratio of best times as cells."""
    median, low, high, best = (f"{number:.2f}" if number < 10 else f"{number:.0f}" for number in numbers)
    return [median, f"{low} to {high}", best]


def compared(race):
    """(what, ratio) of each way beside ours: floors and plain formulas stand below ours, peers above."""
    ours = race["ways"]["attnpool"]["seconds"]
    for name, way in race["ways"].items():
        if name == "attnpool":
            continue
        if way["kind"] == "floor" or (way["kind"] == "plain" and race["function"] not in UNFOLDED):
            yield f"ours ÷ {name}", ratio(ours, way["seconds"])
        else:
            yield f"{name} ÷ ours", ratio(way["seconds"], ours)


UNFOLDED = ("attention_pooling", "cross_attention_pooling")
"""Functions that need no matrix at all, where the plain formula is divided by ours."""


def cases(found):
    """The table of cases, forward and step."""
    rows = []
    for race in benchmarks_of(found, "case"):
        if "attnpool_ref" in race["ways"]:
            continue
        rows += [[race["function"], race["title"], race["direction"], what, *figures(r)] for what, r in compared(race)]
    head = ["function", "sizes", "", "ratio", "median", "lowest to highest", "of best times"]
    return "## Time\n\n" + table(head, blank_repeats(rows))


def blank_repeats(rows):
    """Rows without the function and the sizes that the row above already names."""
    for _, group in groupby(rows, key=lambda row: row[:2]):
        for i, row in enumerate(group):
            yield row if i == 0 else ["", "", *row[2:]]


def oracle(found):
    """The oracle beside the notebook's NumPy."""
    races = [race for race in benchmarks_of(found, "case") if "attnpool_ref" in race["ways"]]
    rows = []
    for race in races:
        ways = race["ways"]
        numbers = ratio(ways["attnpool_ref"]["seconds"], ways["the notebook's NumPy"]["seconds"])
        rows.append([race["function"], race["title"], *figures(numbers)])
    text = "The definition computes in float64 and checks its arguments; the notebook's NumPy computes in float32.\n\n"
    head = ["function", "sizes", "oracle ÷ notebook", "lowest to highest", "of best times"]
    return "## The oracle\n\n" + text + table(head, rows)


def memory(found):
    """Temporaries and compile times of every compiled way."""
    rows = []
    for race in benchmarks_of(found, "case"):
        for name, way in race["ways"].items():
            if way["compile_seconds"] is None or way["kind"] == "floor":
                continue
            share = f"{way['temporaries'] / race['unit_bytes']:.3f} {race['unit']}"
            row = [race["function"], race["title"], race["direction"], name, share, f"{way['compile_seconds']:.2f} s"]
            rows.append(row)
    head = ["function", "sizes", "", "way", "temporaries", "to compile"]
    return "## Memory and compile time\n\n" + table(head, blank_repeats(rows))


def growth(found):
    """With which power of the length the time grows."""
    rows = []
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
        rows.append([name, fixed, f"{letters} from {lengths[-2]} to {lengths[-1]}", said])
    head = ["function", "sizes", "length", "time grows as the length to the power of"]
    return "## Growth with the length\n\n" + table(head, rows)


def eager(found):
    """Eager calls on small arrays."""
    rows = []
    for race in benchmarks_of(found, "eager"):
        ours, jitted = (way["seconds"] for way in race["ways"].values())
        rows.append([race["function"], race["title"], *figures(ratio(ours, jitted)), f"{min(ours) * 1e6:.0f} µs"])
    text = "Beside the same call under the caller's own jit, both with the weights, which an eager call computes in any case.\n\n"
    head = ["function", "sizes", "eager ÷ jitted", "lowest to highest", "of best times", "the eager call"]
    return "## An eager call on small arrays\n\n" + text + table(head, rows)


def lines(found):
    """One line for every function of the table."""
    rows = []
    for race in benchmarks_of(found, "line"):
        ours, ways = race["ways"]["attnpool"]["seconds"], race["ways"]
        read = f"{ratio(ours, ways['one read']['seconds'])[0]:.1f}" if "one read" in ways else "-"
        numpy = ratio(ways["attnpool_ref"]["seconds"], ours)[0]
        rows.append([race["function"], read, f"{numpy:.1f}" if numpy < 10 else f"{numpy:.0f}"])
    text = (
        "Small arrays (a few MB, with padding), forward. A read is of all floating inputs, and compiled as ours is.\n\n"
    )
    return "## Every function\n\n" + text + table(["function", "ours ÷ one read", "oracle ÷ ours"], rows)
