"""The benchmarks run from end to end in small, refuse wrong results, and their page follows from their JSON."""

import json
import os
import re
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a tiny run writes: two lines, an eager call, one case and one picture; CI runs all of it (ARGS=--tiny)."""
    folder = tmp_path_factory.mktemp("bench")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    two = "test_line and (bilinear_score or lengths_to_mask)"
    chosen = f"{two} or test_eager and cross or test_case and code_wise or test_length and additive_attention-64"
    command = [sys.executable, "-m", "bench", "--tiny", "--output", folder, "-q", "-k", chosen]
    result = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture
def found(folder):
    """The JSON of the tiny run."""
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("row", table.VARIANTS, ids=lambda row: row.name)
def test_every_function_of_the_table_has_a_line(row):
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


@pytest.mark.thorough
def test_a_line_stands_on_the_page(folder):
    text = (folder / "performance.md").read_text().split("## Every function")[1]
    measured = [line.split("|")[1].strip() for line in text.splitlines() if line.count("|") == 4][2:]
    assert measured == ["lengths_to_mask", "bilinear_score"]


@pytest.mark.thorough
def test_a_case_is_compared_with_the_floor_and_the_plain_formula_in_both_directions(folder):
    text = (folder / "performance.md").read_text().split("## Time")[1].split("\n## ")[0]
    assert re.search(r"^\| compared with \| forward \| step \|$", text, re.MULTILINE)
    number = r"[\d.]+"
    floors = rf"{number}× the products alone \({number} to {number}\) \| {number}× a read and a write \({number} to {number}\)"
    assert len(re.findall(rf"^\| the floor \| {floors} \|$", text, re.MULTILINE)) == 1
    plain = rf"{number}× (?:faster|as fast) \({number} to {number}\)"
    assert len(re.findall(rf"^\| plain \| {plain} \| {plain} \|$", text, re.MULTILINE)) == 1


def test_a_ratio_says_faster_only_where_it_is():
    assert page.faster([3.0, 3.0], [1.0, 1.5]) == "2.50× faster (2.00 to 3.00)"
    assert page.faster([1.0], [2.0]) == "0.50× as fast (0.50 to 0.50)"
    assert page.times([3.0], [2.0], "one read") == "1.50× one read (1.50 to 1.50)"


def test_the_default_is_not_compared_with_itself():
    ways = {
        name: {"kind": "attnpool", "temporaries": size} for name, size in (("attnpool", 8), ("tiles", 8), ("einsum", 9))
    }
    race = {"ways": ways | {"plain": {"kind": "plain", "temporaries": 8}}}
    assert [name for name in race["ways"] if page.is_other(name, race)] == ["einsum", "plain"]
    text = page.page(json.loads((ROOT / "bench" / "results.json").read_text()))
    assert "| einsum |" in text and "tiles |" not in text


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


@pytest.mark.thorough
def test_a_run_says_how_large_it_was_and_what_was_missing(found, folder):
    assert "A tiny run" in (folder / "performance.md").read_text()
    assert found["machine_info"]["missing"] == peers.missing()
    found["machine_info"]["missing"] = ["Keras", "Equinox"]
    assert "* libraries that were not installed, and are missing below: Keras, Equinox\n" in page.page(found)


def test_a_peer_that_is_not_installed_is_missing_and_stands_nowhere():
    absent = peers.missing(find=lambda name: None)
    assert absent == ["PyTorch", "PyG", "Keras", "Equinox"]
    for function in ("multi_head_attention_pooling", "cross_attention_pooling", "additive_attention_pooling"):
        assert {way.name for way in peers.ways(function, absent)}.isdisjoint(absent)


@pytest.mark.thorough
def test_the_same_results_give_the_same_page_and_pictures(found, tmp_path):
    written = []
    for name in ("once", "again"):
        results = tmp_path / name / "results.json"
        results.parent.mkdir()
        results.write_text(json.dumps(found))
        page.write(results, results.with_name("performance.md"))
        paths = sorted(path for path in results.parent.rglob("*") if path.is_file())
        assert [path.suffix for path in paths] == [".svg", ".md", ".json"]
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


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


def test_every_round_times_every_call_once():
    called = []
    race = timing.Race({name: lambda name=name: called.append(name) for name in "abc"})
    race.numbers = dict.fromkeys(race.numbers, 1)
    for _ in range(5):
        called.clear()
        (order,), _ = race.shuffled()
        race.round(order)
        assert called == order
        assert sorted(order) == ["a", "b", "c"]
    assert {len(times) for times in race.seconds.values()} == {5}


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


def test_a_case_too_large_for_the_oracle_is_verified_on_shorter_sequences(case):
    assert verification.shortened(case) is case
    short = verification.shortened(case, largest=200)
    assert (short.sizes["n"], short.sizes["k"], short.sizes["d"]) == (3, 3, case.sizes["d"])
    _, plain = case.ways(FORWARD)
    arrays = case.arrays()
    verifier = Verifier(case, FORWARD, arrays, largest=200)
    verifier.check(plain, program(plain, FORWARD, arrays))
    wrong = Way("wrong", plain.kind, lambda floats, fixed: [2 * part for part in plain.forward(floats, fixed)])
    with pytest.raises(AssertionError, match="wrong is off by"):
        verifier.check(wrong, program(wrong, FORWARD, arrays))
