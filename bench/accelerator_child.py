"""Child process of ``make accelerator`` that uses the device and answers one question per line.

Its parent may kill it. A race consists of several questions, so that a program that takes too long to compile ends only
itself, not the race: one question opens the race, one for each way compiles and verifies it, and one times all ways in
rounds of random order, together with a copy of the tokens, whose bandwidth is the upper limit. Bytes are those that no
way can avoid: tokens are read, and in a step also written.
"""

import hashlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

import attnpool_flax
from attnpool_ref import conformance
from bench import peers, versions
from bench.accelerator_page import ROUNDS
from bench.cases import Case
from bench.child import MARK, ROOT
from bench.programs import DIRECTIONS, FLOOR, FORWARD, PEER, Arrays, Way, program
from bench.table import SCALES
from bench.timing import Race
from bench.verification import Verifier

ROWS = (
    "mean_pooling",
    "attention_pooling",
    "multi_head_attention_pooling",
    "segment_multi_head_attention_pooling",
    "max_pooling",
    "quantile_pooling",
    "dot_product_attention",
    "maxsim_score",
    "vlad_pooling",
    "cross_attention_pooling",
    "attentive_statistics_pooling",
    "additive_attention_pooling",
)
"""Judged rows, one for each reduction, the slowest last.

The reductions are the sum, the softmax under one query and several, packed tokens, the maximum, order statistics, blocks
of queries, largest products, mapped tokens, pairs, moments, and hidden units.
"""

SCOPE = conformance.QUICK | {"gradients": True, "strict": True, "whole_contract": True}
"""Scope of the judging: float32 and bfloat16, forward and gradient."""

CALLS, SPAN = 20, 0.1
"""Calls of one measurement, which waits only for the last call, and the seconds after which fewer calls are enough."""

NARROW = {"dtype": "bfloat16", "beside": ("peers",)}
CASES = (
    Case("attention_pooling", dict(B=1024, L=512, d=768), note="sentences", **NARROW),
    Case("multi_head_attention_pooling", dict(B=256, L=1024, d=1152, n=1, H=16, c=72), note="MAP", **NARROW),
    Case("segment_attention_pooling", dict(N=524288, d=768), note="packed", options={"num_segments": 1024}, **NARROW),
    Case("multi_head_attention_pooling", dict(B=256, L=256, d=1152, n=1, H=16, c=72), note="MAP", **NARROW),
    Case("cross_attention_pooling", dict(B=1024, L=50, T=50, d=768), note="KGC", **NARROW),
    Case("dot_product_attention", dict(B=256, n=1024, m=1024, d=128), note="many queries", **NARROW),
    Case("additive_attention", dict(B=8, n=64, m=4096, d=256, h=256), note="additive", **NARROW),
    Case("attention_pooling", dict(B=1, L=131072, d=4096), note="long document", **NARROW),
    Case("attention_pooling", dict(B=8, L=131072, d=4096), note="long documents", **NARROW),
)
"""Cases of the page's table, in the order in which they are measured."""

BESIDE = ("Flax Linen", "jax.nn", "PyTorch")
ROOM = 6
"""Number of arrays like the tokens that a step may need at once, including steps of peers."""

COPY = "copy"


