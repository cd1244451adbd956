"""Every guarantee for every function of attnpool_flax, as a user gets it: in float32, on one CPU device.

A test is named by its function and its guarantee, ``[mean_pooling: NaN at padding]``; ``pytest -k`` finds it by both. The
checks are those of ``attnpool check``: results against the oracle, gradients of every array beside central differences
of the oracle. Most cases of a function have the same shapes, and one program computes their results and gradients. For
each guarantee in :data:`ROTATION`, which compile more programs, `make test` takes a part of the functions, and
`make thorough` all of them.

A new guarantee is a function of a :class:`Calls` that returns messages of what is wrong, under :func:`guarantee`.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from differentiated_twice import forward_mode_of_jit, fullest, judged
from one_program import OneProgram, is_differentiable
from over_mesh import over_devices
from repeated_tokens import LargeCase

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance import Candidate, cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.candidates.chunks import InChunks
from attnpool_ref.conformance.checks import CHECKS, Situation, gradients, padding
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.definition import long_sums
from attnpool_ref.conformance.checks.subject import Subject

ROWS = table.BY_NAME

# What is called ------------------------------------------------------------------------------------------------

SHARED = ("activation=", "normalizer=", "axis=")
"""Options that one code computes for all functions: their gradients are judged in the first dense function that has them."""

ALIKE = ("with lengths", "without masks", "everything but masks", "indices_are_sorted=")
"""Ways to call a function that run the code of others: `make test` judges their gradients in every third function."""


def layout(row):
    """Returns "packed", "chunks" or "dense"."""
    return "packed" if row.packed else "chunks" if row.state else "dense"


PLACES = {name: place for place, name in enumerate(ROWS)}
FIRST = {}
"""For each option with its value the first dense function that has them."""

for _row in table.VARIANTS:
    for _title, *_ in () if _row.packed else cases.configurations(_row):
        FIRST.setdefault(_title, _row.name)


def is_differentiated(row, title):
    """Returns whether the gradients of this way to call the function are judged in each run."""
    if title == cases.fullest_way(row):
        return True
    if layout(row) == "chunks":  # each chunk is compiled
        return False
    if title.startswith(ALIKE):
        return PLACES[row.name] % 3 == 0 and title != "with lengths"
    if title.startswith(SHARED):
        return FIRST.get(title) == row.name
    return layout(row) == "dense" or title != "smallest"


def is_called_directly(row, title):
    """Returns whether each run calls the function in this way outside of ``jax.jit``; its gradients are not judged then."""
    alike = ALIKE if layout(row) == "chunks" else ("with lengths",)
    return not is_differentiated(row, title) and (PLACES[row.name] % 3 == 1 or not title.startswith(alike))


class Calls:
    """The ways to call a function, and what judges them.

    Attributes:
      row: the function's row of the table.
      function: the public function; of states, the pooling of a sequence in chunks.
      trained: the subject whose results and gradients come from one program.
      direct: the subject that is called as a user calls it, outside of ``jax.jit``.
      kinds: the cases of the mixed batch by kind: five examples with different masks, and other values in its shapes.
    """

    def __init__(self, row):
        self.row = row
        self.function = InChunks(row.name, attnpool_flax) if row.state else getattr(attnpool_flax, row.name)
        self.trained = OneProgram(row, self.function)
        self.direct = Subject(row, self.function, JaxArrays(), "float32", exact={False: self.trained.cache})
        self.kinds = {}
        for case, kind in cases.cases_of(row, None, ("alone",)):
            self.kinds.setdefault(kind, []).append(case)
        self.weights = self.trained.takes_weights()

    @functools.cached_property
    def fullest(self):
        """The mixed batch of the call with the most arguments."""
        most = cases.fullest_way(self.row)
        return next(case for case in self.kinds["main"] if case.title == most)

    def subject(self, case):
        """Returns the subject whose program a case shares."""
        return self.trained if is_differentiated(self.row, way_of(self.row, case)) else self.direct

    def of_kinds(self, *kinds):
        """Returns the cases of some kinds, of ways to call the function with results that other cases do not have."""
        return [case for kind in kinds for case in self.kinds.get(kind, ()) if "indices_are_sorted" not in case.title]

    def situation(self, case, kind="main", subject=None):
        """Returns the :class:`Situation` in which all laws are judged."""
        return Situation(subject or self.trained, case, kind, True, True, True, None)

    def run(self, check, case=None, kind="main", subject=None):
        """Runs a check of the judge, by its name in ``CHECKS``, on the call with the most arguments or on another."""
        case, subject = case or self.fullest, subject or self.trained
        return messages(CHECKS[check].run(subject, case, self.situation(case, kind, subject)))


def way_of(row, case):
    """Returns the title of the way to call the function that a case was made from."""
    titles = [title for title, *_ in cases.configurations(row) if case.title.startswith(title)]
    return max(titles, key=len, default="")


@functools.lru_cache(maxsize=1)  # the tests of a function follow each other
def calls_of(name):
    """Returns the :class:`Calls` of a function."""
    return Calls(ROWS[name])


def messages(found):
    """Returns the messages of failed findings, each after the title of its case."""
    found = found if isinstance(found, list) else [found]
    return [f"{finding.case.title}: {finding.message}" for finding in found if finding is not None and finding.message]


# Guarantees ----------------------------------------------------------------------------------------------------

GUARANTEES, ROTATION = {}, {}
"""Names of guarantees, each with its function and the condition on rows; those in ROTATION are not judged for each row."""


def guarantee(name, when=lambda row: True, among=GUARANTEES):
    """Adds a function to the table under a name, for the rows for which ``when`` holds."""

    def add(function):
        among[name] = function, when
        return function

    return add


in_rotation = functools.partial(guarantee, among=ROTATION)


def is_masked(row):
    """Returns whether a mask may hide tokens of the function."""
    return any(argument.kind == "mask" for argument in row.arguments.values()) and row.family != "masks"


def has_floats(row):
    """Returns whether results are numbers that have derivatives."""
    return row.family != "masks"


@guarantee("direct calls")
def direct_calls(calls):
    """Results of calls outside of ``jax.jit`` in the ways whose gradients are not judged, and with default numbers."""
    called = [case for case in calls.kinds["main"] if is_called_directly(calls.row, case.title)]
    called += [case for case in calls.of_kinds("way") if case.title.endswith("defaults left away")]
    return messages([agreement(calls.direct, case) for case in called or [calls.fullest]])


@guarantee("values and gradients")
def values_and_gradients(calls):
    """Results, weights, and the gradient of every array, which is exactly 0 at padding, under five different masks."""
    wrong = []
    for case in calls.kinds["main"]:
        if calls.subject(case) is calls.trained:
            wrong += messages(agreement(calls.trained, case, calls.weights))
            if has_floats(calls.row) and not case.options.get(calls.row.surrogate):
                wrong += messages(gradients.gradient(calls.trained, case, calls.weights))
    return wrong


@guarantee("empty rows")
def empty_rows(calls):
    return [
        message
        for case in calls.of_kinds("main")
        for message in calls.run("empty rows", case, "main", calls.subject(case))
    ]


@guarantee("few real tokens", is_masked)
def few_real_tokens(calls):
    """Rows with one real token or two, other ones in each: counts of tokens, and what remains of the k largest."""
    wrong = []
    counts = [case for case in calls.of_kinds("way") if case.title.endswith("=3")]
    for case in [calls.fullest, *counts]:
        masks = {}
        for key in case.given("mask"):
            mask = case.values[key]
            rows = np.arange(mask.size // mask.shape[-1]).reshape(*mask.shape[:-1], 1)
            behind = (np.arange(mask.shape[-1]) - 3 * rows) % mask.shape[-1]
            masks[key] = behind <= rows % 2
        few = replace(case.with_values("few real tokens", **masks), exact=frozenset(case.given("data")))
        subject = calls.trained if case is calls.fullest else calls.direct
        wrong += messages(agreement(subject, few, calls.weights))
        if subject is calls.trained and is_differentiable(subject, few):
            wrong += messages(gradients.gradient(subject, few, calls.weights))
    return wrong


def largest_real(values, pad):
    """Returns the largest real number of each feature, which padding then ties with."""
    axes = tuple(range(values.ndim - 1)) if values.ndim > 1 else None
    return np.max(np.where(pad, -np.inf, values), axes, keepdims=True)


PADDING = {
    **padding.POISONS,
    "the largest token": largest_real,
    "the smallest token": lambda values, pad: -largest_real(-values, pad),
}
"""What stands at padding, in every masked argument at once."""


def no_bit_changes(fill, calls):
    """Returns what changes a bit of a result, of weights or of a gradient where padding holds other values."""
    cotangents = gradients.cotangents_of(calls.trained, calls.fullest, calls.weights)
    return calls.trained.changed_bits(calls.fullest, cases.poisoned(calls.fullest, fill), cotangents)


for _name, _fill in PADDING.items():
    guarantee(f"{_name} at padding", is_masked)(functools.partial(no_bit_changes, _fill))


def may_select(row):
    """Returns whether a function of masked tokens belongs to a family in which some select the largest numbers."""
    return is_masked(row) and row.family in ("pooling", "means", "segments", "streaming", "pairs")


@guarantee("extremes of 0", may_select)
def extremes_of_0(calls):
    """The largest or the smallest real number of each feature is 0: padding that became 0 must not share its gradient."""
    wrong = []
    for sign, title in ((1, "largest"), (-1, "smallest")):
        values = {}
        for key in calls.fullest.given("data"):
            value, pad = calls.fullest.values[key], cases.padding(calls.fullest, key)
            if pad is not None and calls.fullest.axes[key][-1] not in cases.SEQUENCES:  # weights stay
                values[key] = value - sign * largest_real(sign * value, pad)
        case = calls.fullest.with_values(f"{title} numbers of 0", **values)
        wrong += messages(agreement(calls.trained, case, calls.weights))
        if is_differentiable(calls.trained, case):
            wrong += messages(gradients.gradient(calls.trained, case, calls.weights))
    return wrong


@guarantee("NaN at a real token", has_floats)
def nan_at_a_real_token(calls):
    return calls.run("NaN at a real token")


@guarantee("other examples and orders", has_floats)
def other_examples_and_orders(calls):
    """Other examples of the batch, another order of the tokens, and a constant added to all scores change nothing."""
    return [message for check in ("batch mates", "permuting", "shifting the scores") for message in calls.run(check)]


@guarantee("extreme scores", has_floats)
def extreme_scores(calls):
    """Scores of ±1e30 and −inf, one example, segment or head far above the others: right results, finite gradients."""
    wrong = []
    for case in calls.of_kinds("extreme"):
        subject = calls.subject(case)
        wrong += messages([agreement(subject, case, weights) for weights in {False, calls.weights}])
        if subject is calls.trained and is_differentiable(subject, case):
            wrong += calls.run("finite gradients", case, "extreme")
    return wrong


@guarantee("ties and edges", has_floats)
def ties_and_edges(calls):
    """Ties of tokens, some with padding, zeros and edges; two tokens that tie share the gradient."""
    wrong = []
    for case in calls.of_kinds("exact", "tied"):
        subject = calls.subject(case)
        wrong += messages(agreement(subject, case, calls.weights))
        if subject is calls.trained and is_differentiable(subject, case):
            wrong += calls.run("finite gradients", case, "exact")
            if case in calls.kinds.get("tied", ()):
                wrong += messages(gradients.gradient(subject, case, calls.weights))
    return wrong


@guarantee("rounding", has_floats)
def rounding(calls):
    """Sums that cancel, data far from 0 and averages of a few numbers lose no digits."""
    wrong = []
    for case in calls.of_kinds("cancelling", "far", "average"):
        wrong += messages(agreement(calls.subject(case), case, calls.weights))
    return wrong


def is_large(row):
    """Returns whether the function reduces tokens that may be many; in chunks the code of others reduces them."""
    return LargeCase.exists(row) and not row.state and row.family not in ("normalizers", "scores", "layers")


@guarantee("large arrays", is_large)
def large_arrays(calls):
    """More than 1 MiB of tokens, of odd lengths: loops over tiles, blocks and chunks, whose edges no token may show."""
    return LargeCase(calls.row, calls.function).wrong()


def has_loops_of_few_arguments(row):
    """Returns whether a call with few arguments runs other loops than one with all of them."""
    return is_large(row) and row.family in ("pooling", "pairs") and cases.fullest_way(row) == "fullest"


@guarantee("large arrays, few arguments", has_loops_of_few_arguments)
def large_arrays_with_few_arguments(calls):
    few = "smallest" if calls.fullest.title == "fullest" else "without masks"
    titles = [case.title for case in calls.kinds["main"]]
    return LargeCase(calls.row, calls.function, few if few in titles else "smallest").wrong()


# In rotation: each function has one of them in `make test` ------------------------------------------------------


@in_rotation("second derivatives", has_floats)
def second_derivatives(calls):
    return judged(attnpool_flax, calls.row.name, gradients.REVERSE)


@in_rotation("forward mode", has_floats)
def forward_mode(calls):
    """Of the gradient, and of the function under ``jax.jit``."""
    wrong = judged(attnpool_flax, calls.row.name, gradients.FORWARD)
    ahead, back, allowed = forward_mode_of_jit(attnpool_flax, calls.row.name)
    if not abs(ahead - back) <= allowed:
        wrong.append(f"the derivative is {ahead} in forward mode, {back} in reverse mode")
    return wrong


@in_rotation("return_weights", lambda row: bool(row.weights))
def return_weights(calls):
    """The pooled vector of a call with all arguments is the same with and without weights, up to rounding."""
    return calls.run("return_weights", subject=calls.direct)


@in_rotation("jit and vmap", lambda row: not row.state)
def jit_and_vmap(calls):
    return calls.run("jit and vmap") + calls.run("one program", subject=calls.direct)


def has_heads_before_tokens(case, key):
    """Returns whether an argument has an axis between the batch and the tokens, which packed tokens do not have."""
    axes = case.axes[key]
    return "L" in axes and axes[:2] != ("...", "L") and axes[0] != "L"


@in_rotation("packed equals dense", lambda row: "segments" in row.layouts and "y" not in row.arguments)
def packed_equals_dense(calls):
    """The packed function of the same real tokens has the results and the gradients of the dense definition."""
    packed = Candidate(getattr(attnpool_flax, f"segment_{calls.row.name}"), mask_form="segments")
    subject, case, _ = fullest(packed, calls.row.name, dtype="float32")
    case = case.with_values(
        "", **dict.fromkeys(key for key in case.given("data", "stretch") if has_heads_before_tokens(case, key))
    )
    return messages([agreement(subject, case), gradients.gradient(subject, case)])


def in_another_dtype(dtype, calls):
    """Returns what is wrong with results and gradients in a dtype, and with NaN at padding."""
    subject, case = OneProgram(calls.row, calls.function, dtype), calls.fullest
    wrong = messages([agreement(subject, case, calls.weights), gradients.gradient(subject, case, calls.weights)])
    return wrong + calls.run("NaN in padding", case, "main", subject)


for _dtype in ("bfloat16", "float16", "float64"):
    in_rotation(_dtype, has_floats)(functools.partial(in_another_dtype, _dtype))


@in_rotation("gradients in all ways", has_floats)
def gradients_in_all_ways(calls):
    """Values and gradients of the ways to call the function that other tests only call."""
    wrong = []
    for case in calls.kinds["main"]:
        if calls.subject(case) is calls.direct and not case.options.get(calls.row.surrogate):
            wrong += messages(agreement(calls.trained, case, calls.weights))
            wrong += messages(gradients.gradient(calls.trained, case, calls.weights))
    return wrong


def in_other_shapes(shapes, calls):
    """Returns what is wrong with results, with fully masked rows and with NaN at padding in other shapes."""
    wrong = []
    checks = ("empty rows", "NaN in padding", "poison in shared arrays", "padding side", "deleting is masking")
    drawn = [(case, kind) for case, kind in cases.cases_of(calls.row, None, shapes) if kind == "shape"]
    assert drawn, "no case has these shapes"
    for case, kind in drawn:
        situation = calls.situation(case, kind, calls.direct)
        wrong += messages(agreement(calls.direct, case, calls.weights))
        applicable = [check for check in checks if CHECKS[check].applies(situation)]
        wrong += [text for check in applicable for text in calls.run(check, case, kind, calls.direct)]
    return wrong


def is_batched(row):
    """Returns whether the function has batch axes."""
    return row.batched


def has_several_data(row):
    """Returns whether the function has several arrays, one of which all examples may share."""
    return row.batched and sum(a.kind == "data" and not a.optional for a in row.arguments.values()) > 1


for _name, _when, *_shapes in (
    ("other batches", is_batched, "no batch", "batch of 1", "empty batch"),
    ("other lengths", has_floats, "length 0", "length 1", "axes of 0"),
    ("other widths and ranks", has_floats, "widths of 1, batch (2, 3, 2)", "rank 1"),
    ("shared data", has_several_data, "shared"),
):
    in_rotation(_name, _when)(functools.partial(in_other_shapes, tuple(_shapes)))


@in_rotation("arguments alone")
def arguments_alone(calls):
    """Each optional argument by itself, further values of options, counts and axes."""
    return messages([agreement(calls.direct, case) for case in calls.of_kinds("way")])


@in_rotation("arguments that broadcast", is_masked)
def arguments_that_broadcast(calls):
    drawn = cases.cases_of(calls.row, None, ("broadcasting",))
    return messages([agreement(calls.direct, case) for case, kind in drawn if kind == "form"])


@in_rotation("amount of padding", is_masked)
def amount_of_padding(calls):
    return calls.run("padding amount")


in_rotation("large arrays without options", lambda row: is_large(row) and not has_loops_of_few_arguments(row))(
    large_arrays_with_few_arguments
)


@in_rotation("large arrays in chunks and of scores", lambda row: LargeCase.exists(row) and not is_large(row))
def large_arrays_in_chunks_and_of_scores(calls):
    return LargeCase(calls.row, calls.function).wrong()


@in_rotation("many examples", lambda row: LargeCase.exists(row) and row.batched)
def many_examples(calls):
    """More than 1 MiB of tokens in many short examples, several of which share a tile."""
    return LargeCase(calls.row, calls.function, many=True).wrong()


@in_rotation("long sums", lambda row: any(cases.long_rows(row, 16)))
def sums_of_a_million_tokens(calls):
    return messages(long_sums(calls.direct))


# Over a mesh of eight devices, in a process of their own ---------------------------------------------------------

OVER_A_MESH = {}


@guarantee("split over devices", lambda row: "mesh" in row.layouts, OVER_A_MESH)
def split_over_devices(calls):
    """Tokens that are split over eight devices: results, gradients and NaN at padding."""
    return messages(over_devices(calls.trained, calls.fullest, calls.situation(calls.fullest)))


def parameters():
    """Yields a parameter for each function and guarantee; in `make test` each function has one in rotation."""
    for place, row in enumerate(ROWS.values()):
        possible = [name for name, (_, when) in ROTATION.items() if when(row)]
        for name, (_, when) in (GUARANTEES | ROTATION).items():
            if when(row):
                taken = name in GUARANTEES or name == possible[place % len(possible)]
                marks = () if taken else pytest.mark.thorough
                yield pytest.param(row.name, name, id=f"{row.name}: {name}", marks=marks)
        for name, (_, when) in OVER_A_MESH.items():
            if when(row):
                yield pytest.param(row.name, name, id=f"{row.name}: {name}", marks=pytest.mark.mesh)


@pytest.mark.parametrize(("name", "guarantee"), list(parameters()))
def test_guarantee(name, guarantee):
    check, _ = (GUARANTEES | ROTATION | OVER_A_MESH)[guarantee]
    with np.errstate(all="ignore"):
        wrong = check(calls_of(name))
    assert not wrong, f"`attnpool check --only {name}` shows the smallest case"
