"""Capture of an implementation's output and warnings, and of the duration of each call.

Each function is judged in its own thread, except with ``jobs=0``. The thread that waits for the result reads the
:class:`Watch` of the judging thread, and stops waiting if a call takes too long. The judging thread then ends when this
call returns.
"""

import bdb
import contextlib
import sys
import threading
import time
import warnings

NOTES = 5
"""Largest number of printed lines, and of warnings, that are stored for a function."""


class Abandoned(BaseException):
    """Exception that ends a judging thread for whose result no thread waits."""


class Raised(Exception):
    """Replacement for an error that is not an ``Exception``, such as SystemExit, or whose text cannot be read."""


def said(error):
    """Returns the type and the text of an exception; if reading the text raises, the type and a note that it does.

    >>> said(KeyError("x"))
    "KeyError: 'x'"
    """
    text, kind = _text(error), type(error).__name__
    if text is None:
        return f"{kind}, whose text cannot be read: its __str__ raises"
    return text if isinstance(error, Raised) else f"{kind}: {text}".rstrip(": ")


def _text(error):
    """Returns the text of an exception, or None if reading it raises."""
    try:
        return str(error)
    except BaseException:  # the implementation's own __str__ may raise anything
        return None


class Watch:
    """Start time of the current call of an implementation, and its captured output and warnings.

    Attributes:
      began: the time at which the current call began, or None.
      abandoned: whether the waiting thread has given up; the judging thread then ends.
      title: the title of the current case.
      printed: the first lines that were printed.
      warned: the texts of the first warnings.
    """

    def __init__(self):
        self.began, self.abandoned, self.title = None, False, ""
        self.printed, self.warned = [], []

    def call(self, function, *args, **kwargs):
        """Returns ``function(*args, **kwargs)``; an ``Exception`` with a readable text propagates unchanged.

        Raises:
          Raised: the function raised anything else.
          Abandoned: no thread waits for the result.
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
        """Raises the error of a call: unchanged, or as :class:`Raised` if it is no Exception with a readable text."""
        if isinstance(error, Exception) and _text(error) is not None:  # read here, where the time limit covers it
            raise error
        raise Raised(said(error)) from None

    def overran(self, limit):
        """Returns whether the current call has taken longer than ``limit`` seconds."""
        began = self.began
        return began is not None and time.monotonic() - began > limit

    def note(self, kept, text):
        """Adds the lines of ``text`` to ``kept``, each line once, and at most :data:`NOTES` in all."""
        for line in text.splitlines():
            if line.strip() and line not in kept and len(kept) < NOTES:
                kept.append(line[:200])


class Debugged(Watch):
    """Watch for judging without extra threads: Ctrl-C and a debugger's ``quit`` end the judging."""

    def pass_on(self, error):
        """Raises the error of a call; a KeyboardInterrupt after Ctrl-C or a debugger's ``quit``."""
        if isinstance(error, (KeyboardInterrupt, bdb.BdbQuit)):
            raise KeyboardInterrupt from None
        super().pass_on(error)


_CURRENT = threading.local()


class _Stream:
    """Standard stream that passes an implementation's output to its watch."""

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
    """Context in which output and warnings of implementations go to their watches instead of the screen."""
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
