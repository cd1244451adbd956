"""What a row of the table of mistakes is, and how the page gets its text: from the function that is run.

A row is one of three kinds: the source gives a wrong number, it fails, or there is nothing to run (a note). What stands
before ``return`` is the smallest input. Then come the source's formula (from ``notebooks.py``; None where it cannot be
run) and what to write instead; ``attnpool`` is either package. Numbers stand as they are printed, in the order of the flat
result: one without a point or an exponent is exact.
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
      name: its id; a letter after it tells several demonstrations of one mistake apart.
      kind: a wrong number, an error or a note.
      what: the mistake in a sentence.
      function: from a package to the source's formula and the right call; None for a note.
      was: the source's numbers, or how it fails.
      now: the right numbers.
      raises: exceptions of which the source's formula raises one.
      refuses: what attnpool's ValueError says, where refusing is right.
      reason: why there is nothing to run.
      given: the smallest input, as the page shows it: one text a statement.
      code: the source's formula as it is written, if it can be run.
      call: what to write with attnpool, as the page shows it.
      place: where in the source, if the page says so.
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
        """What the source gives."""
        with np.errstate(all="ignore"):
            return self.function(None)[0]()

    def right(self, package):
        """What a package gives; a picture is the oracle's in both."""
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
        """A row whose source gives a wrong number."""
        return self._row(name, WRONG, was=was, now=now, refuses=refuses, place=place)

    def error(self, name, was, now, raises=(), place=""):
        """A row whose source fails."""
        return self._row(name, ERROR, was=was, now=now, raises=raises, place=place)

    def note(self, name, what, reason, place=""):
        """A row with nothing to run."""
        self.rows.append(Bug(name, NOTE, what, reason=reason, place=place))

    def _row(self, name, kind, **results):
        def register(function):
            given, code, call = _texts(function)
            what = " ".join(function.__doc__.split())
            self.rows.append(Bug(name, kind, what, function, given=given, code=code, call=call, **results))
            return function

        return register


def _texts(function):
    """The statements, the source's formula and the call of a row, each on one line."""
    source = inspect.getsource(function)
    _, *given, result = ast.parse(source).body[0].body
    theirs, ours = (part.body if isinstance(part, ast.Lambda) else None for part in result.value.elts)
    code = _one_line(source, theirs) if theirs else ""
    return tuple(_one_line(source, statement) for statement in given), code, _one_line(source, ours)


def _one_line(source, node):
    """A piece of the source as a reader would type it: without the formatter's line breaks, or the package's name."""
    text = ast.get_source_segment(source, node)
    text = re.sub(r"(?<=[(\[{])\s*\n\s*|,?\s*\n\s*(?=[)\]}])", "", text)
    return re.sub(r"\s*\n\s*", " ", text).replace("attnpool.", "")
