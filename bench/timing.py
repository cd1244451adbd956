"""Fair timing: every way of a case is timed once in each round, in an order that is random in each round."""

import math
import random
import statistics
import time

import numpy as np

SHORTEST = 0.002
"""Least seconds of one measurement; shorter calls are repeated within it, as ratios of calls of 50 µs need."""

_SWEEP = np.ones(2**24, np.float32)


def seconds_of(call, number=1):
    """Returns the mean time of ``number`` calls, each until it is finished."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


class Race:
    """Calls that are timed against one another.

    Attributes:
      calls: functions without arguments, by name, which return when the work is done.
      numbers: for each the number of repetitions in one measurement.
      seconds: for each its times, one per round.
    """

    def __init__(self, calls, seed=0):
        self.calls = calls
        self.seconds = {name: [] for name in calls}
        self._random = random.Random(seed)
        first = {
            name: min(seconds_of(call), seconds_of(call)) for name, call in calls.items()
        }  # the first call warms up
        self.numbers = {name: min(1000, max(1, math.ceil(SHORTEST / max(s, 1e-9)))) for name, s in first.items()}
        self._one_round = sum(first[name] * self.numbers[name] for name in calls)

    def rounds_within(self, budget, fewest, most):
        """Returns the number of rounds that take about ``budget`` seconds."""
        return int(min(most, max(fewest, budget / self._one_round)))

    def shuffled(self):
        """Returns the order of one round, as arguments of :meth:`round`."""
        order = list(self.calls)
        self._random.shuffle(order)
        return (order,), {}

    def round(self, order):
        """Times each call once; caches are overwritten in between, so that no call finds another's data there."""
        for name in order:
            _SWEEP.sum()
            self.seconds[name].append(seconds_of(self.calls[name], self.numbers[name]))


def ratio(numerator, denominator):
    """Returns median, lowest and highest ratio of two lists of times by round."""
    each = [a / b for a, b in zip(numerator, denominator, strict=True)]
    return statistics.median(each), min(each), max(each)
