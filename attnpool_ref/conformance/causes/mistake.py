"""Known mistakes, and the table of those in which a wrong function takes the place of a primitive of the definitions."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnpool_ref.primitives import (
    exchanged,
    fill_padding,
    log_softmax,
    moments,
    only_real,
    pairs_of,
    reduced,
    softmax,
    softmax_of_products,
    zero_if_empty,
)


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its description, and its result for a call.

    Attributes:
      words: the description. Mistakes with the same words are one cause in a report.
      answer: a function from a :class:`~attnpool_ref.conformance.causes.wrong_answers.Call` to the wrong result, a list of
        arrays; to None if the mistake is not possible in the call.
      number: the number in the mistake as text, such as "-1e9", or "".
      whole: whether a single case that contradicts the mistake excludes it. This holds for mistakes about one argument,
        because another mistake may give the same results in some of the cases.
      primitive: the primitive that is exchanged, or None.
    """

    words: str
    answer: Callable[[Any], Any]
    number: str = ""
    whole: bool = False
    primitive: Any = None


SQUARES, UNDIVIDED = "squares", "undivided"
ALWAYS, NEVER = (True, SQUARES), (False,)
BOTH = (True, SQUARES, UNDIVIDED, False)
"""Values of ``raw``: whether padding keeps its numbers before the primitive, is set to 0, or both are tried.

With :data:`SQUARES` a variance under the weights is also taken from their mean of squares; with :data:`UNDIVIDED` padding
is set to 0, and moments are not divided by the sum of the weights.
"""

LIKE = (log_softmax, softmax_of_products)
"""Primitives that have a softmax inside."""


@dataclass(frozen=True)
class Exchange:
    """A row of the table of mistakes: a wrong function in the place of a primitive.

    Attributes:
      words: the description, or a function from the function's row to it.
      primitive: the primitive.
      wrong: a function from an :class:`Exchanged` and the primitive's arguments to the wrong result.
      numbers: the numbers that are tried, each with its text; None stands for the least number of the dtype.
      raw: whether padding keeps its numbers until the primitive is called: most published code masks once, there.
      uncertain: whether rounding decides what the wrong result is. It is then computed with ``off`` from -2 to 1, and
        every result between these is the mistake's.
      again: whether it needs the arguments of all calls of the primitive, as one of all segments together does.
      when: a function from the function's row to whether the mistake is possible in it.
      empty: the description if it is also tried for results that are wrong in fully masked rows alone; True for the same
        one, "" if it is not tried.
    """

    words: Any
    primitive: Any
    wrong: Any
    numbers: dict
    raw: tuple
    uncertain: bool
    again: bool
    when: Any
    empty: str | bool

    def mistakes(self, row, words: Any = ""):
        """Yields the mistakes of this row of the table in a function, one for each number."""
        words = words or self.words
        words = words(row) if callable(words) else words
        if self.when is not None and not self.when(row):
            return
        for number, text in (self.numbers or {None: ""}).items():
            for raw in self.raw if _has_moments(row) else [raw for raw in self.raw if isinstance(raw, bool)]:
                yield Mistake(words, _Answer(self, number, raw), text, primitive=self.primitive)


TABLE: list[Exchange] = []
"""Mistakes about primitives, the most specific first."""


def mistake(
    words, primitive, *, numbers=None, raw=NEVER, uncertain=False, again=False, when=None, empty: str | bool = ""
):
    """Adds a row to :data:`TABLE`, as described in :class:`Exchange`."""

    def add(wrong):
        TABLE.append(Exchange(words, primitive, wrong, numbers or {}, raw, uncertain, again, when, empty))
        return wrong

    return add


def wide_dtype(call):
    """Returns the dtype in which scores and sums are computed: float64 if that is judged, else float32."""
    return np.float64 if call.subject.dtype == "float64" else np.float32


def least_number(call):
    """Returns the least number of that dtype."""
    return float(np.finfo(wide_dtype(call)).min)


