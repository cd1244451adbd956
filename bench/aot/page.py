"""Tables of compiled programs, from the JSON of a run: a section of docs/performance.md, and docs/compiled.md with all."""

from itertools import groupby

from bench.aot import calls, devices, goals
from bench.aot.programs import Program
from bench.aot.programs import programs as default_run

BEGIN, END = "<!-- compiled: begin -->", "<!-- compiled: end -->"

TEXT = """## Compiled for a TPU and a GPU

`make aot` compiled all functions for the devices in the table, on a machine without them, and so their plain formulas
(`bench/aot/plain.py`, `bench/aot/plain_packed.py`), which select padding by `where` and sum in float32. Nothing was run or timed. A
program computes the results (forward) or also the gradients of all floating arrays (step). `bench/aot/sizes.py` has the sizes; "large"
arrays do not fit into a TPU's on-chip memory. [compiled.md](compiled.md) has all programs.

The rule for a dense or packed program: at most {bytes:g} times the bytes of its formula, {elements:g} times its operations on a GPU, and
{cycles:g} times its cycles by the estimate of a TPU's compiler. A program that takes no more time than its formula, by this estimate or
by the larger of the times for bytes and for operations on a GPU, may exceed single costs. A formula that needs more than a sixteenth of
the device's memory is no yardstick for a program that needs less. These programs exceed their formula the most.
"""

COMPLETE = """# Compiled for a TPU and a GPU: all programs

[performance.md](performance.md#compiled-for-a-tpu-and-a-gpu) says what was compiled, and compares it with plain formulas. The first
column here has the function, the layout of its tokens, and the formula if one was compiled in place of the function.

* **x**, **floors**: the bytes that the compiled program reads from and writes to the device's memory (in a loop, in every step),
  divided by the bytes of x, the largest array of tokens, or by the floor: each argument read once, each result and gradient
  written once.
* **temporaries**: the memory that the program needs besides arguments and results, divided by the bytes of x.
* **wide**: how many float32 copies the program makes of tokens in a narrower dtype, such as bfloat16.
* **loops**, **scatters**, **sorts**, **all-reduce**: how many the program has. If the steps of a loop depend on the numbers, it is
  counted with as many steps as a number has bits. A loop inside another has the steps of both, multiplied.
* **operations**: numbers that are computed, and operations of matrix products, for each byte of x; on a GPU.
* **M cycles**: the TPU compiler's estimate, in millions.
* **misses its goal**: what a program needs beyond the rule beside its plain formula, or beyond its goal in `bench/aot/goals.py`.
  Chunks, meshes and the functions of the first page have goals. In parentheses: the goal is met, and for this reason it is higher
  than that of other functions.

A GPU's L2 cache is not modeled.
"""

WORST = 20
"""Programs of the table in docs/performance.md."""

HEAD_OF_WORST = ("program", "costs, divided by those of its formula", "allowed by the rule")
COSTS = {"bytes": "bytes", "elements": "operations", "products": "operations of products", "cycles": "cycles"}

OTHERS = """`make aot ARGS=--all` also compiles for other devices and dtypes. `bench/aot.json` has these results; they miss goals as
follows.
"""

HEAD = ("function, layout", "device, program", "moves and has", "misses its goal")
HEAD_OF_OTHERS = ("device, program", "programs", "miss their goal")


def section(found):
    """Returns the text of the section, including the markers: the programs that exceed their formula the most."""
    own = found["programs"]
    compared = {}
    for key, result in own.items():
        program = Program.of(key)
        if ratios := goals.ratios(program, result, own):
            compared[program] = max(ratio / goals.RULE[cost] for cost, ratio in ratios.items()), ratios
    order = sorted(compared, key=lambda program: (-compared[program][0], program.key))
    broken = [program for program in order if goals.beyond_formula(program, own[program.key], own)]
    rows = []
    for program in order[: max(WORST, len(broken))]:
        ratios = compared[program][1]
        costs = ", ".join(f"{words} {ratios[cost]:.2f}" for cost, words in COSTS.items() if cost in ratios)
        name = program.key.replace(f" | {calls.OURS}", "").replace(" | ", ", ")
        exempt = goals.exemption_of(program)
        allowed = "yes" if compared[program][0] <= 1 else f"yes: {exempt.reason if exempt else 'takes no more time'}"
        rows.append([name, costs, "no" if program in broken else allowed])
    said = f"{len(compared)} programs have a yardstick, {len(broken)} break the rule.\n"
    return "\n".join([BEGIN, TEXT.format(**goals.RULE), said, *_table([HEAD_OF_WORST, *rows]), END]) + "\n"


