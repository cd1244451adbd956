"""Several processes judge what one judges, and child processes survive what ends the judge."""

import json
import os
import pickle
import subprocess
import sys
import types
from dataclasses import replace

import pytest
from click.testing import CliRunner

from attnpool_ref import conformance
from attnpool_ref.cli import check
from attnpool_ref.cli.application import application
from attnpool_ref.cli.candidate import Named
from attnpool_ref.conformance import formats
from attnpool_ref.conformance.running import processes, rows
from attnpool_ref.conformance.running.processes import ProcessPool, Properties, Setup

FEW = {"dtypes": ("float32", "bfloat16"), "shapes": (), "laws": False, "partial": False, "long": False}

OWN = """
import os, sys, time
import numpy as np
import attnpool_ref
print("imported")
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
    time.sleep(600)
"""


KILLED = """
import os, signal
from attnpool_ref import mean_pooling as mean, max_pooling
def mean_pooling(x, mask=None):
    if x.shape[-2] > 4000:
        os.kill(os.getpid(), signal.SIGKILL)
    return mean(x, mask)
"""


@pytest.fixture
def own(current_folder):
    """A module of one's own that other processes find as well."""
    sys.path.insert(0, str(current_folder))
    (current_folder / "processes_of_a_test.py").write_text(OWN)
    yield __import__("processes_of_a_test")
    sys.modules.pop("processes_of_a_test")


def pool_of(own, **options):
    """The module in child processes."""
    return ProcessPool(Setup(pickle.dumps(Named(own.__name__))), "mine", **options)


def everything_of(report):
    """What a report says, in all formats, but for how long it took."""
    rows = [replace(row, seconds=0.0) for row in report.rows]
    return [written(replace(report, rows=rows)) for written in formats.FORMATS.values()]


def test_several_processes_report_what_one_does(own, capfd):
    rows, told = ("max_pooling", "mean_pooling", "sum_pooling"), []
    options = FEW | {"only": rows, "waive": {"max_pooling/values under masks": "to show"}, "seed": "7"}
    one = conformance.judge(own, **options)
    capfd.readouterr()
    with pool_of(own, jobs=2) as pool:
        several = conformance.judge(pool, **options, name=own.__name__, progress=lambda *step: told.append(step))
    assert everything_of(several) == everything_of(one)
    assert [row.status for row in several.rows] == [row.status for row in one.rows] == ["fail", "pass", "fail"]
    assert "prints: called" in several.rows[1].notes and json.loads(formats.FORMATS["json"](several))["device"]
    assert [done for done, *_ in told] == [2, 3, 4, 5, 6] and {total for _, total, _ in told} == {6}
    assert capfd.readouterr() == ("", "")


def test_a_process_that_dies_or_hangs_is_the_finding_of_its_row(own):
    rows, told = ("first_pooling", "last_pooling", "mean_pooling"), []
    with pool_of(own, jobs=2, time_limit=1) as pool:
        report = conformance.judge(pool, only=rows, **FEW, progress=lambda *step: told.append(step))
    assert [row.status for row in report.rows] == ["fail", "fail", "pass"]
    (died,), (hung,) = (row.guarantees["an answer"].failures for row in report.rows[:2])
    assert (died.dtype, died.message) == ("bfloat16", "smallest: the process ended with status 7")
    assert hung.message == "smallest: no answer within 1 s"
    assert told[-1][:2] == (6, 6)
    assert all(written(report) for written in formats.FORMATS.values())


def test_a_process_that_is_killed_loses_its_case_and_not_its_row(current_folder, monkeypatch):
    monkeypatch.syspath_prepend(str(current_folder))
    (current_folder / "killed_of_a_test.py").write_text(KILLED)
    rows = ("mean_pooling", "max_pooling")
    with pool_of(__import__("killed_of_a_test"), jobs=2) as pool:
        report = conformance.judge(pool, only=rows, dtypes=("float32",))
    assert [row.status for row in report.rows] == ["fail", "pass"] and report.rows[0].cases > 20
    messages = [(failure.check, failure.message) for failure in report.rows[0].failures]
    assert messages == [
        ("an answer", "smallest, L: many tokens: the process was killed by signal 9"),
        ("long sums", "the process was killed by signal 9"),
    ]


