"""Suite for pytest-benchmark: one benchmark is one race, and its rounds are the race's rounds (decision 0008).

Results are verified before the timing. Times, temporaries and compile times are stored in ``extra_info``.
"""

import gc

import jax
import pytest

from bench import lines
from bench.programs import DIRECTIONS, FORWARD, OURS, STEP, Program, program
from bench.table import CASES, EAGER
from bench.timing import SHORTEST, SHORTEST_EAGER, Race
from bench.verification import Verifier


def run(benchmark, scale, programs, kinds, info):
    """Times programs against one another, and stores their data in the benchmark."""
    shortest = SHORTEST_EAGER if info["part"] == "eager" else SHORTEST
    race = Race({name: each.run for name, each in programs.items()}, shortest=shortest)
    budget = scale.budget if info["part"] == "case" else scale.budget / 4
    rounds = race.rounds_within(budget, *scale.rounds)
    benchmark.pedantic(race.round, setup=race.shuffled, rounds=rounds)
    benchmark.extra_info.update(info)
    benchmark.extra_info["ways"] = {
        name: {
            "kind": kinds[name],
            "seconds": [float(f"{s:.4g}") for s in race.seconds[name]],
            "temporaries": each.temporaries,
            "compile_seconds": each.compile_seconds and round(each.compile_seconds, 3),
        }
        for name, each in programs.items()
    }


def measure(benchmark, scale, case, direction, info):
    """Measures a case in one direction: builds and verifies every way, then times all of them."""
    arrays, programs, kinds = case.arrays(), {}, {}
    verifier = Verifier(case, direction, arrays)
    for way in case.ways(direction):
        programs[way.name] = each = program(way, direction, arrays)
        kinds[way.name] = way.kind
        verifier.check(way, each)
    unit, size = case.unit()
    about = {"function": case.name, "title": case.title, "direction": direction, "unit": unit, "unit_bytes": size}
    run(benchmark, scale, programs, kinds, about | info)
    gc.collect()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(benchmark, scale, case, direction):
    """Measures a row of the table of cases."""
    if direction == STEP and not case.steps:
        pytest.skip("forward alone")
    if scale.name == "quick" and not case.quick:
        pytest.skip("for full runs")
    measure(benchmark, scale, scale.case(case), direction, {"part": "case"})


def test_length(benchmark, scale, point):
    """Measures a point of each curve of a picture."""
    sweep, length = point
    case = scale.case(sweep.case(length)) if scale.name == "tiny" else sweep.case(length)
    info = {"part": "sweep", "length": length, "letters": sweep.letters}
    measure(benchmark, scale, case, FORWARD, info)


@pytest.mark.parametrize("case", EAGER, ids=str)
def test_eager(benchmark, scale, case):
    """Measures an eager call on small arrays against the same call under the caller's own jit."""
    arrays, (way,) = case.arrays(), case.ways(FORWARD)
    floats, fixed, _ = arrays.placed(jax.numpy.asarray)
    jitted = jax.jit(way.forward)
    programs = {
        OURS: Program(lambda: jax.block_until_ready(way.forward(floats, fixed))),
        "the caller's jit": Program(lambda: jax.block_until_ready(jitted(floats, fixed))),
    }
    verifier = Verifier(case, FORWARD, arrays)
    for each in programs.values():
        verifier.check(way, each)
    about = {"part": "eager", "function": case.name, "title": case.title, "direction": FORWARD}
    run(benchmark, scale, programs, {OURS: "attnpool", "the caller's jit": "plain"}, about)


@pytest.mark.parametrize("row", lines.ROWS, ids=lambda row: row.name)
def test_line(benchmark, scale, row):
    """Measures a function of the table."""
    line = lines.Line(row, scale.name)
    programs = line.programs()
    about = {"part": "line", "function": row.name, "title": "", "direction": FORWARD}
    run(benchmark, scale, programs, {way.name: way.kind for way in line.ways()}, about)
