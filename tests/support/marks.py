"""Parameters of tests that only the thorough run takes."""

import pytest


def thorough(values):
    """Returns the values as parameters of the thorough run."""
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]


def one_in(step, values):
    """Returns the values as parameters; each run takes the first and every ``step``-th after it."""
    return [value if place % step == 0 else thorough([value])[0] for place, value in enumerate(values)]


def one_of_each(key, values):
    """Returns the values as parameters; each run takes the first value of each ``key(value)``."""
    firsts = list({key(value): value for value in reversed(list(values))}.values())
    return all_with_few_quick(values, firsts)


def all_with_few_quick(values, few):
    """Returns the values as parameters; only those in ``few`` are parameters of each run."""
    return [value if value in few else thorough([value])[0] for value in values]
