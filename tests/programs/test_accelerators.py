"""Programs for TPUs and GPUs, lowered and evaluated on a CPU: their products, what they guarantee, and their loops.

``tests/support/rounded_products.py`` says how products round there. float32 has its own tolerance on every device. When
bfloat16 tokens are pooled, they and their float32 weights are exact; other functions may take one pass for bfloat16
inputs, as the contract says.
"""

import functools
import math
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from differentiated_twice import fullest
from drawn import draw, way
from jax.extend.mlir import passmanager
from rounded_products import GPU, TPU, on_device
from rounding import rounded

import attnpool_flax
import attnpool_ref
from attnpool_flax.tokens import pieces, tiles
from attnpool_flax.tokens.protocol import dot
from attnpool_ref import table
from attnpool_ref.conformance import cases, checks
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.gradients import REVERSE, gradient
from attnpool_ref.conformance.checks.subject import Subject

pytestmark = pytest.mark.thorough

on_every_device = pytest.mark.parametrize("platform", [TPU, GPU])


@pytest.fixture(autouse=True, scope="module")
def as_large_arrays():
    """Small arrays are computed as large ones are, which accelerators read as they came."""
    with replaced(tiles, WHOLE=0):
        yield


# Precision ----------------------------------------------------------------------------------------------------------


class Device(JaxArrays):
    """JAX arrays on a device; ``one_pass`` says whether narrow results may be computed in one pass of the products."""

    def __init__(self, platform, one_pass=False):
        self.platform, self.one_pass, self.outputs = platform, one_pass, None

    def reduced_products(self):
        return self.one_pass

    def gradient(self, function, arrays, fixed, cotangents):
        """The gradients, and the results by the same program."""

        def both(arrays, fixed, cotangents):
            outputs, pull = jax.vjp(lambda own: function(own | fixed), arrays)
            return outputs, pull(cotangents)[0]

        self.outputs, gradients = on_device(self.platform, both)(arrays, fixed, cotangents)
        return {name: np.asarray(value) for name, value in gradients.items()}

    def second(self, function, arrays, fixed, cotangents, directions, forward):
        assert not forward

        def products(arrays, fixed, cotangents, directions):
            def along(arrays):
                outputs, pull = jax.vjp(lambda moved: function(moved | fixed), arrays)
                (slopes,) = pull([c * (1 + output) for c, output in zip(cotangents, outputs, strict=True)])
                return sum(jnp.sum(slope * directions[key]) for key, slope in slopes.items())

            return jax.grad(along)(arrays)

        return jax.tree.map(np.asarray, on_device(self.platform, products)(arrays, fixed, cotangents, directions))


def wrong(row, dtype, platform, one_pass=False):
    """Returns what is wrong with results and gradients on a device, in the call with the most arguments."""
    case, device = cases.draw(row, *way(row), cases.BATCH), Device(platform, one_pass)
    subject = Subject(row, getattr(attnpool_flax, row.name), device, dtype)
    weights = subject.takes_weights()
    found = [gradient(subject, case, weights)]
    if device.outputs is not None:
        found.append(agreement(subject, case, weights, subject.read(case, device.outputs)))
    return [finding.message for finding in found if finding is not None and finding.message]


FLOATS = [row for row in table.VARIANTS if row.family != "masks"]
EXACT = "attention_pooling", "multi_head_attention_pooling", "weighted_pooling", "cross_attention_pooling"
POOLED = [table.get(name) for own in EXACT for name in (own, f"segment_{own}")]


@on_every_device
@pytest.mark.parametrize("row", FLOATS, ids=lambda row: row.name)
def test_float32_is_float32_with_the_rounded_products_of_a_device(row, platform):
    assert not wrong(row, "float32", platform)


@on_every_device
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("row", POOLED, ids=lambda row: row.name)
def test_narrow_tokens_and_their_weights_are_exact(row, dtype, platform):
    assert not wrong(row, dtype, platform)


@pytest.mark.parametrize("row", [row for row in FLOATS if row not in POOLED], ids=lambda row: row.name)
def test_other_bfloat16_inputs_have_the_tolerance_of_one_pass(row):
    assert not wrong(row, "bfloat16", TPU, one_pass=True)


