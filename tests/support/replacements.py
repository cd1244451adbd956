"""Fixtures that put something else into the place of a part of Python, of JAX or of the packages, for one test.

They import the packages themselves: ``conftest.py`` imports this file before it configures JAX.
"""

import contextlib
import inspect
import os
import sys
from unittest import mock

import pytest


@pytest.fixture
def current_folder(tmp_path):
    """An empty folder, the current one during the test; its modules can be imported only by who adds it to the path."""
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if entry]
    with contextlib.chdir(tmp_path):
        yield tmp_path
    sys.path[:] = path


@pytest.fixture
def watched(monkeypatch):
    """Returns a function that puts a watched one into the place of a module's, for both kinds, and returns it."""
    import attnpool_flax

    def watch(case):
        function = mock.Mock(wraps=case.function)
        monkeypatch.setattr(inspect.getmodule(getattr(attnpool_flax, case.module)), case.row.name, function)
        return function

    return watch


@pytest.fixture
def set_mean(monkeypatch):
    """Returns a function that puts another one into the place of ``attnpool_flax.mean_pooling``."""
    import attnpool_flax

    return lambda wrong: monkeypatch.setattr(attnpool_flax, "mean_pooling", wrong)


@pytest.fixture
def judged(monkeypatch):
    """Replaces the judging by a given report, in this process; returns a function that takes it, and returns what is asked."""
    from attnpool_ref import conformance
    from attnpool_ref.cli import application

    asked = {}
    jobs = next(option for option in application.check.params if option.name == "jobs")
    monkeypatch.setattr(jobs, "default", 0)

    def choose(report):
        def judge(candidate, **options):
            asked.update(options, candidate=candidate)
            for done, label in enumerate(("mean_pooling float32", "max_pooling float32")):
                options["progress"](done, 2, label)
            return report

        monkeypatch.setattr(conformance, "judge", judge)
        return asked

    return choose


@pytest.fixture
def without(monkeypatch):
    """Returns a function that makes a module one that is not installed."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def as_found(monkeypatch):
    """What fails is left as it is: to make it smaller, JAX compiles every size anew."""
    from attnpool_ref.conformance.running import runner

    monkeypatch.setattr(runner, "shrink", lambda case, fails: case)


@pytest.fixture
def full_disk(monkeypatch):
    """Returns a function that makes the disk full after so many files."""

    def fill(after=0):
        left = [after]

        def sync(descriptor):
            if not left[0]:
                raise OSError(28, "No space left on device")
            left[0] -= 1

        monkeypatch.setattr(os, "fsync", sync)

    return fill