@dataclass
class Exchanged:
    """The call in which a primitive is exchanged, as its wrong function sees it.

    Attributes:
      call: the :class:`~attnpool_ref.conformance.causes.wrong_answers.Call`.
      right: the right primitive.
      number: the number of the mistake.
      off: -2, -1, 0 or 1, for a mistake whose result rounding decides: -1 and 1 are the ends of what it may be, and -2
        is how the lower end is written by others, as 0 in place of NaN.
      calls: the arguments of each call of the primitive, if the row asks for them.
      index: how many calls of the primitive there were before.
      masks: the masks of both sequences, for primitives of pairs.
      rank: the number of axes of the right result.
    """

    call: Any
    right: Any
    number: Any
    off: int
    calls: list
    masks: list
    rank: int
    index: int = -1

    @property
    def wide(self):
        """The dtype of :func:`wide_dtype`."""
        return wide_dtype(self.call)

    @property
    def eps(self):
        """The rounding of that dtype."""
        return float(np.finfo(self.wide).eps)


@dataclass(frozen=True)
class _Answer:
    """The result of a mistake for a call: that of the definition, in which a primitive is exchanged."""

    exchange: Exchange
    number: Any
    raw: bool | str

    def __call__(self, call):
        if self.exchange.primitive not in call.primitives:
            return None
        calls = self._calls(call) if self.exchange.again else []
        if not self.exchange.uncertain:
            return self._oracle(call, calls, 0)
        return call.nearest([self._oracle(call, calls, off) for off in (0, -1, 1, -2)])

    def _calls(self, call):
        calls = []

        def noted(*args, **kwargs):
            calls.append(args)
            return self.exchange.primitive.__wrapped__(*args, **kwargs)

        with np.errstate(all="ignore"), exchanged(self._with_like(noted) | self._raw()):
            call.oracle()
        return calls

    def _oracle(self, call, calls, off):
        exchange, number = self.exchange, self.number
        if exchange.numbers and number is None:
            number = least_number(call)
        known = Exchanged(call, exchange.primitive.__wrapped__, number, off, calls, [], call.exact[0].ndim)

        def wrong(*args, **kwargs):
            known.index += 1
            with np.errstate(all="ignore"):
                return exchange.wrong(known, *args, **kwargs)

        others = self._with_like(wrong) | self._raw()
        if exchange.primitive is reduced:
            others[pairs_of] = lambda *masks: known.masks.append(masks) or pairs_of.__wrapped__(*masks)
        if exchange.primitive is not softmax and call.is_nan_where_real:
            others[softmax] = _nan_if_empty
        with np.errstate(all="ignore"), exchanged(others):
            return call.oracle()

    def _with_like(self, function):
        """Returns what takes the place of the primitive, and for a softmax also of :data:`LIKE`."""
        others = {self.exchange.primitive: function}
        if self.exchange.primitive is softmax:
            others[log_softmax] = lambda *args: np.log(function(*args))
            others[softmax_of_products] = lambda x, scale, real: function(*np.broadcast_arrays(scale * x, real), -2)
        return others

    def _raw(self):
        if not self.raw:
            return {}
        others = {moments: _under_weights} if self.raw != SQUARES else {moments: _under_weights_by_squares}
        if self.raw == UNDIVIDED:
            return others
        return others | dict.fromkeys((fill_padding, only_real, zero_if_empty), _as_it_is)


def _has_moments(row):
    """Returns whether a function has both weights and a mean with a standard deviation."""
    return bool(row.weights) and row.results[0][-1:] == ("2d",)


def _as_it_is(values, *_):
    return values


def _nan_if_empty(scores, real, axis=-1):
    """A softmax that is NaN in fully masked rows: other mistakes spread it."""
    return np.where(np.any(real, axis, keepdims=True), softmax.__wrapped__(scores, real, axis), np.nan)


def _under_weights(x, mask, weights, ddof, epsilon, squares=False):
    """Moments under weights that are taken to sum to 1, as published code does after a softmax."""
    if weights is None:
        return moments.__wrapped__(x, mask, weights, ddof, epsilon)
    weights = weights if weights.ndim == x.ndim else weights[..., None]
    average = np.sum(weights * x, -2)
    if squares:
        variance = np.sum(weights * x**2, -2) - average**2
    else:
        variance = np.sum(weights * (x - average[..., None, :]) ** 2, -2)
    return average, np.sqrt(np.maximum(variance, epsilon))


_under_weights_by_squares = functools.partial(_under_weights, squares=True)


def powers_of_ten(*numbers):
    """Returns numbers with their texts, such as "1e-9"."""
    return {number: f"{number:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e") for number in numbers}
