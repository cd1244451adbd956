"""The steps of ``make dist``, with a stand-in for the commands: which run, where, and what a failure does."""

import subprocess
import tarfile
from pathlib import Path

import make_dist
import pytest

CHECKS = ["twine", "check-wheel-contents", "validate-pyproject", "cffconvert"]
WHEEL = ["install the wheel", "doctests of the wheel", "the README with the wheel"]
SDIST = ["install the sdist", "tests of the sdist"]


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Runs nothing: writes down (command, folder, environment) of each step, and builds an empty wheel and sdist.

    The environment has what would reach the checkout.
    """
    run, failing = [], set()

    def stand_in(command, *, cwd, env, check):
        run.append((command, Path(cwd), env))
        if "build" in command:
            make_dist.DIST.mkdir()
            (make_dist.DIST / "attnpool-1-py3-none-any.whl").touch()
            with tarfile.open(make_dist.DIST / "attnpool-1.tar.gz", "w:gz") as sdist:
                sdist.add(make_dist.ROOT / "LICENSE", "attnpool-1/LICENSE")
        return subprocess.CompletedProcess(command, int(any(word in " ".join(command) for word in failing)))

    monkeypatch.setenv("PYTHONPATH", str(make_dist.ROOT))
    monkeypatch.setenv("MAKEFLAGS", "-n")
    monkeypatch.setattr(make_dist, "DIST", tmp_path / "dist")
    monkeypatch.setattr(make_dist.subprocess, "run", stand_in)
    monkeypatch.setattr(make_dist.venv, "create", lambda home, with_pip: home.mkdir())
    return run, failing


def titles(printed):
    """The titles of the summary, to their first colon, and those of failed steps."""
    lines = [line.partition(" s  ")[2] for line in printed.splitlines() if " s  " in line]
    return [line.partition(":")[0].partition("  ")[0] for line in lines], [line for line in lines if "FAILED" in line]


def test_every_step_runs_and_is_timed(commands, capsys):
    assert make_dist.main([]) == 0
    assert titles(capsys.readouterr().out) == (["build", *CHECKS, *WHEEL, *SDIST], [])


def test_quick_leaves_out_the_suite(commands, capsys):
    assert make_dist.main(["--quick"]) == 0
    assert titles(capsys.readouterr().out)[0] == ["build", *CHECKS, *WHEEL]


@pytest.mark.parametrize(
    ("failing", "shown"),
    [
        ("cffconvert", ["build", *CHECKS, *WHEEL, *SDIST]),
        ("pip install", ["build", *CHECKS, *WHEEL[:1], *SDIST]),
        ("dev.stamp", ["build", *CHECKS, *WHEEL, *SDIST[:1]]),
        ("-m build", ["build"]),
    ],
)
def test_a_failure_stops_what_needs_it_and_nothing_else(commands, capsys, failing, shown):
    commands[1].add(failing)
    assert make_dist.main([]) == 1
    found, failed = titles(capsys.readouterr().out)
    assert found == shown
    assert len(failed) == 1
    assert failed[0].endswith("FAILED: status 1")


def test_the_files_are_tried_outside_of_the_checkout(commands):
    assert make_dist.main([]) == 0
    tried = [one for one in commands[0] if "--pyargs" in one[0] or "readme_walk" in str(one[0]) or "test" in one[0]]
    assert len(tried) == 3
    for _, folder, environment in tried:
        assert not folder.is_relative_to(make_dist.ROOT)
        assert not {"PYTHONPATH", "MAKEFLAGS"} & environment.keys()
