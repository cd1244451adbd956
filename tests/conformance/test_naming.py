"""The smallest case is code that runs when it is pasted, whatever the candidate is."""

import functools
import re
import types

import numpy as np
import pytest

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.conformance.candidates import naming

FEW = {"dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}


def inverted(x, mask=None, factor=1):
    return ref.mean_pooling(x, None if mask is None else ~np.asarray(mask)) * np.float32(factor)


class Pool:
    """A module of one's own."""

    factor = np.ones(1, np.float32)

    def __call__(self, x, mask=None):
        return inverted(x, mask)

    def pool(self, x, mask=None):
        return inverted(x, mask)

    @staticmethod
    def by_class(x, mask=None):
        return inverted(x, mask)

    class Inner:  # noqa: D106
        @classmethod
        def pool(cls, x, mask=None):
            return inverted(x, mask)


instance = Pool()
bound = Pool().pool
by_name = lambda x, mask=None: inverted(x, mask)  # noqa: E731
part = functools.partial(inverted, factor=np.float32(2))
mapping = {"mean_pooling": lambda x, mask=None: inverted(x, mask)}
namespace = types.SimpleNamespace(mean_pooling=lambda x, mask=None: inverted(x, mask))

NAMED = {
    "a function": (inverted, "inverted"),
    "an instance": (instance, "instance"),
    "a method of an instance": (instance.pool, "instance.pool"),
    "a bound method under a name": (bound, "bound"),
    "a lambda under a name": (by_name, "by_name"),
    "a partial under a name": (part, "part"),
    "a partial made on the way": (functools.partial(inverted, factor=2), "functools.partial(inverted, factor=2)"),
    "a static method": (Pool.by_class, "Pool.by_class"),
    "a class method of an inner class": (Pool.Inner.pool, "Pool.Inner.pool"),
    "in a mapping": (mapping, "mapping['mean_pooling']"),
    "in a namespace": (namespace, "namespace.mean_pooling"),
}


def failure_of(candidate):
    return conformance.judge(candidate, only=("mean_pooling",), **FEW).smallest_failure


def ran(code, capsys):
    """What the code prints of the candidate and of the oracle, where there is nothing beside it."""
    exec(code, {"__name__": "a prompt"})
    return re.findall(r"(?:candidate|oracle): (.*)", capsys.readouterr().out)


@pytest.mark.parametrize("way", NAMED)
def test_code_imports_the_candidate_by_the_name_that_leads_to_it(way, capsys):
    candidate, expression = NAMED[way]
    snippet = failure_of(candidate).snippet
    assert f"\ncandidate = {expression}\n" in snippet and f"\nfrom {__name__} import " in snippet
    got, want = ran(snippet, capsys)
    assert got != want


@pytest.mark.parametrize(
    "make", [lambda: lambda x, mask=None: inverted(x, mask), Pool, lambda: functools.partial(Pool().pool)]
)
def test_a_candidate_without_a_name_repeats_its_answer_or_is_the_readers(make, capsys):
    failure = failure_of(make())
    assert "has no name to import it by: call yours `candidate`" in failure.snippet
    got, want = ran(failure.snippet, capsys)
    assert got != want
    exec(failure.snippet, {"candidate": ref.mean_pooling})
    got, want = re.findall(r": (.*)", capsys.readouterr().out)
    assert got == want


def test_without_a_name_and_without_an_answer_the_error_is_repeated(capsys):
    def make():
        def pool(x, mask=None):
            raise RuntimeError("no 'pooling'")

        return pool

    assert ran(failure_of(make()).snippet, capsys)[0] == "raises RuntimeError: no 'pooling'"


def test_what_a_script_holds_is_no_name_for_a_prompt(monkeypatch):
    main = types.ModuleType("__main__")
    main.pool = target = lambda x, mask=None: x
    target.__module__ = "__main__"
    monkeypatch.setitem(naming.sys.modules, "__main__", main)
    assert naming.lines_of(target) == ["candidate = pool"]
    main.__file__ = "script.py"
    assert naming.lines_of(target) is None
