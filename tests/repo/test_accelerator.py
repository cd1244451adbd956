"""`make accelerator` in small, and with a child that is slow, dies or is wrong: its time holds, and its JSON says what happened."""

import json
import sys
import time

import jax.numpy as jnp
import pytest

import attnpool_flax
from attnpool_ref import cli, table
from bench import accelerator, accelerator_child, accelerator_formulas, accelerator_page, accelerator_pairs, peers
from bench.child import Child


@pytest.mark.thorough
def test_the_rehearsal_judges_times_every_implementation_and_writes_what_can_be_sent_in(tmp_path, capsys):
    assert accelerator.main(["--tiny", "--only", "KGC, forward", "--output", str(tmp_path)]) == 0
    text = (tmp_path / "performance.md").read_text()
    assert "| cross_attention_pooling, B=3 L=12 T=10 d=8, KGC, forward | copy |" in text
    assert "mean_pooling passed" in text
    assert "* cross_attention_pooling: " in capsys.readouterr().out
    found = json.loads((tmp_path / "accelerator.json").read_text())
    (case,) = found["cases"]
    names = ["copy", "attnpool", *(f"attnpool, {name}" for name in ("einsum", "tiles", "pallas"))]
    names += [] if "PyTorch" in peers.missing() else ["PyTorch"]
    assert list(case["seconds"]) == names
    assert (found["device"], found["wrong"], found["not reached"]) == ("cpu", [], [])
    assert found["versions"]["attnpool"]
    assert found["host"]["cores"]
    assert len(found["sources"]) == 64
    assert found["judged"]["mean_pooling"]["errors"].keys() >= {"bfloat16 gradient", "float32 forward"}


def test_without_an_accelerator_nothing_is_measured(capsys, tmp_path):
    assert accelerator.main(["--output", str(tmp_path)]) == 2
    assert "no accelerator" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_without_jax_the_command_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert accelerator.main([]) == 2
    assert "jax and flax are not installed" in capsys.readouterr().out


def test_a_row_of_each_reduction_is_judged():
    assert len(set(accelerator_child.ROWS)) == 12


@pytest.mark.thorough
def test_a_wrong_row_fails(set_mean):
    set_mean(attnpool_flax.sum_pooling)
    verdict = accelerator_child.answered(accelerator_child.Answers(tiny=True), {"ask": "judge", "name": "mean_pooling"})
    assert verdict["status"] == "fail"
    assert verdict["failures"]


def test_a_wrong_implementation_is_called_wrong_and_a_refusal_is_not(monkeypatch):
    answers = accelerator_child.Answers(tiny=True)
    (index,) = (i for i, case in enumerate(answers.cases) if "KGC" in str(case))
    assert "wrong" not in accelerator_child.answered(answers, {"ask": "add", "way": "attnpool"})
    monkeypatch.setattr(attnpool_flax, "cross_attention_pooling", lambda x, y, **options: x.sum(-2))
    monkeypatch.setattr(accelerator_child, "chosen_implementation", lambda *args, **kwargs: "einsum")
    accelerator_child.answered(answers, {"ask": "open", "index": index, "direction": "forward"})
    assert accelerator_child.answered(answers, {"ask": "add", "way": "attnpool, tiles"})["wrong"]


@pytest.mark.thorough
def test_functions_are_timed_beside_their_formulas(tmp_path, capsys):
    chosen = ["--formulas", "--tiny", "--only", "weighted_pooling | dense | step", "--output", str(tmp_path)]
    assert accelerator.main(chosen) == 0
    found = json.loads((tmp_path / "accelerator_formulas.json").read_text())
    ((key, result),) = found["pairs"].items()
    assert key == "weighted_pooling | dense | step"
    assert result["difference"] < 0.02
    assert {len(times) for times in result["seconds"].values()} == {accelerator_page.ROUNDS}
    assert result["bytes"] == accelerator_pairs.pairs(tiny=True)[tuple(key.split(" | "))].floor("step", "bfloat16")
    assert "| weighted_pooling, dense, step | " in (tmp_path / "accelerator.md").read_text()
    assert "Each of 1 programs takes" in (tmp_path / "performance.md").read_text()
    assert "timed 1 of 1 pairs" in capsys.readouterr().out


