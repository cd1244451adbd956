"""The check of sequences split over devices finds functions that are wrong there only."""

import jax.numpy as jnp
import pytest
from jax import lax
from over_mesh import over_devices

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks import Situation
from attnpool_ref.conformance.checks.subject import Subject

pytestmark = pytest.mark.mesh


def total(x, mask, axis_name):
    """The sum and the count of real tokens, of all devices."""
    clean = jnp.where(mask[..., None], x, 0)
    return lax.psum((jnp.sum(clean, -2), jnp.sum(mask, -1)[..., None]), axis_name)


def mean(x, mask=None, *, axis_name=None):
    if axis_name is None:
        return attnpool_flax.mean_pooling(x, mask)
    summed, count = total(x, mask, axis_name)
    return summed / jnp.maximum(count, 1)


def joined_by(collective):
    """A mean of each device's tokens, and a collective of these means."""

    def pool(x, mask=None, *, axis_name=None):
        own = attnpool_flax.mean_pooling(x, mask)
        return own if axis_name is None else collective(own, axis_name)

    return pool


def padding_in(x, mask=None, *, axis_name=None):
    if axis_name is None:
        return attnpool_flax.mean_pooling(x, mask)
    summed, count = total(x, mask, axis_name)
    return summed / jnp.maximum(count, 1) + lax.psum(jnp.sum(jnp.where(mask[..., None], 0, x) * 0, -2), axis_name)


def counted_on_each_device(x, mask=None, *, axis_name=None):
    """A sum of what every device has already: the gradient is right on one device alone."""
    if axis_name is None:
        return attnpool_flax.mean_pooling(x, mask)
    result = mean(x, mask, axis_name=axis_name)
    both = lax.psum(lax.pcast(result, axis_name, to="varying"), axis_name) / lax.axis_size(axis_name)
    return lax.stop_gradient(result - 2 * both) + 2 * both


WRONG = {
    "mean of means": joined_by(lax.pmean),
    "sum of means": joined_by(lax.psum),
    "own part alone": joined_by(lambda own, name: lax.psum(jnp.where(lax.axis_index(name) == 0, own, 0), name)),
    "padding": padding_in,
    "counted on each device": counted_on_each_device,
}


def wrong_over_devices(function):
    """The messages of the check."""
    row = table.get("mean_pooling")
    subject, case = Subject(row, function, JaxArrays(), "float32"), next(iter(cases.cases_of(row)))[0]
    found = over_devices(subject, case, Situation(subject, case, "main", True, True, True, None))
    return [finding.message for finding in found if finding is not None and finding.message]


def test_a_right_function_is_right_over_devices():
    assert not wrong_over_devices(mean)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_mistake_that_shows_on_several_devices_alone_is_found(wrong):
    assert wrong_over_devices(WRONG[wrong])
