"""Command ``python3 -m bench.accelerator``: judges and times attnpool_flax on a GPU or TPU in at most eight minutes.

It installs nothing: it needs NumPy, JAX and Flax, and also times PyTorch if it is installed and sees the device. First
it judges one function for each reduction within the tolerances of the contract, in at most three minutes. Then it times
functions in bfloat16 at the sizes of :mod:`bench.sizes`, beside a copy of the tokens, whose bandwidth is the upper limit,
and their plain formulas: the first of MAIN, then all others until the time is over. Bytes are those that no implementation
can avoid: arguments are read once, results and gradients are written once. A worker process uses the device, and is
replaced if a step takes too long. The JSON file gets all results. The exit status is 1 if a function fails, and 2 if JAX is
missing or sees no accelerator. ``--tiny`` tries all of it with tiny sizes on any device, including a CPU.
"""

import argparse
import contextlib
import datetime
import json
import platform
import shutil
import statistics
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path

from attnpool_ref import cli

BUDGET = 8 * 60
"""Seconds for the whole command."""

JUDGING = 3 / 8
"""The part of these seconds for the judge."""

STEP = 75
"""Seconds for one question: judging a function, or compiling and timing one call."""

ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # PyTorch needs memory, too
REHEARSAL = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}

JUDGED = (
    *("mean_pooling", "attention_pooling", "multi_head_attention_pooling", "segment_multi_head_attention_pooling"),
    *("max_pooling", "quantile_pooling", "dot_product_attention", "maxsim_score", "vlad_pooling"),
    *("cross_attention_pooling", "attentive_statistics_pooling", "additive_attention_pooling"),
)
"""Judged functions, one for each reduction, the slowest last.

The reductions are the sum, the softmax under one query and several, packed tokens, the maximum, order statistics, blocks
of queries, largest products, mapped tokens, pairs, moments, and hidden units.
"""

MAIN = (
    "attention_pooling, dense",
    "multi_head_attention_pooling, dense",
    "segment_attention_pooling, packed, sorted",
    "cross_attention_pooling, dense",
    "additive_attention_pooling, dense",
    "dot_product_attention, dense",
)
"""Labels of the calls that are timed first."""

DTYPE = "bfloat16"
BESIDE = {"multi_head_attention_pooling": ("Flax Linen", "jax.nn", "PyTorch")}
"""Other libraries whose layers have the arguments of a call, by function."""

COPY, ROUNDS = "copy", 5
CALLS, SPAN = 20, 0.1
"""Calls of one measurement, which waits only for the last call, and the seconds after which fewer calls are enough."""


def answer(question, *given):
    """Answers a question in the worker process."""
    return {"describe": describe, "judge": judge, "time": timed}[question](*given)


def describe():
    """Returns the device and the versions."""
    import jax

    from bench import peers

    device = jax.devices()[0]
    commit = None
    if shutil.which("git"):
        command = ["git", "-C", Path(__file__).parent, "rev-parse", "HEAD"]
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    return {
        "date": datetime.date.today().isoformat(),
        "device": device.device_kind,
        "platform": device.platform,
        "devices": jax.device_count(),
        "host": platform.platform(),
        "versions": peers.installed(),
        "commit": commit,
    }


def judge(name):
    """Returns the verdict on a function, in float32 and bfloat16, forward and gradient."""
    import attnpool_flax
    from attnpool_ref import conformance

    scope = conformance.QUICK | {"gradients": True, "strict": True, "whole_contract": True}
    (report,) = conformance.judge(attnpool_flax, only=(name,), **scope).rows
    failures = [f"{failure.check}, {failure.dtype}: {failure.message}" for failure in report.failures[:5]]
    return {"status": report.status, "seconds": round(report.seconds, 1), "failures": failures}


@cache
def timed_calls(tiny):
    """Returns the timed calls by label, those of MAIN first."""
    from dataclasses import replace

    from bench.calls import STATE, calls
    from bench.cases import TINY

    found = {call.label: call for call in calls() if call.layout != STATE and call.arguments is None}
    ordered = {label: found[label] for label in dict.fromkeys([*MAIN, *found])}
    if tiny:
        small = {
            call.label: {letter: min(size, TINY.get(letter, 6)) for letter, size in call.sizes.items()}
            for call in found.values()
        }
        ordered = {label: replace(call, own=small[label]) for label, call in ordered.items()}
    return ordered


def timed(label, direction, tiny):
    """Returns seconds per call of each way, by round, the bytes that none can avoid, and the relative difference."""
    import jax

    from bench import peers
    from bench.calls import step_of
    from bench.programs import FLOOR, OURS, PLAIN, STEP, Way, program

    call = timed_calls(tiny)[label]
    if direction == STEP and not call.has_gradient():
        return {}
    arrays = call.arrays(DTYPE)
    largest = max(arrays.values(), key=lambda array: array.nbytes)
    ways = [Way(COPY, FLOOR, lambda arrays: [arrays + 1], lambda arrays: [arrays + 1])]
    ways += [
        Way(OURS, OURS, call.forward, step_of(call.forward)),
        Way(PLAIN, PLAIN, call.formula, step_of(call.formula)),
    ]
    programs = {way.name: program(way, direction, largest if way.name == COPY else arrays) for way in ways}
    for way in peers.ways(call.row.name):
        if way.name in BESIDE.get(call.row.name, ()):
            with contextlib.suppress(Exception):  # such as a PyTorch that does not see the device
                each = program(way, direction, arrays)
                each.run()
                programs[way.name] = each
    results = programs[OURS].run()
    apart = jax.jit(difference)(results, programs[PLAIN].run())
    written = sum(part.nbytes for part in jax.tree.leaves(results))
    return {
        "seconds": raced({name: each.run for name, each in programs.items()}),
        "bytes": sum(array.nbytes for array in arrays.values()) + written,
        "copy_bytes": 2 * largest.nbytes,
        "difference": float(f"{float(apart):.3g}"),
        "compile_seconds": {name: each.compile_seconds for name, each in programs.items()},
        "temporaries": {name: each.temporaries for name, each in programs.items()},
    }


