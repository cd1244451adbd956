"""Text of docs/performance.md from the JSON of a run: the same JSON gives the same page, byte for byte."""

import json
from itertools import groupby
from pathlib import Path

from bench import accelerator_page, plots
from bench.aot import page as compiled_page
from bench.timing import exponent, ratio

ROOT = Path(__file__).resolve().parent.parent

HEAD = """# Performance

This page compares the speed of the functions of `attnpool_flax` with that of other libraries. `make bench` measures it and
writes the page from `bench/results.json`. The page has ratios of times, because times differ between machines and, on one machine,
between hours. All implementations of a case run in one process, in rounds of random order, and the CPU's caches are
overwritten before each measurement: a call, or repeated calls if one takes less than 2 ms (20 ms for eager calls).
Before the timing, the results of at most two examples of each batch are compared with the oracle (the definition in
`attnpool_ref`), with shorter sequences if its arrays would be too large, and the gradients of the other
implementations with those of attnpool.

* **14× faster** than a library or a formula: attnpool takes 1/14 of its time. **0.9× as fast**: attnpool takes longer.
* **1.5× one read**: attnpool takes 1.5 times as long as a floor. A floor is a computation that no implementation can avoid
  except by skipping padding, timed in the same rounds. The floors are:
  * **one read**: a sum of each array of tokens, such as x; in a step **a read and a write** of arrays like them;
  * **the products alone**: for functions that need the product of every pair of tokens, the matrix products, in blocks
    (in a step only if every product has a gradient; of a maximum over products, only the largest has);
  * **writing the results**: for functions whose results are much larger than x, forward only.
* A ratio is the median over the rounds. The lowest and the highest round are in parentheses. A dash means that there is no such comparison.
* **forward** computes the result, **step** the result and the gradients of all floating arrays.

These libraries and formulas are compared, all with the same parameters:

* **plain**: the usual formula in JAX, with the full matrix of scores (for MaxSim, of one document after another). For
  `attention_pooling` it computes a key for each token.
* **PyTorch**: `nn.MultiheadAttention`, `F.scaled_dot_product_attention`, or the usual formula, for
  `cross_attention_pooling` and `additive_attention` that of a [notebook](notebooks/README.md) with corrected masks; for
  MaxSim `torch.einsum` in blocks of 64 documents.
* **Flax Linen**, **Flax NNX**, **Keras**, **Equinox**: their layers of multi-head attention. For `mask_attention` and
  `additive_attention`, Keras' layers `Attention` and `AdditiveAttention`.
* **PyG**: `AttentionalAggregation` of PyTorch Geometric. **jax.nn**: `jax.nn.dot_product_attention`.

Sizes have these letters: B examples, L and T tokens, d features, n queries, m keys, H heads, h hidden units, C
candidates, N packed tokens; in functions of a query and a context, k tokens of the query and n of the context. Sequences
with a mask have between half of these tokens and all of them, unless a title says otherwise.
"""

UNMEASURED = "Not measured yet. `make bench` writes its figures here.\n"


FORMULAS = "accelerator_formulas.json"
"""Name of the JSON file of functions beside their formulas on an accelerator."""


def paths(folder=None):
    """Returns the paths of (JSON, page) in a folder, or in the repository."""
    if folder is None:
        return ROOT / "bench" / "results.json", ROOT / "docs" / "performance.md"
    return Path(folder) / "results.json", Path(folder) / "performance.md"


def write(results, document, redraw=True):
    """Writes the page from the existing JSON files, and its pictures if ``redraw``."""
    files = [results, *map(results.with_name, ("accelerator.json", FORMULAS, "aot.json"))]
    found, measured, formulas, compiled = (json.loads(file.read_text()) if file.exists() else None for file in files)
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(page(found, measured, formulas, compiled))
    if formulas:
        document.with_name("accelerator.md").write_text(accelerator_page.complete(formulas))
    if found and redraw:
        plots.draw(benchmarks_of(found, "sweep"), document.parent / "performance")


