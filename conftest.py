"""Examples in docstrings know what their package offers, as who reads them in ``help`` does."""

import importlib

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

DERIVED = "attnpool_flax.segments"
"""A module whose examples follow from others: those of packed functions from those of dense ones."""


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items):
    """Leaves all derived examples but the first to the thorough run, where each compiles a program of its own."""
    examples = [item for item in items if isinstance(item, pytest.DoctestItem) and item.name.startswith(DERIVED)]
    for item in examples[1:]:
        item.add_marker("thorough")


@pytest.fixture(autouse=True)
def public_names(request, doctest_namespace):
    """NumPy, JAX's NumPy, Flax's NNX, and the public names of the package in whose docstrings an example stands."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    doctest_namespace.clear()
    package = importlib.import_module(request.node.dtest.globs["__name__"].partition(".")[0])
    offered = {name: getattr(package, name) for name in getattr(package, "__all__", ())}
    doctest_namespace.update(offered | {"np": np, "jnp": jnp, "nnx": nnx} | request.node.dtest.globs)
