"""The modules follow one table: their parameters, arguments and documentation are its rows'."""

import doctest
import inspect
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from modules.cases import (
    CASES,
    both_kinds,
    constructor,
    every_case,
    function_of,
    ways_of,
)

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import table


def test_every_module_of_the_table_of_variants_has_its_spec_and_both_classes():
    rows = {row.module: row.name for row in (*table.VARIANTS, *table.HEADS) if row.module}
    assert {name: spec.function for name, spec in SPECS.items()} == rows
    for name in rows:
        assert issubclass(getattr(attnpool_flax, name), nnx.Module)
        assert issubclass(getattr(linen, name), nn.Module)
        assert name in attnpool_flax.__all__
        assert name in linen.__all__


FUNCTION_ONLY = {("WeightedPool", "weights"): {("L", "d")}, ("MultiHeadAttentionPool", "query"): {("n", "H", "c")}}
"""Shapes that a function takes and its module never has."""


@pytest.mark.parametrize("name", SPECS)
def test_a_parameter_has_every_shape_that_its_row_shows_and_no_other(name):
    spec = SPECS[name]
    arguments = table.get(spec.function).arguments
    learned = {} if "q" in spec.sizes else {"q": "d"}  # a module's own query is as wide as its tokens
    possible = {}
    for parameter in (way for each in spec.parameters for way in ways_of(each)):
        whole = tuple(axis.rstrip("?") for axis in parameter.axes)
        least = tuple(axis for axis in parameter.axes if not axis.endswith("?"))
        possible.setdefault(parameter.name, set()).update({whole, least})
    for key, shapes in possible.items():
        shown = {tuple(learned.get(axis, axis) for axis in axes if axis != "...") for axes in arguments[key].shapes}
        assert shapes == shown - FUNCTION_ONLY.get((name, key), set()), key


def test_a_relation_triplet_takes_the_parameters_of_a_relation_vector():
    arguments = table.get("relation_triplet_loss").arguments
    taken = {key for key, argument in arguments.items() if argument.kind == "parameter"}
    assert taken == {parameter.name for parameter in SPECS["RelationVector"].parameters}


@pytest.mark.parametrize("name", SPECS)
def test_every_module_is_a_case(name):
    assert name in {case.module for case in CASES}


@every_case
@both_kinds
def test_a_module_has_flat_parameters_named_as_the_arguments(case, kind):
    initial = jax.eval_shape(lambda: kind.initial(case))
    assert {key: value.shape for key, value in initial.items()} == case.shapes
    assert {value.dtype for value in initial.values()} <= {jnp.dtype(np.float32)}


@pytest.mark.parametrize("name", SPECS)
def test_linen_takes_the_same_arguments_less_the_sizes_it_reads(name):
    ours, theirs = constructor(getattr(attnpool_flax, name)), constructor(getattr(linen, name))
    read = set(SPECS[name].sizes.values())
    assert set(theirs) - {"deterministic"} <= set(ours)
    assert ("deterministic" in theirs) == ("dropout_rate" in ours)
    assert set(ours) - set(theirs) - {"rngs"} <= read
    for key in set(theirs) & set(ours) - read:
        assert (theirs[key].default, theirs[key].annotation) == (ours[key].default, ours[key].annotation), key


@pytest.mark.parametrize("name", SPECS)
def test_only_required_sizes_go_by_place_and_in_linen_only_the_one_that_is_first_in_both(name):
    """What goes by place in one and means something else in the other would be a silent mistake."""

    def by_place(package):
        parameters = constructor(getattr(package, name)).values()
        return [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]

    ours, theirs = by_place(attnpool_flax), by_place(linen)
    assert all(parameter.default is parameter.empty for parameter in ours)
    assert [p.name for p in theirs] == [p.name for p in ours[:1] if p.name in constructor(getattr(linen, name))]


@pytest.mark.parametrize("key", ["precision", "axis_name"])
@pytest.mark.parametrize("name", SPECS)
def test_a_constructor_takes_how_to_compute_where_its_function_does(name, key):
    if (name, key) == ("WeightedPool", "axis_name"):
        pytest.skip("it has a weight for every slot of the whole sequence")
    function = inspect.signature(function_of(name)).parameters
    for package in (attnpool_flax, linen):
        assert (key in constructor(getattr(package, name))) == (key in function)


@pytest.mark.parametrize("name", SPECS)
def test_both_classes_are_called_alike(name):
    ours = inspect.signature(getattr(attnpool_flax, name).__call__)
    theirs = inspect.signature(getattr(linen, name).__call__)
    assert [str(p) for p in ours.parameters.values() if p.name != "rngs"] == [
        str(p) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("name", SPECS)
def test_a_call_takes_what_the_function_takes_as_data_masks_and_weights(name):
    spec = SPECS[name]
    function = inspect.signature(function_of(name)).parameters
    call = set(inspect.signature(getattr(attnpool_flax, name).__call__).parameters) - {"self"}
    arguments = table.get(spec.function).arguments
    taken = {key for key, a in arguments.items() if a.kind in ("data", "mask", "lengths")} - {
        p.name for p in spec.parameters
    }
    taken |= {"return_weights"} & set(function)
    taken |= {"deterministic", "rngs"} if any(key.endswith("dropout_multiplier") for key in function) else set()
    packed = table.BY_NAME.get(f"segment_{spec.function}")
    if packed and name != "WeightedPool":  # which shapes slots
        taken |= {key for key, a in packed.arguments.items() if a.kind == "segments"} | {"num_segments"}
    assert call == taken


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("package", [attnpool_flax, linen], ids=["nnx", "linen"])
def test_a_module_documents_its_function_its_arguments_and_its_parameters(name, package):
    module = getattr(package, name)
    text = inspect.getdoc(module) or ""
    summary, empty, rest = text.split("\n", 2)
    assert summary.endswith(".") and not empty and not summary.startswith("Parameters")
    assert (inspect.getdoc(getattr(attnpool_flax, name)) or "").startswith(f"{summary}\n")  # one line for both classes
    if table.get(SPECS[name].function).family != "heads":  # whose functions are in no namespace
        assert rest.startswith(f"Calls :func:`attnpool_flax.{SPECS[name].function}`. ")
    for parameter in SPECS[name].parameters:
        assert f"``{parameter.name}`` [" in " ".join(text.split())
    documented = re.findall(r"^  (\w+): ", text, re.MULTILINE)
    assert documented == list(constructor(module))


@pytest.mark.parametrize("name", SPECS)
def test_an_example_makes_an_nnx_module_and_shows_a_shape(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(attnpool_flax, name))
    assert any(f"= {name}(" in part.source for part in example.examples)
    assert re.search(r"\.shape\b", example.examples[-1].source)
    assert example.examples[-1].want
    assert ">>>" not in (inspect.getdoc(getattr(linen, name)) or "")  # an example of NNX would be wrong in Linen
