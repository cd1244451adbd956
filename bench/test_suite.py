"""Suite for pytest-benchmark: one benchmark is one race, and its rounds are the race's rounds (decision 0008).

Results are verified before the timing. Times, temporaries and compile times are stored in ``extra_info``.
"""

import gc

import pytest

from bench.cases import CASES
from bench.programs import DIRECTIONS, STEP, program
from bench.timing import Race
from bench.verification import Verifier


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(benchmark, scale, case, direction):
    """Builds and verifies every way of a case, then times all of them against one another."""
    if direction == STEP and not case.steps:
        pytest.skip("forward only")
    case = case.tiny() if scale.tiny else case
    arrays, programs, kinds = case.arrays(), {}, {}
    verifier = Verifier(case, direction, arrays)
    for way in case.ways(direction):
        programs[way.name] = each = program(way, direction, arrays)
        kinds[way.name] = way.kind
        verifier.check(way, each)
    race = Race({name: each.run for name, each in programs.items()})
    benchmark.pedantic(race.round, setup=race.shuffled, rounds=race.rounds_within(scale.budget, *scale.rounds))
    benchmark.extra_info.update(
        function=case.call.row.name,
        title=case.title,
        direction=direction,
        token_bytes=case.token_bytes(),
        ways={
            name: {
                "kind": kinds[name],
                "seconds": [float(f"{s:.4g}") for s in race.seconds[name]],
                "temporaries": each.temporaries,
                "compile_seconds": each.compile_seconds and round(each.compile_seconds, 3),
            }
            for name, each in programs.items()
        },
    )
    gc.collect()
