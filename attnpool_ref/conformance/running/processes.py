"""Child processes, which import an implementation and judge its functions, with a time limit for each call.

The parent process has a :class:`ProcessPool`; :func:`work` is the code of a child. It receives (name of a function,
:class:`Scope`, cases to leave out) for each function to judge, and sends tuples:

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
import time
import types
from concurrent import futures
from dataclasses import dataclass, field, replace
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.capture import Watch, noting, said
from attnpool_ref.conformance.running.rows import RowJudge, judge_each, unanswered

MAX_AGE = 300.0
"""Seconds after which a process is replaced: frameworks never free the memory of all compiled functions."""

TIME_LIMIT = 60.0
"""Default limit in seconds for one call of an implementation, including its compilation."""

IMPORT_LIMIT = 60.0
"""Seconds for the import of an implementation, unless the time limit of a call is longer."""

SILENCE_LIMIT = 600.0
"""Seconds between two calls, in which the judge computes, after which a process counts as stuck."""

GRACE = 2.0
"""Seconds that a process has to report after Ctrl-C, and to end after it has closed its connection."""

LOST = 2
"""Largest number of cases of a function that are left out because their process was killed."""

POLL = 0.5
"""Seconds between two checks that a process still runs: a process that it forked may keep its connection open."""

_STARTING = threading.Lock()


class ProcessPool:
    """An implementation in child processes; in the parent process it takes the place of a :class:`Candidate`.

    For each function, a thread of the parent waits for the messages of a process. If the process dies, or a call takes
    too long, the function fails, and another process judges the next one; if a signal has killed it, as one does where
    memory is short, it first judges the same function without that case, up to :data:`LOST` times.
    """

    def __init__(self, setup, name="", time_limit=TIME_LIMIT, jobs=1):
        """Prepares the pool; the first process starts when ``properties`` is read or a function is judged.

        ``setup`` is the :class:`~attnpool_ref.conformance.running.processes.Setup` of each process, and ``name`` that of
        the implementation in messages and reports. ``time_limit`` is that of a call in seconds, which also limits the
        import if it exceeds :data:`IMPORT_LIMIT`. ``jobs`` is the number of processes.
        """
        self.setup, self.name, self.jobs, self.time_limit = setup, name, jobs, time_limit
        self._properties: Properties | None = None
        self._children, self._idle, self._stopped = set(), [], False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Kills all processes; the threads that wait for their messages then end, too."""
        self._stopped = True
        self._idle.clear()
        for child in list(self._children):  # a copy, because threads remove processes
            child.kill()
        self._children.clear()

    @property
    def properties(self) -> Any:
        """The :class:`Properties` of the implementation; the first process starts and imports it.

        Raises:
          Exception: that of the import, or a ValueError if the import ends the process or takes too long.
        """
        if self._properties is None:
            self._idle.append(self._child())
        return self._properties

    def found(self, names):
        """Returns for each name of a function this pool if the implementation has the function, else None."""
        return {name: self if name in self.properties.has else None for name in names}

    def title(self):
        """Returns the name of the implementation."""
        return self.name

    def says(self):
        """Returns the calling convention of the implementation."""
        return self.properties.calls

    def judge(self, rows, scope, steps):
        """Judges functions in up to ``jobs`` processes; returns whether Ctrl-C has stopped the judging.

        ``rows`` has a ``RowJudge`` for each function, which gets the report; ``steps`` counts the progress.

        Raises:
          Exception: an error that is not the implementation's, such as the name of an argument that the function does
            not have.
        """
        if self.jobs > 1:  # functions with the most configurations first, so that none of these runs alone at the end
            rows = sorted(rows, key=lambda judged: -len(list(drawing.configurations(judged.row))))
        self._stopped = False
        with futures.ThreadPoolExecutor(self.jobs) as threads, contextlib.ExitStack() as unless_done:
            unless_done.callback(self.close)
            unless_done.callback(threads.shutdown, wait=False, cancel_futures=True)
            judging = [threads.submit(self._judge, judged, scope, steps) for judged in rows]
            try:
                for ended in futures.as_completed(judging):
                    ended.result()
                unless_done.pop_all()  # the processes stay for the next call
            except KeyboardInterrupt:
                self._stopped = True
                threads.shutdown(wait=False, cancel_futures=True)
                for child in list(self._children):
                    child.interrupt()
                futures.wait([each for each in judging if not each.cancelled()], GRACE)
        return self._stopped

    def _judge(self, judged, scope, steps):
        child, lost = self._child(), {}
        child.judge(judged, scope, steps, lost, self.time_limit)
        while child.killed and child.case[1] and child.case not in lost and len(lost) < LOST and not self._stopped:
            lost[child.case] = child.ended
            self._children.discard(child)
            child.kill()
            child = self._child()
            child.judge(judged, scope, steps, lost, self.time_limit)
        if not self._stopped:
            if child.ended:
                case, how = next(iter(lost.items()), (child.case, child.ended))
                unanswered(judged.report, *case, how=how)
            steps.finish(judged.row.name)
        if child.ended or self._stopped or time.monotonic() - child.began > MAX_AGE:
            self._children.discard(child)
            child.kill()
        else:
            self._idle.append(child)

    def _child(self):
        """Returns an idle process, or a new one after its import.

        Raises:
          Exception: that of the first import, or a ValueError if the import ends the process or takes too long.
        """
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        first = self._properties is None
        child = _Child(replace(self.setup, first=self.setup.first and first))
        self._children.add(child)
        if self._stopped:  # `close` may already have killed the other processes
            child.kill()
        match child.receive(max(IMPORT_LIMIT, self.time_limit)):
            case "ready", properties:
                self._properties = properties
            case "failed", error if first:
                raise error
            case "failed", _:
                child.ended = "another process cannot import the implementation; judge it with --jobs 1"
        if first and child.ended and not self._stopped:
            raise ValueError(f"{self.name} cannot be imported: {child.ended}")
        return child


