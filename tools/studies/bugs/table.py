"""Rows of the table of mistakes: functions that the tests run and whose source text the page shows.

A row is one of three kinds: the source gives a wrong number, the source fails, or there is nothing to run (a note). The
statements before ``return`` are the smallest input. The function returns the source's formula (from ``notebooks.py``
or ``traps/sources.py``; None if it cannot be run) and the right call; its argument ``attnpool`` is either package.
``was`` and ``now`` are the numbers as they are printed, in the order of the flattened result. A number without a point
or an exponent is exact.
"""

# @SECTION.wrong("T-0", was="0.5 0.5", now="1 0")
# def _(attnpool):
#     """What goes wrong, as the page says it."""
#     s, mask = np.array([1.0, 1.0]), np.array([True, False])
#     return (
#         lambda: formula_of_the_source(s, mask),
#         lambda: attnpool.masked_softmax(s, mask),
#     )

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

WRONG, ERROR, NOTE = "wrong number", "error", "note"


@dataclass(frozen=True)
class Bug:
    """One row.

    Attributes:
      name: its id, with a letter if one mistake has several demonstrations.
      kind: a wrong number, an error or a note.
      what: the mistake in a sentence.
      function: takes a package, and returns the source's formula and the right call; None for a note.
      was: the source's numbers, or the name of its error.
      now: the right numbers.
      raises: exceptions of which the source's formula raises one.
      refuses: part of the message of attnpool's ValueError, if an error is right.
      reason: why there is nothing to run.
      given: the smallest input as the page shows it, one string per statement.
      code: the text of the source's formula, if it can be run.
      call: the right call of attnpool, as the page shows it.
      place: the place in the source, if the page shows it.
    """

    name: str
    kind: str
    what: str
    function: Callable | None = None
    was: str = ""
    now: str = ""
    raises: tuple[type[Exception], ...] = ()
    refuses: str = ""
    reason: str = ""
    given: tuple[str, ...] = ()
    code: str = ""
    call: str = ""
    place: str = ""

    def wrong(self):
        """Returns the source's result."""
        with np.errstate(all="ignore"):
            return self.function(None)[0]()

    def right(self, package):
        """Returns a package's result; for pictures, both packages have the same function."""
        with np.errstate(all="ignore"):
            call = self.function(package)[1]
        return call()


@dataclass(frozen=True)
class Section:
    """Rows that have one origin.

    Attributes:
      title: the heading.
      origin: where the mistakes come from.
      rows: the rows, in the order in which they are written.
    """

    title: str
    origin: str
    rows: list[Bug] = field(default_factory=list)

    def wrong(self, name, was, now="", refuses="", place=""):
        """Adds a row whose source gives a wrong number."""
        return self._row(name, WRONG, was=was, now=now, refuses=refuses, place=place)

    def error(self, name, was, now, raises=(), place=""):
        """Adds a row whose source fails."""
        return self._row(name, ERROR, was=was, now=now, raises=raises, place=place)

    def note(self, name, what, reason, place=""):
        """Adds a row with nothing to run."""
        self.rows.append(Bug(name, NOTE, what, reason=reason, place=place))

    def _row(self, name, kind, **results):
        def register(function):
            given, code, call = _texts(function)
            what = " ".join(function.__doc__.split())
            self.rows.append(Bug(name, kind, what, function, given=given, code=code, call=call, **results))
            return function

        return register


def _texts(function):
    """Returns the statements, the source's formula and the call of a row, each on one line."""
    source = inspect.getsource(function)
    _, *given, result = ast.parse(source).body[0].body
    theirs, ours = (part.body if isinstance(part, ast.Lambda) else None for part in result.value.elts)
    code = _one_line(source, theirs) if theirs else ""
    return tuple(_one_line(source, statement) for statement in given), code, _one_line(source, ours)


def _one_line(source, node):
    """Returns a piece of the source as a reader would type it: without line breaks and the package's name."""
    text = ast.get_source_segment(source, node)
    text = re.sub(r"(?<=[(\[{])\s*\n\s*|,?\s*\n\s*(?=[)\]}])", "", text)
    return re.sub(r"\s*\n\s*", " ", text).replace("attnpool.", "")
