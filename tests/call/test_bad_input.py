"""Every function of both packages raises the documented error for a bad argument of each kind (``docs/contract.md``, 1 and 18).

It is a TypeError for an argument that is not an array of numbers or does not exist, and a ValueError for any other. One
code checks shapes, masks and lengths for all functions; ``test_contract.py`` has their messages.
"""

import numpy as np
import pytest
from drawn import way
from packages import every_package

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.table.language import Excludes, Needs, NotZero

INTEGERS = ("int", "lengths", "index", "position")
WRONG_OPTIONS = {
    "flag": ["yes", 2],
    "axis": [9, 1.5],
    "dtype": ["int32", "float16"],
    "size": [-1, 1.5],
    "count": [-1, 1.5],
    "positive": [0, 1.5],
}


def arguments_of(row):
    """Returns the arguments of the call with the most arguments, floats as float32."""
    case = cases.draw(row, "bad input", *way(row)[1:], (3,))
    given = {key: value for key, value in case.values.items() if value is not None}
    floats = {key: np.float32(value) for key, value in given.items() if np.asarray(value).dtype.kind == "f"}
    return given | floats | case.options


def changes(row, given):
    """Yields (the error, the arguments in place of good ones)."""
    for key, argument in row.arguments.items():
        if key not in given:
            continue
        value = np.asarray(given[key])
        yield TypeError, {key: "text"}
        yield TypeError, {key: np.full(value.shape or (1,), None, object)}
        if not argument.optional:
            yield TypeError, {key: None}
        if argument.kind == "number":
            yield ValueError, {key: np.ones(2)}
        else:
            yield ValueError, {key: value.astype(np.complex64)}
        if argument.kind in ("mask", "bool", *INTEGERS):
            yield ValueError, {key: value.astype(np.float32)}
    yield TypeError, {"no_such_argument": 1}
    for key, allowed in row.options.items():
        for wrong in ["no such name", 3] if isinstance(allowed, tuple) else WRONG_OPTIONS[allowed]:
            yield ValueError, {key: wrong}
    if row.weights:
        yield ValueError, {"return_weights": "yes"}
    for rule in row.relations:
        if isinstance(rule, Excludes) and rule.first in given:
            yield ValueError, {rule.second: np.ones((), np.int32)}
        elif isinstance(rule, Needs) and rule.argument in given and rule.option in row.options:
            others = row.options[rule.option] if rule.value else [False]
            yield ValueError, {rule.option: next(other for other in others if other != rule.value)}
        elif isinstance(rule, NotZero):
            yield ValueError, {rule.argument: np.zeros(()), rule.option: False}


def outcome(function, error, args, kwargs):
    """Returns what a function did instead of raising the error, or ""."""
    try:
        function(*args, **kwargs)
    except error:
        return ""
    except Exception as other:
        return f"raised {other!r}"
    return "returned a result"


@every_package
def test_a_bad_argument_of_each_kind_is_refused_by_every_function(package):
    wrong = []
    for row in table.BY_NAME.values():
        given = arguments_of(row)
        found = list(changes(row, given))
        assert len(found) >= 5, row.name
        for error, changed in found:
            unknown = {key: changed[key] for key in changed if key == "no_such_argument"}
            args, kwargs = arrange(getattr(attnpool_ref, row.name), given | (changed if not unknown else {}))
            did = outcome(getattr(package, row.name), error, args, kwargs | unknown)
            wrong += [(row.name, changed, did)] if did else []
    assert not wrong


@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_the_call_without_the_change_is_legal(row):
    args, kwargs = arrange(getattr(attnpool_ref, row.name), arguments_of(row))
    with np.errstate(all="ignore"):
        getattr(attnpool_ref, row.name)(*args, **kwargs)