def test_the_section_lists_what_is_slower_than_its_formula_and_the_page_all():
    result = {"bytes": 1e9, "temporaries": {"a": 1e6, "b": 2e6}, "compile_seconds": {"a": 1.0, "b": 2.0}}
    pairs = {name: result | {"seconds": {"a": [t], "b": [1e-3]}} for name, t in (("slow", 2e-3), ("fast", 5e-4))}
    machine = {"date": "", "device": "", "devices": 1, "host": {"system": ""}, "commit": "", "versions": {}}
    found = machine | {"scale": "full", "bandwidth": 1e12, "processes": 1, "pairs": pairs | {"lost": {"error": "gone"}}}
    slow, fast = "| slow | 2.00 | 50% | 1 MB and 2 MB, 1.0 s and 2.0 s |", "| fast | 0.50 | 200% | "
    section, page = accelerator_page.section(None, found), accelerator_page.complete(found)
    assert slow in section and fast not in section
    assert slow in page and fast in page and "* lost: gone" in page
    assert "median 1.25. 1 are faster" in section


@pytest.mark.thorough
def test_every_pair_is_a_call_with_a_formula():
    keys = accelerator_pairs.pairs()
    assert len(keys) > 200
    assert set(keys) == set(accelerator_pairs.pairs(tiny=True))
    names = {name for name, _, direction in keys if direction == "forward"}
    assert {row.name for row in table.VARIANTS} - {name.split(",")[0] for name in names} == set()


@pytest.mark.parametrize("changed, least", [(lambda x: x, 0.0), (lambda x: x * 1.25, 0.2)])
def test_the_difference_is_that_of_the_worst_array_and_equal_nan_are_equal(changed, least):
    one = {"result": jnp.asarray([1.0, jnp.nan, jnp.inf]), "gradient": jnp.ones((2, 3))}
    other = one | {"gradient": changed(one["gradient"])}
    assert least <= float(accelerator_pairs.difference(one, other)) <= least + 0.01


COMPILER = """
import json, os, sys

compiled = []
for line in sys.stdin:
    asked = json.loads(line)
    if asked["ask"] == "pairs":
        answer = {"pairs": [[name, "dense", "step"] for name in ("a", "b", "dies", "c", "fails", "d")]}
    elif asked["ask"] == "copy":
        answer = {"bandwidth": 1e12}
    elif asked["key"][0] == "dies":
        sys.exit("no memory")
    elif asked["key"][0] == "fails":
        answer = {"error": "no gradient"}
    elif asked["ask"] == "compile":
        compiled.append(asked["key"])
        answer = {"temporaries": {}, "compile_seconds": {}}
    else:
        answer = {"seconds": {"attnpool": [1.0], "plain": [2.0]}} if asked["key"] in compiled else {"error": "lost"}
    print("\\x1e" + json.dumps(answer), flush=True)
"""


def test_a_process_that_dies_loses_the_programs_that_it_had_compiled_and_no_others():
    measured = accelerator_formulas.Measurement({}, time.monotonic() + 60, processes=1)
    measured.children = {Child([sys.executable, "-c", COMPILER], limit=10): []}
    assert list(measured.steps()) == ["timed 2 of 6 pairs"]
    assert {key.split(" | ")[0] for key, result in measured.results.items() if "seconds" in result} == {"c", "d"}
    errors = {key.split(" | ")[0]: result["error"] for key, result in measured.results.items() if "error" in result}
    assert errors == {
        "a": accelerator_formulas.LOST,
        "b": accelerator_formulas.LOST,
        "dies": "the process ended with 1: no memory",
        "fails": "no gradient",
    }


