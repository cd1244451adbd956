"""Large cases: a few tokens in random order, each many times, so that every copy must have the same gradient.

Central differences along a direction cannot show that one of a thousand tokens has a wrong gradient; copies can.
"""

import numpy as np
from drawn import way
from one_program import OneProgram, is_differentiable

from attnpool_ref.conformance import cases
from attnpool_ref.conformance.cases.case import scaled
from attnpool_ref.conformance.checks import tolerances
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.gradients import cotangents_of
from attnpool_ref.conformance.checks.subject import oracle_outputs, output_axes

LENGTHS = {"L": 1153, "T": 607, "J": 607, "k": 227, "m": 1153, "n": 79, "N": 3461, "M": 607}
"""Numbers of tokens: with WIDTHS more than 1 MiB of them, and odd, so that tiles and blocks overlap."""

WIDTHS = {"d": 80, "e": 80, "q": 80}

OF_CHUNKS = {"d": 240}
"""Width of tokens in chunks, of which one has at least a third of them."""

OF_PAIRS = {"d": 4, "e": 4, "v": 4, "h": 2}
"""Widths of functions of pairs [n, m] or [T, J], of which some definitions have features for each pair."""

EXAMPLES, SHORT = 149, 23
"""Numbers of examples and of tokens for many short examples."""

ONE_EXAMPLE = ("attend", "multi_head_attention")
"""Functions that get a single example, so large that its queries are divided into blocks; others divide the examples."""

_OF_ATTENTION = "dot_product_attention additive_attention tanh_sum_attention location_attention kernel_regression"
OWN_LENGTHS = {name: {"n": 607} for name in _OF_ATTENTION.split()}
OWN_LENGTHS |= {"attend": {"n": 1823}, "multi_head_attention": {"n": 919}, "entmax": {"n": 5}}
"""Other numbers of queries: of attention so many that the scores exceed two blocks; few if the definition takes long."""

STEP = 2.0**-18
"""Step of differences, so small that hardly one of the many numbers crosses an edge within it."""

FIRST_OF_TIES = ("semantic_match", "quantile_pooling")
"""Functions that choose the first of several equal tokens, so that only this one has a gradient."""


