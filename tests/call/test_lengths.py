"""Lengths in the place of a mask: the same numbers, whatever their form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import one_in
from modules.cases import CASES, both_kinds, deterministic

import attnpool_flax
import attnpool_ref
from attnpool_ref import contract, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.cases.case import full_mask

ROWS = [row for row in table.VARIANTS if any(a.kind == "lengths" for a in row.arguments.values())]
LENGTHS = [case for case in CASES if case.row in ROWS]


def with_lengths(row):
    """The kit's call of a row with lengths in the place of each mask."""
    ways = {title: (names, options) for title, names, options in cases.configurations(row)}
    return cases.draw(row, "lengths", *ways["with lengths"], cases.case.BATCH)


def answer(function, case, **changed):
    args, kwargs = arrange(getattr(attnpool_ref, case.row.name), case.values | changed | case.options)
    return jax.tree.leaves(function(*args, **kwargs))


def forms(case):
    """What lengths may be: each with the case whose lengths have the axes that it broadcasts to."""
    for key in case.given("lengths"):
        value = case.values[key]
        for shape in {(), value.shape[:1], value.shape}:
            own = np.resize(np.arange(4), shape)
            wide = np.broadcast_to(own.reshape(contract.with_all_axes(shape, value.shape)), value.shape)
            yield key, own, case.with_values("", **{key: wide})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_lengths_of_every_form_say_what_the_mask_says(row):
    seen = 0
    for key, own, wide in forms(with_lengths(row)):
        masks = {name: full_mask(wide, name)[0] for name in wide.given_masks()}
        expected = answer(getattr(attnpool_ref, row.name), wide, **masks, **dict.fromkeys(wide.given("lengths")))
        got = answer(getattr(attnpool_ref, row.name), wide, **{key: own})
        assert all(a.tobytes() == b.tobytes() for a, b in zip(got, expected, strict=True))
        seen += 1
    assert seen >= 2


def test_lengths_on_a_device_are_clipped_and_unread():
    x, lengths = jnp.ones((2, 3, 4)), jnp.array([9, -1])
    with jax.transfer_guard_device_to_host("disallow"):
        pooled = attnpool_flax.mean_pooling(x, lengths=lengths)
    np.testing.assert_array_equal(pooled, [[1] * 4, [0] * 4])


@pytest.mark.parametrize("case", one_in(3, LENGTHS), ids=str)
@both_kinds
def test_lengths_in_the_call_of_a_module_reach_its_function(case, kind, watched):
    data, masks = case.draw()
    lengths = {name.removesuffix("mask") + "lengths": np.array([2, 0, 1]) for name in masks}
    function = watched(case)
    jax.eval_shape(lambda: kind.call(case, case.parameters(), data, lengths, {}, **deterministic(case)))
    for name, given in lengths.items():
        assert function.call_args.kwargs[name] is given
