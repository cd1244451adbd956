"""Tables of compiled programs, from the JSON of a run: a section of docs/performance.md."""

from bench.aot import calls, goals
from bench.aot.programs import Program

BEGIN, END = "<!-- compiled: begin -->", "<!-- compiled: end -->"

TEXT = """## Compiled for a TPU and a GPU

`make aot` compiled all functions for the devices in the table, on a machine without them, and so their plain formulas
(`bench/aot/plain.py`, `bench/aot/plain_packed.py`), which select padding by `where` and sum in float32. Nothing was run or timed. A
program computes the results (forward) or also the gradients of all floating arrays (step). `bench/aot/sizes.py` has the sizes; "large"
arrays do not fit into a TPU's on-chip memory.

The rule for a dense or packed program: at most {bytes:g} times the bytes of its formula, {elements:g} times its operations on a GPU, and
{cycles:g} times its cycles by the estimate of a TPU's compiler. A program that takes no more time than its formula, by this estimate or
by the larger of the times for bytes and for operations on a GPU, may exceed single costs. A formula that needs more than a sixteenth of
the device's memory is no yardstick for a program that needs less. These programs exceed their formula the most.
"""

WORST = 20
"""Programs of the table in docs/performance.md."""

HEAD_OF_WORST = ("program", "costs, divided by those of its formula", "allowed by the rule")
COSTS = {"bytes": "bytes", "elements": "operations", "products": "operations of products", "cycles": "cycles"}


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


def _table(rows):
    head, *rest = rows
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rest)]


def write(found, document):
    """Writes the section into the document, in place of the old section or at the end."""
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
