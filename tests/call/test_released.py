"""A caller's normalizer function is not kept alive by the caches of the functions that it was passed to."""

import dataclasses
import functools
import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import arguments_of
from constants import compiling_anew
from marks import one_in
from packages import every_package

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.table.language import OrFunction

TAKING = [row for row in table.VARIANTS if isinstance(row.options.get("normalizer"), OrFunction)]
SCORES, VALUE = np.zeros((2, 3, 5), np.float32), np.ones((2, 5, 4), np.float32)


class Normalizer:
    """A callable object that is no value."""

    def __call__(self, scores, mask):
        return mask / 2

    def method(self, scores, mask):
        return mask / 4


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A callable object that equals another with the same number."""

    number: float

    def __call__(self, scores, mask):
        return mask * self.number


def closure():
    return lambda scores, mask: mask / 3


KINDS = {
    "a function": closure,
    "a partial": lambda: functools.partial(Normalizer.method, None),
    "a jitted function": lambda: jax.jit(closure()),
    "a callable object": Normalizer,
}


@every_package
@pytest.mark.parametrize("kind", KINDS)
def test_a_normalizer_is_released(package, kind):
    normalizers = [KINDS[kind]() for _ in range(3)]
    references = [weakref.ref(normalizer) for normalizer in normalizers]
    for normalizer in normalizers:
        package.attend(SCORES, VALUE, normalizer=normalizer)
    del normalizer, normalizers
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


@pytest.mark.parametrize("row", one_in(2, TAKING), ids=lambda row: row.name)
def test_programs_of_a_normalizer_are_released_with_it(row):
    ways = {title: (names, options) for title, names, options in cases.configurations(row)}
    names, options = ways[cases.fullest_way(row)]
    chosen = options | {"normalizer": closure()}
    case = cases.draw(row, "released", cases.legal(row, names, chosen), chosen, (2,))
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    floats = {key: value for key, value in arrays.items() if value.dtype.kind == "f"}
    reference, own = weakref.ref(case.options["normalizer"]), FUNCTIONS[row.name]
    before = len(own.specializations)
    call(arrays)
    jax.grad(lambda floats: sum(jnp.sum(part) for part in jax.tree.leaves(call(arrays | floats))))(floats)
    assert len(own.specializations) > before
    case = call = options = chosen = None
    gc.collect()
    assert reference() is None
    assert len(own.specializations) == before


def test_a_normalizer_that_lives_keeps_its_program():
    """Also a method, which is another object each time; and what equals another object shares its program."""
    normalizer, own = Normalizer(), FUNCTIONS["attend"]
    calls = [lambda: normalizer, lambda: normalizer.method, lambda: Scaled(0.5)]
    for get in calls:
        attnpool_flax.attend(SCORES, VALUE, normalizer=get())
        before = dict(own.specializations)
        attnpool_flax.attend(SCORES, VALUE, normalizer=get())
        gc.collect()
        assert own.specializations == before
    reference = weakref.ref(normalizer)
    normalizer = calls = get = None
    gc.collect()
    assert reference() is None


def test_a_cache_that_another_thread_clears_meanwhile_raises_no_error():
    own = FUNCTIONS["attend"]

    class Cleared(dict):
        def setdefault(self, *args):
            specialization = super().setdefault(*args)
            thread = threading.Thread(target=self.clear)
            thread.start()
            thread.join()
            return specialization

    with compiling_anew(own):
        own.specializations = Cleared()
        assert attnpool_flax.attend(SCORES, VALUE).shape == (2, 3, 4)
