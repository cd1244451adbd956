"""``make accelerator`` in small: it judges, times functions beside their formulas, and fails for what is wrong."""

import json
import os

import jax.numpy as jnp
import pytest

import attnpool_flax
from attnpool_ref import table
from bench import accelerator
from bench.worker import Worker


@pytest.mark.thorough
def test_the_rehearsal_judges_times_and_writes(tmp_path, capsys):
    file = tmp_path / "accelerator.json"
    assert accelerator.main(["--tiny", "--only", "quantile", "--output", str(file)]) == 0
    found = json.loads(file.read_text())
    assert found["judged"]["quantile_pooling"]["status"] == "pass"
    assert found["calls"].keys() == {f"quantile_pooling, dense | {direction}" for direction in ("step", "forward")}
    for result in found["calls"].values():
        assert list(result["seconds"]) == ["copy", "attnpool", "plain"]
        assert {len(times) for times in result["seconds"].values()} == {accelerator.ROUNDS}
        assert result["difference"] < 0.05
    assert "| quantile_pooling, dense, step | plain " in capsys.readouterr().out


def test_without_an_accelerator_nothing_is_measured(capsys, tmp_path):
    assert accelerator.main(["--output", str(tmp_path / "found.json")]) == 2
    assert "no accelerator" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_wrong_function_fails(set_mean):
    set_mean(attnpool_flax.sum_pooling)
    verdict = accelerator.judge("mean_pooling")
    assert verdict["status"] == "fail"
    assert verdict["failures"]


def test_every_function_is_timed_the_main_ones_first():
    labels = list(accelerator.timed_calls(False))
    assert tuple(labels[: len(accelerator.MAIN)]) == accelerator.MAIN
    assert labels == list(accelerator.timed_calls(True))
    assert {row.name for row in table.VARIANTS} <= {label.split(",")[0] for label in labels}
    assert set(accelerator.JUDGED) <= {row.name for row in table.VARIANTS}


@pytest.mark.parametrize("changed, least", [(lambda x: x, 0.0), (lambda x: x * 1.25, 0.2)])
def test_the_difference_is_that_of_the_worst_array_and_equal_nan_are_equal(changed, least):
    one = {"result": jnp.asarray([1.0, jnp.nan, jnp.inf]), "gradient": jnp.ones((2, 3))}
    other = one | {"gradient": changed(one["gradient"])}
    assert least <= float(accelerator.difference(one, other)) <= least + 0.01


def test_a_worker_answers_again_after_an_error_a_time_out_and_a_crash(monkeypatch):
    monkeypatch.setattr("bench.worker.START", 60)
    worker = Worker(int, 30)
    assert worker.ask("7") == 7
    assert worker.ask("seven")["error"].startswith("ValueError: invalid literal")
    worker.answer, first = os._exit, worker.process.pid
    worker.stop()
    assert worker.ask(3)["error"] == "the process ended with 3"
    monkeypatch.setattr("bench.worker.START", 0)
    worker.answer, worker.limit = int, 0
    assert worker.ask("7")["error"] == "not in 0 s"
    worker.limit = 60
    assert worker.ask("8") == 8
    assert worker.process.pid != first
    worker.stop()
