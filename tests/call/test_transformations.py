"""Every function of the table under scan, vmap and remat and shard_map; silent under the NaN checker."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import arguments_of, assert_agree, assert_gradients_agree
from jax.sharding import PartitionSpec
from repeated_tokens import LargeCase

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import tolerances

BATCH = 4  # divides among the devices of tests that have eight


class Example:
    """A row's call with every argument, with a batch that divides, and one example without anything real.

    Attributes:
      row: the row.
      case: what is called; ``arrays`` are its arguments in float32, ``call`` takes them.
      split: names of the arguments of which each example has its own; all of them where a row knows no examples.
    """

    def __init__(self, row, **changed):
        self.row = row
        named = {title: (names, options) for title, names, options in cases.configurations(row)}
        names, options = named.get("fullest", named["smallest"])
        names, options = cases.legal(row, names, options | changed), options | changed
        self.case = cases.draw(row, "transformations", names, options, (BATCH,), {"B": BATCH})
        self.arrays, self.call = arguments_of(self.case, getattr(attnpool_flax, row.name))
        self.split = [key for key, own in self.case.axes.items() if own and own[0] in ("...", "B")]
        self.has_batch = bool(self.split)

    @functools.cached_property
    def result(self):
        """What the oracle gives; that the plain call gives it is judged in ``tests/test_guarantees.py``."""
        return exactly(self.case)

    @functools.cached_property
    def jitted(self):
        """A user's own jit of results and gradients."""
        return jax.jit(with_gradients(self.call))

    @functools.cached_property
    def computed(self):
        """(results, gradients) of one program."""
        return jax.tree.map(np.asarray, self.jitted(self.arrays))


def exactly(case):
    """The oracle's results in float64."""
    _, call = arguments_of(case, getattr(attnpool_ref, case.row.name))
    return call({key: value for key, value in case.values.items() if value is not None})


def with_gradients(call):
    """From arrays to (results, gradients of the sum of their finite squares), which no function makes constant."""

    def program(arrays):
        floats = {k: v for k, v in arrays.items() if v.dtype == np.float32}

        def objective(floats):
            results = call(arrays | floats)
            finite = [jnp.where(out > -jnp.inf, out.astype(np.float32), 0) for out in results]  # logarithms of 0
            return sum(jnp.square(out).sum() for out in finite), results

        (_, results), gradients = jax.value_and_grad(objective, has_aux=True)(floats)
        return results, gradients

    return program


@pytest.fixture(scope="module", params=table.VARIANTS, ids=lambda row: row.name)
def example(request):
    """A row's example; the tests of one row follow each other and share what is computed once."""
    return Example(request.param)


