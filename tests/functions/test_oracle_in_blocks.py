"""The oracle calls its bodies on blocks of examples: a block changes no bit of a result, and little memory is used."""

import functools
import inspect
import tracemalloc

import numpy as np
import pytest
from drawn import draw, way

import attnpool_ref
from attnpool_ref import contract, table
from attnpool_ref.conformance import cases
from attnpool_ref.contract import definition as definitions
from attnpool_ref.numerics import blocks

BATCHED = [row.name for row in table.VARIANTS if row.batched and not row.state and hasattr(attnpool_ref, row.name)]


EXAMPLES = 23
"""A number that no other axis of the drawn arguments has."""


def drawn(name):
    """Returns the keyword arguments of a call with as many arguments as the row allows."""
    row = table.get(name)
    title, names, options = way(row)
    options = options | ({"return_weights": True} if row.weights else {})
    case = cases.draw(row, title, names, options, (EXAMPLES,))
    parameters = inspect.signature(getattr(attnpool_ref, name)).parameters
    return {k: v for k, v in (case.values | case.options).items() if k in parameters and v is not None}


def arrays(result):
    """Returns the arrays of nested tuples in a list."""
    return [array for part in result for array in arrays(part)] if isinstance(result, tuple) else [np.asarray(result)]


def same_bits(results, others):
    return all(
        a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(results, others, strict=True)
    )


@pytest.fixture
def set_block(monkeypatch):
    """Sets the bytes of a block."""
    return functools.partial(monkeypatch.setattr, blocks, "SIZE")


@pytest.mark.parametrize("name", BATCHED)
def test_the_size_of_a_block_changes_no_bit(name, set_block):
    """Blocks of one example, of three and of all, and an example alone; examples differ, and some have padding."""
    function, arguments = getattr(attnpool_ref, name), drawn(name)
    whole = arrays(function(**arguments))
    size_of_all = 8 * sum(np.size(value) for value in arguments.values() if isinstance(value, np.ndarray))
    for size in (1, 3 * size_of_all // EXAMPLES):
        set_block(size)
        assert same_bits(arrays(function(**arguments)), whole), size


@pytest.mark.parametrize("name", BATCHED)
def test_an_example_alone_has_the_bits_that_it_has_in_a_batch(name):
    row, function, arguments = table.get(name), getattr(attnpool_ref, name), drawn(name)
    given = [k for k, v in arguments.items() if k in row.arguments and np.shape(v)[:1] == (EXAMPLES,)]
    whole, alone = arrays(function(**arguments)), arrays(function(**arguments | {k: arguments[k][2:3] for k in given}))
    assert same_bits(alone, [array[2:3] for array in whole])


@pytest.mark.parametrize("order", ["F", "reversed"])
def test_the_order_of_memory_changes_no_bit(order):
    x, mask, query = draw(np.random.default_rng(0), 5, 9, 6), np.arange(9) < np.arange(5)[:, None], np.ones(6)
    other = (lambda a: np.asfortranarray(a)) if order == "F" else (lambda a: a[::-1].copy()[::-1])
    for function in (attnpool_ref.attention_pooling, lambda *args: attnpool_ref.mean_max_pooling(*args[:2])):
        assert np.array_equal(function(other(x), other(mask), query), function(x, mask, query))


@pytest.mark.parametrize("batch", [(5,), (2, 3), (2, 3, 4), (0,), (3, 0)])
@pytest.mark.parametrize("most", [1, 2, 3, 5, 24])
def test_blocks_cover_every_example_once(batch, most):
    seen = np.zeros(batch, int)
    for index in blocks.slices(batch, most) if seen.size else ():
        assert seen[index].size <= most
        seen[index] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("name", BATCHED)
def test_arguments_are_checked_once_and_stay_as_they_are(name, monkeypatch):
    """A body calls the bodies of other definitions, not their checks, and writes only into its own blocks."""
    arguments, calls = drawn(name), []
    for value in arguments.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    bind = contract.bind
    monkeypatch.setattr(definitions.contract, "bind", lambda *args: calls.append(args) or bind(*args))
    before = {k: np.array(v) for k, v in arguments.items() if isinstance(v, np.ndarray)}
    getattr(attnpool_ref, name)(**arguments)
    assert len(calls) == 1
    assert same_bits(list(before.values()), [arguments[k] for k in before])


MOST = {"multi_head_attention_pooling": 1.5, "dot_product_attention": 1.5}
"""Largest allocation of a call, in bytes of its tokens, where it is not 0.3."""
D, HEADS = 64, {f"{part}_kernel": np.ones((64, 4, 16), np.float32) for part in ("query", "key", "value")}
CALLS = {
    "mean_pooling": lambda x, mask: ((x, mask), {}),
    "mean_max_pooling": lambda x, mask: ((x, mask), {}),
    "weighted_pooling": lambda x, mask: ((x, np.ones(mask.shape[-1]), mask), {}),
    "attention_pooling": lambda x, mask: ((x, mask), {}),
    "additive_attention_pooling": lambda x, mask: (
        (x, mask),
        {"kernel": np.ones((D, 8), np.float32), "out_kernel": np.ones(8, np.float32)},
    ),
    "cross_attention_pooling": lambda x, mask: ((x, x, mask, mask), {}),
    "multi_head_attention_pooling": lambda x, mask: (
        (x, mask),
        HEADS | {"query": np.ones((1, D), np.float32), "out_kernel": np.ones((4, 16, D), np.float32)},
    ),
    "dot_product_attention": lambda x, mask: ((x, x, x, mask[..., None, :]), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_allocates_little_beside_its_result(name, set_block):
    set_block(2**17)
    x, mask = np.ones((256, 16, D), np.float32), np.arange(16) < 1 + np.arange(256)[:, None] % 16
    args, options = CALLS[name](x, mask)
    tracemalloc.start()
    try:
        getattr(attnpool_ref, name)(*args, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= MOST.get(name, 0.3) * x.nbytes
