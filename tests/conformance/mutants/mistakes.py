"""How mistakes are written down: a body sees what the oracle's bodies see, and has the signature of its row."""

import functools

import attnpool_ref as ref
from attnpool_ref.contract.definition import definition


class Mistakes(dict):
    """``{row: {mistake: function}}``, filled by decorators."""

    def of(self, row, mistake):
        """Keeps a body under its row and name; the body gets :class:`Arguments` and returns what the row returns."""

        def keep(body):
            @functools.wraps(getattr(ref, row))
            def function(**values):
                return body(Arguments(row, values))

            mutant = definition(function)
            mutant.__module__, mutant.__qualname__ = body.__module__, body.__qualname__
            self.setdefault(row, {})[mistake] = mutant
            return body

        return keep

    def plain(self, row, mistake):
        """Keeps a function as it is, on the caller's own arrays: for mistakes of dtypes, shapes or whose array it is."""

        def keep(function):
            self.setdefault(row, {})[mistake] = function
            return function

        return keep


class Arguments:
    """The arguments of one call as attributes: float64 arrays with all batch axes, boolean masks of the full shape."""

    def __init__(self, row, values):
        self.row, self.values = row, values

    def __getattr__(self, name):
        return self.values[name]

    def oracle(self, **changes):
        """What the row returns, with some arguments changed."""
        return getattr(ref, self.row)(**(self.values | changes))

    def returns(self, pooled, weights):
        """What a row with weights returns."""
        return (pooled, weights) if self.values["return_weights"] else pooled
