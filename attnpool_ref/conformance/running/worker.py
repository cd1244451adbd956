"""Code of a child process, which imports an implementation and judges functions of it for the parent process.

The child receives (name of a function, :class:`Scope`) for each function to judge. It sends tuples:

* "ready" and :class:`Properties`, once, after the import;
* "call", the dtype and the title of a case: the implementation is called next; "returned": the call is over;
* "step" and a label: a dtype of the function is done;
* "row", the report of the function, the device, and versions: the function is judged, or its judging was stopped;
* "failed" and an exception: an error that is not the implementation's, or that of its import.
"""

import contextlib
import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance.candidates import Candidate, naming
from attnpool_ref.conformance.candidates.capture import Watch, noting, said
from attnpool_ref.conformance.running.rows import RowJudge, judge_each
from attnpool_ref.conformance.running.setup import configure_jax


@dataclass(frozen=True)
class Properties:
    """Properties of an implementation that its process reports after the import.

    Attributes:
      rows: names of the functions to judge; empty for all of them.
      has: names of the functions that the implementation has.
      calls: the calling convention, from ``Candidate.says``.
      on_accelerator: whether JAX computes on an accelerator, which only one process can use. False if the implementation
        has one function, which one process judges anyway: the accelerator is then not started here.
    """

    rows: tuple[str, ...]
    has: tuple[str, ...]
    calls: dict[str, Any]
    on_accelerator: bool


class _Stopped(KeyboardInterrupt):
    """Ctrl-C in the parent process, as opposed to a KeyboardInterrupt that the implementation raises."""


def work(connection, setup):
    """Judges the functions whose names come over the connection, with a :class:`Setup`; never returns."""
    with contextlib.suppress(KeyboardInterrupt):
        _leave_the_terminal()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        _judge_all(connection, setup)
    _end()


def _end():
    """Ends this process and, except on Windows, those that it has started, without waiting for any thread."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def _end_with_parent():
    """Ends this process, even during a call, when the parent process has ended and cannot kill it."""
    parent: Any = multiprocessing.parent_process()
    parent.join()
    _end()


def _leave_the_terminal():
    """Puts this process into its own session: without Ctrl-C and input, and with output to standard error only."""
    if hasattr(os, "setsid"):
        os.setsid()
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with contextlib.suppress(OSError):  # standard output belongs to the report
        os.dup2(2, 1)
    signal.signal(signal.SIGINT, _stop)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which the parent has blocked


def _stop(*_):
    raise _Stopped


def _judge_all(connection, setup):
    """Imports the implementation and judges functions until the parent process kills this one."""

    def send(*message):
        try:
            connection.send(message)
        except OSError:  # the implementation has closed the connection
            raise _Stopped from None

    def rows():
        while True:
            name, scope = connection.recv()
            judged = RowJudge(table.get(name), found[name], scope, lambda label: send("step", label))
            judged.watch = _SendingWatch(judged, send)
            yield judged

    def done(judged):
        computed = (None, {}) if judged.adapter is None else (judged.adapter.device(), judged.adapter.versions())
        send("row", judged.report, *computed)

    try:
        with _output_of_import(setup.first):
            found, properties = _import(setup)
        send("ready", properties)
        with noting():
            judge_each(rows(), done)
    except Exception as error:  # that of the import, or an error of the judge or in the scope
        send("failed", _sendable(error))


def _import(setup):
    """Imports an implementation; returns the Candidate of each function, and the :class:`Properties`."""
    os.environ.update(setup.environment)
    naming.FOLDERS.update(setup.folders)
    configure_jax(setup.settings)
    source = pickle.loads(setup.source)
    whole, names = (source, ()) if isinstance(source, Candidate) else source()
    found = whole.found(names or tuple(table.BY_NAME))
    has = tuple(name for name, row in found.items() if row is not None)
    return found, Properties(names, has, whole.says(), len(has) > 1 and _on_accelerator())


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
    """Watch that sends a message before and after each call of the implementation."""

    stops = (_Stopped,)

    def __init__(self, judged, send):
        super().__init__()
        self._judged, self._send, self._calls = judged, send, False

    def call(self, function, *args, **kwargs):
        if self._calls:  # the implementation is called within another call
            return super().call(function, *args, **kwargs)
        self._calls = True
        self._send("call", getattr(self._judged.subject, "dtype", ""), self.title)
        try:
            result, jax = super().call(function, *args, **kwargs), sys.modules.get("jax")
            return result if jax is None else jax.block_until_ready(result)  # which JAX may compute after the call
        finally:
            self._calls = False
            self._send("returned")


def _sendable(error):
    """Returns the exception, or a RuntimeError with its text if the parent process would have to import its class."""
    package = type(error).__module__.partition(".")[0]
    return error if package in ("builtins", "attnpool_ref") else RuntimeError(said(error))
