"""``make accelerator`` in small: it judges, times functions and their formulas, and refuses what is wrong."""

import json

import jax.numpy as jnp
import pytest

import attnpool_flax
from attnpool_ref import table
from bench import accelerator, accelerator_child, accelerator_page, accelerator_pairs, peers


@pytest.mark.thorough
def test_the_rehearsal_judges_times_and_writes_what_can_be_sent_in(tmp_path):
    assert accelerator.main(["--tiny", "--only", "KGC, forward", "--output", str(tmp_path)]) == 0
    assert "mean_pooling passed" in (tmp_path / "performance.md").read_text()
    found = json.loads((tmp_path / "accelerator.json").read_text())
    (case,) = found["cases"]
    assert list(case["seconds"]) == ["copy", "attnpool", *([] if "PyTorch" in peers.missing() else ["PyTorch"])]
    assert (found["device"], found["wrong"], found["not reached"]) == ("cpu", [], [])
    assert found["versions"]["attnpool"]
    assert found["host"]["cores"]
    assert len(found["sources"]) == 64
    assert found["judged"]["mean_pooling"]["errors"].keys() >= {"bfloat16 gradient", "float32 forward"}


def test_without_an_accelerator_nothing_is_measured(capsys, tmp_path):
    assert accelerator.main(["--output", str(tmp_path)]) == 2
    assert "no accelerator" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_wrong_row_fails(set_mean):
    set_mean(attnpool_flax.sum_pooling)
    verdict = accelerator_child.answered(accelerator_child.Answers(tiny=True), {"ask": "judge", "name": "mean_pooling"})
    assert verdict["status"] == "fail"
    assert verdict["failures"]


def test_a_wrong_function_is_called_wrong_and_a_refusal_is_not(monkeypatch):
    answers = accelerator_child.Answers(tiny=True)
    (index,) = (i for i, case in enumerate(answers.cases) if "KGC" in str(case))
    assert "wrong" not in accelerator_child.answered(answers, {"ask": "add", "way": "attnpool"})
    monkeypatch.setattr(attnpool_flax, "cross_attention_pooling", lambda x, y, **options: x.sum(-2))
    accelerator_child.answered(answers, {"ask": "open", "index": index, "direction": "forward"})
    assert accelerator_child.answered(answers, {"ask": "add", "way": "attnpool"})["wrong"]


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
    assert "timed 1 of 1 pairs" in capsys.readouterr().out


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
