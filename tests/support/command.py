"""The command line, run in this process or in another one, and reports for it to show."""

import os
import subprocess
import sys

from click.testing import CliRunner

from attnpool_ref.cli import application
from attnpool_ref.conformance import Cell, Failure, Kept, Measure, Report, RowReport

SNIPPET = "x = [[..., 1]]\ncandidate(x)  # " + "a line that is longer than any terminal " * 6


def run(*arguments, columns=200, env=None):
    """Runs the command line inside this process, ``columns`` wide; returns the result of click."""
    return CliRunner().invoke(application.application, arguments, env={"COLUMNS": str(columns)} | (env or {}))


def python(*arguments):
    """Runs Python in a new process with the same import path, for at most 300 s; returns the finished process."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, env=env)


def failure(
    row="max_pooling", check="padding amount", dtype="float16", size=3, message="got [..., 1]", snippet=SNIPPET
):
    return Failure(row, check, dtype, message, snippet, size)


def report_of(*rows, candidate="some.module"):
    return Report(candidate, "cpu (test)", {"numpy": "9.8.7"}, list(rows))


PASSED = RowReport(
    "mean_pooling",
    "pass",
    cells={"float32": Cell(Measure(0.42, 18.0, ""), Measure(3.25, 61.0, "")), "bfloat16": Cell()},
    guarantees={"NaN in padding": Kept("", "held"), "permuting": Kept(""), "padding side": Kept("", "held")},
)
FAILED = RowReport(
    "max_pooling",
    "fail",
    cells={"float32": Cell(Measure(float("inf"), 18.0, ""), None), "bfloat16": Cell()},
    guarantees={
        "NaN in padding": Kept(
            "NaN in padding", "broken", failures=[failure(size=7, message="a larger one"), failure()]
        ),
        "inf in padding": Kept("inf in padding", "broken", follows_from="NaN in padding", failures=[failure(size=1)]),
        "permuting": Kept("permuting", "held"),
    },
)
MISSING = RowReport("dot_score", "missing")
PARTIAL = RowReport("mean_pooling", "partial", partial=["its argument `keep` was never given"])
