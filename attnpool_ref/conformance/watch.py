"""Calls of foreign code: what it prints, what it warns of, and how long it takes is noted, not suffered.

Each row is judged in a thread of its own. Who started the thread looks at its :class:`Watch`, and stops waiting where
a call takes too long; the thread ends by itself at the candidate's next word.
"""

import contextlib
import sys
import threading
import time
import warnings

NOTES = 5
"""How many printed lines and how many warnings of a row are kept."""


class Abandoned(BaseException):
    """Nobody waits for this row any more."""


class Raised(Exception):
    """The candidate has raised what is no Exception, such as SystemExit."""


class Watch:
    """Who is being called since when, and what was seen on the way.

    Attributes:
      began: when the call began that runs now, or None.
      abandoned: set by who waits; the thread then ends.
      title: the case that is being judged.
      printed: what was printed, the first lines.
      warned: what was warned of, the first texts.
    """

    def __init__(self):
        self.began, self.abandoned, self.title = None, False, ""
        self.printed, self.warned = [], []

    def call(self, function, *args, **kwargs):
        """``function(*args, **kwargs)``, whatever it raises as an Exception.

        Raises:
          Raised: it raised what is none.
          Abandoned: nobody waits.
        """
        if self.abandoned:
            raise Abandoned
        before, _CURRENT.watch = getattr(_CURRENT, "watch", None), self
        self.began = time.monotonic()
        try:
            return function(*args, **kwargs)
        except (Exception, Abandoned):
            raise
        except BaseException as error:
            raise Raised(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        finally:
            self.began, _CURRENT.watch = None, before
            if self.abandoned:
                raise Abandoned

    def overran(self, limit):
        """Whether the call that runs now takes longer than ``limit`` seconds."""
        began = self.began
        return began is not None and time.monotonic() - began > limit

    def note(self, kept, text):
        """Keeps the first few different lines."""
        for line in text.splitlines():
            if line.strip() and line not in kept and len(kept) < NOTES:
                kept.append(line[:200])


_CURRENT = threading.local()


class _Stream:
    """A standard stream that gives what a candidate writes to its watch."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        watch = getattr(_CURRENT, "watch", None)
        if watch is None:
            return self._stream.write(text)
        watch.note(watch.printed, text)
        return len(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def noting():
    """While it lasts, what candidates print and warn of goes to their watches, and to nobody's screen."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Stream(out), _Stream(err)
    with warnings.catch_warnings():
        show = warnings.showwarning

        def showwarning(message, category, filename, lineno, file=None, line=None):
            watch = getattr(_CURRENT, "watch", None)
            if watch is None:
                show(message, category, filename, lineno, file, line)
            else:
                watch.note(watch.warned, f"{category.__name__}: {message}")

        warnings.showwarning = showwarning
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err
