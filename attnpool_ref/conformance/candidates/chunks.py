"""Chunked pooling as one function of all tokens: splits them into chunks, then merges and finalizes the chunks' states.

The tokens are split at random into four chunks: one without tokens, two of equal length, and one with the other tokens.
Of thousands of tokens there are 20 chunks of equal length. The states are merged in pairs, in random order. The result
is judged like that of the function of whole sequences. Calls may not change states, nor keep the caller's arrays: a state
is also merged with that of other tokens, the last one is finalized twice, and NumPy's arrays are overwritten after each
chunk.
"""

import functools
import inspect
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance.cases.case import generator

MANY_TOKENS = 4000
"""Number of tokens from which on there are more than four chunks."""


def named(namespace, name) -> Any:
    """Returns the attribute of a module or an object, or the item of a mapping, under a name; or None."""
    return namespace.get(name) if isinstance(namespace, Mapping) else getattr(namespace, name, None)


class InChunks:
    """Pooling over chunks, with the signature of the function that returns a chunk's state.

    Attributes:
      namespace: the module, object or mapping that has the functions.
      whole: the function that returns the state of one chunk.
    """

    def __init__(self, name, namespace, arguments=None):
        """``arguments`` maps names of the function's arguments to the names that the implementation has for them."""
        self.namespace, self.whole = namespace, named(namespace, name)
        self.merge, self.finalize = named(namespace, "merge_states"), named(namespace, "finalize_state")
        self.__name__ = self.__qualname__ = name
        self._names = arguments or {}
        axes_of_tokens = {
            key: argument.own for key, argument in table.get(name).arguments.items() if "L" in argument.own
        }
        self._sliced = {key: axes.index("L") - len(axes) for key, axes in axes_of_tokens.items()}
        self._chunked = {self._names.get(key, key) for key in self._sliced}
        self.__signature__ = inspect.signature(self.whole)

    def complete(self):
        """Returns whether the namespace has the functions that return, merge and finalize states."""
        return all(map(callable, (self.whole, self.merge, self.finalize)))

    def __call__(self, *args, **kwargs):
        """Returns the pooled vector of all tokens."""
        bound = self.__signature__.bind(*args, **kwargs)
        values = dict(zip(self.__signature__.parameters, bound.args, strict=False)) | bound.kwargs
        shape = values[self._names.get("x", "x")].shape
        rng = generator(f"{self.__name__}: {tuple(shape)}")
        cuts = [0, *np.cumsum(_lengths(shape[-2], rng)).tolist()]
        parts = [self._part(values, *ends, shape[-2]) for ends in itertools.pairwise(cuts)]
        states, key = [self._state(part) for part in parts], self._names.get("x", "x")
        others = max(parts, key=lambda part: part[key].shape[-2])
        others = self._state(others | {key: 1 - others[key]})
        while len(states) > 1:
            one, other = (states.pop(i) for i in (rng.integers(len(states)), rng.integers(len(states) - 1)))
            if not states:
                self.merge(one, others)
            states.append(self.merge(one, other))
        self.finalize(states[0])
        return self.finalize(states[0])

    def _state(self, values):
        """Returns the state of a chunk, whose NumPy arrays are copies that hold other numbers after the call."""
        own = {k: v.copy() for k, v in values.items() if isinstance(v, np.ndarray) and k in self._chunked}
        state = self.whole(**(values | own))
        for array in own.values():
            array[...] = ~array if array.dtype == bool else array + 1
        return state

    def _part(self, values, first, last, length):
        """Returns the arguments of the chunk from token ``first`` to ``last`` - 1, of ``length`` tokens in all."""
        values = dict(values)
        rank = len(values[self._names.get("x", "x")].shape)
        for ours, axis in self._sliced.items():  # an array of size 1 along this axis is for all tokens, and not sliced
            key = self._names.get(ours, ours)
            value = values.get(key)
            if ours == "weights" and value is not None and len(value.shape) == rank:
                axis = -2  # [..., L, d], with a weight for each feature
            if value is not None and len(value.shape) >= -axis and value.shape[axis] == length:
                values[key] = value[(..., slice(first, last)) + (slice(None),) * (-1 - axis)]
        lengths = self._names.get("lengths", "lengths")
        if values.get(lengths) is not None:
            wide = values[lengths]  # integers of 8 bits cannot hold a chunk's start or size
            wide = wide.astype(np.int32) if hasattr(wide, "astype") else wide.int()
            values[lengths] = (wide - first).clip(0, last - first)
        start = self._names.get("start", "start")
        return values | ({start: values[start] + first} if start in values else {})


def _lengths(length, rng):
    """Returns lengths of chunks in random order: two equal ones, for which JAX compiles once, the rest, and 0.

    Of thousands of tokens there are 20 equal ones.
    """
    if length > MANY_TOKENS:
        return rng.permutation([*[length // 20] * 20, length % 20, 0])
    one = rng.integers(min(1, length // 2), length // 2 + 1)
    return rng.permutation([one, one, length - 2 * one, 0])


@functools.cache
def oracle_of(name):
    """Returns the oracle of a function: its definition in ``attnpool_ref``.

    For a function that returns states it is the pooling of all tokens, as one chunk.
    """
    function = getattr(attnpool_ref, name)
    if not table.get(name).state:
        return function

    @functools.wraps(function)
    def definition(*args, **kwargs):
        return attnpool_ref.finalize_state(function(*args, **kwargs))

    return definition
