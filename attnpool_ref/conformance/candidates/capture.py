"""Calls of an implementation under test, with its output, its warnings and the duration of each call.

Each row is judged in a thread of its own. Who started the thread looks at its :class:`Watch`, and stops waiting where
a call takes too long; the thread ends at the implementation's next call.
"""

import bdb
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
    """The candidate has raised what is no Exception, such as SystemExit, or one whose text cannot be read."""


def said(error):
    """The type and the text of an exception; the type alone where reading the text raises.

    >>> said(KeyError("x"))
    "KeyError: 'x'"
    """
    text, kind = _text(error), type(error).__name__
    if text is None:
        return f"{kind}, whose text cannot be read: its __str__ raises"
    return text if isinstance(error, Raised) else f"{kind}: {text}".rstrip(": ")


def _text(error):
    """The text of an exception, or None where reading it raises."""
    try:
        return str(error)
    except BaseException:  # the implementation's own code: it may do anything
        return None


class Watch:
    """Start time of the current call of an implementation, and its captured output and warnings.

    Attributes:
      began: the time at which the current call began, or None.
      abandoned: set by the waiting thread when it gives up; the watched thread then ends.
      title: the title of the current case.
      printed: the first lines that were printed.
      warned: the texts of the first warnings.
    """

    def __init__(self):
        self.began, self.abandoned, self.title = None, False, ""
        self.printed, self.warned = [], []

    def call(self, function, *args, **kwargs):
        """Returns ``function(*args, **kwargs)``; passes on any Exception whose text can be read.

        Raises:
          Raised: it raised something else.
          Abandoned: nobody waits.
        """
        if self.abandoned:
            raise Abandoned
        before, _CURRENT.watch = getattr(_CURRENT, "watch", None), self
        self.began = time.monotonic()
        try:
            return function(*args, **kwargs)
        except Abandoned:
            raise
        except BaseException as error:
            self.pass_on(error)
        finally:
            self.began, _CURRENT.watch = None, before
            if self.abandoned:
                raise Abandoned

    def pass_on(self, error):
        """Raises what a call has raised, as an Exception with a text."""
        if isinstance(error, Exception) and _text(error) is not None:  # read here, where the time limit covers it
            raise error
        raise Raised(said(error)) from None

    def overran(self, limit):
        """Returns whether the current call has taken longer than ``limit`` seconds."""
        began = self.began
        return began is not None and time.monotonic() - began > limit

    def note(self, kept, text):
        """Keeps the first few different lines."""
        for line in text.splitlines():
            if line.strip() and line not in kept and len(kept) < NOTES:
                kept.append(line[:200])


class Debugged(Watch):
    """A watch of calls in the main thread, which Ctrl-C and the ``quit`` of a debugger end."""

    def pass_on(self, error):
        """Raises what a call has raised; what ends a debugging session as a KeyboardInterrupt."""
        if isinstance(error, (KeyboardInterrupt, bdb.BdbQuit)):
            raise KeyboardInterrupt from None
        super().pass_on(error)


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
