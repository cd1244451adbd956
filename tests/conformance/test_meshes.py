"""Sequences split over devices: what the judge says of functions that take ``axis_name``."""

import jax.numpy as jnp
import pytest
from jax import lax

import attnpool_flax
from attnpool_ref import conformance
from attnpool_ref.conformance.report.promises import SPLIT

pytestmark = pytest.mark.mesh

ALONE = {"shapes": (), "partial": False, "dtypes": ("float32",), "long": False}


def total(x, mask, axis_name):
    """The sum and the count of real tokens, of all devices."""
    clean = jnp.where(mask[..., None], x, 0)
    return lax.psum((jnp.sum(clean, -2), jnp.sum(mask, -1)[..., None]), axis_name)


def mean(x, mask=None, *, axis_name=None):
    if axis_name is None:
        return attnpool_flax.mean_pooling(x, mask)
    summed, count = total(x, mask, axis_name)
    return summed / jnp.maximum(count, 1)


def mean_of_means(x, mask=None, *, axis_name=None):
    own = attnpool_flax.mean_pooling(x, mask)
    return own if axis_name is None else lax.pmean(own, axis_name)


def sum_of_means(x, mask=None, *, axis_name=None):
    own = attnpool_flax.mean_pooling(x, mask)
    return own if axis_name is None else lax.psum(own, axis_name)


def own_part_alone(x, mask=None, *, axis_name=None):
    own = attnpool_flax.mean_pooling(x, mask)
    return own if axis_name is None else lax.pmax(jnp.where(lax.axis_index(axis_name) == 0, own, -jnp.inf), axis_name)


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


WRONG = [mean_of_means, sum_of_means, own_part_alone, padding_in, counted_on_each_device]


def promise_of(function):
    return conformance.judge(function, only=("mean_pooling",), **ALONE).rows[0].promises[SPLIT]


def test_a_right_function_keeps_the_promise_and_one_without_the_argument_is_not_asked():
    assert promise_of(mean).status == "held"
    without = promise_of(lambda x, mask=None: attnpool_flax.mean_pooling(x, mask))
    assert (without.status, without.why) == ("n/a", "it takes no `axis_name`")


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_mistake_that_shows_on_several_devices_alone_breaks_it(wrong, as_found):
    assert promise_of(wrong).status == "broken"
