"""Docstrings say what the table and the signatures say: arguments, shapes, definitions in the help of JAX functions."""

import inspect
import re

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.contract import docstrings

ROWS = table.BY_NAME.values()
PACKAGES = (attnpool_ref, attnpool_flax)

NO_BATCH_AXES = "an array without batch axes is shared by all examples"
OF_TOKENS = "d, the tokens' width, is the usual width of a query; the text says which it is with kernels"
STATED_OTHERWISE = {
    ("spans", "[..., S, 2]"): "the row names the axis of the two ends",
    ("scores", "[..., m]"): "of any rank; the row is of any axis, the text of the last one",
    ("lengths", "[..., n] [...]"): "a length for each query, or one for all",
    ("weights", "[L] [..., L] [..., L, d]"): NO_BATCH_AXES,
    ("query", "[n, q] [..., n, q] [n, H, c]"): NO_BATCH_AXES,
    ("query", "[..., k, d] [k, d]"): NO_BATCH_AXES,
    ("query", "[d] [..., d]"): OF_TOKENS,
    ("query", "[d] [num_segments, d]"): OF_TOKENS,
    ("query_norm_scale", "[d]"): OF_TOKENS,
    ("query_norm_bias", "[d]"): OF_TOKENS,
}
"""(argument, the shapes that its description states): why these are not the row's."""


def test_a_docstring_describes_every_argument_of_the_signature_in_its_order():
    for package in PACKAGES:
        for row in ROWS:
            function = getattr(package, row.name)
            text = inspect.getdoc(function)
            parsed = docstrings.parse(text)
            assert list(parsed.entries("Args")) == list(inspect.signature(function).parameters), row.name
            assert str(parsed) == text, row.name
            assert not row.packed or "[..." not in text.partition("\n\n>>> ")[0], row.name


def test_help_of_a_jax_function_holds_its_definition_and_an_example_on_jax_arrays():
    for row in ROWS:
        text = inspect.getdoc(getattr(attnpool_flax, row.name))
        before, _, after = (
            inspect.getdoc(getattr(attnpool_ref, row.name)).partition(">>>")[0].partition("\n\nReturns:\n")
        )
        assert text.startswith(before), row.name
        assert f"\n\nReturns:\n{after.rstrip()}\n" in text, row.name
        example = text[text.index("\n\n>>> ") :]
        assert f"{row.name}(" in example and "jnp." in example, row.name


def test_help_of_a_package_names_each_public_function_and_module():
    for package in PACKAGES:
        named = set(re.findall(r"\w+", inspect.getdoc(package)))
        assert set(package.__all__) - {"__version__", "formats", "linen"} <= named


def differences(package, row):
    """Yields (argument, the shapes in its description) where they are not the row's."""
    for name, described in docstrings.of(getattr(package, row.name)).entries("Args").items():
        shapes = re.findall(r"\[[^\]`]+\]", " ".join(described.split()))
        own = [f"[{', '.join(axes)}]" for axes in row.arguments[name].shapes if axes] if name in row.arguments else []
        if name in row.arguments and shapes and set(shapes) != set(own):
            yield name, " ".join(shapes)


def test_a_stated_shape_is_that_of_the_row():
    assert {found for package in PACKAGES for row in ROWS for found in differences(package, row)} == set(
        STATED_OTHERWISE
    )