CHILD = """
import json, sys, time

DESCRIPTION = {
    "device": "a device", "platform": "gpu", "runtime": "", "devices": 1, "host": {"system": "a system", "cores": 1},
    "versions": {}, "commit": None, "sources": "", "missing": [],
    "rows": ["first", "slow", "dies", "fails", "last"],
    "races": [["a, forward", 0, "forward"], ["b, forward", 1, "forward"], ["c, forward", 2, "forward"]],
}
added = []


def answer(ask, name="", way="", index=0, direction=""):
    if name == "slow" or way == "slow":
        time.sleep(60)
    if name == "dies" or way == "dies":
        sys.exit("no memory")
    if ask == "describe":
        return DESCRIPTION
    if ask == "judge":
        return {"status": "fail" if name == "fails" else "pass", "failures": []}
    if ask == "open":
        added.clear()
        ways = [["copy", "attnpool", "attnpool, einsum", "slow", "dies"], ["copy", "attnpool", "attnpool, tiles"], []]
        return {"ways": ways[index], "default": "einsum"} if ways[index] else {"error": "too large"}
    if ask == "add":
        if way == "attnpool, tiles":
            return {"error": "is off by 1", "wrong": True}
        added.append(way)
        return {}
    seconds = {way: [len(way) * 1.0] for way in added}
    return {"function": "f", "title": "", "direction": "forward", "bytes": 1, "copy_bytes": 2, "seconds": seconds}


for line in sys.stdin:
    print("\\x1e" + json.dumps(answer(**json.loads(line))), flush=True)
"""


@pytest.fixture
def child():
    """A child whose steps are slow, die or are wrong by their names."""
    return Child([sys.executable, "-c", CHILD], limit=1, start=10)


@pytest.mark.thorough
def test_a_step_that_is_slow_or_dies_costs_itself_alone_and_the_json_says_so(child, tmp_path, capsys):
    session = accelerator.Run(child, 100)
    assert accelerator.run(session, tmp_path) == 1
    found = json.loads((tmp_path / "accelerator.json").read_text())
    verdicts = {name: verdict["status"] for name, verdict in found["judged"].items()}
    assert verdicts == {"first": "pass", "dies": "fail", "fails": "fail", "last": "pass"}
    assert found["judged"]["dies"]["failures"] == ["the process ended with 1: no memory"]
    assert found["not reached"] == [
        "slow: not in 1 s",
        "a, forward, slow: not in 1 s",
        "a, forward, dies: the process ended with 1: no memory",
        "c, forward: too large",
    ]
    assert found["wrong"] == ["b, forward, attnpool, tiles: is off by 1"]
    assert [list(case["seconds"]) for case in found["cases"]] == [
        ["copy", "attnpool", "attnpool, einsum"],
        ["copy", "attnpool"],
    ]
    printed = capsys.readouterr().out
    for line in (*found["wrong"], *found["not reached"], "fails: fail"):
        assert f"* {line}\n" in printed


@pytest.mark.thorough
def test_what_no_longer_fits_into_the_time_is_listed_and_the_judge_leaves_time_for_the_races(child, tmp_path):
    child.limit = 60  # `slow` lasts until the judge's part of the time is over
    begun = time.monotonic()
    session = accelerator.Run(child, 12)
    assert accelerator.run(session, tmp_path, "b") == 1
    assert time.monotonic() - begun < 12
    not_reached = session.found["not reached"]
    assert not_reached[0].startswith("slow: not in ")
    assert not_reached[1:] == [f"{name}: no time left" for name in ("dies", "fails", "last")]
    assert [case["default"] for case in session.found["cases"]] == ["einsum"]


def test_a_run_without_time_reaches_nothing_and_fails_nothing(child, tmp_path):
    session = accelerator.Run(child, 100)
    session.describe()
    session.end = session.judged_until = time.monotonic()
    list(session.steps(""))
    child.stop()
    assert session.found["not reached"][-1] == "c, forward: no time left"
    assert len(session.found["not reached"]) == 8
    assert accelerator_page.failed(session.found) == []


def test_the_times_speak_for_what_is_faster_in_the_mean_of_all_races():
    def case(seconds):
        ways = {"attnpool": [1.0], "attnpool, einsum": [1.0]} | {f"attnpool, {k}": [t] for k, t in seconds.items()}
        return {"function": "f", "default": "einsum", "seconds": ways}

    def line(*cases):
        (found,) = accelerator_page.defaults([case(seconds) for seconds in cases])
        return found

    assert line({"tiles": 0.5}, {"tiles": 0.9}).startswith("f: tiles; now einsum; einsum 1.00 (worst 1.00), tiles 0.67")
    assert line({"tiles": 0.97}).startswith("f: einsum; ")  # not worth it
    assert line({"tiles": 0.5}, {"tiles": 2.5}).startswith("f: einsum; ")
    assert line({"tiles": 0.5, "pallas": 0.1}, {"tiles": 0.5}).startswith("f: tiles; ")  # refused in one race
