"""Warnings are errors, except those in the rows of ``ALLOWED``; each row must still match a warning.

A row that no warning matches in a full run makes that run fail, so that a row is removed when its reason is gone.
"""

import re
from dataclasses import dataclass

import jax
import pytest


@dataclass(frozen=True)
class Allowed:
    """A warning that is shown, but does not fail a test.

    Attributes:
      message: a regular expression, without colons, that matches the beginning of its text.
      category: its class, by its full name unless it is a builtin.
      reason: the reason why attnpool cannot avoid it.
      when: whether the row applies to the installed versions of Python and packages.
    """

    message: str
    category: str
    reason: str
    when: bool = True


ALLOWED: tuple[Allowed, ...] = (
    Allowed(
        r"The default axis_types will change in JAX v0\.9\.0",
        "DeprecationWarning",
        "JAX before 0.9 asks callers of make_mesh to state a default that has since changed, which attnpool supports",
        when=jax.__version_info__ < (0, 9),
    ),
)


class AllowedWarnings:
    """Plugin that adds the rows to the filters, and fails a full run that leaves a row unused."""

    def __init__(self, rows):
        self.unused = [row for row in rows if row.when]

    def pytest_configure(self, config):
        for row in self.unused:  # "always", because ignored warnings are not reported to plugins
            config.addinivalue_line("filterwarnings", f"always:{row.message}:{row.category}")

    def pytest_warning_recorded(self, warning_message):
        self.unused = [row for row in self.unused if not _matches(row, warning_message)]

    def pytest_sessionfinish(self, session, exitstatus):
        if self.unused and exitstatus == 0 and _is_full_run(session.config):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter, exitstatus, config):
        if self.unused and _is_full_run(config):
            terminalreporter.section("allowed warnings that no warning matched", red=True)
            for row in self.unused:
                terminalreporter.line(f"{row.category}: {row.message!r} ({row.reason})")


def _matches(row, warning):
    names = {f"{c.__module__}.{c.__qualname__}".removeprefix("builtins.") for c in warning.category.__mro__}
    return row.category in names and re.match(row.message, str(warning.message), re.IGNORECASE)


def _is_full_run(config):
    """Returns True in the reporting process if no tests were selected by path, keyword, marker or the last run."""
    chosen = ("keyword", "markexpr", "deselect", "lf", "collectonly", "maxfail")
    return (
        not hasattr(config, "workerinput")
        and config.args_source == pytest.Config.ArgsSource.TESTPATHS
        and not any(config.getoption(name, None) for name in chosen)
    )
