"""Shapes in docstrings are those of the table: each that an argument's description states, in both packages."""

import inspect
import re

import pytest
from packages import PACKAGES, every_package

from attnpool_ref import table

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


def stated(function):
    """For each argument the shapes in its description, without that of a number."""
    arguments = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.getdoc(function), re.DOTALL | re.MULTILINE)[1]
    for name, text in re.findall(r"^  (\w+): (.*?)(?=^  \w|\Z)", arguments, re.DOTALL | re.MULTILINE):
        yield name, re.findall(r"\[[^\]`]+\]", " ".join(text.split()))


def differences(package, row):
    """(argument, stated shapes, the row's) where they are not the same."""
    for name, shapes in stated(getattr(package, row.name)):
        own = [f"[{', '.join(axes)}]" for axes in row.arguments[name].shapes if axes] if name in row.arguments else []
        if name in row.arguments and shapes and set(shapes) != set(own):
            yield name, " ".join(shapes), own


@every_package
@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_a_stated_shape_is_that_of_the_row(package, row):
    assert not [found for found in differences(package, row) if found[:2] not in STATED_OTHERWISE]


def test_most_arguments_state_their_shape_and_every_exception_is_one():
    rows = table.BY_NAME.values()
    seen = [found[:2] for package in PACKAGES for row in rows for found in differences(package, row)]
    assert set(seen) == STATED_OTHERWISE.keys()
    count = sum(bool(shapes) for row in rows for _, shapes in stated(getattr(PACKAGES[0], row.name)))
    assert len(seen) < 0.1 * len(PACKAGES) * count
