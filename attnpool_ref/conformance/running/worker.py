"""Code of a child process, which imports an implementation and judges functions of it for the parent process.

The child receives (names of functions, :class:`Scope`) for functions to judge, and None when it must stop. It sends
tuples:

* "ready" and :class:`~attnpool_ref.conformance.running.child.Properties`, once, after the import;
* "call", a function, the dtype and the title of a case: the implementation is called next;
* "step" and a label: a dtype of a function is done;
* "row", a function, its report, the device, and versions: the function is judged, or its judging was stopped;
* "over": all received functions are judged, or only those that have begun, if a call may still run;
* "alive", each second;
* "failed" and an exception: an error that is not the implementation's, or that of its import.
"""

import contextlib
import io
import os
import pickle
import signal
import sys
import threading
import time
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance.candidates import Candidate, naming
from attnpool_ref.conformance.candidates.capture import Watch, noting, said
from attnpool_ref.conformance.running.rows import RowJudge
from attnpool_ref.conformance.running.setup import configure_jax
from attnpool_ref.conformance.running.threads import Threads

HEARTBEAT = 1.0
"""Seconds between two messages that say "alive"."""


def work(connection, setup):
    """Judges the functions whose names come over the connection, with a :class:`Setup`; never returns."""
    _leave_the_terminal()
    try:
        _Worker(connection).judge_all(setup)
    except (EOFError, BrokenPipeError):  # the parent process is gone, and cannot kill the processes started here
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
    except OSError:
        pass  # the implementation has closed the connection
    finally:
        os._exit(0)  # without waiting for a call that still runs


def _leave_the_terminal():
    """Puts this process into its own session: without Ctrl-C and input, and with output to standard error only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with contextlib.suppress(OSError):  # standard output belongs to the report
        os.dup2(2, 1)


class _Worker:
    """Main object of the child process: receives functions over a connection, judges them, and sends messages."""

    def __init__(self, connection):
        self.connection, self.lock, self.alive_at = connection, threading.Lock(), 0.0
        self.judges: Any = None

    def send(self, *message):
        """Sends a message; may be called from any thread."""
        with self.lock:
            self.connection.send(message)

    def judge_all(self, setup):
        """Imports the implementation and judges functions until the parent process stops it."""
        try:
            with _output_of_import(setup.first):
                found, *properties = _import(setup)
        except Exception as error:  # the implementation's own, or an unknown name
            why = f"another process cannot import the candidate ({said(error)}); judge it with jobs=1"
            self.send("failed", _sendable(error) if setup.first else RuntimeError(why))
            return
        self.send("ready", *properties)
        scope: Any = None
        with noting():
            while (received := self.connection.recv()) is not None:
                names, asked = received
                if asked != scope:
                    scope = asked
                    self.judges = Threads(scope.time_limit, scope.seed, look=self._look, done=self._done)
                self.judges.waiting += [self._row(name, found[name], scope) for name in names]
                try:
                    stopped = self.judges.run()
                except Exception as error:  # an error of the judge or in the scope
                    self.send("failed", _sendable(error))
                    return
                self.send("over")
                if stopped:
                    return

    def _row(self, name, candidate, scope):
        judged = RowJudge(table.get(name), candidate, scope, lambda label: self.send("step", label))
        judged.watch = _SendingWatch(judged, lambda *call: self.send("call", name, *call))
        return judged

    def _done(self, judged):
        computed = (None, {}) if judged.adapter is None else (judged.adapter.device(), judged.adapter.versions())
        self.send("row", judged.row.name, judged.report, *computed)
        if judged.report.ended:  # its call may still run, so another process judges the other functions
            self.judges.waiting.clear()

    def _look(self):
        if self.connection.poll():
            self.connection.recv()  # None; or an EOFError where the parent process is gone
            raise KeyboardInterrupt
        if time.monotonic() - self.alive_at > HEARTBEAT:
            self.alive_at = time.monotonic()
            self.send("alive")


def _import(setup):
    """Imports an implementation; returns the Candidate of each function, followed by the fields of its Properties."""
    os.environ.update(setup.environment)
    naming.FOLDERS.update(setup.folders)
    configure_jax(setup.settings)
    source = pickle.loads(setup.source)
    whole, names = (source, ()) if isinstance(source, Candidate) else source()
    found = whole.found(names or tuple(table.BY_NAME))
    has = tuple(name for name, row in found.items() if row is not None)
    return found, names, has, whole.says(), len(has) > 1 and _on_accelerator()


@contextlib.contextmanager
def _output_of_import(shown):
    """Context in which the output of an import goes to standard error if ``shown``, else nowhere."""
    out = sys.stderr if shown else io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield


def _on_accelerator():
    """Returns whether JAX is imported and computes on an accelerator, which only one process can use."""
    jax = sys.modules.get("jax")
    with contextlib.suppress(RuntimeError):  # JAX finds no working device; each call will raise the error
        return jax is not None and jax.default_backend() != "cpu"
    return False


class _SendingWatch(Watch):
    """Watch that sends the dtype and the title of each case before the implementation is first called with it."""

    def __init__(self, judged, send):
        super().__init__()
        self._judged, self._send, self._last = judged, send, None

    def call(self, function, *args, **kwargs):
        case = getattr(self._judged.subject, "dtype", ""), self.title
        if case != self._last:
            self._last = case
            self._send(*case)
        return super().call(function, *args, **kwargs)


def _sendable(error):
    """Returns the exception, or a RuntimeError with its text if the parent process would have to import its class."""
    package = type(error).__module__.partition(".")[0]
    return error if package in ("builtins", "attnpool_ref") else RuntimeError(said(error))
