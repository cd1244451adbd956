"""The language of the rows: what it does not understand it refuses, and what it understands it says in objects."""

import dataclasses

import pytest

from attnpool_ref import table
from attnpool_ref.table import language


def row(shapes, *rules):
    """The row of a function that does not exist."""
    return dataclasses.replace(table.get("mean_pooling"), shapes=shapes, rules=rules, options={"flag": "flag"})


def written(argument):
    kind = f":{argument.kind}" if argument.kind in language.KINDS else ""
    marked = [[axis + "?" * (axis == argument.lacks) for axis in axes] for axes in argument.shapes]
    shapes = "|".join(f"[{', '.join(axes)}]" for axes in (marked[:1] if argument.lacks else marked))
    return argument.name + "?" * argument.optional + "~" * (argument.kind == "stretch") + kind + shapes


def test_a_row_says_again_what_its_text_says():
    for row in table.BY_NAME.values():
        results = [f"[{', '.join(axes)}]" for axes in row.results]
        result = results[0] if len(results) == 1 else f"({', '.join(results)})"
        assert f"{' '.join(map(written, row.arguments.values()))} -> {result}" == row.shapes
        lengths = [argument for argument in row.arguments.values() if argument.kind == "lengths"]
        assert len(row.relations) == len(row.rules) + len(lengths)  # a mask and its lengths exclude each other


REFUSED = (
    *("x[..., L, d] mask?[..., L", "x[..., L, d]", "x[..., L, d] -> "),  # no result
    *("x[..., L, d] mask?[..., L -> [..., d]", "x[..., L, d]] -> [..., d]", "x[..., L, d] -> ([..., d], [..., e)"),
    "x[..., L, d] mask [..., L] -> [..., d]",  # a blank that parts a name from its axes
    *("x[L, ..., d] -> [d]", "x[..., L, 3] -> [..., d]", "x[..., L, d-e] -> [..., d]", "x[..., L, d+] -> [..., d]"),
    *("x[..., L d] -> [..., d]", "x!~[..., L, d] -> [..., d]", "x:float[..., L, d] -> [..., d]"),
    *("x?~:int[..., L, d] -> [..., d]", "x[..., L, d] x[..., L, d] -> [..., d]", "x[..., L, d]|L -> [..., d]"),
    "x[..., L, d] -> [..., d] [..., e]",
)


@pytest.mark.parametrize("shapes", REFUSED)
def test_shapes_that_are_not_understood_are_refused(shapes):
    with pytest.raises(ValueError, match=r"understood|brackets|twice|no ->|no known kind|no result"):
        row(shapes)


REFUSED_RULES = {
    **{"c=d unles x_kernel": "not understood", "c=d unless x_kernels": "x_kernels", "c=z unless x_kernel": "z"},
    **{"not mask with length": "length", "mask needs flags": "flags", "x_kernel[d, c] if masks": "masks"},
    **{"x_kernel[c, d] if mask": r"\[c, d\]", "x_kernel[d, c] if flag=yes": "yes", "scale needs flag": "scale"},
    **{"x_kernel[d c] if mask": "not understood", "z may be 0": "z", "d may be zero": "not understood"},
    **{"x_kernel needs kind=best": "kind", "x_kernel[3d, c] if flags": "flags"},
}


@pytest.mark.parametrize("rule", REFUSED_RULES)
def test_rules_that_are_not_understood_are_refused(rule):
    with pytest.raises(ValueError, match=REFUSED_RULES[rule]):
        row("x[..., L, d] mask?[..., L] x_kernel?[d, c] -> [..., d]", rule)


def test_rules_that_are_understood_are_objects():
    shapes = "x[..., L, d] mask?[..., L] lengths?:int[...] x_kernel?[d, c] -> [..., d]"
    rules = {
        "c=d unless x_kernel or mask": language.Equal("c", "d", False, ("x_kernel", "mask")),
        "d=c if x_kernel": language.Equal("d", "c", True, ("x_kernel",)),
        "not mask with lengths": language.Excludes("mask", "lengths"),
        "mask needs flag": language.Needs("mask", "flag"),
        "d may be 0": language.MayBeEmpty("d"),
        "x_kernel needs flag=best": language.Needs("x_kernel", "flag", "best"),
        "mask needs x_kernel": language.Needs("mask", "x_kernel"),
        "x_kernel[d, c] if flag": language.Shaped("x_kernel", ("d", "c"), True, "flag", None),
        "x_kernel[d, c] unless mask": language.Shaped("x_kernel", ("d", "c"), False, "mask", None),
    }
    assert row(shapes, *rules).relations == tuple(rules.values())


def test_arguments_that_are_understood_know_their_kind():
    parsed = row("x[..., L, 2d+e] k[d, e]|[e] q[] mask?[..., L] b?~[..., L] l?:int[...] a:bool[d, d] -> ([..., d], [])")
    kinds = {name: (argument.kind, argument.optional) for name, argument in parsed.arguments.items()}
    assert kinds == {
        **{"x": ("data", False), "k": ("parameter", False), "q": ("number", False), "mask": ("mask", True)},
        **{"b": ("stretch", True), "l": ("int", True), "a": ("bool", False)},
    }
    assert parsed.arguments["k"].shapes == (("d", "e"), ("e",))
    assert language.terms(parsed.arguments["x"].own[1]) == [(2, "d"), (1, "e")]
    assert parsed.results == (("...", "d"), ())
