"""Tests of ``pytest --attnpool``, one for each guarantee, such as ``attnpool::mean_pooling::NaN in padding``.

The value of the option is one text, the arguments of ``attnpool check``.
"""

import contextlib
import shlex
import shutil
import unittest

import pytest

from attnpool_ref import cli
from attnpool_ref.conformance.candidates.capture import on_screen
from attnpool_ref.conformance.formats.words import wrapped
from attnpool_ref.conformance.running.claims import NONE, claims_of, each_guarantee
from attnpool_ref.conformance.running.judge import judge

PLAIN = str.maketrans("[]", "()")
"""Replacement of brackets in ids: pytest 9 takes what is in them for the parameters of a test."""


def tests_of(session, lines):
    """Yields the tests of all implementations; an implementation that cannot be found is an error of the collection.

    Args:
      session: the session of pytest.
      lines: for each implementation under test, the arguments of ``attnpool check``.
    """
    for words in lines:
        name = "attnpool" if len(lines) == 1 else f"attnpool::{words.translate(PLAIN)}"
        yield from session.genitems(CandidateNode.from_parent(session, name=name, nodeid=name, words=words))


class CandidateNode(pytest.Collector):
    """Collector of one implementation under test, which ``words`` name: the arguments of ``attnpool check``."""

    def __init__(self, *, words, **node):
        super().__init__(**node)
        self.words, self.shown = words, False

    def collect(self):
        """Yields a collector for each function."""
        try:
            claims = self._claims()
        except (ValueError, TypeError) as error:
            raise self.CollectError(f"--attnpool {self.words}: {error}") from None
        for row in dict.fromkeys(claim.row for claim in claims):
            yield RowNode.from_parent(
                self, name=row, claims=[claim for claim in claims if claim.row == row], shown=self.shown
            )

    def _claims(self):
        """Returns the claims about the implementation; a child process judges it, with ``--jobs 0`` this process."""
        missing = cli.missing("cli")
        if missing:
            raise ValueError(missing.removeprefix("attnpool: "))
        from attnpool_ref.cli.application import check

        with _refused_as_values():
            named, asked, pool = check.main(shlex.split(self.words), "--attnpool", standalone_mode=False, obj=_question)
            if pool is None:  # --jobs 0
                self.shown = True
                target, rows = named()
                return each_guarantee(target, *rows, **asked)
            self.config.add_cleanup(pool.close)
            names = pool.properties.rows or pool.properties.has
        if not names:
            raise ValueError(f"{NONE}: --as NAME, with my.module:function")
        return claims_of(names, lambda name: judge(pool, only=(name,), **asked))


class RowNode(pytest.Collector):
    """Collector of one function, with a test for each guarantee. All tests read one judgment."""

    def __init__(self, *, claims, shown, **node):
        super().__init__(**node)
        self.claims, self.shown = claims, shown
        self.add_marker(pytest.mark.attnpool)
        if self.config.pluginmanager.hasplugin("xdist"):
            self.add_marker(pytest.mark.xdist_group(self.nodeid))  # for --dist loadgroup: one process a function

    def collect(self):
        """Yields a test for each guarantee."""
        for claim in self.claims:
            yield GuaranteeItem.from_parent(self, name=claim.guarantee, claim=claim, shown=self.shown)


class GuaranteeItem(pytest.Item):
    """Test of one guarantee of one function."""

    def __init__(self, *, claim, shown, **node):
        super().__init__(**node)
        self.claim, self.shown = claim, shown

    def runtest(self):
        """Checks the guarantee; the first test of a function waits until the function is judged."""
        try:
            with on_screen() if self.shown else contextlib.nullcontext():
                self.claim.check()
        except unittest.SkipTest as reason:
            raise pytest.skip.Exception(str(reason)) from None
        except AssertionError as broken:  # only the message, without source lines of attnpool
            told, gap, code = str(broken).partition("\n\n")
            width = shutil.get_terminal_size().columns
            told = "\n".join(wrapped(line, width) for line in told.splitlines())
            raise pytest.fail.Exception(told + gap + code, pytrace=False) from None

    def reportinfo(self):
        """Returns the name of the test, without a line number."""
        return self.path, None, f"{self.claim.row}: {self.claim.guarantee}"


@contextlib.contextmanager
def _refused_as_values():
    """Context that turns errors of the command line into a ValueError."""
    import click

    try:
        yield
    except click.ClickException as error:
        raise ValueError(error.format_message()) from None


def _question(candidate, *, files, everything, jobs, time_limit, quick, command, **words):
    """Translates options of ``attnpool check`` into (implementation, arguments of the judge, pool of processes).

    The pool is None with ``--jobs 0``.

    Raises:
      ValueError: a report file, --all, or a number of jobs other than 0, is given: pytest has its own options for these.
    """
    from attnpool_ref.cli import check

    if any(files.values()):
        raise ValueError("--json and --junit are the command's; pytest writes --junit-xml")
    if everything:
        raise ValueError("--all is the command's; pytest has -rs, which lists what was not judged, and -v")
    if jobs:
        raise ValueError(f"--jobs {jobs} is the command's; pytest-xdist has -n")
    named, asked = check.question(candidate, quick=quick, **words)
    return named, asked, None if jobs == 0 else check.process_pool(named, quick, time_limit)