@pytest.mark.thorough
def test_scan_of_vmap_of_the_gradient_of_remat_gives_what_jit_gives(example):
    one = (1,) if "B" in example.case.sizes else ()  # such a function takes no example without its axis
    split = {k: v for k, v in example.arrays.items() if k in example.split or not example.has_batch}
    shared = {k: v for k, v in example.arrays.items() if k not in split}
    if example.has_batch:
        pairs = {k: v.reshape(2, BATCH // 2, *one, *v.shape[1:]) for k, v in split.items()}
        want, gradients = example.computed
    else:
        turned = [{k: np.roll(v, i, 0) if v.ndim else v for k, v in split.items()} for i in range(BATCH)]
        pairs = jax.tree.map(lambda *parts: np.reshape(parts, (2, BATCH // 2, *parts[0].shape)), *turned)
        each = [example.jitted(arrays) for arrays in turned]
        want, gradients = jax.tree.map(lambda *parts: np.stack(parts), *each)
    remat = with_gradients(jax.checkpoint(example.call))

    @jax.jit
    def program(pairs):
        return jax.lax.scan(lambda carry, pair: (carry, jax.vmap(lambda own: remat(own | shared))(pair)), 0, pairs)[1]

    results, found = jax.tree.map(np.asarray, program(pairs))
    assert_agree(example.case, [out.reshape(w.shape) for out, w in zip(results, want, strict=True)], want)
    chex.assert_equal(set(found), set(gradients))
    for key, gradient in found.items():
        total = gradient.sum((0, 1)) if key in shared else gradient.reshape(gradients[key].shape)
        assert_gradients_agree(example.case, total, gradients[key])


@pytest.mark.thorough
@pytest.mark.mesh
def test_shard_map_over_the_batch_with_its_checks_on(example):
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = {k: PartitionSpec("batch") if k in example.split else PartitionSpec() for k in example.arrays}
    whole = PartitionSpec("batch") if example.has_batch else PartitionSpec()  # without a batch every device has all
    sharded = jax.shard_map(example.call, mesh=mesh, in_specs=(specs,), out_specs=whole)
    results, gradients = jax.tree.map(np.asarray, jax.jit(with_gradients(sharded))(example.arrays))
    assert_agree(example.case, results, example.result)
    assert_gradients_agree(example.case, gradients, example.computed[1])


@pytest.mark.thorough
def test_the_nan_checker_stays_silent_on_poison_and_empty_rows(example):
    poisoned = cases.poisoned(example.case, np.nan)
    floats = example.case.given("data")
    assert poisoned or not (floats and example.case.given("mask")), "a row with a mask has padding to poison"
    arrays, _ = arguments_of(poisoned or example.case, getattr(attnpool_flax, example.row.name))
    with jax.debug_nans(True):
        example.jitted(arrays)


LARGE = {
    "max_pooling": "",
    "attention_pooling": "",
    "gated_sum_pooling": "",
    "segment_attention_pooling": "",
    "segment_max_pooling": "",
    "mask_attention": "",
    "kernel_regression": "",
    "maxsim_score": "",
    "cross_attention_pooling": "reduction=max",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LARGE)
def test_forward_mode_of_large_arrays_has_the_derivatives_of_reverse_mode(name):
    case = LargeCase(table.get(name), getattr(attnpool_flax, name), LARGE[name]).case
    arrays, call = arguments_of(case, getattr(attnpool_flax, name))
    floats = {key: value for key, value in arrays.items() if value.dtype == np.float32}
    tangents = jax.tree.map(np.cos, floats)

    @jax.jit
    def both(floats):
        def function(floats):
            return call(arrays | floats)

        results, ahead = jax.jvp(function, (floats,), (tangents,))
        cotangents = jax.tree.map(jnp.cos, results)
        (gradients,) = jax.vjp(function, floats)[1](cotangents)
        return jax.tree.map(jnp.multiply, [ahead, gradients], [cotangents, tangents])

    ahead, back = (
        np.concatenate([np.ravel(part).astype(float) for part in jax.tree.leaves(own)]) for own in both(floats)
    )
    size = np.abs(ahead).sum() + np.abs(back).sum()
    assert abs(ahead.sum() - back.sum()) <= tolerances.allowed_error(size, size, case.terms(), "float32")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["cross_attention_pooling", "cross_attention_pooling_all_pairs"])
def test_the_largest_products_of_many_pairs_are_the_definition(name):
    """In blocks: tied tokens of several blocks share the gradient, and NaN at padding changes no bit."""
    assert LargeCase(table.get(name), getattr(attnpool_flax, name), "reduction=max").wrong() == []


def test_a_users_jit_traces_once_a_shape():
    pool = jax.jit(chex.assert_max_traces(lambda x, scale: attnpool_flax.attention_pooling(x, scale=scale), n=1))
    x = np.ones((2, 3, 4), np.float32)
    for scale in (0.5, 1.5, 2.5):
        chex.assert_shape(pool(x, scale), (2, 4))
    with pytest.raises(AssertionError, match="traced > 1 times"):
        pool(x[:1], 0.5)


@pytest.mark.parametrize("name", ["mean_max_pooling", "attention_pooling", "segment_attention_pooling"])
def test_second_derivatives_are_right_inside_of_a_scan(name):
    """JAX before 0.12 forgets a rule of ``jax.custom_jvp`` there."""
    chunks = np.random.default_rng(0).normal(size=(3, 6, 4))
    place = () if not name.startswith("segment_") else (jnp.array([0, 1, 0, 1, 1, 0]), 2)

    def pooled(x, query):
        return getattr(attnpool_flax, name)(x * query[None], *place)

    def by_scan(query):
        return jax.lax.scan(
            lambda total, x: (total + jnp.sum(jnp.sin(pooled(x, query) ** 2)), None), jnp.zeros(()), chunks
        )[0]

    def one_by_one(query):
        return sum(jnp.sum(jnp.sin(pooled(x, query) ** 2)) for x in chunks)

    with jax.enable_x64(True):
        query = jnp.array([0.3, -0.5, 0.7, 0.2])
        for second in (jax.jacfwd, jax.jacrev):
            found, needed = (second(jax.grad(function))(query) for function in (by_scan, one_by_one))
            np.testing.assert_allclose(found, needed, rtol=1e-9)
            assert np.max(np.abs(needed)) > 0.1


def test_second_derivatives_are_right_through_the_loop_of_cpus():
    """In float64 and against a formula of its own; the scans above have too few tokens for the loop."""
    x = np.random.default_rng(0).normal(size=(2, 8192, 16))
    mask = np.arange(8192)[None] < np.array([[8192], [5000]])

    def plain(x):
        scores = 0.25 * jnp.sum(x, -1)
        return jnp.einsum("bl,bld->bd", jax.nn.softmax(scores, -1, where=mask), x)

    def second(pool):
        return jax.jacfwd(jax.grad(lambda scale: jnp.sum(jnp.sin(pool(x * scale[None, None]) ** 2))))(
            jnp.linspace(0.5, 1.5, 16)
        )

    with jax.enable_x64(True):
        np.testing.assert_allclose(
            second(lambda x: attnpool_flax.attention_pooling(x, mask, query=jnp.ones(16), scale=0.25)),
            second(plain),
            rtol=1e-8,
            atol=1e-10,
        )