def page(found, accelerator=None, formulas=None, compiled=None):
    """Returns the text of the page."""
    parts = [HEAD]
    if found is None:
        parts.append(UNMEASURED)
    else:
        drawn = dict.fromkeys(race["function"] for race in benchmarks_of(found, "sweep"))
        parts += [about(found["machine_info"])]
        parts += [f"![{name}: time against length](performance/{name}.svg)\n" for name in drawn]
        parts += [cases(found), oracle(found), memory(found), growth(found), eager(found), lines(found)]
    text = "\n".join([*parts, accelerator_page.section(accelerator, formulas)])
    return compiled_page.joined(text, compiled_page.section(compiled) if compiled else "")


def benchmarks_of(found, part):
    """Returns the races of one part, in the order of the table."""
    return [b["extra_info"] for b in found["benchmarks"] if b["extra_info"]["part"] == part]


def table(head, rows):
    """Returns a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def about(machine):
    """Returns the lines about hardware, versions and threads."""
    threads = ", ".join(f"{name} {count}" for name, count in machine["threads"].items())
    lines = [
        f"* {machine['date']}, {machine['cpu']} ({machine['device']}), {machine['cores']} cores",
        f"* {', '.join(f'{name} {version}' for name, version in machine['versions'].items())}",
        f"* threads: XLA {machine['cores']}, {threads}",
        f"* libraries that were not installed, and are missing below: {', '.join(machine['missing']) or 'none'}",
    ]
    if machine["scale"] != "full":
        lines.insert(0, f"**A {machine['scale']} run, with small sizes and few rounds: its times mean nothing.**\n")
    return "\n".join(lines) + "\n"


def number(value):
    """Returns a ratio with at most three digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def spread(numbers):
    """Returns the lowest and the highest round in parentheses."""
    return f"({number(numbers[1])} to {number(numbers[2])})"


def faster(theirs, ours):
    """Returns how many times faster ours is, from times by round."""
    numbers = ratio(theirs, ours)
    words = "faster" if numbers[0] >= 1 else "as fast"
    return f"{number(numbers[0])}× {words} {spread(numbers)}"


def times(ours, floor, name):
    """Returns how many times as long as a floor ours takes, from times by round."""
    numbers = ratio(ours, floor)
    return f"{number(numbers[0])}× {name} {spread(numbers)}"


def where(found, race=None):
    """Returns the hardware of the run, or that of a race that was run apart, as the beginning of a sentence."""
    machine = (race or {}).get("machine_info", found["machine_info"])
    return f"On {machine['cores']} cores of an {machine['cpu']} ({machine['device']})"


