"""Sequences split over a mesh (``axis_name=``): what the whole gives, on every device, with few collectives."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree, assert_gradients_agree
from jax.sharding import AxisType, PartitionSpec
from walks import Call, tiling

from attnpool_flax.implementation import FRAMES
from attnpool_ref import variants

NAMES = "slow", "fast"
SIZES = {"L": 24, "T": 16, "d": 5, "e": 7, "q": 5, "n": 2}
COLLECTIVES = {
    ("mean_pooling", "smallest"): (1, 1),
    ("max_pooling", "smallest"): (2, 2),
    ("first_pooling", "smallest"): (2, 2),
    ("last_pooling", "smallest"): (2, 2),
    ("weighted_pooling", "fullest"): (1, 1),
    ("attention_pooling", "smallest"): (3, 4),
    ("attention_pooling", "fullest"): (2, 3),
    ("multi_head_attention_pooling", "fullest"): (2, 3),
    ("cross_attention_pooling", "smallest"): (3, 4),
    ("cross_attention_pooling", "reduction=mean"): (3, 4),
}
"""How many a program has, and one with gradients, whatever the length."""

KINDS = re.compile(r"\b(?:all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")


class Split(Call):
    """A call whose sequences are split over the axes "slow" and "fast" of a mesh.

    In the first example one device has padding alone, in the second all have, the third has ties.
    """

    def __init__(self, name, title, implementation=None):
        super().__init__(variants.get(name), title, implementation, batch=3, sizes=SIZES)
        if self.case.row.weights:
            self.options["return_weights"] = True
        for key in set(self.values) & {"mask", "x_mask", "y_mask"}:
            mask = np.ones((3, self.case.sizes["T" if key == "y_mask" else "L"]), bool)
            part = mask.shape[-1] // 4
            mask[0, part : 2 * part + 1] = mask[0, -1] = mask[2, : part + 1] = mask[1] = False
            self.values[key] = mask
        self.values["x"][2] = np.round(self.values["x"][2])
        self.specs = {key: _spec(self.case.axes[key], value.ndim) for key, value in self.values.items()}
        weights = self.case.row.weight_results if self.options.get("return_weights") else ()
        self.result_specs = [_spec(own, len(own)) for own in (*self.case.row.results, *weights)]

    def over(self, mesh):
        """The same call, of which each device of the mesh computes its part."""
        split = self.changed(axis_name=NAMES)
        return jax.shard_map(split.forward, mesh=mesh, in_specs=(self.specs,), out_specs=self.result_specs)


def _spec(axes, rank):
    """[..., L, d] as a place for each of so many axes."""
    places = [NAMES if axis in ("L", "T") else None for axis in axes if axis != "..."]
    return PartitionSpec(*(None,) * (rank - len(places)), *places)


def objective(results):
    """What no function makes constant."""
    return sum(jnp.sum(jnp.square(out)) for out in results)


def floats_of(arrays):
    return {key: array for key, array in arrays.items() if jnp.issubdtype(array.dtype, jnp.floating)}


def with_gradients(forward):
    """From arrays to (results, gradients)."""

    def program(arrays):
        def loss(floats):
            results = forward(arrays | floats)
            return objective(results), results

        gradients, results = jax.grad(loss, has_aux=True)(floats_of(arrays))
        return results, gradients

    return program


def gradients_inside(call, mesh):
    """From arrays to gradients that each device takes itself: its own of its tokens, the same as all of the parameters."""

    def gradients(arrays):
        def loss(floats):
            results = call.changed(axis_name=NAMES).forward(arrays | floats)
            count = len(call.case.row.results)
            return objective(results[:count]) + jax.lax.psum(objective(results[count:]), NAMES)

        return jax.grad(loss)(floats_of(arrays))

    specs = {key: call.specs[key] for key in floats_of(call.values)}
    return jax.shard_map(gradients, mesh=mesh, in_specs=(call.specs,), out_specs=specs)


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((2, 2), NAMES, axis_types=(AxisType.Auto,) * 2)


def walks(name):
    return FRAMES[name].has_rules


CALLS = [
    (*key, implementation)
    for key in COLLECTIVES
    for implementation in (("einsum", "tiles") if walks(key[0]) else (None,))
]


@pytest.mark.parametrize(("name", "title", "implementation"), CALLS)
def test_a_split_sequence_gives_what_the_whole_gives(name, title, implementation, mesh):
    """Results, weights, gradients inside and outside of the shard_map; what stands in padding changes no bit of them."""
    call = Split(name, title, implementation)
    whole = call.changed(implementation="einsum").forward if walks(name) else call.forward

    @jax.jit
    def program(arrays):
        return (
            with_gradients(call.over(mesh))(arrays),
            gradients_inside(call, mesh)(arrays),
            with_gradients(whole)(arrays),
        )

    with tiling(WHOLE=0, ROW=0, TOKENS=5):
        (results, outside), inside, (want, gradients) = found = jax.tree.map(np.asarray, program(call.values))
    assert_agree(call.case, results, want, "return_weights" in call.options)
    assert_gradients_agree(call.case, outside, gradients)
    assert_gradients_agree(call.case, inside, gradients)
    poisoned = {key: value.copy() for key, value in call.values.items()}
    for key, mask in (("x", "x_mask" if "x_mask" in poisoned else "mask"), ("y", "y_mask")):
        if key in poisoned:
            poisoned[key][~poisoned[mask]] = np.nan
    chex.assert_trees_all_equal(jax.tree.map(np.asarray, program(poisoned)), found)


@pytest.mark.parametrize(("name", "title"), COLLECTIVES)
def test_collectives_are_few_and_the_same_for_any_length(name, title, mesh):
    call = Split(name, title)
    call.options.pop("return_weights", None)
    call.result_specs = [_spec(own, len(own)) for own in call.case.row.results]
    step = with_gradients(call.over(mesh))
    programs = [jax.jit(function).lower(call.values).compile().as_text() for function in (call.over(mesh), step)]
    assert tuple(len(KINDS.findall(text)) for text in programs) == COLLECTIVES[name, title]
