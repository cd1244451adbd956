"""Both packages as a parameter of tests, because the guarantees are the same."""

import pytest

import attnpool_flax
import attnpool_ref

PACKAGES = (attnpool_ref, attnpool_flax)

every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