def cards(found, head, cells):
    """Returns a section for each case, with a row for each implementation and a column for each direction.

    Args:
      found: the JSON of a run.
      head: title of the column of implementations.
      cells: a function from a race to (implementation, cell) pairs.
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
        elif name != "attnpool":
            yield name, faster(way["seconds"], ours)


def cases(found):
    """Returns the section of times, forward and step."""
    text = f"{where(found)}, attnpool compares with the others as follows.\n\n"
    return "## Time\n\n" + text + cards(found, "compared with", _compared)


def oracle(found):
    """Returns the section that compares the oracle with plain NumPy lines, and with the functions in JAX."""
    races = [race for race in benchmarks_of(found, "case") if "attnpool_ref" in race["ways"]]
    rows = []
    for race in races:
        ours, plain, jitted = (race["ways"][name]["seconds"] for name in ("attnpool_ref", "plain NumPy", "attnpool"))
        rows.append([race["function"], race["title"], times(ours, plain, "the lines' time"), faster(ours, jitted)])
    text = (
        f"{where(found, races[0] if races else None)}, the definitions in `attnpool_ref` are compared with plain NumPy lines that compute in\n"
        "float32 (`bench/plain_numpy.py`), with one thread of BLAS each. The definitions check their arguments and compute in\n"
        "float64, in blocks of examples that fit into a CPU cache. An example larger than 4 MiB in float64 is one block: a call\n"
        "then allocates twice the bytes of a float32 `x` or more. The last column is the compiled function of `attnpool_flax`\n"
        "on arrays of JAX, without the time to compile it. From about 100,000 numbers in `x` on, its second call with the same\n"
        "NumPy arrays takes at most half of the oracle's time for cross, additive and multi-head pooling. A mean, a maximum or\n"
        "one query gains nothing there, because JAX copies the arrays.\n\n"
    )
    head = ["function", "sizes", "the oracle takes", "attnpool_flax beside the oracle"]
    return "## The oracle\n\n" + text + table(head, rows)


def memory(found):
    """Returns the section of temporaries and compile times of all compiled programs."""
    text = (
        "Each cell has the memory that the compiled program needs besides its inputs and outputs, as XLA reports it, and the time\n"
        "to trace and compile it once. The memory is given as a multiple of what the cell names, such as x, the scores\n"
        "[n, k] of all examples, or the outputs. In parentheses: how many times as long attnpool takes to compile.\n"
        "PyTorch and PyG are missing, because XLA does not compile them.\n\n"
    )
    return "## Memory and compile time\n\n" + text + cards(found, "program", _compiled)


def _compiled(race):
    for name, way in race["ways"].items():
        if way["compile_seconds"] is not None and way["kind"] != "floor":
            share = f"{way['temporaries'] / race['unit_bytes']:.3f} {race['unit']}"
            cell = f"{share}, {way['compile_seconds']:.2f} s"
            if name != "attnpool":
                cell += f" ({race['ways']['attnpool']['compile_seconds'] / way['compile_seconds']:.1f}×)"
            yield name, cell


def growth(found):
    """Returns the section of exponents with which times grow with the length."""
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
    text = (
        "The time of a forward pass grows as a power of the length. These are the exponents between the two lengths of each\n"
        "line, from the fastest rounds; 1 is linear, 2 is quadratic.\n\n"
    )
    return "## Growth with the length\n\n" + text + "".join(lines)


def eager(found):
    """Returns the section of eager calls on small arrays."""
    rows = []
    for race in benchmarks_of(found, "eager"):
        ours, jitted = (way["seconds"] for way in race["ways"].values())
        cell = times(ours, jitted, "the jitted call")
        rows.append([race["function"], race["title"], f"{min(ours) * 1e6:.0f} µs", cell])
    text = (
        f"{where(found)}, calls with `return_weights=True` outside of `jax.jit` (eager) are compared with\n"
        "the same calls under `jax.jit`. The times in µs are those of the fastest round.\n\n"
    )
    head = ["function", "sizes", "the eager call takes", "which is"]
    return "## An eager call on small arrays\n\n" + text + table(head, rows)


def lines(found):
    """Returns the section with a line for every function of the table."""
    rows = []
    for race in benchmarks_of(found, "line"):
        ours, ways = race["ways"]["attnpool"]["seconds"], race["ways"]
        read = f"{ratio(ours, ways['one read']['seconds'])[0]:.1f}×" if "one read" in ways else "-"
        speed = ratio(ways["attnpool_ref"]["seconds"], ours)[0]
        rows.append([race["function"], read, f"{speed:.1f}×" if speed < 10 else f"{speed:.0f}×"])
    text = (
        f"{where(found)}, each function of `attnpool_flax`, except chunk states, was\n"
        "compiled and timed on small arrays (a few MB, with padding), forward only, with its required arguments and masks. One\n"
        "read is a compiled sum of all floating inputs; a dash means that there are none. Below 1× in the last column, the\n"
        "oracle is faster.\n\n"
    )
    head = ["function", "times as long as one read", "times faster than the oracle"]
    return "## Every function\n\n" + text + table(head, rows)
