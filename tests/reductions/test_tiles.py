"""Tiles give what whole products give, in every mode that they have; and say so where they have none."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_gradients_agree
from constants import replaced
from differentiated_twice import judged
from walks import WALKERS, Call, small_tiles

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions import perceptron
from attnpool_flax.reductions.dispatch import logged_dispatches
from attnpool_flax.reductions.loops import tiling
from attnpool_flax.reductions.packed import sums
from attnpool_ref import conformance, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks import invariances
from attnpool_ref.conformance.checks.gradients import REVERSE
from attnpool_ref.conformance.checks.subject import Subject

pytestmark = pytest.mark.thorough


TOKENS = {"WHOLE": 0, "ROW": 0, "TOKENS": 3}
"""The kit's sequences, of 7 and 6 tokens, in tiles of 3: of the first the last tile overlaps the one before it."""


SHAPES = ("length 0",)
"""The kit's other shapes that say something of tiles; each is compiled anew. Nothing has no tiling, along either axis."""


def rows_of():
    """The kit's batch of 5, two examples a tile: the last tile overlaps the one before it."""
    return {"WHOLE": 2 * 7 * 9 * 4, "ROW": 2**20}


REDUCTIONS = ("mean_pooling", "max_pooling", "attention_pooling")
"""A walker for each reduction; the others take the same."""

KINDS = [("tokens", "float32"), ("rows", "bfloat16")]


@pytest.fixture(params=KINDS, ids="-".join, scope="module")
def small(request):
    """(kind of the tiles, dtype) under small tiles."""
    kind, dtype = request.param
    with small_tiles(**(TOKENS if kind == "tokens" else rows_of())):
        yield kind, dtype


@pytest.mark.parametrize(
    ("small", "row"),
    [
        (kind, row)
        for kind in KINDS
        for row in WALKERS
        if kind[0] == "tokens" or row.name in (*REDUCTIONS, "cross_attention_pooling")
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value.name,
    indirect=["small"],
)
def test_tiles_hold_what_the_contract_promises(row, small, monkeypatch):
    """Every option; weights, gradients, dropout, empty rows, poison bit for bit, NaN in its own example."""
    kind, dtype = small
    tilings, make = [], tiling.make_tiling

    def noted(*args):
        tilings.append(make(*args))
        return tilings[-1]

    monkeypatch.setattr(tiling, "make_tiling", noted)
    candidate = functools.partial(getattr(attnpool_flax, row.name), implementation="tiles")
    shapes = SHAPES if small == KINDS[0] else ()
    long = dtype == "float32"
    conformance.check(
        candidate, row.name, dtypes=(dtype,), shapes=shapes, laws=False, partial=False, long=long, contract=True
    )
    names, options = next(way[1:] for way in cases.configurations(row) if way[0] == "smallest")
    subject = Subject(row, candidate, JaxArrays(), dtype)
    found = invariances.not_finite_stays_in_its_example(
        subject, cases.draw(row, "smallest", names, options, cases.BATCH)
    )
    assert found is not None and not found.message
    tilings = [own for own in tilings if own]
    if kind == "tokens":
        assert any(own.size < own.length and own.length % own.size for own in tilings)
    else:
        assert any(1 < own.rows < own.batch and own.batch % own.rows for own in tilings)


# --------------------------------------------------------------------------------------------------------------
# Modes of differentiation


class Derived:
    """The sum of the sines of a walker's results, and of several of its derivatives, as functions of x."""

    def __init__(self, row, implementation):
        sizes = {"L": 5, "T": 4, "d": 3, "e": 2, "q": 3}
        self.call = Call(row, "smallest", implementation, batch=3, sizes=sizes)  # a prefix, an empty one, a full one
        self.x = jnp.asarray(self.call.values["x"])
        self.several = jnp.stack([self.x, self.x[::-1]])

    def results(self, x):
        return self.call.forward(self.call.values | {"x": x})

    def loss(self, x):
        return sum(jnp.sum(jnp.sin(part)) for part in self.results(x))


def scanned(derived, function):
    return jax.lax.scan(lambda carry, x: (carry, function(x)), 0, derived.several)[1]


WORKING = {
    "vmap of grad": lambda f: jax.vmap(jax.grad(f.loss))(f.several),
    "grad of scan": lambda f: jax.grad(lambda x: jnp.sum(scanned(f, lambda y: f.loss(x * y))))(f.x),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(f.loss))(f.x),
    "grad of grad": lambda f: jax.grad(lambda x: jnp.sum(jnp.square(jax.grad(f.loss)(x))))(f.x),
    "hessian, vmap of jvp of grad": lambda f: jax.hessian(f.loss)(f.x),
}
"""What differentiates backward first."""

FORWARD = {
    "jvp": lambda f: jax.jvp(f.loss, (f.x,), (f.x,)),
    "jvp of vmap": lambda f: jax.jvp(jax.vmap(f.loss), (f.several,), (f.several,)),
    "jit of jvp": lambda f: jax.jit(lambda x: jax.jvp(f.loss, (x,), (x,)))(f.x),
    "jacfwd": lambda f: jax.jacfwd(f.results)(f.x),
}
"""Forward mode that a call sees: without an implementation it takes whole products."""

