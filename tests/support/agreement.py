"""Agreement of two computations of one case, within the tolerance that the judge (``attnpool check``) derives."""

import chex
import jax
import numpy as np

import attnpool_ref
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.checks import tolerances
from attnpool_ref.conformance.checks.subject import Subject, flatten


def arguments_of(case, function):
    """Returns the arrays of a case by name, floats as float32, and a function that pools them.

    That function takes a dict of these arrays, calls ``function`` with them and with the case's options, and returns a
    flat list of the results.
    """
    arrays = {k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in case.values.items() if v is not None}

    def call(arrays):
        args, kwargs = arrange(getattr(attnpool_ref, case.row.name), arrays | case.options)
        return flatten(function(*args, **kwargs))

    return arrays, call


def assert_agree(case, got, want, weights=False):
    """Asserts that two lists of float32 results of one case agree up to rounding; ``weights``: they include weights."""
    subject = Subject(case.row, getattr(attnpool_ref, case.row.name), JaxArrays(), "float32")
    sensitive = [float(np.max(moved, initial=0)) for moved in subject.sensitivities(case, weights)]
    chex.assert_equal(len(got), len(want))
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        size = float(np.max(np.abs(np.asarray(b, np.float64)), initial=0, where=np.isfinite(b)))
        allowed = 2 * tolerances.allowed_error(size, sensitive[i], case.terms(), "float32")
        chex.assert_trees_all_close(a, b, atol=allowed, rtol=0)


def assert_gradients_agree(case, got, want):
    """Asserts that two trees of gradients agree up to the rounding of as many terms as the case has."""
    chex.assert_trees_all_equal_structs(got, want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        size = float(np.max(np.abs(b), initial=0))
        allowed = tolerances.EPSILON["float32"] * case.terms() * (size + case.terms())
        chex.assert_trees_all_close(a, b, atol=allowed, rtol=0)
