"""Worker processes that answer questions within a time limit, and are started again after a time-out or crash."""

import math
import multiprocessing
import os
import threading
import time

START = 120.0
"""Additional seconds for the first answer: the process imports JAX and finds or describes a device."""


_STARTING = threading.Lock()


class Worker:
    """A process that answers one question after another; it starts with the first question.

    Attributes:
      answer: a function of a module, called in the process with each question.
      limit: seconds for an answer.
      environment: environment variables of the process, in addition to those of this one.
    """

    def __init__(self, answer, limit, environment=None):
        self.answer, self.limit, self.environment, self.process = answer, limit, environment or {}, None

    def ask(self, *question, end=math.inf):
        """Returns the answer, or {"error": ...} if it raised, died or took too long (``end`` is the latest time)."""
        start = START if self.process is None else 0
        if self.process is None:
            context = multiprocessing.get_context("spawn")  # a fork would have this process's JAX
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(self.answer, theirs), daemon=True)
            with _STARTING:
                before = dict(os.environ)
                os.environ.update(self.environment)
                self.process.start()
                os.environ.clear()
                os.environ.update(before)
            theirs.close()
        seconds = max(0, min(end - time.monotonic(), self.limit + start))
        try:
            self.pipe.send(question)
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            self.stop()
            return {"error": f"not in {seconds:.3g} s"}
        except (EOFError, BrokenPipeError, ConnectionResetError):
            status = self.stop()
            return {"error": f"the process ended with {status}"}

    def stop(self):
        """Ends the process and returns its exit status."""
        if self.process is None:
            return None
        self.process.join(1)
        self.process.kill()
        self.process.join()
        status, self.process = self.process.exitcode, None
        self.pipe.close()
        return status


def _serve(answer, pipe):
    """Answers questions until the other end is closed."""
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        try:
            found = answer(*question)
        except Exception as error:  # an error is an answer, too
            first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
            found = {"error": f"{type(error).__name__}: {first[:200]}"}
        pipe.send(found)