class _Child:
    """A process that runs :func:`~attnpool_ref.conformance.running.processes.work`.

    Attributes:
      began: the time at which the process was started.
      case: the dtype and the title of the case of the last call.
      ended: the reason why no more messages come, or "".
      killed: whether a signal has ended the process.
    """

    def __init__(self, setup):
        spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads, as JAX has, may hang
        self._connection, theirs = spawn.Pipe()
        self._process: Any = spawn.Process(target=work, args=(theirs, setup), name="attnpool judges")
        self.began, self.ended, self.killed = time.monotonic(), "", False
        self.case: Any = ("", "")
        with _STARTING, _without_ctrl_c(), _without_main():
            self._process.start()
        theirs.close()

    def judge(self, judged, scope, steps, lost, time_limit):
        """Lets the process judge a function, given by its ``RowJudge``, which gets the report; or sets ``ended``.

        ``lost`` is that of the ``RowJudge`` in the process.

        Raises:
          Exception: an error that is not the implementation's.
        """
        with contextlib.suppress(OSError):  # `receive` notices a dead process
            self._connection.send((judged.row.name, scope, lost))
        self.case, limit = ("", ""), SILENCE_LIMIT
        while not self.ended:
            match self.receive(limit):
                case "call", *case:
                    self.case, limit = tuple(case), time_limit
                case ("returned",):
                    limit = SILENCE_LIMIT
                case "step", label:
                    steps.take(label)
                case "failed", error:
                    raise error
                case "row", report, device, versions:
                    judged.report, judged.done = report, True
                    if device is not None:  # a stand-in for the adapter of the process
                        judged.adapter = types.SimpleNamespace(device=lambda: device, versions=lambda: versions)
                    return

    def receive(self, seconds):
        """Returns the next message, or sets ``ended`` if none comes within ``seconds`` or the process has ended."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            alive = self._process.is_alive()  # before reading, because its last messages may not have been read yet
            try:
                if self._connection.poll(min(POLL, left)):
                    return self._connection.recv()
            except Exception:  # the process has closed its connection, or written invalid data to it
                self._process.join(GRACE)
                alive = False
            if not alive:
                self.ended = _end_of_process(self._process.exitcode)
                self.killed = (self._process.exitcode or 0) < 0
                return None
        self.ended = f"no answer within {seconds:g} s"
        return None

    def interrupt(self):
        """Requests the report of the function that the process judges."""
        with contextlib.suppress(OSError):
            os.kill(self._process.pid, signal.SIGINT)

    def kill(self):
        """Kills the process and, except on Windows, those that it has started; may be called from any thread."""
        self._process.kill()
        self._process.join()
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # no process of its session is left
                os.killpg(self._process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _without_ctrl_c():
    """Context that blocks SIGINT, which a terminal sends to all processes, in a process that is started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main():
    """Context without ``__main__``: a process that is started meanwhile would otherwise run the script again."""
    main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_of_process(code):
    """Describes the end of a process, from its exit status."""
    if code is None:
        return "the process closed its connection to the judge"
    return f"the process {f'ended with status {code}' if code >= 0 else f'was killed by signal {-code}'}"


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
            name, scope, lost = connection.recv()
            judged = RowJudge(table.get(name), found[name], scope, lambda label: send("step", label))
            judged.watch, judged.lost = _SendingWatch(judged, send), lost
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
    whole, names = pickle.loads(setup.source)()
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


@dataclass(frozen=True)
class Setup:
    """Data that a new child process gets before everything else.

    Attributes:
      source: a pickled function that imports the :class:`Candidate` and returns it with the names of the functions to
        judge (empty for all of them).
      environment: environment variables to set.
      first: whether no other process has imported the implementation; the import's output then goes to standard error.
    """

    source: bytes
    environment: dict[str, str] = field(default_factory=dict)
    first: bool = False
