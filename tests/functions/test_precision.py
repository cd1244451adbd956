"""float32 means float32 on devices that round the operands of products: each row, evaluated on a CPU as they compute.

``tests/support/rounded_products.py`` says how they round. float32 has its own tolerance on every device. bfloat16 numbers are
exact in one pass, and so are the sums of tokens under float32 weights, which devices take as two narrow rows. Rows that multiply
other float32 numbers take one pass for bfloat16 inputs, as the contract says, and have the tolerance of one pass: :data:`ONE_PASS`.
"""

import jax
import numpy as np
import pytest
from constants import compiling_anew, replaced
from drawn import way
from marks import thorough
from rounded_products import GPU, TPU, on_device
from walks import small_tiles

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions.loops import blocks
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.gradients import gradient
from attnpool_ref.conformance.checks.subject import Subject

pytestmark = pytest.mark.thorough

MULTIPLYING = [row for row in table.VARIANTS if "precision" in FUNCTIONS[row.name].signature.parameters]
DENSE = [row.name for row in MULTIPLYING if not row.packed]
PACKED = [row.name for row in MULTIPLYING if row.packed]
"""Packed functions have the dense bodies; one is judged in ``make test``, in float32."""

ONE_PASS = {
    "scaled, projected and normalized vectors": (
        "scaled_dot_score",
        "bilinear_score",
        "cosine_score",
        "trilinear_score",
        "residual_feed_forward",
        "differential_context",
        "relation_vector",
        "relation_triplet_loss",
        "field_attention_pooling",
        "set2set_pooling",
    ),
    "weights of many queries": (
        "attend",
        "dot_product_attention",
        "additive_attention",
        "tanh_sum_attention",
        "location_attention",
        "multi_head_attention",
        "kernel_regression",
        "label_attention",
        "code_wise_attention",
        "mask_attention",
        "bidaf_attention",
        "latent_attention_pooling",
        "cross_attention_pooling_all_pairs",
    ),
    "hidden units": ("additive_attention_pooling", "attentive_statistics_pooling"),
    "parts of vectors": (
        "orthogonal_decomposition",
        "linear_decomposition",
        "graph_decomposition",
        "attention_triplet_loss",
    ),
}
"""Float32 numbers, not of the inputs, that these rows multiply in one pass where the inputs are bfloat16."""

IN_ONE_PASS = [name for names in ONE_PASS.values() for name in names]
PACKED_IN_ONE_PASS = [name for name in PACKED if name.removeprefix("segment_") in IN_ONE_PASS]

EXACT = [name for name in DENSE if name not in IN_ONE_PASS]
PACKED_EXACT = [name for name in PACKED if name not in PACKED_IN_ONE_PASS]

WITH_SMALL_KERNELS = (
    "attention_pooling",
    "multi_head_attention_pooling",
    "weighted_pooling",
    "cross_attention_pooling",
)
"""Rows that take another kernel for small arrays."""

on_every_device = pytest.mark.parametrize("platform", [TPU, *thorough([GPU])])


class Device(JaxArrays):
    """JAX arrays on a device; ``one_pass`` says whether narrow results may be computed in one pass of the products."""

    def __init__(self, platform, one_pass):
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


def wrong(name, dtype, platform, one_pass=False):
    """What is wrong with a row's results and gradients on a device, in a call with as many arguments as the row allows."""
    row = table.get(name)
    case = cases.draw(row, *way(row), cases.BATCH)
    device = Device(platform, one_pass)
    subject = Subject(row, getattr(attnpool_flax, name), device, dtype)
    weights = subject.takes_weights()
    with compiling_anew(FUNCTIONS[name]):
        of_gradient = gradient(subject, case, weights)
        of_results = agreement(subject, case, weights, subject.read(case, device.outputs))
    return [finding.message for finding in (of_results, of_gradient) if finding.message]


@pytest.fixture(scope="module")
def as_large_ones():
    """Small arrays are computed as large ones are; more queries than one are many."""
    with small_tiles(WHOLE=0), replaced(blocks, LARGEST=1):
        yield


@on_every_device
@pytest.mark.parametrize("name", [*DENSE, *PACKED[:1], *thorough(PACKED[1:])])
@pytest.mark.usefixtures("as_large_ones")
def test_float32_is_float32_with_the_rounded_products_of_a_device(name, platform):
    assert not wrong(name, "float32", platform)


@on_every_device
@pytest.mark.parametrize("name", [*EXACT, *thorough(PACKED_EXACT)])
@pytest.mark.usefixtures("as_large_ones")
def test_bfloat16_tokens_are_exact_with_the_rounded_products_of_a_device(name, platform):
    assert not wrong(name, "bfloat16", platform)


@on_every_device
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", WITH_SMALL_KERNELS)
def test_few_narrow_tokens_are_exact_with_the_rounded_products_of_a_device(name, dtype, platform):
    assert not wrong(name, dtype, platform)


@on_every_device
@pytest.mark.parametrize("name", [IN_ONE_PASS[0], *thorough([*IN_ONE_PASS[1:], *PACKED_IN_ONE_PASS])])
@pytest.mark.usefixtures("as_large_ones")
def test_one_pass_of_bfloat16_has_the_tolerance_of_one_pass(name, platform):
    assert not wrong(name, "bfloat16", platform, one_pass=True)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*IN_ONE_PASS, *PACKED_IN_ONE_PASS])
@pytest.mark.usefixtures("as_large_ones")
def test_rows_in_one_pass_need_its_tolerance(name):
    assert wrong(name, "bfloat16", TPU), "it is exact: take it out of ONE_PASS"


def product(precision):
    """A program with one product under a tanh, differentiated."""
    return jax.value_and_grad(lambda x, y: jax.numpy.tanh(jax.numpy.dot(x, y, precision=precision)), (0, 1))


@pytest.mark.parametrize(
    "platform, precision, bits", [(TPU, None, 8), (TPU, "high", 16), (GPU, None, 11), (GPU, "high", 11)]
)
def test_products_lose_the_bits_that_the_device_does_not_multiply(platform, precision, bits):
    rng = np.random.default_rng(0)
    x, y = (jax.numpy.asarray(rng.normal(size=64) / 8, "float32") for _ in "xy")
    (found, slopes), (exact, own) = on_device(platform, product(precision))(x, y), product("highest")(x, y)
    error = max(abs(found - exact), *(np.abs(a - b).max() for a, b in zip(slopes, own, strict=True)))
    assert 2.0 ** -(bits + 6) < error < 2.0 ** -(bits - 2)
    assert on_device(platform, product("highest"))(x, y)[0] == pytest.approx(float(exact), abs=1e-6)


def test_products_inside_of_loops_and_branches_are_rounded():
    x = jax.numpy.asarray(np.random.default_rng(1).normal(size=8), "float32")
    third = jax.numpy.float32(1 / 3)

    def looped(x):
        def step(total, row):
            return jax.lax.cond(row > 0, lambda: total + jax.numpy.dot(row[None], third[None]), lambda: total), row

        first = jax.lax.scan(step, jax.numpy.float32(0), x)[0]
        return jax.lax.while_loop(lambda t: t < 1e3, lambda t: t * 2 + jax.numpy.dot(x, x), first)

    def branched(x):
        return jax.lax.platform_dependent(x, cpu=lambda x: x * 0, tpu=lambda x: x + 1, default=lambda x: x + 2)

    exact = looped(x)
    assert abs(on_device(TPU, looped)(x) - exact) > 1e-4 * abs(exact)
    assert [float((on_device(own, branched)(x) - x)[0].round()) for own in (TPU, GPU)] == [1, 2]