def test_the_next_row_and_the_next_call_have_a_process_where_one_has_ended(own):
    rows, told = ("mean_pooling", "first_pooling", "sum_pooling", "max_pooling"), []
    with pool_of(own) as pool:
        report = conformance.judge(pool, only=rows, **FEW, progress=lambda *step: told.append(step))
        again = conformance.judge(pool, only=("mean_pooling",), **FEW)
    assert [row.status for row in report.rows] == ["pass", "fail", "fail", "fail"] and again.passed
    assert report.rows[1].ended == "the process ended with status 7" and not report.rows[3].ended
    done = [done for done, *_ in told]
    assert done == sorted(set(done)) and told[-1][:2] == (8, 8)


@pytest.fixture
def started(monkeypatch):
    """The child processes that a test starts."""
    children, make = [], processes._Child
    monkeypatch.setattr(processes, "_Child", lambda setup: children.append(make(setup)) or children[-1])
    return children


@pytest.mark.thorough
def test_an_old_process_is_replaced_before_the_next_row(own, monkeypatch, started):
    monkeypatch.setattr(processes, "MAX_AGE", 0.0)
    with pool_of(own) as pool:
        report = conformance.judge(pool, only=("mean_pooling", "max_pooling"), **FEW)
    assert [row.status for row in report.rows] == ["pass", "fail"] and len(started) == 2
    assert not any(one._process.is_alive() for one in started)


def test_an_error_of_the_judge_ends_all_processes_and_is_raised(own, started):
    calls = {"arguments": {"mask": "no_argument", "x": "no_argument"}}
    setup = Setup(pickle.dumps(Named(own.__name__, calls=calls)))
    with pytest.raises(ValueError, match="no_argument"), ProcessPool(setup, jobs=2) as pool:
        conformance.judge(pool, only=("mean_pooling", "max_pooling"), **FEW)
    assert started and not any(one._process.is_alive() for one in started)


def test_an_error_inside_of_the_judge_is_no_wrong_use(own, monkeypatch):
    def mistaken(*_):
        raise ValueError("a mistake")

    monkeypatch.setattr(rows.RowJudge, "_judge_case", mistaken)
    result = CliRunner().invoke(application, ["check", f"{own.__name__}:mean_pooling", "--jobs", "0", "--quick"])
    assert result.exit_code == 70
    assert "internal error of attnpool, please report it: ValueError: a mistake (mean_pooling" in result.stderr


def steps_of(candidate, **options):
    """The numbers (done, total) that ``progress`` gets."""
    told = []
    conformance.judge(candidate, progress=lambda done, total, _: told.append((done, total)), **(FEW | options))
    return told


def needs_more(x, mask=None, *, what):
    """Cannot be judged: nothing says what ``what`` is."""


def test_the_steps_of_a_function_that_cannot_be_judged_are_counted():
    assert steps_of(needs_more, only=("mean_pooling",)) == [(2, 2)]
    both = types.SimpleNamespace(mean_pooling=needs_more, max_pooling=needs_more)
    assert steps_of(both, only=("mean_pooling", "max_pooling")) == [(2, 4), (4, 4)]


def test_a_dtype_or_a_function_that_is_named_twice_is_counted_once():
    twice = {"only": ("mean_pooling",) * 2, "dtypes": ("float32",) * 2}
    assert steps_of(types.SimpleNamespace(mean_pooling=needs_more), **twice)[-1] == (1, 1)


def test_there_are_as_many_processes_as_cores_up_to_four_and_none_for_a_few_rows(monkeypatch):
    for cores, want in ((3, [1, 1, 1, 2, 3, 3]), (16, [1, 1, 1, 2, 3, 4])):
        monkeypatch.setattr(check.os, "sched_getaffinity", lambda _, cores=cores: range(cores), raising=False)
        found = [Properties((), ("row",) * count, {}, False) for count in (1, 2, 3, 4, 6, 100)]
        assert [check._jobs(properties) for properties in found] == want
    assert check._jobs(Properties((), ("row",) * 100, {}, on_accelerator=True)) == 1


# The command


HOSTILE = """
import os, signal, subprocess, sys, threading, time
import attnpool_ref as ref

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")
    __repr__ = __str__

def mean_pooling(x, mask=None):
    os._exit(0)

def max_pooling(x, mask=None):
    signal.raise_signal(signal.SIGSEGV)

def sum_pooling(x, mask=None):
    sys.exit(0)

def min_pooling(x, mask=None):
    raise KeyboardInterrupt

def noisy_or_pooling(x, mask=None):
    os.kill(os.getpid(), signal.SIGSTOP)

def first_pooling(x, mask=None):
    raise Mute

def l2_normalize(x):
    input()

def last_pooling(x, mask=None):
    for stream in (1, 2):
        try:
            os.close(stream)
        except OSError:
            pass
    sys.stdout = sys.stderr = None
    return ref.last_pooling(x, mask)

def std_pooling(x, mask=None):
    if threading.active_count() < 9:
        threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if os.fork() == 0:
            time.sleep(600)
    return ref.std_pooling(x, mask)
"""


