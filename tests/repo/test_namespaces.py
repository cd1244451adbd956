"""Both packages offer what the table names: the same functions, in its order, with the same signatures and a docstring."""

import functools
import inspect
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import one_of_each
from packages import every_package

import attnpool_flax
import attnpool_ref
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions import dispatch
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.table.language import Excludes, arguments_of, terms

NAMES = [row.name for row in table.BY_NAME.values()]
OWN = ["merge_states", "finalize_state", "pad", "pack", "unpack"]
"""Functions of states, and from and to lists of sequences, which are no rows."""


every_row = pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
a_row_of_each_family = pytest.mark.parametrize(
    "row", one_of_each(lambda row: row.family, table.BY_NAME.values()), ids=lambda row: row.name
)


def public_functions(package):
    return [name for name in package.__all__ if inspect.isfunction(getattr(package, name))]


@every_package
def test_the_functions_of_all_have_the_order_of_the_table(package):
    own = ["load", "save", *OWN[2:], "chosen_implementation"]
    assert public_functions(package) == NAMES + (OWN[:2] + own if package is attnpool_flax else OWN)


def test_what_is_no_row_and_no_class_comes_last():
    assert attnpool_ref.__all__[-4:] == ["formats", "pad", "pack", "unpack"]
    assert attnpool_flax.__all__[-7:] == ["linen", "load", "save", "pad", "pack", "unpack", "chosen_implementation"]


