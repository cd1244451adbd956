"""Several processes judge what one judges, and bear what it does not."""

import json
import sys
import threading
import types
from dataclasses import replace

import pytest

from attnpool_ref import conformance
from attnpool_ref.commands import check
from attnpool_ref.conformance import Candidate, formats, worker
from attnpool_ref.conformance.rows import Scope
from attnpool_ref.conformance.threads import ROW_THREAD

FEW = {"dtypes": ("float32", "bfloat16"), "shapes": (), "laws": False, "partial": False, "long": False}

OWN = """
import os, sys, threading
import numpy as np
import attnpool_ref
print("imported")
wake = threading.Event()
def mean_pooling(x, mask=None):
    print("called", file=sys.stderr)
    return attnpool_ref.mean_pooling(x, mask)
def max_pooling(x, mask=None):
    return np.max(x, -2)
def first_pooling(x, mask=None):
    if mask is None or x.dtype == np.float32:
        return attnpool_ref.first_pooling(x, mask)
    os._exit(7)
def last_pooling(x, mask=None):
    wake.wait(60)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of one's own that other processes find as well."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "processes_of_a_test.py").write_text(OWN)
    yield __import__("processes_of_a_test")
    sys.modules.pop("processes_of_a_test")


def everything_of(report):
    """What a report says, in all formats, but for how long it took."""
    rows = [replace(row, seconds=0.0) for row in report.rows]
    return [written(replace(report, rows=rows)) for written in formats.FORMATS.values()]


def test_several_processes_report_what_one_does(own, capfd):
    rows, told = ("max_pooling", "mean_pooling", "sum_pooling"), []
    options = FEW | {"only": rows, "waive": {"max_pooling/values under masks": "to show"}, "seed": "7"}
    one = conformance.judge(own, **options)
    capfd.readouterr()
    several = conformance.judge(own, **options, jobs=2, progress=lambda *step: told.append(step))
    assert everything_of(several) == everything_of(one)
    assert [row.status for row in several.rows] == [row.status for row in one.rows] == ["fail", "pass", "fail"]
    assert "prints: called" in several.rows[1].notes and json.loads(formats.FORMATS["json"](several))["device"]
    assert [done for done, *_ in told] == [2, 3, 4, 5, 6] and {total for _, total, _ in told} == {6}
    assert capfd.readouterr() == ("", "")


def test_a_process_that_dies_or_hangs_is_the_finding_of_its_row(own):
    rows, told = ("first_pooling", "last_pooling", "mean_pooling"), []
    report = conformance.judge(
        own, only=rows, **FEW, jobs=2, time_limit=1, progress=lambda *step: told.append(step), name="mine"
    )
    assert [row.status for row in report.rows] == ["fail", "fail", "pass"]
    (died,), (hung,) = (row.promises["an answer"].failures for row in report.rows[:2])
    assert (died.dtype, died.message) == ("bfloat16", "smallest: the process ended with status 7")
    assert hung.message == "smallest: no answer within 1 s"
    assert told[-1][:2] == (6, 6)
    assert all(written(report) for written in formats.FORMATS.values())


def test_a_call_that_hangs_before_its_arrays_are_known_fails_its_row(own):
    (row,) = conformance.judge(own, only=("last_pooling",), **FEW, time_limit=0.2).rows
    own.wake.set()
    for thread in threading.enumerate():
        if thread.name.startswith(ROW_THREAD):
            thread.join()
    assert (row.status, row.ended) == ("fail", "no answer within 0.2 s")


def test_what_cannot_be_sent_is_judged_here(own):
    both = {"mean_pooling": lambda x, mask=None: own.mean_pooling(x, mask), "max_pooling": own.max_pooling}
    report = conformance.judge(both, only=tuple(both), **FEW, jobs=2)
    assert [row.status for row in report.rows] == ["pass", "fail"]

    def packed(target):
        return worker.packed(Candidate(target), Scope(("float32",)), 1.0, "")

    here = types.ModuleType("__main__")
    function = types.FunctionType(own.mean_pooling.__code__, vars(here))
    assert packed(here) is packed(function) is packed(both) is None and packed(own) is not None


def test_another_process_has_the_configuration_of_jax():
    import jax

    settings = worker._settings()
    other = {"jax_numpy_rank_promotion": "allow", "jax_numpy_dtype_promotion": "strict"}
    assert not other.items() & settings.items()
    try:
        worker._configure(settings | other)
        assert jax.config.values["jax_numpy_rank_promotion"] == "allow" and other.items() <= worker._settings().items()
    finally:
        worker._configure(settings)
    assert worker._settings() == settings


def test_there_are_as_many_processes_as_cores_up_to_four_and_none_for_a_few_rows(monkeypatch):
    for cores, want in ((3, [1, 1, 1, 2, 3, 3]), (16, [1, 1, 1, 2, 3, 4])):
        monkeypatch.setattr(check.os, "sched_getaffinity", lambda _, cores=cores: range(cores), raising=False)
        assert [check._jobs(conformance, ["row"] * count) for count in (1, 8, 15, 16, 24, 100)] == want
    assert check._jobs(types.SimpleNamespace(mean_pooling=len), ()) == 1
