"""What the examples say of themselves: seconds, and the memory that a part of a program adds."""

import contextlib
import threading
import time
from dataclasses import dataclass

import psutil


@dataclass
class Measured:
    """What a part of a program took.

    Attributes:
      seconds: of wall time.
      peak: bytes of resident memory beyond those at its beginning, pages of mapped files aside.
    """

    seconds: float = 0.0
    peak: int = 0


def resident(process=None):
    """Bytes of a process in memory that are no pages of a file."""
    memory = (process or psutil.Process()).memory_info()
    return memory.rss - getattr(memory, "shared", 0)


@contextlib.contextmanager
def measured(every=0.01):
    """Measures what is run inside; memory is looked at ``every`` so many seconds, in a thread."""
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