def command(folder, *words, main="from attnpool_ref.__main__ import main; main()", typed=None):
    """Runs the command in a folder, to the end of its output."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    options = {"cwd": folder, "env": environment, "input": typed, "capture_output": True, "text": True, "timeout": 120}
    return subprocess.run([sys.executable, "-c", main, *words], **options)


def test_whatever_an_implementation_does_to_its_process_the_command_reports_all_rows_and_ends(tmp_path):
    (tmp_path / "hostile_of_a_test.py").write_text(HOSTILE)
    words = ("--quick", "--dtype", "float32", "--time-limit", "3", "--jobs", "1", "--json", "-")
    result = command(tmp_path, "check", "hostile_of_a_test", *words)
    assert result.returncode == 1, result.stderr
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"] if row["status"] != "missing"}
    found = {
        name: next((f["message"] for kept in row["guarantees"].values() for f in kept["failures"]), row["status"])
        for name, row in rows.items()
    }
    assert found == {
        "mean_pooling": "smallest: the process ended with status 0",
        "max_pooling": "smallest: the process was killed by signal 11",
        "sum_pooling": "raises SystemExit: 0",
        "min_pooling": "raises KeyboardInterrupt",
        "noisy_or_pooling": "smallest: no answer within 3 s",
        "first_pooling": "raises Mute, whose text cannot be read: its __str__ raises",
        "l2_normalize": "raises EOFError: EOF when reading a line",
        "last_pooling": "pass",
        "std_pooling": "pass",
    }


def test_the_asking_process_imports_neither_the_implementation_nor_jax(tmp_path):
    (tmp_path / "pool_of_a_test.py").write_text("from attnpool_ref import mean_pooling\n")
    main = (
        "import sys\nfrom attnpool_ref.__main__ import main\n"
        "try: main()\n"
        "finally: print([name for name in ('jax', 'pool_of_a_test') if name in sys.modules], file=sys.stderr)"
    )
    result = command(tmp_path, "check", "pool_of_a_test:mean_pooling", "--quick", "--dtype", "float32", main=main)
    assert result.returncode == 0 and result.stderr.splitlines()[-1] == "[]", result.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os._exit(0)", "cannot be imported: the process ended with status 0"),
        ("import time; time.sleep(600)", "cannot be imported: no answer within 1 s"),
        pytest.param("import sys; sys.exit(0)", "cannot be imported (SystemExit: 0)", marks=pytest.mark.thorough),
        pytest.param(
            "class E(Exception): __str__ = None\nraise E",
            "cannot be imported (E, whose text cannot be read",
            marks=pytest.mark.thorough,
        ),
        ("import nothing_of_a_test", "needs 'nothing_of_a_test', which is not installed"),
    ],
)
def test_an_import_that_ends_its_process_or_hangs_is_refused_in_a_line(current_folder, monkeypatch, code, message):
    limit = ["--time-limit", "1"] if "sleep" in code else []
    monkeypatch.setattr(processes, "IMPORT_LIMIT", 0.1 if limit else processes.IMPORT_LIMIT)
    (current_folder / "import_of_a_test.py").write_text(code)
    result = CliRunner().invoke(application, ["check", "import_of_a_test", *limit])
    assert (result.exit_code, result.output.count("\n")) == (2, 1), result.output
    assert result.output.startswith(f"Error: import_of_a_test {message}")


def test_a_debugger_works_in_the_asking_process(tmp_path):
    code = "import attnpool_ref\ndef mean_pooling(x, mask=None):\n    breakpoint()\n    return attnpool_ref.mean_pooling(x, mask)\n"
    (tmp_path / "debugged_of_a_test.py").write_text(code)
    words = ["check", "debugged_of_a_test:mean_pooling", "--quick", "--dtype", "float32", "--jobs", "0"]
    result = command(tmp_path, *words, typed="p 'shape', x.shape\nquit\n")
    assert "(Pdb) ('shape', (" in result.stdout and "Stopped by Ctrl-C" in result.stdout
    assert result.returncode == 130, result.stderr