def complete(found):
    """Returns the text of docs/compiled.md."""
    results = {Program.of(key): result for key, result in found["programs"].items()}
    order = {key: place for place, key in enumerate(places())}
    programs = sorted(results, key=lambda one: (order.get((one.name, one.layout, one.way), len(order)), *_order(one)))
    programs = [program for program in programs if "no" not in results[program]]
    expected = default_run()
    kinds = {_kind(program) for program in expected}
    own = [program for program in programs if _kind(program) in kinds]
    others = [program for program in programs if _kind(program) not in kinds]
    rows = [cells(program, results[program], found["programs"]) for program in own]
    short = sum(bool(goals.shortfalls(program, results[program], found["programs"])) for program in own)
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    said = f"{len(rows)} programs, {short} miss a goal; {versions}.\n"
    if missing := {program.key for program in expected} - found["programs"].keys():
        said += f"{len(missing)} programs of a default run are not in the table, because they were not compiled yet.\n"
    parts = [COMPLETE, said, *_table([HEAD, *_without_repeats(rows)])]
    if others:
        parts += ["", OTHERS, *_table([HEAD_OF_OTHERS, *_counted(others, results, found["programs"])])]
    return "\n".join(parts) + "\n"


def _kind(program):
    return program.device, program.direction, program.dtype


def _table(rows):
    head, *rest = rows
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rest)]


def _counted(programs, results, found):
    """Returns a line for each device, direction and dtype: the number of programs, and those that miss their goal."""
    for kind, group in groupby(sorted(programs, key=_order), key=_kind):
        group = list(group)
        short = {one: goals.shortfalls(one, results[one], found) for one in group}
        named = [f"{one.name}, {one.layout}: {'; '.join(lines)}" for one, lines in short.items() if lines]
        yield [", ".join(kind), str(len(group)), "; ".join(named).replace("|", "\\|") or "none"]


def places():
    """Returns (name, layout, way) of every call, in the order of the table."""
    return [(call.name, call.layout, call.way) for call in calls.calls()]


def _order(program):
    return devices.DEVICES.index(program.device), program.direction, calls.DTYPES.index(program.dtype)


def _without_repeats(rows):
    for _, group in groupby(rows, key=lambda row: row[0]):
        for place, row in enumerate(group):
            yield row if place == 0 else ["", *row[1:]]


def cells(program, result, found):
    """Returns one line of the table."""
    way = "" if program.way == calls.OURS else f", {program.way}"
    goal = goals.goal_of(program)
    missed = "; ".join(goals.shortfalls(program, result, found))
    reason = f"({goal.reason})" if goal and goal.reason else ""
    line = [
        f"{program.name}, {program.layout}{way}",
        f"{program.device}, {program.direction}, {program.dtype}",
        summary(result),
        missed or reason,
    ]
    return [cell.replace("|", "\\|") for cell in line]


def write(found, document):
    """Writes the section into the document, in place of the old section or at the end, and the other page beside it."""
    if found:
        document.with_name("compiled.md").write_text(complete(found))
    text = document.read_text()
    before, begin, rest = text.partition(BEGIN)
    after = rest.partition(END)[2].removeprefix("\n")
    own = section(found) if found else ""
    document.write_text(before + own + after if begin else joined(text, own))


def joined(text, own):
    """Returns a page with the section at its end."""
    return f"{text}\n{own}" if own else text


def summary(result):
    """Returns one line of text about a result."""
    if "bytes" not in result:
        return result.get("error") or result["no"]
    bytes_, x, floor = result["bytes"], result["x"], result["floor"]
    parts = [f"{bytes_ / x:.2f} x", f"{bytes_ / floor:.2f} floors", f"temporaries {result['temporaries'] / x:.2f} x"]
    if result["cycles"]:
        parts.append(f"{result['cycles'] / 1e6:.1f} M cycles")
    if result.get("elements"):
        parts.append(f"operations {result['elements'] / x:.1f} + {result['products'] / x:.1f}")
    if result["wide"]:
        parts.append(f"{result['wide']} wide")
    counts = dict(result["counts"])
    if loops := counts.pop("loops", 0):
        parts.append(f"{loops} loops of at most {result['steps']} steps")
    return ", ".join([*parts, *(f"{count} {name}" for name, count in counts.items())])
