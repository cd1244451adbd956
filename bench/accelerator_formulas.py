"""Times every dense and packed function beside its plain formula: several processes compile, then one after another times.

:mod:`bench.accelerator` calls it, and :mod:`bench.accelerator_pairs` is the process.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue

from bench.child import Child

AT_ONCE = 8
"""Pairs that a process compiles before all are timed: a run that ends early has timed the first ones."""

STEP = 120
"""Seconds for one answer."""

MOST = 12
"""Most processes that compile at once: each has its own memory on the device."""

LOST = "the process that had compiled it ended"


class Measurement:
    """A measurement within a time limit.

    Attributes:
      results: the results of each pair, by "name | layout | direction".
      bandwidth: bytes per second of a copy; None before it is measured.
    """

    def __init__(self, environment, end, tiny=False, only="", processes=None):
        command = [sys.executable, "-m", "bench.accelerator_pairs", *(["--tiny"] if tiny else [])]
        count = processes or max(1, min(MOST, (os.cpu_count() or 1) * 3 // 4))
        self.children = {Child(command, STEP, environment): [] for _ in range(count)}  # with the pairs of each
        self.end, self.only, self.results, self.bandwidth = end, only, {}, None

    def steps(self):
        """Compiles some pairs in all processes, then times them in one after another, until no pair is left."""
        try:
            first, waiting = next(iter(self.children)), SimpleQueue()
            listed = first.ask({"ask": "pairs"}, self.end)
            self.bandwidth = first.ask({"ask": "copy"}, self.end).get("bandwidth")
            if "error" in listed or self.bandwidth is None:
                raise RuntimeError(f"no pairs could be listed, or no array copied: {listed.get('error')}")
            for key in listed["pairs"]:
                if self.only in name_of(key):
                    waiting.put(key)
            count = waiting.qsize()
            while not waiting.empty() and time.monotonic() < self.end:
                with ThreadPoolExecutor(len(self.children)) as pool:
                    for done in [pool.submit(self._compile, child, waiting) for child in self.children]:
                        done.result()
                for child, keys in self.children.items():
                    self._time(child, keys)
                yield f"timed {sum('seconds' in result for result in self.results.values())} of {count} pairs"
        finally:
            for child in self.children:
                child.stop()

    def _compile(self, child, waiting):
        for _ in range(AT_ONCE):
            try:
                key = waiting.get_nowait()
            except Empty:
                return
            answer = self.results[name_of(key)] = child.ask({"ask": "compile", "key": key}, self.end)
            if child.process is None:
                self.results |= {name_of(lost): {"error": LOST} for lost in self.children[child]}
                self.children[child].clear()
            elif "error" not in answer:
                self.children[child].append(key)

    def _time(self, child, keys):
        for key in keys:
            if time.monotonic() < self.end and child.process is not None:
                self.results[name_of(key)] |= child.ask({"ask": "time", "key": key}, self.end)
        keys.clear()


def name_of(key):
    """Returns the name of a pair in the results."""
    return " | ".join(key)