def difference(ours, others):
    """Returns the largest relative error of all results and gradients, in the Euclidean norm; NaN if only one has it."""
    import jax
    import jax.numpy as jnp

    def each(own, other):
        own, other = own.astype(jnp.float32), other.astype(jnp.float32)
        apart = jnp.where((own == other) | (jnp.isnan(own) & jnp.isnan(other)), 0, own - other)
        finite = jnp.where(jnp.isfinite(other), other, 0)
        return jnp.linalg.norm(apart) / jnp.maximum(jnp.linalg.norm(finite), 1e-30)

    return jnp.stack(jax.tree.leaves(jax.tree.map(each, ours, others))).max()


def raced(ways):
    """Returns the seconds per call of each way, by round; a way runs a number of calls and waits for the last."""
    from bench.timing import Race, seconds_of

    numbers = {name: max(1, min(CALLS, int(SPAN / seconds_of(run)))) for name, run in ways.items()}
    race = Race({name: partial(run, numbers[name]) for name, run in ways.items()})
    for _ in range(ROUNDS):
        (order,), _ = race.shuffled()
        race.round(order)
    return {name: [float(f"{t / numbers[name]:.4g}") for t in times] for name, times in race.seconds.items()}


def main(arguments=None):
    """Runs everything if there is an accelerator, and returns the exit status."""
    missing = cli.missing("flax")
    if missing:
        print(missing)
        return 2
    from bench.page import ROOT
    from bench.programs import FORWARD
    from bench.programs import STEP as WITH_GRADIENTS
    from bench.worker import Worker

    parser = argparse.ArgumentParser(prog="python3 -m bench.accelerator", description=__doc__.split("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, on any device")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for everything (default: %(default)s)")
    parser.add_argument("--only", default="", help="judge and time only functions whose name has this")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "accelerator.json", help="the JSON file")
    given = parser.parse_args(arguments)
    begun = time.monotonic()
    worker = Worker(answer, STEP, ENVIRONMENT | (REHEARSAL if given.tiny else {}))
    end = begun + given.budget
    found = worker.ask("describe", end=end)
    if "error" in found or (found["platform"] == "cpu" and not given.tiny):
        print(
            f"no accelerator: {found.get('error', 'JAX sees only the CPU')}. Nothing was measured (--tiny tries it here)."
        )
        worker.stop()
        return 2
    found |= {"tiny": given.tiny, "judged": {}, "calls": {}}
    given.output.parent.mkdir(parents=True, exist_ok=True)
    until = begun + JUDGING * given.budget
    judged = [("judge", name) for name in JUDGED if given.only in name]
    labels = [label for label in timed_calls(given.tiny) if given.only in label]
    directions = [(label, direction) for label in labels for direction in (WITH_GRADIENTS, FORWARD)]
    for question in judged + [("time", *pair, given.tiny) for pair in directions]:
        last = until if question[0] == "judge" else end
        if time.monotonic() > last:
            continue
        result = worker.ask(*question, end=last)
        part, name = ("judged", question[1]) if question[0] == "judge" else ("calls", " | ".join(question[1:3]))
        found[part][name] = result
        given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(
            f"{name}: {result.get('error') or result.get('status', 'timed')} ({end - time.monotonic():.0f} s left)",
            flush=True,
        )
    worker.stop()
    print(text(found))
    print(f"wrote {given.output}")
    return int(any(verdict.get("status") != "pass" for verdict in found["judged"].values()))


def text(found):
    """Returns the results as Markdown: the calls that are slowest beside their formula first."""
    passed = [name for name, verdict in found["judged"].items() if verdict.get("status") == "pass"]
    lines = ["**Tiny sizes: these times mean nothing.**\n"] if found["tiny"] else []
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines += [
        f"{found['date']}, {found['device']} ({found['devices']}), {found['host']}, commit {found['commit']}, {versions}",
        "",
        f"Passed in float32 and bfloat16, forward and gradient: {', '.join(passed) or 'no function'}.",
        *(f"Failed: {name}: {verdict}" for name, verdict in found["judged"].items() if name not in passed),
        "",
        f"Time of each call in {DTYPE}, divided by that of its formula or another library; the share of a copy's bandwidth.",
        "",
        "| call | ÷ others | share of a copy | difference |",
        "| --- | --- | --- | --- |",
    ]
    rows = []
    for name, result in found["calls"].items():
        if "seconds" in result:
            times = {way: statistics.median(seconds) for way, seconds in result["seconds"].items()}
            ours, copy = times.pop("attnpool"), times.pop(COPY)
            share = result["bytes"] / ours / (result["copy_bytes"] / copy)
            others = ", ".join(f"{way} {ours / seconds:.2f}" for way, seconds in times.items())
            row = f"| {name.replace(' | ', ', ')} | {others} | {share:.0%} | {result['difference']:g} |"
            rows.append((ours / times["plain"], row))
    lines += [row for _, row in sorted(rows, reverse=True)]
    errors = [f"* {name}: {result['error']}" for name, result in found["calls"].items() if "error" in result]
    return "\n".join([*lines, *(["", "Not timed:", "", *errors] if errors else [])])


if __name__ == "__main__":
    sys.exit(main())
