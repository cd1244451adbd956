"""What tests of the command line put in the place of a judge, and of a package."""

import sys

import pytest

from attnpool_ref import conformance
from attnpool_ref.cli import application

JOBS = next(option for option in application.check.params if option.name == "jobs")


@pytest.fixture
def judged(monkeypatch):
    """Replaces the judging by a given report, in this process; returns a function that takes it, and returns what is asked."""
    asked = {}
    monkeypatch.setattr(JOBS, "default", 0)

    def choose(report):
        def judge(candidate, **options):
            asked.update(options, candidate=candidate)
            for done, label in enumerate(("mean_pooling float32", "mean_pooling float32", "max_pooling float32")):
                options["progress"](done, 3, label)
            return report

        monkeypatch.setattr(conformance, "judge", judge)
        return asked

    return choose


@pytest.fixture
def without(monkeypatch):
    """Returns a function that makes a module one that is not installed."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)