class Answers:
    """Answers to questions, and the open race."""

    def __init__(self, tiny):
        self.tiny = tiny
        self.cases = [SCALES["tiny"].case(case) if tiny else case for case in CASES]

    def describe(self):
        """Returns device and versions, the rows that are judged, and the races."""
        device = jax.devices()[0]
        races = [(i, direction) for i in range(len(self.cases)) for direction in DIRECTIONS]
        return {
            "device": device.device_kind,
            "platform": device.platform,
            "runtime": getattr(device.client, "platform_version", ""),
            "devices": jax.device_count(),
            "host": {"system": platform.platform(), "cores": os.cpu_count()},
            "versions": versions.installed(),
            "commit": commit(),
            "sources": digest(),
            "missing": peers.missing(),
            "rows": ROWS[:1] if self.tiny else ROWS,
            "races": [[f"{self.cases[i]}, {direction}", i, direction] for i, direction in races],
        }

    def judge(self, name):
        """Returns the verdict on a row."""
        (report,) = conformance.judge(attnpool_flax, only=(name,), **SCOPE).rows
        errors = {
            f"{dtype} {what}": [measure.error, measure.allowed]
            for dtype, cell in report.cells.items()
            for what in ("forward", "gradient")
            if (measure := getattr(cell, what)) is not None
        }
        return {
            "status": report.status,
            "seconds": round(report.seconds, 1),
            "errors": errors,
            "failures": [f"{failure.check}, {failure.dtype}: {failure.message}" for failure in report.failures[:5]],
        }

    def open(self, index, direction):
        """Draws the arrays of a race; returns the names of its ways, a copy first."""
        self.case, self.direction = self.cases[index], direction
        limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
        self.arrays = None  # frees the race before
        if limit and token_bytes(self.case) * ROOM > limit:
            raise MemoryError(f"{ROOM} arrays like x do not fit into the memory")
        self.arrays, self.programs = drawn(self.case), {}
        self.verifier = Verifier(self.case, direction, self.arrays)
        self.ways = {way.name: way for way in ways(self.case, direction)}
        return {"ways": list(self.ways)}

    def add(self, way):
        """Compiles and verifies a way."""
        way = self.ways[way]
        each = program(way, FORWARD if way.name == COPY else self.direction, self.arrays)
        self.verifier.check(way, each)
        self.programs[way.name] = each
        return {"compile_seconds": each.compile_seconds}

    def time(self):
        """Returns the times of the ways that were added, in seconds per call."""
        return {
            "function": self.case.name,
            "title": self.case.title,
            "direction": self.direction,
            "bytes": token_bytes(self.case) * (1 if self.direction == FORWARD else 2),
            "copy_bytes": token_bytes(self.case) * 2,
            "seconds": raced({name: each.run for name, each in self.programs.items()}),
        }


def raced(ways):
    """Returns the seconds per call of each way, by round; a way runs a number of calls and waits for the last."""
    numbers = {}
    for name, run in ways.items():
        run(1)
        start = time.perf_counter()
        run(1)
        numbers[name] = max(1, min(CALLS, int(SPAN / (time.perf_counter() - start))))
    race = Race({name: partial(run, numbers[name]) for name, run in ways.items()})
    for _ in range(ROUNDS):
        (order,), _ = race.shuffled()
        race.round(order)
    return {name: [float(f"{t / numbers[name]:.4g}") for t in times] for name, times in race.seconds.items()}


def token_bytes(case):
    """Returns the bytes of the arrays of tokens."""
    return case.tokens() * jnp.dtype(case.dtype).itemsize


def drawn(case):
    """Returns a case's arrays, drawn on the device."""
    keys = iter(jax.random.split(jax.random.key(0), 32))
    arrays = case.arrays(lambda shape: jax.random.normal(next(keys), shape, case.dtype))
    return Arrays(arrays.floats, jax.tree.map(jnp.asarray, arrays.fixed), arrays.cotangents)


def ways(case, direction):
    """Returns the ways: a copy, ours, and peers."""
    yield Way(COPY, FLOOR, lambda floats, fixed: [2 * floats[name] for name in case.data()])
    ours, *others = case.ways(direction)
    yield ours
    yield from (way for way in others if way.kind == PEER and way.name in BESIDE)


def commit():
    """Returns the commit of the repository; None without a history."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--show-toplevel", "HEAD"]
    try:
        top, found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:2]
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return found if Path(top) == ROOT else None


def digest():
    """Returns the SHA-256 of the sources of ``attnpool_flax``, which identifies the code also without a history."""
    folder, found = Path(importlib.util.find_spec("attnpool_flax").origin).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def first_line(error):
    """Returns the first line of a message, or the error's name."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def answered(answers, question):
    """Returns the answer to {"ask": name of a method, other keys: its arguments}; {"error": ...} if it raised."""
    try:
        return getattr(answers, question.pop("ask"))(**question)
    except AssertionError as error:
        return {"error": first_line(error), "wrong": True}
    except Exception as error:
        return {"error": first_line(error)}


def serve(answers):
    """Answers lines of JSON until the input ends."""
    for line in sys.stdin:
        print(MARK + json.dumps(answered(answers, json.loads(line))), flush=True)


if __name__ == "__main__":
    serve(Answers(tiny="--tiny" in sys.argv))
