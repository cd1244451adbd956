"""The suite as pytest-benchmark runs it: one benchmark is one race, its rounds are the race's (decision 0008).

Results are verified before anything is timed. Times, temporaries and compile times go into ``extra_info``.
"""

import gc

import jax
import pytest

from bench import cases, lines
from bench.programs import DIRECTIONS, FORWARD, OURS, STEP, Program, program
from bench.table import CASES, EAGER
from bench.timing import Race


def run(benchmark, scale, programs, kinds, info):
    """Times programs against one another and hands all that is known of them to the benchmark."""
    race = Race({name: each.run for name, each in programs.items()})
    rounds = race.rounds_within(scale.budget, *scale.rounds)
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
    """A case in one direction: builds and verifies every way, then times them all."""
    arrays, want = case.arrays()
    programs, kinds, step = {}, {}, None
    for way in case.ways(direction):
        each = programs[way.name] = program(way, direction, arrays)
        kinds[way.name] = way.kind
        if way.kind == cases.FLOOR:
            continue
        results = each.run()
        if direction == FORWARD:
            case.verify(results, want, way.name)
        else:
            step = results if step is None else step
            case.verify_step(results, step, way.name)
    unit, size = case.unit()
    about = {"function": case.name, "title": case.title, "direction": direction, "unit": unit, "unit_bytes": size}
    run(benchmark, scale, programs, kinds, about | info)
    gc.collect()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(benchmark, scale, case, direction):
    """A row of the table of cases."""
    if direction == STEP and not case.steps:
        pytest.skip("forward alone")
    measure(benchmark, scale, scale.case(case), direction, {"part": "case"})


def test_length(benchmark, scale, point):
    """A point of each curve of a picture."""
    sweep, length = point
    case = scale.case(sweep.case(length)) if scale.name == "tiny" else sweep.case(length)
    info = {"part": "sweep", "length": length, "letters": sweep.letters}
    measure(benchmark, scale, case, FORWARD, info)


@pytest.mark.parametrize("case", EAGER, ids=str)
def test_eager(benchmark, scale, case):
    """An eager call on small arrays beside the same call under the caller's own jit."""
    arrays, want = case.arrays()
    floats, fixed, _ = arrays.placed(jax.numpy.asarray)
    (way,) = case.ways(FORWARD)
    jitted = jax.jit(way.forward)
    programs = {
        OURS: Program(lambda: jax.block_until_ready(way.forward(floats, fixed))),
        "the caller's jit": Program(lambda: jax.block_until_ready(jitted(floats, fixed))),
    }
    for name, each in programs.items():
        case.verify(each.run(), want, name)
    about = {"part": "eager", "function": case.name, "title": case.title, "direction": FORWARD}
    run(benchmark, scale, programs, {OURS: "attnpool", "the caller's jit": "plain"}, about)


@pytest.mark.parametrize("row", lines.ROWS, ids=lambda row: row.name)
def test_line(benchmark, scale, row):
    """A function of the table."""
    line = lines.Line(row, tiny=scale.name == "tiny")
    arrays = line.arrays()
    ways = list(line.ways())
    programs = {way.name: program(way, FORWARD, arrays) for way in ways}
    line.verify(programs[OURS].run(), programs["attnpool_ref"].run())
    about = {"part": "line", "function": row.name, "title": "", "direction": FORWARD}
    run(benchmark, scale, programs, {way.name: way.kind for way in ways}, about)
