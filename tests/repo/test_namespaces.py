"""Both packages offer what the table names: the same functions, in its order, with the same signatures."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import one_of_each
from packages import every_package
from programs import precisions

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.table.language import Excludes, WithoutAxis, arguments_of, terms

ROWS = table.BY_NAME.values()
OF_STATES, OF_SEQUENCES = ["merge_states", "finalize_state"], ["pad", "pack", "unpack"]
"""Functions of states, and from and to lists of sequences, which are no rows."""

a_row_of_each_family = pytest.mark.parametrize(
    "row", one_of_each(lambda row: row.family, ROWS), ids=lambda row: row.name
)


@every_package
def test_all_has_each_name_once_and_its_functions_in_the_order_of_the_table(package):
    assert len(set(package.__all__)) == len(package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    functions = [name for name in package.__all__ if inspect.isfunction(getattr(package, name))]
    of_jax = ["load", "save", *OF_SEQUENCES]
    assert functions == [*table.BY_NAME, *OF_STATES, *(of_jax if package is attnpool_flax else OF_SEQUENCES)]


def test_both_packages_have_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", attnpool_ref.__version__)
    assert attnpool_flax.__version__ == attnpool_ref.__version__


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


def test_the_signatures_are_those_of_the_row_and_the_same_but_for_how_to_compute():
    for row in ROWS:
        definition = inspect.signature(getattr(attnpool_ref, row.name))
        implementation = inspect.signature(getattr(attnpool_flax, row.name))
        parameters = [p for p in implementation.parameters.values() if p.name not in ("axis_name", "precision")]
        assert implementation.replace(parameters=parameters) == definition, row.name
        described = {*row.arguments, *row.options, *(["return_weights"] if row.weights else [])}
        assert set(definition.parameters) == described, row.name
        for name, argument in row.arguments.items():
            # the query of a state has the place of attention_pooling's, and no mean
            optional = argument.optional or (row.name, name) == ("attention_state", "query")
            default = definition.parameters[name].default
            assert (default is None) == optional or (optional and default == 1), (row.name, name)  # `scale`


@a_row_of_each_family
def test_a_jax_function_takes_a_precision_if_it_multiplies(row):
    """`precision=None` comes last, by keyword only; other functions multiply by 0 and 1, in full precision always."""
    function = getattr(attnpool_flax, row.name)
    with jax.default_matmul_precision("bfloat16"):
        found = set().union(*(precisions(call) for call in calls_of(function, row)))
    parameters = list(inspect.signature(function).parameters.values())
    assert ("precision" in [p.name for p in parameters]) == ("DEFAULT" in found)
    if "DEFAULT" in found:
        assert (parameters[-1].name, parameters[-1].default) == ("precision", None)
        assert parameters[-1].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_poolings_that_merge_states_take_an_axis_name_before_how_to_compute():
    taking = {}
    for row in table.VARIANTS:
        parameters = inspect.signature(getattr(attnpool_flax, row.name)).parameters
        if "axis_name" in parameters:
            taking[row.name] = parameters["axis_name"]
            rest = list(parameters)[list(parameters).index("axis_name") + 1 :]
            assert set(rest) <= {"precision"}
    assert set(taking) == {row.name for row in table.VARIANTS if "mesh" in row.layouts}
    assert {(p.kind, p.default) for p in taking.values()} == {(inspect.Parameter.KEYWORD_ONLY, None)}


def calls_of(function, row, size=2):
    """Calls with every argument that goes together, all axes of one size or sums of it; one call for each name of each option."""
    excluded = {rule.second for rule in row.relations if isinstance(rule, Excludes)}
    choices = [{}]
    for name, allowed in row.options.items():
        values = (
            {"flag": (row.takes(name, True),), "axis": (-1,), "dtype": ("float64",)}.get(allowed, (size,))
            if isinstance(allowed, str)
            else allowed
        )
        choices = [choice | {name: value} for choice in choices for value in values]
    for choice in choices:
        names = cases.legal(row, [name for name in row.arguments if name not in excluded], choice)
        arguments = arguments_of(row, dict.fromkeys(names, True) | choice)
        given = {name: ones(arguments[name], row.sizes, size) for name in names}
        given |= {rule.argument: given[rule.argument][0] for rule in row.relations if isinstance(rule, WithoutAxis)}
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
