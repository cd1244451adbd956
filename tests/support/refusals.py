"""Calls that must raise an error, in one form: the call, the error, its whole message, and the packages that raise it.

A table of them is a list of ``Call("mean_pooling", X, k=2).raises(ValueError, "what follows the name")``, and a test is

    @every_refusal(TABLE)
    def test_bad_input_is_refused(package, refusal):
        refusal.check(package)
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from packages import PACKAGES


class Refusal(NamedTuple):
    """A call of a package that must raise this error with this message."""

    call: Callable
    error: type
    message: str
    packages: tuple = PACKAGES

    def check(self, package):
        """Asserts that the package raises the error with exactly this message."""
        with pytest.raises(self.error) as caught:
            self.call(package)
        assert str(caught.value) == self.message


class Call:
    """A call of a function of either package."""

    def __init__(self, name, *args, **options):
        self.name, self.args, self.options = name, args, options

    def __call__(self, package):
        return getattr(package, self.name)(*self.args, **self.options)

    def raises(self, error, message, packages=PACKAGES):
        """Returns the refusal of this call; its message begins with the name of the function."""
        return Refusal(self, error, f"{self.name}: {message}", packages)


def every_refusal(table):
    """Parametrizes a test of (package, refusal) by every row of a table, in each of its packages."""
    cases = [
        pytest.param(package, refusal, id=f"{refusal.message[:60]}-{package.__name__}")
        for refusal in table
        for package in refusal.packages
    ]
    return pytest.mark.parametrize(("package", "refusal"), cases)
