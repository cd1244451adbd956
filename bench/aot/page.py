"""Table of compiled programs: a section of docs/performance.md between two markers, from the JSON of a run."""

from itertools import groupby

from bench.aot import calls, devices, goals, plain
from bench.aot.programs import Program

BEGIN, END = "<!-- compiled: begin -->", "<!-- compiled: end -->"

TEXT = """## Compiled for a TPU and a GPU

`make aot` compiled these programs for the devices in the table, on a machine without them. Nothing was run or timed. **way**
is the implementation: attnpool's default, one of its options, or another formula. **program** is forward (the results) or step
(also the gradients of all floating arrays), and the dtype. `bench/aot/sizes.py` has the sizes.

* **÷ floor**, **÷ x**: the bytes that the kernels of the compiled program read and write (in a loop, in every step), divided by the
  floor (each argument read once, each result and gradient written once) or by the bytes of x, the largest array of tokens.
* **temporaries ÷ x**: the memory that the program needs besides arguments and results, divided by the bytes of x.
* **wide**: how many float32 copies the program makes of tokens in a narrower dtype, such as bfloat16.
* **loops**, **scatters**, **sorts**, **collectives**: how many the program has. In parentheses are the most steps of one loop. A
  question mark is a loop whose steps depend on the numbers; it is counted with as many steps as a number has bits.
* **cycles**: the TPU compiler's estimate, in millions.
* **misses its goal**: the goals are in `bench/aot/goals.py`. In parentheses is the reason for a goal above that of other functions.

Of a GPU's L2 cache, only this is modeled: a Pallas kernel reads an array of at most 4 MiB once. No GPU kernel was tuned.
"""

HEAD = (
    "function, layout",
    "way",
    "device",
    "program",
    "÷ floor",
    "÷ x",
    "temporaries ÷ x",
    "wide",
    "loops",
    "scatters",
    "sorts",
    "collectives",
    "cycles",
    "misses its goal",
)


def section(found):
    """Returns the text of the section, including the markers."""
    results = {Program.of(key): result for key, result in found["programs"].items()}
    order = {key: place for place, key in enumerate(places())}
    programs = sorted(results, key=lambda one: (order.get((one.name, one.layout, one.way), len(order)), *_order(one)))
    programs = [program for program in programs if "no" not in results[program]]
    rows = [cells(program, results[program], found["programs"]) for program in programs]
    table = [HEAD, ["---"] * len(HEAD), *_without_repeats(rows)]
    short = sum(bool(goals.shortfalls(program, results[program], found["programs"])) for program in programs)
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    said = f"{len(rows)} programs, {short} miss a goal; {versions}.\n"
    return "\n".join([BEGIN, TEXT, said, *("| " + " | ".join(row) + " |" for row in table), END]) + "\n"


def places():
    """Returns (name, layout, way) of every call, in the order of the table."""
    return [(call.name, call.layout, call.way) for call in calls.calls()]


def _order(program):
    return devices.DEVICES.index(program.device), program.direction, calls.DTYPES.index(program.dtype)


def _without_repeats(rows):
    for _, group in groupby(rows, key=lambda row: row[:2]):
        for place, row in enumerate(group):
            yield row if place == 0 else ["", "", *row[2:]]


def cells(program, result, found):
    """Returns one line of the table."""
    first = [f"{program.name}, {program.layout}", program.way, program.device, f"{program.direction}, {program.dtype}"]
    missed = "; ".join(goals.shortfalls(program, result, found)).replace("|", "\\|")
    reason = "" if program.way in plain.WAYS else goals.goal_of(program).reason
    if "bytes" not in result:
        return [*first, *[""] * 9, missed or result["error"].replace("|", "\\|")]
    counts = dict(result["counts"])
    loops, scatters, sorts = (counts.pop(key, 0) for key in ("loops", "scatters", "sorts"))
    counts.pop("kernels", None)
    steps = f"{loops} ({result['steps']}{'?' if result['unknown'] else ''})" if loops else ""
    numbers = [result["bytes"] / result["floor"], result["bytes"] / result["x"], result["temporaries"] / result["x"]]
    collectives = ", ".join(f"{count} {name}" for name, count in counts.items())
    cycles = f"{result['cycles'] / 1e6:.1f}" if result["cycles"] else ""
    seen = [str(count or "") for count in (scatters, sorts)]
    return [
        *first,
        *(f"{n:.2f}" for n in numbers),
        str(result["wide"] or ""),
        steps,
        *seen,
        collectives,
        cycles,
        missed or (reason and f"({reason})"),
    ]


def write(found, document):
    """Writes the section into the document: in place of the old section, or at the end."""
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
    if result["wide"]:
        parts.append(f"{result['wide']} wide")
    counts = dict(result["counts"])
    if loops := counts.pop("loops", 0):
        parts.append(f"{loops} loops of at most {result['steps']} steps")
    return ", ".join([*parts, *(f"{count} {name}" for name, count in counts.items())])
