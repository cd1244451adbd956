"""The benchmarks run from end to end in small, refuse wrong results, and their page follows from their JSON."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import attnpool_flax
from attnpool_ref import table
from bench import floors, lines, page, peers, timing, verification
from bench import table as bench_table
from bench.programs import FORWARD, STEP, Way, program
from bench.verification import Verifier

ROOT = Path(__file__).resolve().parent.parent.parent
REPAIR = "run `python -m bench --page`, which measures nothing, and commit docs/performance.md"


@pytest.mark.thorough
def test_a_tiny_run_writes_what_was_asked_how_large_it_was_and_what_was_missing(tmp_path):
    """Two lines, an eager call, one case and one picture; CI runs all of it (ARGS=--tiny)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    two = "test_line and (bilinear_score or lengths_to_mask)"
    chosen = f"{two} or test_eager and cross or test_case and code_wise or test_length and additive_attention-64"
    command = [sys.executable, "-m", "bench", "--tiny", "--output", str(tmp_path), "-q", "-k", chosen]
    ran = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text, found = (tmp_path / "performance.md").read_text(), json.loads((tmp_path / "results.json").read_text())
    rows = [row.split("|")[1].strip() for row in text.split("## Every function")[1].splitlines() if row.count("|") == 4]
    assert rows[2:] == ["lengths_to_mask", "bilinear_score"]
    assert "A tiny run" in text and "| compared with | forward | step |" in text
    assert found["machine_info"]["missing"] == peers.missing()
    page.write(tmp_path / "results.json", tmp_path / "again.md")
    assert (tmp_path / "again.md").read_text() == text


def test_every_function_of_the_table_has_a_line():
    for row in table.VARIANTS:
        line = lines.Line(row, "tiny")
        ours, *_, oracle = line.ways()
        assert (ours.name, oracle.name) == ("attnpool", "attnpool_ref")
        assert program(oracle, FORWARD, line.arrays()).run()


def test_a_line_that_is_wrong_is_refused(set_mean):
    line = lines.Line(table.BY_NAME["mean_pooling"], "tiny")
    line.programs()
    set_mean(attnpool_flax.max_pooling)
    with pytest.raises(AssertionError, match="mean_pooling is off by"):
        line.programs()


@pytest.mark.parametrize("name, options", [("mask_attention", {}), ("cross_attention_pooling", {"reduction": "max"})])
def test_the_floor_of_all_pairs_is_their_products_block_by_block(name, options):
    case = next(case for case in bench_table.CASES if case.name == name and case.options == options)
    arrays = bench_table.SCALES["tiny"].case(case).arrays()
    (floor,) = floors.floors(case, FORWARD)
    own, other = ("context", "query") if name == "mask_attention" else ("x", "y")
    products = np.einsum("bnd,bmd->bnm", arrays.floats[own], arrays.floats[other])
    want = products @ arrays.floats[other] if name == "mask_attention" else products.max(-1)
    for most in (2**20, 4 * products.shape[-1]):  # one block, and four rows at a time with some left over
        parts = floor.forward(arrays.floats, arrays.fixed, most=most)
        assert sum(part.size for part in parts) == want.size
        assert sum(float(part.sum()) for part in parts) == pytest.approx(float(want.sum()), rel=1e-4)


def test_the_page_in_the_repository_follows_from_the_results_in_the_repository(tmp_path):
    results, document = page.paths()
    for path in (results, results.with_name("accelerator.json"), results.with_name("aot.json")):
        if path.exists():
            (tmp_path / path.name).write_text(path.read_text())
    page.write(tmp_path / "results.json", tmp_path / "performance.md", redraw=False)
    assert (tmp_path / "performance.md").read_text() == document.read_text(), REPAIR


def test_a_ratio_is_the_median_of_what_each_round_says():
    assert timing.ratio([1.0, 6.0, 2.0], [1.0, 2.0, 1.0]) == (2.0, 1.0, 3.0, 1.0)


def test_a_time_that_grows_with_the_square_has_exponent_two():
    assert timing.exponent([8, 16, 64], [[9.0], [3.0, 2.0], [32.0, 40.0]]) == 2


@pytest.fixture
def case():
    """The smallest case with one plain formula."""
    (case,) = (case for case in bench_table.CASES if case.name == "code_wise_attention")
    return bench_table.SCALES["tiny"].case(replace(case, beside=("plain",)))


@pytest.mark.parametrize("direction", [FORWARD, STEP])
def test_wrong_results_are_refused_before_anything_is_timed(case, direction):
    arrays = case.arrays()
    verifier, (ours, plain) = Verifier(case, direction, arrays), case.ways(direction)
    wrong = Way(
        "wrong", plain.kind, lambda floats, fixed: plain.forward(floats, jax.tree.map(lambda m: m | True, fixed))
    )
    verifier.check(ours, program(ours, direction, arrays))
    verifier.check(plain, program(plain, direction, arrays))
    with pytest.raises(AssertionError, match="wrong is off by"):
        verifier.check(wrong, program(wrong, direction, arrays))


@pytest.mark.parametrize("wrong", [[1, -np.inf, 2.5], [1, 5, 2], [1, np.inf, 2], [1, np.nan, 2]])
def test_infinities_of_results_must_be_those_of_the_oracle(wrong):
    want = [np.array([1, -np.inf, 2])]
    verification.agree(want, want, 3, "a logarithm")
    with pytest.raises(AssertionError, match="a logarithm is off by"):
        verification.agree([np.array(wrong)], want, 3, "a logarithm")