HIDDEN = {
    "jvp of jit": lambda f: jax.jvp(jax.jit(f.loss), (f.x,), (f.x,)),
    "jvp of scan": lambda f: jax.jvp(lambda x: scanned(f, lambda y: f.loss(x * y)), (f.x,), (f.x,)),
    "jvp of checkpoint": lambda f: jax.jvp(jax.checkpoint(f.loss), (f.x,), (f.x,)),
    "linearize": lambda f: jax.linearize(f.loss, f.x)[1](f.x),
}
"""Forward mode that no call sees."""

REFUSED = FORWARD | HIDDEN
NAMED = 'tiles and kernels have no forward mode .*; pass implementation="einsum"'


@pytest.mark.parametrize("name", [row.name for row in table.BY_NAME.values() if FUNCTIONS[row.name].has_tiles])
def test_tiles_have_second_derivatives(name):
    """A tile is 3 tokens, so that the last one overlaps; the running maximum of merged states is a constant throughout."""
    few = {"TOKENS": 3}
    with small_tiles(**TOKENS), replaced(sums, **few, FEWEST=3), replaced(perceptron, **few):
        assert judged(attnpool_flax, name, REVERSE, implementation="tiles") == []


each_reduction = pytest.mark.parametrize("row", [table.get(name) for name in REDUCTIONS], ids=REDUCTIONS)


@pytest.fixture
def tiny():
    """Tiles of two tokens, so that the last of three overlaps."""
    with small_tiles(WHOLE=0, ROW=0, TOKENS=2):
        yield


def assert_close(row, got, want):
    case = Derived(row, None).call.case
    assert_gradients_agree(case, *jax.tree.map(np.asarray, (got, want)))


@pytest.mark.parametrize("mode", WORKING)
@each_reduction
def test_what_differentiates_backward_first_has_tiles(row, mode, tiny):
    differentiated = WORKING[mode]
    both = jax.jit(lambda: [differentiated(Derived(row, own)) for own in ("tiles", "einsum")])
    assert_close(row, *both())


@pytest.mark.parametrize("mode", FORWARD)
@each_reduction
def test_forward_mode_that_is_seen_takes_whole_products(row, mode, tiny):
    """By what is recorded: what whole products give is judged elsewhere."""
    with logged_dispatches() as heard:
        jax.eval_shape(lambda: FORWARD[mode](Derived(row, None)))
    assert set(heard) == {"einsum"}


@pytest.mark.parametrize("mode", REFUSED)
@each_reduction
def test_forward_mode_of_tiles_is_refused_by_the_name_of_what_has_it(row, mode, tiny):
    with pytest.raises(TypeError, match=NAMED):
        REFUSED[mode](Derived(row, "tiles"))


@pytest.mark.parametrize("mode", HIDDEN)
def test_forward_mode_that_is_not_seen_is_refused_and_has_whole_products_by_name(mode, tiny):
    with pytest.raises(TypeError, match=NAMED):
        HIDDEN[mode](Derived(WALKERS[0], None))
    chex.assert_tree_all_finite(HIDDEN[mode](Derived(WALKERS[0], "einsum")))


def drawn(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def mapped(axes):
    return lambda function: jax.vmap(function, axes)


SHARED = {
    "tokens shared by the examples": (lambda pooled: pooled, (7, 3), (5, 3)),
    "tokens shared by the calls of vmap": (mapped((None, 0)), (5, 7, 3), (2, 3)),
    "other tokens in each call of vmap, shared by its examples": (mapped(0), (2, 7, 3), (2, 5, 3)),
    "one example under vmap of its cotangents": (lambda pooled: jax.jacrev(pooled, 1), (1, 7, 3), (3,)),
    "no call of vmap": (mapped(0), (0, 5, 7, 3), (0, 3)),
    "tokens shared by 7 examples, of which the last tile has one again": (lambda pooled: pooled, (7, 3), (7, 3)),
}
"""By title: (what is done with a function of the tokens and the query, the shape of the tokens, that of the query)."""


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("title", SHARED)
def test_arrays_may_be_shared(title, rows):
    """By the examples of a tile, which has some tokens of one example or all tokens of two, and by calls of vmap."""
    transform, *shapes = SHARED[title]
    constants = {"WHOLE": 0, "ROW": 0, "TOKENS": 3} if rows == 1 else {"WHOLE": 2 * 7 * 3 * 4, "ROW": 2**20}

    def computed(implementation):
        def pooled(x, query):
            return attnpool_flax.attention_pooling(x, query=query, implementation=implementation)

        def loss(x, query):
            found = transform(pooled)(x, query)
            return jnp.sum(jnp.sin(found)), found

        return jax.jit(jax.grad(loss, (0, 1), has_aux=True))(*(drawn(*shape) for shape in shapes))

    with small_tiles(**constants):
        found = computed("tiles")
    chex.assert_trees_all_close(found, computed("einsum"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_token_that_two_tiles_read_counts_once(value):
    x = np.array(drawn(2, 7, 3))
    x[0, 4, 1] = value  # the last tile of three begins with it
    with small_tiles(WHOLE=0, ROW=0, TOKENS=3):
        found = [
            attnpool_flax.mean_pooling(x, implementation="tiles"),
            attnpool_flax.weighted_pooling(x, jnp.full(7, 0.5), implementation="tiles"),
        ]
    for result in found:
        assert result[0, 1] == value
        assert np.isfinite(np.delete(result, 1, 1)).all()
        assert np.isfinite(result[1]).all()
