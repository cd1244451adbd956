"""One pooling in every layout: dense, by lengths, packed, in chunks and over a mesh, on the real embeddings."""

import functools

import chex
import jax
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec
from minilm_pairs import minilm_pairs
from rounding import rounded

import attnpool_flax
import attnpool_ref

POOLINGS = ("mean", "max", "first", "last", "attention")
LENGTH = 20
"""Positions, which divide among the chunks and the devices."""


@pytest.fixture(scope="module")
def tokens():
    """(x [64, LENGTH, d], lengths [64], a query) of the real tails."""
    pairs = minilm_pairs()
    x = np.pad(pairs["tail"], ((0, 0), (0, LENGTH - pairs["tail"].shape[1]), (0, 0)))
    return x, pairs["tail_mask"].sum(1), attnpool_ref.mean_pooling(x[0], lengths=pairs["tail_mask"][0].sum())


@pytest.mark.mesh
@pytest.mark.parametrize("name", POOLINGS)
def test_every_layout_gives_the_dense_numbers(name, tokens):
    x, lengths, query = tokens
    mask, learned = attnpool_ref.lengths_to_mask(lengths, LENGTH), {"query": query} if name == "attention" else {}
    want = getattr(attnpool_ref, f"{name}_pooling")(x, mask, **learned)
    packed, numbers, count = attnpool_flax.pack([row[:n] for row, n in zip(x, lengths, strict=True)])

    def in_chunks(x, mask):
        start = {"start": 0} if name in ("first", "last") else {}
        states = []
        for first in (5, 0, 15, 10):
            part = x[:, first : first + 5], mask[:, first : first + 5]
            start = {key: first for key in start}
            states.append(getattr(attnpool_flax, f"{name}_state")(*part, **learned, **start))
        return attnpool_flax.finalize_state(functools.reduce(attnpool_flax.merge_states, states))

    def over_mesh(x, mask):
        mesh = jax.make_mesh((4,), ("tokens",), axis_types=(AxisType.Auto,))
        pool = functools.partial(getattr(attnpool_flax, f"{name}_pooling"), axis_name="tokens", **learned)
        split = PartitionSpec(None, "tokens")
        return jax.shard_map(pool, mesh=mesh, in_specs=(split, split), out_specs=PartitionSpec())(x, mask)

    layouts = {
        "lengths": getattr(attnpool_flax, f"{name}_pooling")(x, lengths=lengths, **learned),
        "packed": getattr(attnpool_flax, f"segment_{name}_pooling")(packed, numbers, count, **learned),
        "chunks": jax.jit(in_chunks)(x, mask),
        "mesh": jax.jit(over_mesh)(x, mask),
    }
    for layout, found in layouts.items():
        chex.assert_trees_all_close(np.asarray(found), want, atol=rounded(want, LENGTH), rtol=0, custom_message=layout)