@on_every_device
def test_many_small_weights_of_float16_tokens_are_not_lost(platform):
    """65,535 tokens of weight 1e-7, half of float16's smallest number, beside one of weight 1."""
    x, weights = jnp.ones((2**16, 1), jnp.float16).at[-1].set(0), jnp.full(2**16, 1e-7).at[-1].set(1.0)
    total = (2**16 - 1) * 1e-7
    found = on_device(platform, attnpool_flax.weighted_pooling)(x, weights)
    np.testing.assert_allclose(found, total / (1 + total), rtol=1e-4)


B, L, D, K, GHOSTS = 3, 37, 11, 5, 2


@on_every_device
@pytest.mark.parametrize("packed", [False, True], ids=["dense", "packed"])
@pytest.mark.parametrize("size", [1e-4, 0.0])
def test_small_residuals_keep_their_digits_and_tokens_at_their_center_leave_nothing(size, packed, platform, rng):
    """Sums of residuals of a ``size`` relative to that of the centers; derivatives as well."""
    centers, kernel, mask = draw(rng, K, D), 2 * draw(rng, D, K + GHOSTS), rng.random((B, L)) < 0.8
    near = rng.integers(K, size=(B, L))
    near[0], mask[1] = 2, False
    x = centers[near] + np.float32(size) * draw(rng, B, L, D)

    def pooled(x, kernel, centers):
        options = {"assign_kernel": kernel, "centers": centers, "normalize": False}
        if not packed:
            return attnpool_flax.vlad_pooling(x, mask, **options)
        ids = jnp.repeat(jnp.arange(B), L)
        return attnpool_flax.segment_vlad_pooling(jnp.reshape(x, (-1, D)), ids, B, jnp.ravel(mask), **options)

    def both(*arrays):
        def weighed(*arrays):
            found = pooled(*arrays)
            return jnp.sum(found * jnp.sin(jnp.arange(found.size, dtype=found.dtype)).reshape(found.shape)), found

        return jax.grad(weighed, (0, 1, 2), has_aux=True)(*arrays)

    slopes, found = on_device(platform, both)(x, kernel, centers)
    if not size:
        assert not found[0, 2].any()
        return
    x, kernel, centers = (np.float64(array) for array in (x, kernel, centers))
    options = {"assign_kernel": kernel, "centers": centers}
    expected = attnpool_ref.vlad_pooling(x, mask, **options, normalize=False)
    weights = attnpool_ref.vlad_pooling(x, mask, **options, return_weights=True)[1]
    sizes = np.einsum("blk,blk->bk", weights, np.linalg.norm(x[:, :, None] - centers, axis=-1))
    assert (np.abs(found - expected) <= rounded(1, terms=L) * sizes[..., None]).all()
    assert sizes[0, 2] < 100 * size * np.sum(weights[0, :, 2])
    with jax.enable_x64(True):
        wide, _ = both(x, kernel, centers)
    for ours, theirs in zip(slopes, wide, strict=True):
        chex.assert_trees_all_close(ours, np.float32(theirs), rtol=0, atol=rounded(theirs, terms=B * L))


# Guarantees ---------------------------------------------------------------------------------------------------------

ROWS = (
    "attention_pooling",
    "multi_head_attention_pooling",
    "weighted_pooling",
    "additive_attention_pooling",
    "attentive_statistics_pooling",
    "dot_product_attention",
    "additive_attention",
    "mask_attention",
    "bidaf_attention",
    "cross_attention_pooling",
    "vlad_pooling",
    "segment_attention_pooling",
    "segment_vlad_pooling",
)
"""Functions whose products read tokens as they came, or that multiply narrow numbers."""

CHECKS = [("NaN in padding", "bfloat16"), ("NaN at a real token", "float32"), (REVERSE, "float64")]


