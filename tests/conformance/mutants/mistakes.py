"""How mistakes are written down: a body sees what the oracle's bodies see, and has the signature of its row."""

import functools
import inspect

import numpy as np

import attnpool_ref as ref
from attnpool_ref import primitives
from attnpool_ref.contract.definition import definition


class Mistakes(dict):
    """``{row: {mistake: function}}`` of tables of bodies; longer ones are added by a decorator.

    A body with the one parameter ``a`` gets :class:`Arguments` and returns what the row returns. Another one is called
    as the row is, on the caller's own arrays: for mistakes of dtypes, shapes or whose array it is.
    """

    def __init__(self, **rows):
        super().__init__()
        for row, mistakes in rows.items():
            for mistake, body in mistakes.items():
                self.of(row, mistake)(body)

    def of(self, row, mistake):
        """Keeps a body under its row and name."""

        def keep(body):
            self.setdefault(row, {})[mistake] = _function(row, body)
            return body

        return keep


def _function(row, body):
    if next(iter(inspect.signature(body).parameters)) != "a":
        return body

    @functools.wraps(getattr(ref, row))
    def function(**values):
        return body(Arguments(row, values))

    mutant = definition(function)
    mutant.__module__, mutant.__qualname__ = body.__module__, body.__qualname__
    return mutant


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

    def exchanged(self, primitive, wrong, **changes):
        """What the row returns where ``wrong(right primitive, *arguments)`` takes the place of a primitive."""
        with primitives.exchanged({primitive: functools.partial(wrong, primitive.__wrapped__)}):
            return self.oracle(**changes)

    def mapped(self, **changes):
        """What the row returns, with some arguments changed by functions; those that are None stay so."""
        return self.oracle(**{k: None if self.values[k] is None else f(self.values[k]) for k, f in changes.items()})

    def multiplied(self, **factors):
        """What the row returns, with some arguments multiplied; those that are None stay so."""
        return self.mapped(**{key: functools.partial(np.multiply, factor) for key, factor in factors.items()})

    def by_default(self, **defaults):
        """What the row returns, with values for some arguments that are None."""
        return self.oracle(**{k: v if self.values[k] is None else self.values[k] for k, v in defaults.items()})

    def changed(self, pooled=None, weights=None, **changes):
        """What a row with weights returns, with arguments changed before, and both results by functions after that."""
        results = self.oracle(return_weights=True, **changes)
        return self.returns(*(r if f is None else f(r) for f, r in zip((pooled, weights), results, strict=True)))

    @property
    def zeroed(self):
        """The tokens with 0 in place of padding."""
        return np.where(self.mask[..., None], self.x, 0)

    @property
    def empty(self):
        """Whether an example has no real token, with an axis for features."""
        return ~np.any(self.mask, -1, keepdims=True)


# Wrong primitives of several functions


def over_queries(right, scores, real, *_):
    """A softmax over the axis before the last one."""
    return primitives.softmax.__wrapped__(scores, real, -2)


def without_zeros(right, scores, real, axis=-1):
    """A softmax for which a score of 0 is padding."""
    return right(scores, real & (scores != 0), axis)


def in_reverse(right, *parts):
    """Concatenated vectors in the other order."""
    return right(*parts[::-1])


def left_out(right, x, *_):
    """What is given, as it is."""
    return x


def after(bias):
    """A function of hidden units to which the bias is added after it."""
    return lambda right, x: right(x - bias) + bias


def over_the_padded_length(right, x, mask):
    """A mean that is divided by the number of all tokens."""
    return np.sum(np.where(mask[..., None], x, 0), -2) / max(mask.shape[-1], 1)


def halves_swapped(x):
    """The halves of the last axis in the other order."""
    return np.roll(x, x.shape[-1] // 2, -1)
