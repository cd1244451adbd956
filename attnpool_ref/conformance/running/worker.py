"""The child process that imports an implementation and judges rows of it for the process that asks.

It hears (name, order) for each row that it is to judge, and None when it is time to stop. It says, each with its data:

* "ready": the rows that were named, those that the implementation has, how it is called, and whether JAX computes on
  an accelerator;
* "call", a row, the dtype and the title of the case: the implementation is called next, whatever comes of it;
* "step", a row and a label: a dtype of the row is done;
* "row", its name, its report, its device, and versions: the row is done, or was stopped;
* "alive", each second;
* "failed" and an exception: an error that is not the implementation's, or that of its import.
"""

import contextlib
import enum
import importlib
import io
import os
import pickle
import signal
import sys
import threading
import time
import types
from dataclasses import dataclass, field
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance.candidates import Candidate, naming
from attnpool_ref.conformance.candidates.capture import Watch, noting, said
from attnpool_ref.conformance.running.rows import RowJudge, Scope
from attnpool_ref.conformance.running.threads import Threads

BEAT = 1.0
"""Seconds between two signs of life."""


@dataclass(frozen=True)
class Sent:
    """Data for a new child process: the implementation, and the configuration of the asking process.

    Attributes:
      source: a pickled :class:`Candidate`, or a pickled function that imports one and returns it with the names of its
        rows (none: all of them).
      settings: JAX's configuration, which is set before the import.
      folders: :data:`~attnpool_ref.conformance.candidates.naming.FOLDERS`.
      environment: variables of the environment.
      first: whether no other process has imported it; output of the import then goes to standard error.
    """

    source: bytes
    settings: dict[str, Any] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    first: bool = False


@dataclass(frozen=True)
class Order:
    """The scope, the time limit of a call, and the seed of a row that is to be judged."""

    scope: Scope
    limit: float
    seed: str


def packed(candidate):
    """Returns the :class:`Sent` of a Candidate, or None where it cannot be sent to another process."""
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump(candidate)
    except Exception:  # the implementation's own: it may refuse in any way
        return None
    return Sent(stream.getvalue(), _settings(), dict(naming.FOLDERS))


class _Pickler(pickle.Pickler):
    """Pickles modules by their names, and nothing that ``__main__`` holds: the other process has another one."""

    def reducer_override(self, obj):
        if isinstance(obj, types.ModuleType) and obj.__name__ != "__main__":
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, types.ModuleType) or getattr(obj, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{obj!r} is of __main__")
        return NotImplemented


def _settings():
    """JAX's configuration, as far as it is plain values; nothing where it is not imported."""
    if "jax" not in sys.modules:
        return {}
    values = {k: v.value if isinstance(v, enum.Enum) else v for k, v in sys.modules["jax"].config.values.items()}
    return {k: v for k, v in values.items() if isinstance(v, naming.PLAIN)}


def _configure(settings):
    """Gives JAX the configuration that it has in the process that asks."""
    if settings:
        import jax

        for key, value in _settings().items():
            if settings.get(key, value) != value:
                jax.config.update(key, settings[key])


def work(connection, sent):
    """Judges the rows whose names come over the connection; never returns."""
    _leave_the_terminal()
    try:
        _Worker(connection).judge_all(sent)
    except (EOFError, BrokenPipeError):  # nobody asks any more, nor ends what the implementation has started
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
    except OSError:
        pass  # the implementation has closed the connection
    finally:
        os._exit(0)  # a call may run on for which nobody waits


def _leave_the_terminal():
    """Makes this process the first of a session, which hears no Ctrl-C, reads nothing and writes only to standard error.

    The asking process hears Ctrl-C, and says when to stop; it also ends all processes of the session.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with contextlib.suppress(OSError):  # standard output belongs to the report
        os.dup2(2, 1)


class _Worker:
    """Says over a connection what happens in the rows of an implementation."""

    def __init__(self, connection):
        self.connection, self.lock = connection, threading.Lock()
        self.threads: Any = None
        self.order: Any = None
        self.found: Any = None
        self.beat = 0.0

    def say(self, *message):
        """Sends a message, from any thread."""
        with self.lock:
            self.connection.send(message)

    def judge_all(self, sent):
        """Judges rows until there is no other one."""
        try:
            with _output_of_import(sent.first):
                ready = self._import(sent)
        except Exception as error:  # the implementation's own, or a name that nobody knows
            why = f"another process cannot import the candidate ({said(error)}); judge it with jobs=1"
            self.say("failed", _sendable(error) if sent.first else RuntimeError(why))
            return
        self.say("ready", *ready)
        with noting():
            while (asked := self.connection.recv()) is not None:
                if self._judge(*asked):
                    return

    def _import(self, sent):
        os.environ.update(sent.environment)
        naming.FOLDERS.update(sent.folders)
        _configure(sent.settings)
        source = pickle.loads(sent.source)
        whole, names = (source, ()) if isinstance(source, Candidate) else source()
        self.found = whole.found(names or tuple(table.BY_NAME))
        has = tuple(name for name, found in self.found.items() if found is not None)
        return names, has, whole.says(), len(has) > 1 and _on_accelerator()

    def _judge(self, name, order):
        """Judges a row, and those that are asked for meanwhile; returns whether it was stopped."""
        if order != self.order:
            self.order = order
            self.threads = Threads(order.limit, order.seed, look=self._look, done=self._done)
        self._add(name)
        try:
            return self.threads.run()
        except Exception as error:  # the kit's own, or an argument that no row has
            self.say("failed", _sendable(error))
            return True

    def _add(self, name):
        judged = RowJudge(
            table.get(name), self.found[name], self.order.scope, lambda label: self.say("step", name, label)
        )
        judged.watch = _Telling(
            lambda: getattr(judged.subject, "dtype", ""), lambda *call: self.say("call", name, *call)
        )
        self.threads.waiting.append(judged)

    def _done(self, judged):
        computed = (None, {}) if judged.adapter is None else (judged.adapter.device(), judged.adapter.versions())
        self.say("row", judged.row.name, judged.report, *computed)

    def _look(self):
        while self.connection.poll():  # it raises an EOFError where nobody is there any more
            asked = self.connection.recv()
            if asked is None:
                raise KeyboardInterrupt
            self._add(asked[0])
        if time.monotonic() - self.beat > BEAT:
            self.beat = time.monotonic()
            self.say("alive")


@contextlib.contextmanager
def _output_of_import(shown):
    out = sys.stderr if shown else io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield


def _on_accelerator():
    """Returns whether JAX is imported and computes on an accelerator, which has one owner."""
    jax = sys.modules.get("jax")
    with contextlib.suppress(RuntimeError):  # there is none that works, as each call will say
        return jax is not None and jax.default_backend() != "cpu"
    return False


class _Telling(Watch):
    """Tells the dtype and the title of each case before the implementation is first called with it."""

    def __init__(self, dtype, tell):
        super().__init__()
        self._dtype, self._tell, self._told = dtype, tell, None

    def call(self, function, *args, **kwargs):
        known = self._dtype(), self.title
        if known != self._told:
            self._told = known
            self._tell(*known)
        return super().call(function, *args, **kwargs)


def _sendable(error):
    """Returns the exception, or one that says the same where the other process would have to import its class."""
    package = type(error).__module__.partition(".")[0]
    return error if package in ("builtins", "attnpool_ref") else RuntimeError(said(error))
