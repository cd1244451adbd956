"""Fair times: every way of doing one thing takes its turn in each round, in an order drawn anew for each round."""

import math
import random
import statistics
import time

import numpy as np

SHORTEST, SHORTEST_EAGER = 0.002, 0.02
"""Seconds that one measurement lasts at least; a shorter call is repeated within it. A ratio of calls of 50 µs needs more."""

_SWEEP = np.ones(2**24, np.float32)


def seconds_of(call, number=1):
    """Mean time of ``number`` calls, each to its end."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def _first_guess(call):
    """About how long a call takes; the first one of a short call warms up."""
    seconds = seconds_of(call)
    return seconds if seconds > 100 * SHORTEST else seconds_of(call)


class Race:
    """Calls that are timed against one another.

    Attributes:
      calls: by name, functions without arguments that return when the work is done.
      numbers: how often each is repeated in one measurement.
      seconds: the times of each, one a round.
    """

    def __init__(self, calls, seed=0, shortest=SHORTEST):
        self.calls = calls
        self.seconds = {name: [] for name in calls}
        self._random = random.Random(seed)
        first = {name: _first_guess(call) for name, call in calls.items()}
        self.numbers = {name: min(1000, max(1, math.ceil(shortest / max(s, 1e-9)))) for name, s in first.items()}
        self._one_round = sum(first[name] * self.numbers[name] for name in calls)

    def rounds_within(self, budget, fewest, most):
        """How many rounds take about ``budget`` seconds."""
        return int(min(most, max(fewest, budget / self._one_round)))

    def shuffled(self):
        """The order of one round, as arguments of :meth:`round`."""
        order = list(self.calls)
        self._random.shuffle(order)
        return (order,), {}

    def round(self, order):
        """Times each call once; caches are swept between, so that none finds the data that another one left there."""
        for name in order:
            _SWEEP.sum()
            self.seconds[name].append(seconds_of(self.calls[name], self.numbers[name]))


def ratio(numerator, denominator):
    """Median, lowest and highest ratio of two lists of times, round by round, and the ratio of their best times."""
    each = [a / b for a, b in zip(numerator, denominator, strict=True)]
    return statistics.median(each), min(each), max(each), min(numerator) / min(denominator)


def exponent(lengths, times):
    """The power of the length with which the best times grow, by the longest two lengths."""
    (a, b), (s, t) = lengths[-2:], (min(times[-2]), min(times[-1]))
    return math.log(t / s) / math.log(b / a)
