"""The tests of ``pytest --attnpool``: ``attnpool::mean_pooling::NaN in padding``."""

import shlex
import unittest

import pytest

from attnpool_ref.commands import extras
from attnpool_ref.conformance.claims import each_promise


def tests_of(session, lines):
    """The tests of all candidates; a candidate that cannot be found is an error of the collection.

    Args:
      session: pytest's.
      lines: for each candidate the words of ``attnpool check``.
    """
    for words in lines:
        name = "attnpool" if len(lines) == 1 else f"attnpool::{words}"
        yield from session.genitems(CandidateNode.from_parent(session, name=name, nodeid=name, words=words))


class CandidateNode(pytest.Collector):
    """One candidate; holds its rows."""

    def __init__(self, *, words, **node):
        super().__init__(**node)
        self.words = words

    def collect(self):
        """A node for each row."""
        try:
            claims = _claims(self.words)
        except (ValueError, TypeError) as error:
            raise self.CollectError(f"--attnpool {self.words}: {error}") from None
        for row in dict.fromkeys(claim.row for claim in claims):
            yield RowNode.from_parent(self, name=row, claims=[claim for claim in claims if claim.row == row])


class RowNode(pytest.Collector):
    """One row of a candidate; holds its promises, which one judgement answers."""

    def __init__(self, *, claims, **node):
        super().__init__(**node)
        self.claims = claims
        self.add_marker(pytest.mark.attnpool)
        if self.config.pluginmanager.hasplugin("xdist"):
            self.add_marker(pytest.mark.xdist_group(self.nodeid))  # --dist loadgroup judges each row in one process

    def collect(self):
        """A test for each promise."""
        for claim in self.claims:
            yield PromiseItem.from_parent(self, name=claim.promise, claim=claim)


class PromiseItem(pytest.Item):
    """One promise of one row."""

    def __init__(self, *, claim, **node):
        super().__init__(**node)
        self.claim = claim

    def runtest(self):
        """Asks for it; the first one of a row waits for the judging."""
        try:
            self.claim.check()
        except unittest.SkipTest as reason:
            raise pytest.skip.Exception(str(reason)) from None
        except AssertionError as broken:  # the message alone, and no source of the kit under it
            raise pytest.fail.Exception(str(broken), pytrace=False) from None

    def reportinfo(self):
        """No file: the name alone."""
        return self.path, None, f"{self.claim.row}: {self.claim.promise}"


def _claims(words):
    """The promises of what these words of ``attnpool check`` ask for."""
    missing = extras.missing("cli")
    if missing:
        raise ValueError(missing.removeprefix("attnpool: "))
    import click

    from attnpool_ref.commands.application import check

    try:
        target, rows, asked = check.main(shlex.split(words), "--attnpool", standalone_mode=False, obj=_question)
    except click.ClickException as error:
        raise ValueError(error.format_message()) from None
    return each_promise(target, *rows, **asked)


def _question(candidate, *, files, jobs, **words):
    from attnpool_ref.commands.check import question

    if any(files.values()):
        raise ValueError("--json, --junit and --html are the command's; pytest writes --junit-xml")
    if jobs is not None:
        raise ValueError("--jobs is the command's; pytest-xdist has -n")
    return question(candidate, **words)
