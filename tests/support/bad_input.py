"""Bad input, derived from a function's row in the table: each call differs from a legal one in one respect.

The call must raise an error: a TypeError for an argument that is not an array of numbers or does not exist, a
ValueError for any other bad argument (sections 1 and 18 of ``docs/contract.md``). Functions of JAX arrays check the
values of masks and lengths only if these are NumPy arrays, so such bad values are given as NumPy arrays.

The judge does not require this of other implementations: their functions document different errors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from drawn import way

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.adapters import numpy_dtype
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.table.language import Excludes, MayBeEmpty, Needs, NotZero, terms

BATCH = (3,)
SIZE = 2
"""Size of every axis; a call that raises an error needs no more."""


WITH_LENGTHS = "with lengths"
"""Title of the configuration with lengths in place of masks."""


@dataclass(frozen=True)
class Refusal:
    """One call that must raise an error.

    Attributes:
      title: the description of the bad argument.
      error: the exception that must be raised.
      values: the arguments that are passed, by the function's names.
      as_it_is: names of arguments that are passed unchanged, not as arrays of the package.
      more: names of passed arguments that the function does not have.
    """

    title: str
    error: type[Exception]
    values: dict[str, Any]
    as_it_is: frozenset[str] = frozenset()
    more: tuple[str, ...] = ()


def refusals_of(subject):
    """Yields the calls that must raise an error, for the arguments that the implementation takes."""
    row = subject.row
    for title in ("fullest" if _has_fullest(row) else "smallest", *_with_lengths(row)):
        case = _drawn(subject, title)
        if case is None:
            continue
        call = _Call(subject, case)
        if title == WITH_LENGTHS:
            yield from call.of_optional_lengths()
            continue
        yield from call.of_every_argument()
        yield from call.of_options()
        yield from call.of_company()
        for axis in call.axes_that_must_not_be_empty():
            empty = _drawn(subject, title, {axis: 0})
            if empty is not None:
                yield Refusal(f"the width {axis} is 0", ValueError, _Call(subject, empty).values)


def outcome(subject, refusal):
    """Describes what the function did instead of raising the expected error.

    The text is "" if it raised this error and did not change its inputs before. For a row of states, the function that
    returns a state is called.
    """
    values = {
        key: subject.adapter.array(np.asarray(value), subject.dtype)
        if isinstance(value, (np.ndarray, np.generic)) and key not in refusal.as_it_is
        else value
        for key, value in refusal.values.items()
    }
    arrays = [value for value in values.values() if hasattr(value, "shape")]
    args, kwargs = subject.calling.arrange(values)
    before = [np.array(array) for array in arrays]
    try:
        getattr(subject.function, "whole", subject.function)(*args, **kwargs | dict.fromkeys(refusal.more, 1))
    except refusal.error:
        same = all(a.tobytes() == np.asarray(b).tobytes() for a, b in zip(before, arrays, strict=True))
        return "" if same else "changed its inputs before it raised"
    except Exception as error:
        return f"raised {said(error)}"
    return "returned a result"


def _with_lengths(row):
    return [title for title, *_ in drawing.configurations(row) if title == WITH_LENGTHS]


def _has_fullest(row):
    return "fullest" in [title for title, *_ in drawing.configurations(row)]


def _drawn(subject, title, sizes=None):
    """Returns a small legal case with arrays of ones, masks included; None if the implementation does not take it.

    ``title`` is that of a configuration; ``sizes`` has sizes of axes other than :data:`SIZE`.
    """
    row = subject.row
    _, names, options = way(row, title)
    names, options = subject.calling.restrict(names, options)
    sizes = dict.fromkeys(drawing.SIZES, SIZE) | (sizes or {})
    try:
        with np.errstate(all="ignore"):
            case = drawing.draw(row, f"bad input, {title}", names, options, BATCH, sizes)
        values = {k: v for k, v in case.values.items() if v is not None and k not in subject.parameters}
        ones = {k: np.ones_like(v) for k, v in values.items() if np.ndim(v)}
        case = subject.fit(case.with_values("", **ones))
        subject.passed(case)
    except (NotApplicable, ValueError):
        return None
    return case


class _Call:
    """A legal call, and variants of it that must raise an error."""

    def __init__(self, subject, case):
        self.subject, self.case, self.row = subject, case, subject.row
        self.values = {
            k: v.astype(numpy_dtype(subject.dtype)) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
            for k, v in subject.passed(case).items()
        }
        self.kinds = {k: a.kind for k, a in self.row.arguments.items() if k in self.values}

    def _with(self, title, error, key, value, as_it_is=False):
        here = frozenset([key]) if as_it_is else frozenset()
        return Refusal(title, error, self.values | {key: value}, here)

    def of_every_argument(self):
        """Yields calls with an argument that is no array of numbers, or has a wrong dtype, shape or value."""
        for key, kind in self.kinds.items():
            value = np.asarray(self.values[key])
            if not self.row.arguments[key].optional:
                yield self._with(f"`{key}` is None", TypeError, key, None, True)
            yield self._with(f"`{key}` is text", TypeError, key, "text", True)
            nothing = np.full(value.shape or (1,), None, object)
            yield self._with(f"`{key}` is an array of objects", TypeError, key, nothing, True)
            if kind == "number":
                yield self._with(f"`{key}` has shape (2,)", ValueError, key, np.ones(2))
                continue
            yield self._with(f"`{key}` is complex", ValueError, key, value.astype(np.complex64))
            if kind == "mask":
                yield from self._of_mask(key, value)
            elif kind == "bool":
                yield self._with(f"`{key}` is of floats", ValueError, key, value.astype(np.float32))
                yield self._on_host(f"`{key}` has the value 2", key, 2 * value.astype(np.int32))
            elif kind in ("int", "lengths"):
                yield from self._of_lengths(key, value)
            elif kind == "index":
                yield from self._of_index(key, value)
            elif kind == "position":
                yield self._on_host(f"`{key}` is negative", key, np.full_like(value, -1))
                yield self._with(f"`{key}` is of floats", ValueError, key, value.astype(np.float32))
                yield self._with(f"`{key}` has shape (2,)", ValueError, key, np.ones(2, np.int32))
            elif kind in ("data", "parameter"):
                yield from self._of_shape(key, value)
            elif kind == "stretch":
                yield self._with(f"`{key}` does not broadcast", ValueError, key, longer(value, -1))
        yield Refusal("an argument that does not exist", TypeError, self.values, more=("no_such_argument",))

    def _on_host(self, title, key, value):
        return self._with(title, ValueError, key, value, self.subject.adapter.name == "jax")

    def _of_mask(self, key, value):
        yield self._with(f"`{key}` is of floats", ValueError, key, value.astype(np.float32))
        yield self._on_host(f"`{key}` has the value 2", key, np.full(value.shape, 2))
        rank = max(len(axes) for axes in self.row.arguments[key].shapes)
        own = next(iter(self.case.values.values())).ndim if rank == 1 and self._of_any_rank(key) else rank
        more = value.reshape((1,) * (own + 1 - value.ndim) + value.shape)
        yield self._with(f"`{key}` has a higher rank", ValueError, key, more)
        yield self._with(f"`{key}` does not broadcast", ValueError, key, longer(value, -1))

    def _of_any_rank(self, key):
        return self.row.arguments[key].shapes == (("...",),)

    def _of_lengths(self, key, value):
        yield self._on_host(f"`{key}` is negative", key, np.full_like(value, -1))
        yield self._on_host(f"`{key}` is longer than the axis", key, np.full_like(value, 99))
        yield self._with(f"`{key}` is of floats", ValueError, key, value.astype(np.float32))
        yield self._with(f"`{key}` is boolean", ValueError, key, value.astype(bool))
        if self.kinds.get(key) == "lengths":
            yield self._with(f"`{key}` does not broadcast", ValueError, key, np.ones(97, value.dtype))

    def of_optional_lengths(self):
        """Yields calls with bad lengths in place of masks."""
        for key, kind in self.kinds.items():
            if kind in ("int", "lengths"):
                yield from self._of_lengths(key, np.asarray(self.values[key]))

    def _of_shape(self, key, value):
        if key == "weights":
            yield self._with("`weights` are boolean", ValueError, key, value.astype(bool))
        if self.row.arguments[key].batched:
            own = [axis for axis in self.case.axes[key] if axis != "..."]
            if self.row.arguments[key].own:
                few = np.ones((SIZE,) * (len(own) - 1), value.dtype)
                yield self._with(f"`{key}` has too few axes", ValueError, key, few)
            if self._meets_others(key):
                yield self._with(f"a batch axis of 1 in `{key}` meets {BATCH[0]}", ValueError, key, value[:1])
        for place, axis in enumerate(self._named_axes(key, value)):
            if axis is not None and self._known_elsewhere(key, axis):
                text = f"`{key}` disagrees with another argument on {axis}"
                yield self._with(text, ValueError, key, longer(value, place))

    def _of_index(self, key, value):
        here = (
            frozenset(self.values) if self.subject.adapter.name == "jax" else frozenset()
        )  # whether a value is read depends on the mask, so all arrays must be on the host
        for title, end in (("is negative", -1), ("is beyond `max_length`", self.values["max_length"])):
            yield Refusal(f"`{key}` {title}", ValueError, self.values | {key: np.full_like(value, end)}, here)
        yield self._with(f"`{key}` is of floats", ValueError, key, value.astype(np.float32))
        yield self._with(f"`{key}` has one column more", ValueError, key, longer(value, -1))

    def _meets_others(self, key):
        """Returns whether the argument and another one have batch axes."""
        others = [k for k in self.case.given("data") if k != key and k in self.values]
        return any("..." in self.case.axes[k] for k in others) and "..." in self.case.axes[key]

    def _named_axes(self, key, value):
        """Returns the name of each axis of an array, None for a batch axis."""
        own = [axis for axis in self.case.axes[key] if axis != "..."]
        return [None] * (value.ndim - len(own)) + own

    def _known_elsewhere(self, key, axis):
        """Returns whether other arguments determine the size of an axis, so that another size is an error."""
        if self.row.arguments[key].shapes == (("...",),):
            return False
        same = contract.equal_axes(self.row, self.case.values | self.case.options)
        others = {
            same.get(symbol, symbol)
            for k, own in self.case.axes.items()
            if k != key and self.kinds.get(k) in ("data", "parameter", "bool")
            for other in own
            if other != "..." and terms(other) == [(1, other)]
            for symbol in [other]
        }
        return {same.get(symbol, symbol) for _, symbol in terms(axis)} <= others

    def of_options(self):
        """Yields calls with illegal values of options."""
        first = np.asarray(next(iter(self.values.values())))
        wrong = {
            "flag": ["yes", 2],
            "axis": [first.ndim, 1.5],
            "dtype": ["int32", "float16"],
            "size": [-1, 1.5],
            "count": [-1, 1.5],
            "positive": [0, 1.5],
        }
        for key, allowed in self.row.options.items():
            if self.subject.calling.takes(key):
                refused = [True] if allowed == "flag" and not self.row.takes(key, True) else []
                for value in ["no such name", 3] if isinstance(allowed, tuple) else [*wrong[allowed], *refused]:
                    yield self._with(f"`{key}` is {value!r}", ValueError, key, value, True)
        if self.subject.takes_weights():
            yield self._with("`return_weights` is 'yes'", ValueError, "return_weights", "yes", True)

    def of_company(self):
        """Yields calls with arguments that exclude each other, lack a required option, or are 0 without one."""
        takes = self.subject.calling.takes
        for rule in self.row.relations:
            if isinstance(rule, Excludes) and takes(rule.first) and takes(rule.second):
                if rule.first in self.values:
                    text = f"`{rule.first}` and `{rule.second}` are both given"
                    yield self._with(text, ValueError, rule.second, np.ones((), np.int32))
            elif isinstance(rule, Needs) and rule.argument in self.values and takes(rule.option):
                text = f"`{rule.argument}` is given without `{rule.option}`"
                allowed = self.row.options.get(rule.option)
                if rule.value:
                    wrong = next(value for value in allowed if value != rule.value)
                    text = f"`{rule.argument}` is given with another `{rule.option}` than {rule.value!r}"
                else:
                    wrong = None if allowed is None else False
                yield self._with(text, ValueError, rule.option, wrong)
            elif isinstance(rule, NotZero) and takes(rule.argument) and takes(rule.option):
                text = f"`{rule.argument}` is 0 without `{rule.option}`"
                changed = {rule.argument: np.zeros(()), rule.option: False}
                yield Refusal(text, ValueError, self.values | changed, frozenset(changed))

    def axes_that_must_not_be_empty(self):
        """Returns the feature axes that may not have size 0; of axes that must be equal, only one."""
        same = contract.equal_axes(self.row, self.case.values | self.case.options)
        legal = {rule.axis for rule in self.row.relations if isinstance(rule, MayBeEmpty)} | set(self.row.sizes)
        return [axis for axis in self.case.sizes if axis in contract.FEATURES and axis not in {*legal, *same}]


def longer(value, place):
    """Returns the array with one more position along the axis ``place``, a copy of the first one."""
    return np.concatenate([value, np.take(value, [0], place)], place)
