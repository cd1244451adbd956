"""What `python3 -m bench.accelerator` runs: the judge, then GB/s of each case on the device that is here.

Each case is timed, forward and as a step, in rounds of shuffled order together with a copy of its tokens, whose bandwidth is
the ceiling. Bytes are what no way can do without: tokens read, and in a step written too. Everything goes into a JSON file,
from which docs/performance.md has its table; what no longer fits into the time is listed as not measured.
"""

import argparse
import datetime
import json
import os
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

import attnpool_flax
from attnpool_ref import conformance, table
from bench import accelerator_page, page, peers, versions
from bench.cases import Case
from bench.programs import DIRECTIONS, FLOOR, FORWARD, PEER, Arrays, Way, program
from bench.table import SCALES
from bench.timing import Race
from bench.verification import Verifier

BUDGET = 8 * 60
"""Seconds that the whole command may take."""

CHECK_SHARE = 0.35
"""The part of them that the judge may take; rows that no longer fit are listed."""

JUDGED = ("float32", "bfloat16")

RESERVE = 45
"""Seconds that a case is taken to need, compiling included; less than that is left: it is not measured."""

CALLS = 20
"""Calls of one measurement, which waits for the last one alone."""

ROUNDS = 5

NARROW = {"dtype": "bfloat16", "beside": ("peers",)}
CASES = (
    Case("multi_head_attention_pooling", dict(B=256, L=256, d=1152, n=1, H=16, c=72), note="MAP", **NARROW),
    Case("multi_head_attention_pooling", dict(B=256, L=1024, d=1152, n=1, H=16, c=72), note="MAP", **NARROW),
    Case("attention_pooling", dict(B=1024, L=512, d=768), note="sentences", **NARROW),
    Case("cross_attention_pooling", dict(B=1024, L=50, T=50, d=768), note="KGC", **NARROW),
    Case("additive_attention", dict(B=8, n=64, m=4096, d=256, h=256), note="additive", **NARROW),
    Case("attention_pooling", dict(B=1, L=131072, d=4096), note="long document", **NARROW),
    Case("attention_pooling", dict(B=8, L=131072, d=4096), note="long documents", **NARROW),
)
"""The table of the page, dearest last."""

BESIDE = ("Flax Linen", "jax.nn", "PyTorch")
ROOM = 6
"""A step may hold as many arrays like the tokens at once, those of peers included."""


def main(arguments=None):
    """Judges, measures, writes."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.accelerator", description=__doc__.split("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, on any device")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for everything (default: %(default)s)")
    parser.add_argument("--only", default="", help="cases whose name holds this alone")
    parser.add_argument("--output", type=Path, help="a folder for everything that is written")
    given = parser.parse_args(arguments)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory, too
    device = jax.devices()[0]
    if device.platform == "cpu" and not given.tiny:
        print("no accelerator: JAX sees the CPU alone. Nothing was measured (--tiny runs all of it here, in small).")
        return 2
    end = time.monotonic() + given.budget
    folder = given.output or (page.ROOT / "build" / "bench" if given.tiny else None)
    results, document = page.paths(folder)
    results = results.with_name("accelerator.json")
    found = {
        "date": datetime.date.today().isoformat(),
        "device": device.device_kind,
        "versions": versions.installed(),
        "scale": "tiny" if given.tiny else "full",
        "missing": peers.missing(),
        "check": judged(time.monotonic() + CHECK_SHARE * given.budget, given.tiny),
        "cases": [],
        "not measured": [],
    }
    for case in (case for case in CASES if given.only in str(case)):
        measured(SCALES["tiny"].case(case) if given.tiny else case, end, found, given.tiny)
        save(found, results)  # after each: a run that is cut short leaves what it has
    page.write(results.with_name("results.json"), document, redraw=False)  # matplotlib may not be there
    print(accelerator_page.section(found))
    print(f"wrote {results} and {document}")
    return 0 if not found["check"]["failed"] else 1


def save(found, path):
    """Writes the JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def judged(end, tiny):
    """Names of the rows that passed, failed, or no longer fitted into the time."""
    found = {"passed": [], "failed": [], "not judged": []}
    for row in table.VARIANTS[:1] if tiny else table.VARIANTS:
        if time.monotonic() > end:
            found["not judged"].append(row.name)
            continue
        (report,) = conformance.judge(attnpool_flax, only=(row.name,), dtypes=JUDGED, strict=True, contract=True).rows
        found["passed" if report.status == "pass" else "failed"].append(row.name)
        print(f"check {row.name}: {report.status}", flush=True)
    return found


def token_bytes(case):
    """Bytes of the arrays of tokens."""
    return case.tokens() * jnp.dtype(case.dtype).itemsize


def measured(case, end, found, tiny):
    """Adds a case's two races to what was found, or why there is none."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    for direction in DIRECTIONS:
        refused = found["not measured"]
        if end - time.monotonic() < (0 if tiny else RESERVE):
            refused.append(f"{label_of(case, direction)}: no time left")
        elif limit and token_bytes(case) * ROOM > limit:
            refused.append(f"{label_of(case, direction)}: {ROOM} arrays like x do not fit into the memory")
        else:
            try:
                found["cases"].append(race(case, direction, refused))
            except (jax.errors.JaxRuntimeError, AssertionError) as error:  # out of memory, or wrong
                refused.append(f"{label_of(case, direction)}: {first_line(error)}")
        print(f"{label_of(case, direction)}: {end - time.monotonic():.0f} s left", flush=True)


def drawn(case):
    """A case's arrays, drawn on the device."""
    keys = iter(jax.random.split(jax.random.key(0), 32))
    arrays = case.arrays(lambda shape: jax.random.normal(next(keys), shape, case.dtype))
    return Arrays(arrays.floats, jax.tree.map(jnp.asarray, arrays.fixed), arrays.cotangents)


def race(case, direction, refused):
    """Times ours, the peers and a copy; a peer that cannot is a line of ``refused``."""
    copy = Way("copy", FLOOR, lambda floats, fixed: [2 * floats[name] for name in case.data()])
    arrays, programs = drawn(case), {}
    verifier = Verifier(case, direction, arrays)
    for way in [copy, *case.ways(direction)]:
        if way.kind == PEER and way.name not in BESIDE:
            continue
        try:
            programs[way.name] = each = program(way, FORWARD if way is copy else direction, arrays)
            verifier.check(way, each)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, BufferError, AssertionError) as error:
            if way.kind != PEER:
                raise
            programs.pop(way.name, None)
            refused.append(f"{label_of(case, direction)}, {way.name}: {first_line(error)}")
    contest = Race({name: partial(each.run, CALLS) for name, each in programs.items()})
    for _ in range(ROUNDS):
        (order,), _ = contest.shuffled()
        contest.round(order)
    return {
        "function": case.name,
        "title": case.title,
        "direction": direction,
        "bytes": token_bytes(case) * (1 if direction == FORWARD else 2),
        "copy_bytes": token_bytes(case) * 2,
        "seconds": {name: [float(f"{t / CALLS:.4g}") for t in times] for name, times in contest.seconds.items()},
    }


def label_of(case, direction):
    """What a case is called in a list."""
    return f"{case.name}, {case.title}, {direction}"


def first_line(error):
    """The first line of a message, or the error's name."""
    return (str(error).splitlines() or [type(error).__name__])[0]
