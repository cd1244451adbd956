"""The benchmarks run from end to end in small, refuse wrong results, and their page follows from their JSON."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import floors, page, peers, timing, verification
from bench.cases import CASES
from bench.programs import FORWARD, PLAIN, STEP, program
from bench.verification import Verifier

ROOT = Path(__file__).resolve().parent.parent.parent
REPAIR = "run `python -m bench --page`, which measures nothing, and commit docs/performance.md"


@pytest.mark.thorough
def test_a_tiny_run_writes_what_was_asked_how_large_it_was_and_what_was_missing(tmp_path):
    """One case; CI runs all of it (ARGS=--tiny)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    command = [sys.executable, "-m", "bench", "--tiny", "--output", str(tmp_path), "-q", "-k", "segment"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text, found = (tmp_path / "performance.md").read_text(), json.loads((tmp_path / "results.json").read_text())
    assert "A tiny run" in text
    assert [race["direction"] for race in found["races"]] == [FORWARD, STEP]
    assert found["machine"]["missing"] == peers.missing()
    assert page.page(found) == text


def test_the_page_in_the_repository_follows_from_the_results_in_the_repository():
    results, document = page.paths()
    found = json.loads(results.read_text(encoding="utf-8"))
    assert page.page(found) == document.read_text(encoding="utf-8"), REPAIR
    measured = {(race["function"], race["title"]) for race in found["races"]}
    assert measured == {(case.call.row.name, case.title) for case in CASES}
    assert page.SHOWN in measured


@pytest.mark.parametrize("name, maxima", [("mask_attention", False), ("cross_attention_pooling", True)])
def test_the_floor_of_all_pairs_is_their_products_block_by_block(name, maxima):
    case = next(
        case for case in CASES if case.call.row.name == name and ("reduction" in case.call.extra) == maxima
    ).tiny()
    arrays, floor = case.arrays(), floors.floor(case, FORWARD)
    own, other = ("x", "y") if maxima else ("context", "query")
    products = np.einsum("bnd,bmd->bnm", arrays[own], arrays[other])
    want = products.max(-1) if maxima else products @ np.asarray(arrays[other])
    for most in (2**20, 4 * products.shape[-1]):  # one block, and four rows at a time with some left over
        parts = floor.forward(arrays, most=most)
        assert sum(part.size for part in parts) == want.size
        assert sum(float(part.sum()) for part in parts) == pytest.approx(float(want.sum()), rel=1e-4)


def test_a_ratio_is_the_median_of_what_each_round_says():
    assert timing.ratio([1.0, 6.0, 2.0], [1.0, 2.0, 1.0]) == (2.0, 1.0, 3.0)


@pytest.mark.parametrize("direction", [FORWARD, STEP])
def test_wrong_results_are_refused_before_anything_is_timed(direction):
    case = next(replace(case.tiny(), beside=(PLAIN,)) for case in CASES if case.call.row.name == "additive_attention")
    arrays = case.arrays()
    verifier, (ours, plain) = Verifier(case, direction, arrays), case.ways(direction)
    verifier.check(ours, program(ours, direction, arrays))
    verifier.check(plain, program(plain, direction, arrays))
    shown = {name: array | True if array.dtype == bool else array for name, array in arrays.items()}
    with pytest.raises(AssertionError, match="plain is off by"):
        verifier.check(plain, program(plain, direction, shown))


@pytest.mark.parametrize("wrong", [[1, -np.inf, 2.5], [1, 5, 2], [1, np.inf, 2], [1, np.nan, 2]])
def test_infinities_of_results_must_be_those_of_the_oracle(wrong):
    want = [np.array([1, -np.inf, 2])]
    verification.agree(want, want, 3, "a logarithm")
    with pytest.raises(AssertionError, match="a logarithm is off by"):
        verification.agree([np.array(wrong)], want, 3, "a logarithm")