@every_package
def test_all_names_what_is_there_once(package):
    assert len(set(package.__all__)) == len(package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_both_packages_have_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", attnpool_ref.__version__)
    assert attnpool_flax.__version__ == attnpool_ref.__version__


@every_row
@every_package
def test_a_function_stands_in_the_file_of_its_family(package, row):
    function = inspect.unwrap(getattr(package, row.name))
    assert f"{function.__module__}.".startswith(f"{package.__name__}.{row.family}.")


def test_a_row_says_in_which_layouts_its_function_is_there():
    there = {
        row.name: (
            *(["segments"] if f"segment_{row.name}" in table.BY_NAME else []),
            *(["states"] if row.name in {state.state for state in table.STATES} else []),
            *(["mesh"] if "axis_name" in inspect.signature(getattr(attnpool_flax, row.name)).parameters else []),
        )
        for row in table.VARIANTS
    }
    assert there == {row.name: row.layouts for row in table.VARIANTS}


def test_the_table_keeps_a_family_together():
    families = [row.family for row in table.BY_NAME.values()]
    assert sorted(families, key=families.index) == families


@every_row
def test_the_signatures_are_the_same_but_for_how_to_compute(row):
    definition = inspect.signature(getattr(attnpool_ref, row.name))
    implementation = inspect.signature(getattr(attnpool_flax, row.name))
    own = ("axis_name", "implementation", "precision")
    parameters = [p for p in implementation.parameters.values() if p.name not in own]
    assert implementation.replace(parameters=parameters) == definition


@a_row_of_each_family
def test_a_jax_function_takes_a_precision_if_it_multiplies(row):
    """`precision=None` comes last, by keyword alone, and only where a product of arrays needs it."""
    function = getattr(attnpool_flax, row.name)
    multiplies = any("dot_general" in str(jax.make_jaxpr(call)()) for call in calls_of(function, row))
    parameters = list(inspect.signature(function).parameters.values())
    assert ("precision" in [p.name for p in parameters]) == multiplies
    if multiplies:
        assert (parameters[-1].name, parameters[-1].default) == ("precision", None)
        assert parameters[-1].kind is inspect.Parameter.KEYWORD_ONLY


@a_row_of_each_family
def test_a_jax_function_takes_an_implementation_if_it_walks_over_tokens(row, one_device):
    """`implementation=None` comes by keyword alone, last or right before `precision`, and is what walks the tokens."""
    function = getattr(attnpool_flax, row.name)
    parameters = list(inspect.signature(function).parameters.values())
    names = [p.name for p in parameters if p.name != "precision"]
    if "implementation" not in names:
        assert "tiles" not in heard_from(function, row, 3)
        return
    parameter = parameters[names.index("implementation")]
    assert (names[-1], parameter.name, parameter.default) == ("implementation", "implementation", None)
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    # weights that are no softmax's are made of whole products
    whole = {"einsum"} if "normalizer" in row.options and row.family != "attention" else set()
    for asked in dispatch.IMPLEMENTATIONS:
        assert heard_from(functools.partial(function, implementation=asked), row, 3) | whole == {asked} | whole


def test_the_poolings_that_merge_states_take_an_axis_name_before_how_to_compute():
    taking = {}
    for row in table.VARIANTS:
        parameters = inspect.signature(getattr(attnpool_flax, row.name)).parameters
        if "axis_name" in parameters:
            taking[row.name] = parameters["axis_name"]
            rest = list(parameters)[list(parameters).index("axis_name") + 1 :]
            assert set(rest) <= {"implementation", "precision"}
    assert set(taking) == {row.name for row in table.VARIANTS if "mesh" in row.layouts}
    assert {(p.kind, p.default) for p in taking.values()} == {(inspect.Parameter.KEYWORD_ONLY, None)}


def heard_from(function, row, size):
    """The implementations that walk in the calls; of a size that no other test has, as a call that is known is not traced."""
    with dispatch.logged_dispatches() as heard:
        for call in calls_of(function, row, size):
            jax.make_jaxpr(call)()
    return set(heard)


def calls_of(function, row, size=2):
    """Calls with every argument that goes together, all axes of one size or sums of it; one call for each name of each option."""
    excluded = {rule.second for rule in row.relations if isinstance(rule, Excludes)}
    choices = [{}]
    for name, allowed in row.options.items():
        values = (
            {"flag": (row.takes(name, True),), "axis": (-1,)}.get(allowed, (size,))
            if isinstance(allowed, str)
            else allowed
        )
        choices = [choice | {name: value} for choice in choices for value in values]
    for choice in choices:
        names = cases.legal(row, [name for name in row.arguments if name not in excluded], choice)
        arguments = arguments_of(row, dict.fromkeys(names, True) | choice)
        given = {name: ones(arguments[name], row.sizes, size) for name in names}
        yield lambda given=given, choice=choice: function(**given, **choice)


def ones(argument, sizes, size):
    """An array for an argument, each of whose axes is of one size, or of a sum of it, or what the row says."""
    shape = [
        size
        if axis in ("...", "num_segments")
        else sum(sizes.get(symbol, size) * number for number, symbol in terms(axis))
        for axis in argument.shapes[0]
    ]
    return jnp.ones(shape, int if argument.integers else {"mask": bool, "bool": bool}.get(argument.kind, np.float32))


@every_row
def test_the_signature_and_the_row_name_the_same_arguments(row):
    signature = set(inspect.signature(getattr(attnpool_ref, row.name)).parameters)
    described = set(row.arguments) | set(row.options) | ({"return_weights"} if row.weights else set())
    assert signature == described


@every_row
def test_an_argument_may_be_none_if_its_row_says_so(row):
    parameters = inspect.signature(getattr(attnpool_ref, row.name)).parameters
    for name, argument in row.arguments.items():
        needed = (row.name, name) == (
            "attention_state",
            "query",
        )  # it has the place of attention_pooling's, and no mean
        assert (parameters[name].default is None) == (argument.optional or needed), name


@every_row
def test_the_source_of_a_row_is_listed(row):
    assert row.source in table.SOURCES


@every_row
def test_the_definition_is_documented_in_full(row):
    function = getattr(attnpool_ref, row.name)
    text = inspect.getdoc(function)
    parts = (
        r"\A\w[^\n]*\.\n",
        r"^\.\. math:: ",
        "^Args:\n",
        "^Returns:\n",
        "^Raises:\n  ValueError: ",
        "^Source:\n",
        "^>>> ",
    )
    found = [re.search(part, text, re.MULTILINE) for part in parts]
    assert [part for part, match in zip(parts, found, strict=True) if match is None] == []
    assert sorted(found, key=re.Match.start) == found
    assert f"{row.name}(" in text[found[-1].start() :]
    documented = re.findall(r"^  (\w+): ", text[found[2].end() : found[3].start()], re.MULTILINE)
    assert documented == list(inspect.signature(function).parameters)


@every_row
def test_the_twin_says_whose_twin_it_is(row):
    body = FUNCTIONS[row.name].body
    assert body.__name__ == row.name.removeprefix("segment_" if row.packed else "")
    assert inspect.getdoc(body).startswith(f"Twin of :func:`attnpool_ref.{body.__name__}`")


def test_get_suggests_the_nearest_names():
    with pytest.raises(ValueError, match="no function is called 'mean_poling'; did you mean mean_pooling"):
        table.get("mean_poling")


def test_the_calls_of_the_precision_test_reach_the_arithmetic():
    """The calls that decide who multiplies are real calls: their result has the shape that the row states."""
    row = table.get("mean_pooling")
    chex.assert_shape(next(calls_of(attnpool_flax.mean_pooling, row))(), (2, 2))
