"""Options of the judge: each is declared once, and functions, command, plugin and page take it from there."""

import dataclasses
import inspect
import re

import make_options
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli.application import application, values_of
from attnpool_ref.conformance import Candidate, Scope, cases
from attnpool_ref.conformance.option import option, options_of, takes_options_of

COMMAND = application.commands["check"]
FEW = {"dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}

every_option = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in (Scope, Candidate) for name in options_of(kind)]
)


def keywords_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


def defaults():
    return {each.name: each.default for each in dataclasses.fields(Scope) if each.name in options_of(Scope)}


def test_judge_and_check_take_the_options_of_a_scope_with_its_defaults():
    assert keywords_of(conformance.judge) == {"name": "", "progress": None} | defaults()
    without = {name: default for name, default in defaults().items() if name not in ("only", "strict")}
    assert keywords_of(conformance.check) == without | {"dtypes": ("float32", "float64")}


@pytest.mark.parametrize("function", [conformance.judge, conformance.check])
def test_the_help_explains_each_option_once(function):
    text = inspect.getdoc(function)
    documented = re.findall(r"^  \*?\*?(\w+): ", text.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert documented == list(inspect.signature(function).parameters)
    assert max(map(len, text.splitlines())) <= 120, text


@pytest.mark.parametrize("name", ["only", "strict", "progress", "jobs", "no_such_option"])
def test_check_refuses_what_it_does_not_take(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        conformance.check(ref.mean_pooling, "mean_pooling", **{name: 1})


def test_judge_refuses_an_option_that_nothing_has():
    with pytest.raises(TypeError, match="unexpected keyword argument 'gradient'"):
        conformance.judge(ref, gradient=True)


def test_a_scope_is_validated_and_plain():
    scope = Scope(only=["mean_pooling"], dtypes=["float64"], seed=3, waive={"shape": "why not"})
    assert (scope.only, scope.dtypes, scope.seed) == (("mean_pooling",), ("float64",), "3")
    for wrong, message in [
        ({"only": ("mean_poling",)}, "did you mean mean_pooling"),
        ({"dtypes": ("float8",)}, "no dtype is called 'float8'"),
        ({"dtypes": ()}, "`dtypes` is empty, needs at least one of float32, bfloat16, float16, float64$"),
        ({"gradients": ("float8",)}, "no dtype is called 'float8', needs one of float32, bfloat16, float16, float64$"),
        (
            {"shapes": ("no_batch",)},
            "no shape is called 'no_batch', needs one of 'no batch', .*; did you mean 'no batch'",
        ),
        ({"shapes": ("batch (2, 3)",)}, "did you mean 'long, batch [(]2, 3[)]'"),
        ({"shapes": ("lengths of 8 bits",)}, "no shape is called 'lengths of 8 bits'"),
        ({"waive": {"shap": "x"}}, "did you mean shape"),
        ({"waive": {"shape": " "}}, "needs a reason"),
    ]:
        with pytest.raises(ValueError, match=message):
            Scope(**wrong)


def test_names_of_shapes_and_dtypes_may_come_in_any_collection():
    scope = Scope(shapes=[*cases.SHAPES], gradients=["float32", "float64"])
    assert (scope.shapes, scope.gradients) == (cases.SHAPES, ("float32", "float64"))
    assert Scope(gradients=()).gradients == () and Scope(gradients=False).gradients is False


@every_option
def test_the_command_has_each_option_that_has_a_flag(kind, name):
    declared = options_of(kind)[name]
    found = [each for each in COMMAND.params if each.name == name]
    assert [each.opts for each in found] == ([[declared.flag]] if declared.flag else [])
    assert all(each.help == declared.help != "" for each in found)
    if kind is Candidate:
        text = " ".join(str(inspect.getdoc(kind)).split())
        assert f"{name}: {' '.join(declared.says.split())}" in text


def test_the_help_of_the_command_is_the_text_of_the_option():
    declared = options_of(Candidate)
    assert declared["padding_true"].help == "Your masks are True (or 1) at padding."
    assert (
        declared["shared"].help
        == "Data that all examples share, such as query: they have no batch axes in any call. May be repeated."
    )
    assert "``" not in "".join(each.help for each in declared.values())


def test_the_page_has_the_tables_of_the_options():
    assert make_options.PATH.read_text(encoding="utf-8") == make_options.page(), "run `make docs`"


def test_the_command_judges_with_the_defaults_of_a_scope():
    seen = {}
    COMMAND.main(["attnpool_ref"], standalone_mode=False, obj=lambda candidate, **given: seen.update(given))
    calls = {each.name: getattr(Candidate(None), each.name) for each in dataclasses.fields(Candidate)}
    assert seen["calls"] == {name: value for name, value in calls.items() if name != "target"}
    own = {name: value for name, value in seen.items() if name in defaults()}
    assert own == {name: defaults()[name] for name in own} | {"dtypes": ()}
    assert own.keys() == {name for name, declared in options_of(Scope).items() if declared.flag}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--arg mask", "--arg mask needs THEIRS=OURS, as in --arg attention_mask=mask"),
        ("--size d=-1", "--size d=-1 needs a whole number, as in --size d=6"),
        ("--waive shape", "--waive shape needs GUARANTEE=REASON, as in --waive '1e30 in padding=inputs are finite'"),
        ("--waive shap=x", "--waive: no guarantee is called 'shap'; did you mean shape"),
        ("--dtype float8", "'float8' is not one of 'float32', 'bfloat16', 'float16', 'float64'"),
        ("--only mean_poling", "did you mean mean_pooling"),
    ],
)
def test_wrong_words_of_the_command_are_refused(words, message):
    result = CliRunner().invoke(application, ["check", "attnpool_ref", *words.split()])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_new_option_is_one_entry():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Wider(Scope):
        ratio: str = option("half", "how much.", flag="--ratio", kind="text")

    @takes_options_of(Wider, without=("only",), ratio="most")
    def function(candidate, **options):
        """Does nothing.

        Args:
          candidate: the candidate.
          **options: those of Wider.
        """
        return options

    assert keywords_of(function)["ratio"] == "most" and "only" not in keywords_of(function)
    assert function(1) == {"ratio": "most"} and function(1, ratio="all") == {"ratio": "all"}
    assert "\n  ratio: how much.\n" in str(inspect.getdoc(function))
    given = dict.fromkeys((name for name, declared in options_of(Wider).items() if declared.flag), ()) | {
        "ratio": "a quarter"
    }
    assert values_of(Wider, given)["ratio"] == "a quarter" and not given


def test_a_skipped_guarantee_names_the_option_that_skips_it():
    """Without laws, then without shapes: "no case of this function applies" would say that nothing can be judged."""

    def whys(**options):
        (row,) = conformance.judge(ref.mean_pooling, only=("mean_pooling",), dtypes=("float32",), **options).rows
        return {name: kept.why for name, kept in row.guarantees.items()}

    without_laws = whys(laws=False, long=False)
    assert {without_laws[name] for name in ("batch mates", "poison in shared arrays")} == {
        "skipped with laws=False, --quick"
    }
    without_shapes = whys(shapes=(), long=False)
    assert {without_shapes[name] for name in ("shapes", "arguments that broadcast", "padding side")} == {
        "skipped with shapes=(), partial=False, --quick"
    }
