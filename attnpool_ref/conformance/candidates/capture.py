"""Capture of an implementation's output, warnings and errors."""

import bdb
import contextlib
import contextvars
import sys
import threading
import warnings

NOTES = 5
"""Largest number of printed lines, and of warnings, that are stored for a function."""


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
    """Calls of an implementation, and its captured output and warnings.

    Attributes:
      stops: the exceptions of a call that end the judging: Ctrl-C, and a debugger's ``quit``.
      title: the title of the current case.
      printed: the first lines that were printed.
      warned: the texts of the first warnings.
    """

    stops: tuple[type[BaseException], ...] = (KeyboardInterrupt, bdb.BdbQuit)

    def __init__(self):
        self.title, self.printed, self.warned = "", [], []

    def call(self, function, *args, **kwargs):
        """Returns ``function(*args, **kwargs)``; an ``Exception`` with a readable text propagates unchanged.

        Raises:
          Raised: the function raised anything else.
          KeyboardInterrupt: the function raised an exception of ``stops``.
        """
        before, _CURRENT.watch = getattr(_CURRENT, "watch", None), self
        try:
            return function(*args, **kwargs)
        except self.stops:
            raise KeyboardInterrupt from None
        except BaseException as error:
            if isinstance(error, Exception) and _text(error) is not None:
                raise
            raise Raised(said(error)) from None
        finally:
            _CURRENT.watch = before

    def note(self, kept, text):
        """Adds the lines of ``text`` to ``kept``, each line once, and at most :data:`NOTES` in all."""
        for line in text.splitlines():
            if line.strip() and line not in kept and len(kept) < NOTES:
                kept.append(line[:200])


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


_ON_SCREEN: contextvars.ContextVar[bool] = contextvars.ContextVar("_ON_SCREEN", default=False)


@contextlib.contextmanager
def on_screen():
    """Context in which :func:`noting` has no effect: output and warnings stay on the screen, for debuggers."""
    token = _ON_SCREEN.set(True)
    try:
        yield
    finally:
        _ON_SCREEN.reset(token)


@contextlib.contextmanager
def noting():
    """Context in which output and warnings of implementations go to their watches instead of the screen."""
    if _ON_SCREEN.get():
        yield
        return
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
