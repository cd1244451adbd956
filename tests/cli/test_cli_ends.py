"""How the command ends and what it leaves: statuses, reports on standard output, files in a module's place."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import python, report_of, run

from attnpool_ref import __main__, conformance
from attnpool_ref.cli import candidate, exits
from attnpool_ref.conformance import Cell, Measure, RowReport

POOL = "import attnpool_ref\ndef pool(x, mask=None):\n    return attnpool_ref.mean_pooling(x, mask) + 1\n"


def test_each_way_to_end_has_a_status_of_its_own(monkeypatch, current_folder):
    assert [__main__.MISUSED, __main__.INTERRUPTED] == [exits.MISUSED, exits.INTERRUPTED] == [2, 130]
    for words in (("check", "--nothing"), ("check", "nothing"), ("list", "--family", "poolings")):
        assert run(*words).exit_code == exits.MISUSED

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for module, name in ((conformance, "judge"), (candidate, "find_candidate")):
        monkeypatch.setattr(module, name, interrupted)
        result = run("check", "attnpool_ref", "--quick", "--jobs", "0")
        assert (result.exit_code, result.stderr) == (exits.INTERRUPTED, "Stopped by Ctrl-C.\n")


def test_a_stopped_command_leaves_at_once():
    code = (
        "import atexit, sys, time\n"
        "from attnpool_ref import __main__\n"
        "from attnpool_ref.cli import application\n"
        "atexit.register(print, 'what waits at the end')\n"
        "def stopped(*words, **options): raise KeyboardInterrupt\n"
        "application.application.commands['list'].callback = stopped\n"
        "sys.argv[1:] = ['list']\n"
        "__main__.main()\n"
    )
    result = python("-c", code)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "Stopped by Ctrl-C.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("words", "ending", "status", "errors"),
    [
        (["list"], "> /dev/full", 2, "Error: the output cannot be written: No space left on device\n"),
        (["--version"], "> /dev/full", 2, "Error: the output cannot be written: No space left on device\n"),
        (["list"], "| true; exit ${PIPESTATUS[0]}", (1, 2), ""),
    ],
)
def test_output_that_cannot_be_written_ends_the_command_without_a_traceback(words, ending, status, errors):
    line = " ".join([shlex.quote(sys.executable), "-m", "attnpool_ref", *words, ending])
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=300)
    assert result.stderr == errors
    assert result.returncode in np.atleast_1d(status)


def test_letters_that_the_output_lacks_are_replaced():
    """As in a pipe on Windows, whose code page has no Chinese and no č."""
    environment = os.environ | {"PYTHONIOENCODING": "cp1252", "COLUMNS": "160"}
    command = [sys.executable, "-m", "attnpool_ref", "list"]
    result = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"?" in result.stdout


def test_a_report_on_standard_output_stands_there_alone(judged):
    measure = Measure(np.float32(0.5), np.float64(3), "")  # as a judge of JAX arrays measures
    judged(report_of(RowReport("mean_pooling", "pass", cells={"float32": Cell(measure)})))
    result = run("check", "attnpool_ref", "--json", "-")
    assert json.loads(result.stdout)["rows"][0]["cells"]["float32"]["forward"] == {
        "error": 0.5,
        "allowed": 3.0,
        "case": "",
        "passed": True,
    }
    assert "1 function: 1 passed." in result.stderr
    assert run("check", "attnpool_ref", "--junit", "-").stdout.startswith("<?xml")
    assert run("check", "attnpool_ref").stdout.endswith("numpy 9.8.7.\n")


@pytest.mark.parametrize("place", [".", "beside"])
def test_a_file_is_judged_and_its_smallest_case_finds_it_again(current_folder, place):
    folder, name = current_folder / place, f"pool_of_a_test_{place.count('b')}"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(POOL)
    words = ["--as", "mean_pooling", "--quick", "--dtype", "float32", "--jobs", "0"]
    result = run("check", f"{place}/{name}.py:pool", *words)
    assert result.exit_code == 1, result.output
    pasted = python("-c", result.stdout.partition("At a Python prompt:\n\n")[2].partition("\n\n")[0])
    assert pasted.returncode == 0, pasted.stderr
    assert "candidate: [" in pasted.stdout
