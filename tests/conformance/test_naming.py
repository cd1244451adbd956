"""The smallest case is code that runs when it is pasted, whatever the candidate is."""

import base64
import functools
import re
import types
import zlib

import numpy as np
import pytest

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.conformance.candidates import naming
from attnpool_ref.conformance.running import snippets

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


class Wide:
    """A module with more parameters than anybody would read; wrong by a tenth."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.V = types.SimpleNamespace(weight=rng.standard_normal((30, 96)).astype("f"), biases=[np.zeros(30, "f")])
        self.w = {"weight": rng.standard_normal((1, 30)).astype("f")}

    def __call__(self, x, mask=None):
        kernels = {"kernel": self.V.weight.T, "bias": self.V.biases[0], "out_kernel": self.w["weight"][0]}
        return np.float32(1.1) * ref.additive_attention_pooling(x, mask, **kernels)


wide = Wide()


def test_the_smallest_case_of_a_module_has_its_parameters_by_name_and_x_by_a_seed(capsys):
    held = {"kernel": "V.weight.T", "bias": "V.biases.0", "out_kernel": "w.weight[0]"}
    options = FEW | {"parameters": held, "only": ("additive_attention_pooling",)}
    snippet = conformance.judge(wide, **options).smallest_failure.snippet
    for line in (
        "x = (np.random.default_rng(0).integers(-16, 17, (2, 96)) / 8).astype(np.float32)",
        "kernel = wide.V.weight.T",
        "bias = wide.V.biases[0]",
        "out_kernel = wide.w['weight'][0]",
    ):
        assert line in snippet.splitlines()
    assert len(snippet.splitlines()) < 15
    exec(snippet, {"__name__": "a prompt"})
    assert len(capsys.readouterr().out.split("oracle: ")) == 2


def test_large_arrays_are_one_line_of_code():
    rng = np.random.default_rng(3)
    arrays = {
        "a draw": snippets.drawn((2, 30), 5),
        "equal tokens": np.repeat(rng.standard_normal((1, 3)), 40, 0),
        "any numbers": rng.standard_normal((7, 11)).astype(np.float32).astype(np.float64),
        "a mask": rng.random((9, 9)) > 0.5,
        "numbers of tokens": rng.integers(0, 9, (60,)),
    }
    for array in arrays.values():
        code = snippets._literal(array, "float32", 5)
        assert "\n" not in code
        want = array.astype(np.float32) if array.dtype.kind == "f" else array
        np.testing.assert_array_equal(eval(code, {"np": np, "base64": base64, "zlib": zlib}), want)
    assert len(snippets._literal(arrays["equal tokens"], "float32")) < 120


def forgets_many(x, mask=None):
    return ref.mean_pooling(x, mask) * np.float32(1.5 if x.shape[-2] > 1000 else 1)


def test_a_case_of_long_sums_is_drawn_again(capsys):
    snippet = conformance.judge(
        forgets_many, **FEW | {"only": ("mean_pooling",), "long": True}
    ).smallest_failure.snippet
    assert "case = next(case for case in " in snippet and "x = case.values['x'].astype(np.float32)" in snippet
    got, want = ran(snippet, capsys)
    assert got != want


def by_one_too_few(x, scale=None, bias=None, *, epsilon=1e-5):
    """A layer norm by N - 1, which is NaN at width 1."""
    with np.errstate(all="ignore"):
        normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + epsilon)
    return (normal * (1 if scale is None else scale) + (0 if bias is None else bias)).astype(x.dtype)


def test_the_smallest_case_shows_the_defect_and_not_what_hides_it():
    failure = conformance.judge(by_one_too_few, **FEW | {"only": ("layer_norm",)}).smallest_failure
    assert failure.check == "values" and "nan" not in failure.message