class LargeCase:
    """A call with more than 1 MiB of tokens, three long examples or many short ones; by default with the most arguments."""

    def __init__(self, row, function, title="", many=False):
        title, names, options = way(row, title)
        if "reduction" in row.options:
            names = tuple(dict.fromkeys([*names, "scale"]))
        self.subject = OneProgram(row, function)
        axes = _token_axes(row)
        of_pairs = {"n", "m"} <= axes or {"T", "J"} <= axes
        widths = OF_PAIRS if of_pairs else WIDTHS | (OF_CHUNKS if row.state else {})
        batch = EXAMPLES if many else 1 if row.name in ONE_EXAMPLE else 3
        self.small = cases.draw(row, f"{title}, large", names, options, (batch,), widths)
        if "reduction" in row.options:  # the query is a sum of all tokens: one token would have all weight
            self.small = self.small.with_values("", scale=np.float64(2.0**-12))
        if row.unit:  # the product of many numbers below 1 would be 0
            self.small = self.small.with_values("", x=2.0**-8 * self.small.values["x"])
        else:
            for axis in axes:  # late tokens are larger
                factors = np.where(np.arange(self.small.sizes[axis]) < (self.small.sizes[axis] + 1) // 2, 1.0, 4.0)
                self.small = scaled(self.small, "", axis, factors, self.small.given("data", "stretch"))
        lengths = dict.fromkeys(axes, SHORT) if many else LENGTHS | OWN_LENGTHS.get(row.name, {})
        rng = self.small.rng(" copies")
        self.positions = {axis: _copies(self.small.sizes[axis], lengths[axis], rng) for axis in sorted(axes)}
        self.case = self._repeated(self.small)

    @staticmethod
    def exists(row):
        """Returns whether a function takes tokens that may be many."""
        return row.family != "masks" and bool(_token_axes(row))

    def wrong(self):
        """Returns what is wrong with results and gradients, also where NaN stands at padding."""
        subject, case, weights = self.subject, self.case, self.subject.takes_weights()
        found = agreement(subject, case, weights)
        wrong = [found.message] if found.message else []
        if not is_differentiable(subject, case):
            return wrong
        axes = output_axes(case, weights)
        cotangents = [
            self._expanded(c, own) for c, own in zip(cotangents_of(subject, self.small, weights), axes, strict=True)
        ]
        gradients = subject.gradients(case, cotangents, weights)
        largest = max(float(np.max(np.abs(g), initial=0)) for g in gradients.values())
        texts = {key: self._at_copies(key, g, largest) for key, g in gradients.items()}
        wrong += [f"the gradient of `{key}` {text}" for key, text in texts.items() if text]
        wrong += self._along_a_direction(cotangents, gradients)
        dirty = cases.poisoned(case, np.nan)
        if dirty is not None:
            wrong += [f"with NaN at padding {text}" for text in subject.changed_bits(case, dirty, cotangents)]
        return wrong

    def _repeated(self, case):
        for axis, positions in self.positions.items():
            case = cases.take(case, "repeated", axis, positions)
        return case

    def _expanded(self, array, axes):
        for axis, positions in self.positions.items():
            for place in cases.places_of(axis, axes, array.ndim):
                array = np.take(array, positions, place)
        return array

    def _at_copies(self, key, g, largest):
        """Returns what is wrong with a gradient at padding, or where two copies of a token have different ones.

        ``largest`` is the largest number of all gradients, whose rounding is all that some gradients are.
        """
        if not np.all(np.isfinite(g)):
            return "is not finite"
        pad = cases.padding(self.case, key)
        if pad is not None and np.any(g[pad]):
            return "is not 0 at padding"
        if self.case.row.ordered or self.case.row.name in FIRST_OF_TIES:
            return ""
        size, terms = float(np.max(np.abs(g), initial=0)), self.case.terms()
        rounding = tolerances.allowed_error(0, largest, terms, "float32")
        allowed = rounding if size <= rounding else tolerances.allowed_error(size, size, terms, "float32")
        for axis, positions in self.positions.items():
            for place in cases.places_of(axis, self.case.axes[key], g.ndim):
                first = np.take(g, positions + len(positions) - self.small.sizes[axis], place)
                if np.any(np.abs(g.astype(np.float64) - first) > allowed):
                    worst = np.unravel_index(np.argmax(np.abs(g - first)), g.shape)
                    return f"differs between copies of a token: {g[worst]} at {list(map(int, worst))}, {first[worst]} at the first"
        return ""

    def _along_a_direction(self, cotangents, gradients):
        """Compares the derivative along a direction, equal at the copies of a token, with central differences."""
        subject, case, weights, wrong = self.subject, self.case, self.subject.takes_weights(), []
        values, floats, rng = subject.values(case), subject.floats(case), case.rng(" directions")

        def objective(arrays):
            outputs = oracle_outputs(subject, values | arrays, case, weights)
            return float(sum(np.sum(c * o, where=np.isfinite(o)) for c, o in zip(cotangents, outputs, strict=True)))

        exact = subject.exact(case, weights)
        size = float(sum(np.sum(np.abs(c * w), where=np.isfinite(w)) for c, w in zip(cotangents, exact, strict=True)))
        for kind, keys in self._by_kind(gradients).items():
            directions = {
                key: self._expanded(rng.standard_normal(self.small.values[key].shape), case.axes[key]) for key in keys
            }
            want = np.subtract(*tolerances.difference(objective, floats, directions, STEP)) / (2 * STEP)
            products = [gradients[key].astype(np.float64) * direction for key, direction in directions.items()]
            got, terms = float(sum(map(np.sum, products))), sum(float(np.sum(np.abs(product))) for product in products)
            doubt = tolerances.EPSILON["float64"] * case.terms() * size / STEP
            total = size + abs(want) + terms
            allowed = doubt + tolerances.allowed_error(total, total, case.terms(), "float32")
            if not abs(got - want) <= allowed:
                wrong.append(f"the gradient along a direction of {kind} is {got:.9g}, needs {want:.9g}")
        return wrong

    def _by_kind(self, gradients):
        """Returns the names of tokens, of parameters and of numbers, whose gradients have different sizes."""
        found = {}
        for key in gradients:
            axes = self.case.axes[key]
            kind = "tokens" if self.positions.keys() & set(axes) else "parameters" if axes else "numbers"
            found.setdefault(kind, []).append(key)
        return found


def _copies(size, length, rng):
    """Returns places of ``size`` tokens: ``length`` copies, of half of the tokens only late ones, then each token once.

    So the largest score of an example may be in any tile.
    """
    early = rng.integers((size + 1) // 2, size=3 * length // 4)
    return np.concatenate([early, rng.integers(size, size=length - len(early)), np.arange(size)])


def _token_axes(row):
    first = next(iter(row.arguments.values())).shapes[0]
    named = cases.ANY_RANK if first == ("...",) else {axis for a in row.arguments.values() for axis in a.shapes[0]}
    return cases.SEQUENCES.intersection(named) - ({"n"} if "L" in named else set())  # learned queries are few
