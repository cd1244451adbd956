"""A process that judges rows for another one, which says which rows, and hears of each call before it is made.

It hears a row's name, and None when it is time to stop. It says, each with what belongs to it:

* "ready": the candidate is there;
* "call", the dtype and the title of the case: the candidate is called now, whatever comes of it;
* "step" and a label: a dtype of the row is done;
* "row", its report, what computed it, and versions: the row is done, or was stopped;
* "failed" and an exception: what is no fault of the candidate's.
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
import types
from dataclasses import dataclass
from typing import Any

from attnpool_ref import variants
from attnpool_ref.conformance import naming
from attnpool_ref.conformance.candidates import Candidate
from attnpool_ref.conformance.rows import RowJudge, Scope
from attnpool_ref.conformance.threads import TOGETHER, Threads
from attnpool_ref.conformance.watch import Watch, noting


@dataclass(frozen=True)
class Sent:
    """What a process is told once: what to judge, and how this one is configured.

    Attributes:
      order: the candidate, the :class:`~attnpool_ref.conformance.rows.Scope`, the time limit and the seed, pickled.
      settings: JAX's configuration.
      folders: :data:`~attnpool_ref.conformance.naming.FOLDERS`.
    """

    order: bytes
    settings: dict[str, Any]
    folders: dict[str, str]


def packed(candidate, scope, limit, seed):
    """The :class:`Sent`, or None where the candidate cannot be sent to another process."""
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump((candidate, scope, limit, seed))
    except Exception:  # the candidate's own: it may refuse in any way
        return None
    return Sent(stream.getvalue(), _settings(), dict(naming.FOLDERS))


class _Pickler(pickle.Pickler):
    """Modules go by their names; what ``__main__`` holds does not go, as the other process has another one."""

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
    """Judges the rows whose names come over the connection, one at a time; never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks hears Ctrl-C, and says when to stop
    try:
        _Worker(connection).judge_all(sent)
    except (EOFError, OSError):
        pass  # nobody asks any more
    finally:
        os._exit(0)  # a call may run on for which nobody waits


class _Worker:
    """Says over a connection what happens in a candidate's rows."""

    def __init__(self, connection):
        self.connection, self.lock = connection, threading.Lock()

    def say(self, *message):
        """Sends a message, from whichever thread."""
        with self.lock:
            self.connection.send(message)

    def judge_all(self, sent):
        """Judges rows until there is no other one."""
        naming.FOLDERS.update(sent.folders)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                _configure(sent.settings)
                order: tuple[Candidate, Scope, float, str] = pickle.loads(sent.order)
        except Exception as error:  # the candidate's own, at its import
            why = f"{type(error).__name__}: {error}"
            self.say("failed", RuntimeError(f"another process cannot make the candidate ({why}); judge it with jobs=1"))
            return
        self.say("ready")
        done = 0
        with noting():
            while (name := self.connection.recv()) is not None:
                adapter = self._judge(name, *order)
                done += 1
                if adapter is not None and done % TOGETHER == 0:
                    adapter.forget()

    def _judge(self, name, candidate, scope, limit, seed):
        """Judges one row, and says what came of it; returns the adapter of its arrays."""
        row = variants.get(name)
        judged = RowJudge(row, candidate.for_row(row), scope, lambda label: self.say("step", label))
        judged.watch = _Telling(lambda: getattr(judged.subject, "dtype", ""), lambda *call: self.say("call", *call))
        try:
            Threads([judged], limit, seed, self._look).run()
        except Exception as error:  # the kit's own, or an argument that no row has
            self.say("failed", _sendable(error))
            return None
        adapter = judged.adapter
        computed = (None, {}) if adapter is None else (adapter.device(), adapter.versions())
        self.say("row", judged.report, *computed)
        return adapter

    def _look(self):
        if self.connection.poll():  # None, or nobody is there any more
            raise KeyboardInterrupt


class _Telling(Watch):
    """Tells the dtype and the title of each case before the candidate is first called with it."""

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
    """The exception, or one that says the same where it cannot be sent."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:  # of a class of the candidate's, whatever that does
        return RuntimeError(f"{type(error).__name__}: {error}")
