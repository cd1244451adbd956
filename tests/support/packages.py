"""Both packages as a parameter of tests, because the guarantees are the same."""

import pytest
from marks import thorough

import attnpool_flax
import attnpool_ref

PACKAGES = (attnpool_ref, attnpool_flax)

the_definition = pytest.mark.parametrize(
    "package", [attnpool_ref, *thorough([attnpool_flax])], ids=lambda package: package.__name__
)
"""For what equivalence and golden numbers judge in JAX as well: only the thorough run takes ``attnpool_flax``."""

with_golden_numbers = pytest.mark.parametrize(
    "package",
    [attnpool_ref, pytest.param(attnpool_flax, marks=pytest.mark.thorough)],
    ids=lambda package: package.__name__,
)
"""For golden numbers: the definitions have them in each run, and ``make test`` holds JAX to the definitions."""

every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
