"""Measurement of the examples: seconds, and the memory that a part of a program adds."""

import contextlib
import threading
import time
from dataclasses import dataclass

import psutil


@dataclass
class Measured:
    """Time and memory of a part of a program.

    Attributes:
      seconds: seconds of wall time.
      peak: bytes of memory beyond those at the beginning, as :func:`resident` counts them.
    """

    seconds: float = 0.0
    peak: int = 0


def resident(process=None):
    """Returns the resident bytes of a process; on Linux without pages of mapped files."""
    memory = (process or psutil.Process()).memory_info()
    return memory.rss - getattr(memory, "shared", 0)


@contextlib.contextmanager
def measured(every=0.01):
    """Measures the code inside of the ``with`` block; a thread reads the memory every ``every`` seconds."""
    found, ended, process = Measured(), threading.Event(), psutil.Process()
    began, first = time.perf_counter(), resident(process)

    def look():
        while not ended.wait(every):
            found.peak = max(found.peak, resident(process) - first)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        found.seconds = time.perf_counter() - began
        found.peak = max(found.peak, resident(process) - first)
        ended.set()
        watcher.join()