def as_on(platform, function):
    """Returns the function; its direct calls are evaluated as the platform runs them."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves, shape = jax.tree.flatten((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):  # differentiated, and then evaluated
            return function(*args, **kwargs)
        arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)]

        def run(*given):
            own = dict(zip(arrays, given, strict=True))
            args, kwargs = jax.tree.unflatten(shape, [own.get(i, leaf) for i, leaf in enumerate(leaves)])
            return function(*args, **kwargs)

        return on_device(platform, run)(*(jnp.asarray(leaves[i]) for i in arrays))

    return call


@on_every_device
@pytest.mark.parametrize(("check", "dtype"), CHECKS)
@pytest.mark.parametrize("name", ROWS)
def test_accelerators_keep_what_cpus_guarantee(name, check, dtype, platform):
    candidate = as_on(platform, getattr(attnpool_flax, name))
    subject, case, situation = fullest(candidate, name, Device(platform), dtype=dtype)
    assert checks.CHECKS[check].applies(situation)
    found = checks.CHECKS[check].run(subject, case, situation)
    found = found if isinstance(found, list) else [found]
    assert [finding.message for finding in found if finding.message] == []


@on_every_device
def test_layer_norm_of_large_equal_and_not_finite_numbers(platform, rng):
    """Equal numbers are exactly 0, and NaN stays in its vector."""
    x, scale, cotangent = draw(rng, 4, 7), draw(rng, 7), draw(rng, 4, 7)
    x[1] *= np.float32(1e30)
    x[2], x[3, 0] = 0.1, np.nan

    def results(x, scale):
        result, pull = jax.vjp(lambda *arrays: attnpool_flax.layer_norm(*arrays, epsilon=1e-6), x, scale)
        return result, *pull(cotangent)

    found, expected = on_device(platform, results)(x, scale), jax.jit(results)(x, scale)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=rounded(np.nan_to_num(other), 64))
    assert np.isfinite(found[0][:3]).all() and not found[0][2].any() and np.isnan(found[0][3]).all()


def in_a_scan(function):
    return lambda x, *arrays: jax.lax.scan(lambda sums, own: (sums + function(own, *arrays), None), 0.0, x)[0]


def over_examples(function):
    return lambda x, *arrays: jnp.sum(jax.vmap(lambda own: function(own, *arrays))(x))


def over_a_mesh(function):
    mesh, split = jax.sharding.Mesh(jax.devices()[:1], ("devices",)), jax.P(None, "devices")

    def on_device(x, *arrays):
        return jax.lax.psum(sum(function(own, *arrays) for own in x), "devices")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(split, *[jax.P()] * 3), out_specs=jax.P())


def gradient_of_gradient(function, inner):
    return jax.grad(lambda *arrays: jnp.sum(jnp.sin(jax.grad(function, inner)(*arrays))), (0, 1, 2, 3))


def along(function):
    """Returns the derivative in a direction; ``jacfwd`` would map a psum, which JAX 0.8.3 cannot."""
    return lambda *arrays: jax.jvp(function, arrays, jax.tree.map(jnp.cos, arrays))[1]


DERIVATIVES = {
    "gradient": lambda function: jax.grad(function, (0, 1, 2, 3)),
    "gradient of the rows": lambda function: jax.grad(function, 1),
    "forward mode, twice": lambda function: along(along(function)),
    "gradient of the gradient of the tokens": lambda function: gradient_of_gradient(function, 0),
    "gradient of the gradient of the rows": lambda function: gradient_of_gradient(function, 1),
    "gradient of the gradient of the bias": lambda function: gradient_of_gradient(function, 3),
    "forward mode over the gradient": lambda function: along(jax.grad(function)),
}


@pytest.mark.parametrize("within", [in_a_scan, over_examples, over_a_mesh])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_under_several_heads_are_those_of_two_products(name, within, rng):
    """The products of tokens with rows, and their sums, have a rule of their own; a lambda as score has none."""
    real = jnp.asarray(rng.random((B, 7)) < 0.7).at[1].set(False)
    shapes = (2, B, 7, 5), (1, 4, 5), (B, 7, 4), (B, 7, 4)

    def derivatives(score):
        def of_batch(x, rows, multiplier, bias):
            piece = pieces.OnAccelerators(x, real, None, x.dtype)
            scores, state, sums = pieces.softmax(piece, score, (rows,), multiplier, bias)
            found = jnp.where(real[..., None], scores, 0), state.sum, state.total, sums
            return sum(jnp.sum(jnp.sin(part)) for part in found)

        return jax.jit(DERIVATIVES[name](within(jax.checkpoint(of_batch))))

    with jax.enable_x64(True):
        arrays = [jnp.asarray(rng.normal(size=shape)) for shape in shapes]
        found, expected = (derivatives(score)(*arrays) for score in (dot, lambda piece, rows: piece.dot(rows)))
        chex.assert_trees_all_close(found, expected, rtol=1e-9, atol=1e-9)


# Programs -----------------------------------------------------------------------------------------------------------

PARAMETERS = {
    "mean_pooling": {},
    "max_pooling": {},
    "weighted_pooling": {"weights": (1601,)},
    "attention_pooling": {"query": (64,)},
    "multi_head_attention_pooling": {"query": (1, 64)}
    | {f"{part}_kernel": (64, 4, 16) for part in ("query", "key", "value")},
    "additive_attention_pooling": {"kernel": (64, 32), "out_kernel": (32,)},
}


def live(traced, platform):
    """Returns the StableHLO of a program for a platform, without what it does not use."""
    module = traced.lower(lowering_platforms=(platform,)).compiler_ir()
    with module.context:
        passmanager.PassManager.parse("builtin.module(inline,symbol-dce,canonicalize,cse)").run(module.operation)
    return str(module)


@pytest.mark.parametrize("name", PARAMETERS)
def test_only_cpus_loop_over_tokens_and_no_product_of_others_reads_a_wide_copy(name):
    """In a step with large arrays of bfloat16: XLA fuses no selection into a product, and would write float32 tokens."""
    shapes = PARAMETERS[name] | {"x": (8, 1601, 64)}
    arrays = {key: jax.ShapeDtypeStruct(shape, jnp.bfloat16) for key, shape in shapes.items()}

    def step(arrays, mask):
        function = getattr(attnpool_flax, name)
        return jax.grad(lambda own: jnp.sum(jnp.sin(function(mask=mask, **own).astype(jnp.float32))))(arrays)

    traced = jax.jit(step).trace(arrays, jax.ShapeDtypeStruct((8, 1601), bool))
    texts = {platform: live(traced, platform) for platform in ("cpu", TPU, GPU)}
    assert {own: "stablehlo.while" in text for own, text in texts.items()} == {"cpu": True, TPU: False, GPU: False}
    for text in (texts[TPU], texts[GPU]):
        for product in re.findall(r"stablehlo\.dot_general.* : \((.*)\) ->", text):
            for wide in re.findall(r"tensor<([\dx]+)xf32>", product):
                assert math.prod(map(int, wide.split("x"))) < 8 * 1601 * 64, product


@on_every_device
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_gradient_of_tokens_under_several_heads_is_one_product(dtype, platform):
    """Of a sum of two products XLA would write the first one to memory, in float32."""
    shapes = PARAMETERS["multi_head_attention_pooling"] | {"x": (8, 1601, 64)}
    arrays = {key: jax.ShapeDtypeStruct(shape, dtype) for key, shape in shapes.items()}

    def step(arrays, mask):
        pooled = functools.partial(attnpool_flax.multi_head_attention_pooling, mask=mask)
        return jax.grad(lambda own: jnp.sum(jnp.sin(pooled(**own).astype(jnp.float32))))(arrays)

    text = live(jax.jit(step).trace(arrays, jax.ShapeDtypeStruct((8, 1601), bool)), platform)
    results = re.findall(r"stablehlo\.dot_general.* -> tensor<([\dx]+)xf32>", text)
    assert [math.prod(map(int, result.split("x"))) for result in results].count(8 * 1601 * 64) == 1


# The evaluation itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "precision", "bits"), [(TPU, None, 8), (TPU, "high", 16), (GPU, None, 11), (GPU, "high", 11)]
)
def test_products_lose_the_bits_that_the_device_does_not_multiply(platform, precision, bits, rng):
    """Also inside of loops, and in gradients."""
    x, y = draw(rng, 3, 64) / 8, draw(rng, 64) / 8

    def step(precision):
        def looped(x, y):
            return jnp.sum(jnp.tanh(jax.lax.map(lambda row: jnp.dot(row, y, precision=precision), x)))

        return jax.value_and_grad(looped, (0, 1))

    exact = step("highest")(x, y)
    found, unrounded = on_device(platform, step(precision))(x, y), on_device(platform, step("highest"))(x, y)
    error = max(np.abs(a - b).max() for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True))
    assert 2.0 ** -(bits + 6) < error < 2.0 ** -(bits - 2)
    chex.assert_trees_all_close(unrounded, exact, atol=1e-6)
