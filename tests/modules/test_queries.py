"""``num_queries=None`` makes one query, whose axis no result has."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from marks import one_in
from modules.cases import CASES, Linen, both_kinds, constructor, same_bits

import attnpool_flax

QUERYING = [
    case
    for case in CASES
    if "num_queries" in constructor(getattr(attnpool_flax, case.module)) and case.module != "AdditiveAttentionPool"
]
"""Modules of learned queries; the additive one has no axis unless it is asked for."""


def with_queries(case, count):
    shapes = case.shapes | {"query": (1, *case.shapes["query"][1:])}
    return replace(case, sizes=case.sizes | {"num_queries": count}, shapes=shapes)


def dropped(case, found):
    """What is found by one query without its axis; AIM averages over its queries, and has none."""
    pooled, weights = found
    return pooled if case.options.get("variant") == "aim" else pooled[..., 0, :], weights[..., 0, :]


@pytest.mark.parametrize("case", one_in(3, QUERYING), ids=str)
@both_kinds
def test_one_query_without_an_axis_is_one_query_with_one(case, kind):
    with_axis, without = (with_queries(case, count) for count in (1, None))
    assert kind.build(without).num_queries is None
    data, masks = case.draw()
    parameters = with_axis.parameters()
    expected = dropped(case, kind.call(with_axis, parameters, data, masks, return_weights=True))
    got = kind.call(without, parameters, data, masks, return_weights=True)
    assert (got[0].shape, got[1].shape) == ((3, expected[0].shape[-1]), (3, 2, 5))
    same_bits(got, expected)
    same_bits(kind.call(without, parameters, data, masks), expected[0])


@both_kinds
def test_one_query_has_no_axis_in_packed_tokens_under_dropout(kind):
    with_axis, without = (
        with_queries(next(c for c in QUERYING if "Pool" in c.module and not c.title), count) for count in (1, None)
    )
    parameters = with_axis.parameters()
    x, options = {"x": np.ones((7, 4), np.float32)}, {"dropout_rate": 0.5}
    packed = {"segment_ids": np.array([0, 0, 0, 1, 1, 2, 2]), "num_segments": 3, "return_weights": True}
    packed |= {"deterministic": False}
    if kind is Linen:
        packed["rngs"] = {"dropout": jax.random.key(0)}
    expected = dropped(with_axis, kind.call(with_axis, parameters, x, {}, options, **packed))
    got = kind.call(without, parameters, x, {}, options, **packed)
    assert (got[0].shape, got[1].shape) == ((3, 9), (2, 7))
    same_bits(got, expected)
