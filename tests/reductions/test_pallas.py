"""Kernels of Pallas, interpreted: ``implementation="pallas"`` against whole products and the oracle."""

import functools
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec
from kernel_agreement import LIMITS, assert_agreement, assert_near, with_gradients
from marks import all_with_few_quick

import attnpool_flax
import attnpool_ref
from attnpool_flax import chosen_implementation
from attnpool_flax.kernels import softmax as pallas_softmax
from attnpool_flax.kernels import tpu as pallas_tpu
from attnpool_flax.kernels import triton as pallas_triton
from attnpool_flax.reductions import softmax

HIGHEST = jax.lax.Precision.HIGHEST
every_dtype = pytest.mark.parametrize("dtype", LIMITS)
pytestmark = pytest.mark.usefixtures("interpreted")


def drawn(dtype="float32", batch=3, length=7, width=5, heads=1, own=False, extra=True):
    """(tokens, mask, has_query, queries, multiplier, bias); the second row is fully masked, padding is NaN or infinite."""
    random = np.random.default_rng(7)
    x = random.normal(size=(batch, length, width)).astype(np.float32)
    mask = random.random((batch, length)) < 0.7
    mask[0, :1], mask[1] = True, False
    x[~mask] = np.resize([np.nan, np.inf, -np.inf], x[~mask].shape)
    queries = random.normal(size=(batch if own else 1, heads, width)).astype(np.float32)
    multiplier, bias = random.uniform(0, 2, (2, batch, length, heads)).astype(np.float32)
    multiplier[~mask], bias[~mask] = np.nan, np.inf
    has_query = np.arange(batch) != 2
    if not extra:
        multiplier = bias = has_query = None
    return jnp.asarray(x, dtype), mask, has_query, queries, multiplier, bias


def compared(kernel, arrays, widened=None):
    """(scores, state), and gradients by name, of a kernel; in float64 with ``widened``."""
    x, mask, has_query, queries, multiplier, bias = arrays
    batch, length, heads = *x.shape[:2], queries.shape[1]
    shapes = (batch, length, heads), (batch, heads), (batch, heads, x.shape[2]), (batch, heads, x.shape[2])
    given = {"x": x, "queries": queries, "multiplier": multiplier, "bias": bias}

    def of(x, queries, multiplier, bias):
        return kernel(x, mask, has_query, queries, multiplier, bias, HIGHEST)

    return with_gradients(of, given, shapes, widened)


def assert_right(arrays, kernel=pallas_softmax.kernel):
    """Compares a kernel with whole products in float64 of the same arrays."""
    found = compared(kernel, arrays)
    with jax.enable_x64(True):
        expected = compared(softmax.plain, arrays, "float64")
    assert_agreement(found, expected, arrays[0].dtype.name, real=arrays[1], empty=[1])


@pytest.mark.parametrize("dtype", all_with_few_quick(LIMITS, ["bfloat16"]))
def test_one_query_agrees_with_whole_products_in_float64(dtype):
    assert_right(drawn(dtype, length=131, extra=False))


@pytest.mark.thorough
@pytest.mark.parametrize("length", [pytest.param(1, marks=pytest.mark.thorough), 7])
def test_several_queries_with_all_arguments_agree_with_whole_products(length):
    assert_right(drawn("bfloat16", length=length, heads=5, own=True))


def _on_gpu(name, *_):
    return functools.partial(getattr(pallas_triton, name), interpret=True)


@pytest.mark.parametrize(
    "dtype, length, width, heads, own",
    [
        ("bfloat16", 131, 5, 1, False),
        pytest.param("float32", 37, 23, 3, True, marks=pytest.mark.thorough),
        *(
            pytest.param(dtype, length, width, heads, own, marks=pytest.mark.thorough)
            for dtype in LIMITS
            for length, width in ((1, 1), (7, 48), (300, 5), (37, 150))
            for heads in (1, 2, 16)
            for own in (False, True)
        ),
    ],
)
def test_the_kernels_for_gpus_agree_with_whole_products(dtype, length, width, heads, own):
    several_blocks_and_parts = replaced(pallas_triton, ELEMENTS=32)
    with replaced(pallas_softmax, _on_platforms=_on_gpu), several_blocks_and_parts:
        assert_right(drawn(dtype, length=length, width=width, heads=heads, own=own))


@pytest.fixture
def small_blocks():
    """Blocks of 128 tokens."""
    with replaced(pallas_tpu, BLOCK=1):
        yield


@pytest.mark.thorough
@every_dtype
@pytest.mark.parametrize("heads", [1, 13, 16])
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own queries"])
@pytest.mark.parametrize("length", [127, 257])
def test_every_form_agrees_with_whole_products(small_blocks, dtype, heads, own, length):
    assert_right(drawn(dtype, length=length, heads=heads, own=own))


def on_tpu(interpret):
    """The kernel by the functions for TPUs, interpreted in a given way."""

    def kernel(x, mask, has_query, queries, multiplier, bias, precision):
        codes, rows = pallas_softmax._codes(mask, has_query, x), pallas_softmax._rows_of
        options = {"precision": precision, "interpret": interpret}
        state = softmax.OnlineSoftmax(*pallas_tpu.forward(x, codes, queries, rows(multiplier), rows(bias), **options))
        return jnp.swapaxes(pallas_tpu.scores(x, codes, queries, rows(bias), **options), 1, 2), state

    return kernel


@pytest.mark.thorough
@pytest.mark.parametrize("heads", [1, 5])
def test_memory_that_nobody_wrote_is_not_used(small_blocks, heads):
    interpret = pltpu.InterpretParams(uninitialized_memory="nan", detect_races=True)
    arrays = drawn("float32", batch=2, length=131, heads=heads)
    arrays = (*arrays[:2], None, *arrays[3:])
    (scores, state), want = on_tpu(interpret)(*arrays, HIGHEST), on_tpu(True)(*arrays, HIGHEST)
    for got, own in zip((scores, *state), (want[0], *want[1]), strict=True):
        np.testing.assert_allclose(got, own, 1e-6, 1e-6)
    codes, rows = pallas_softmax._codes(arrays[1], None, arrays[0]), pallas_softmax._rows_of
    cotangents = jnp.swapaxes(jnp.ones_like(scores), 1, 2), jnp.ones_like(state.denominator), state.numerator
    given = arrays[0], codes, arrays[3], rows(arrays[4]), rows(arrays[5]), state.max_score, *cotangents
    both = [pallas_tpu.backward(*given, precision=HIGHEST, interpret=own) for own in (interpret, True)]
    for got, own in zip(*both, strict=True):
        assert np.isfinite(np.asarray(got)).all()
        np.testing.assert_allclose(got, own, 1e-5, 1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("fill", [np.nan, 0.0, -np.inf])
def test_padding_changes_no_bit(fill):
    x, mask, *others = drawn("bfloat16")
    same = jnp.where(mask[..., None], x, fill)
    first, second = (compared(pallas_softmax.kernel, (own, mask, *others)) for own in (x, same))
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize("batch, length", [(0, 7), (3, 0)])
def test_no_tokens_pool_to_zero(batch, length):
    x, query = jnp.ones((batch, length, 5)), jnp.ones(5)
    found, weights = attnpool_flax.attention_pooling(x, None, query, implementation="pallas", return_weights=True)
    assert found.shape == (batch, 5) and weights.shape == (batch, length) and not found.any()


def test_without_a_mask_tokens_beyond_the_last_are_left_out():
    x, query = drawn(length=131)[0], jnp.ones(5)
    x = jnp.nan_to_num(x, posinf=1, neginf=-1)
    got = attnpool_flax.attention_pooling(x, None, query, implementation="pallas")
    np.testing.assert_allclose(got, attnpool_ref.attention_pooling(np.asarray(x), None, np.asarray(query)), 1e-5, 1e-6)


# --------------------------------------------------------------------------------------------------------------
# Functions


def heads_of(count=2):
    """Keywords of multi-head pooling of tokens of width 5."""
    random = np.random.default_rng(9)
    shapes = {
        "query": (1, 5),
        "query_kernel": (5, count, 3),
        "key_kernel": (5, count, 3),
        "value_kernel": (5, count, 3),
    }
    shapes |= {"value_bias": (count, 3), "out_kernel": (count, 3, 4)}
    return {key: random.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}


CALLS = {
    "attention_pooling": lambda x, mask, **options: attnpool_flax.attention_pooling(x, mask, np.ones(5), **options),
    "of the mean": lambda x, mask, **options: attnpool_flax.attention_pooling(x, mask, **options),
    "multi_head": lambda x, mask, **options: attnpool_flax.multi_head_attention_pooling(
        x, mask, **heads_of(), **options
    ),
    "state": lambda x, mask, **options: attnpool_flax.attention_state(x, mask, query=np.ones(5), **options).sum,
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, id=name, marks=[pytest.mark.thorough] * (name != "multi_head"))
        for name, call in CALLS.items()
    ],
)
def test_functions_agree_with_whole_products(call):
    x, mask, *_ = drawn()

    def loss(x, implementation):
        found = call(x, mask, implementation=implementation)
        return jnp.sum(jnp.sin(found)), found

    got = jax.value_and_grad(loss, has_aux=True)(x, "pallas")
    with jax.enable_x64(True):
        want = jax.value_and_grad(loss, has_aux=True)(x.astype("float64"), "einsum")
    jax.tree.map(functools.partial(assert_near, limit=LIMITS["float32"]), got, want)


@pytest.mark.thorough
def test_asking_for_the_weights_changes_no_bit_of_the_result():
    x, mask, *_ = drawn(length=131)
    options = {"query": jnp.ones(5), "implementation": "pallas"}
    pooled, weights = attnpool_flax.attention_pooling(x, mask, **options, return_weights=True)
    np.testing.assert_array_equal(attnpool_flax.attention_pooling(x, mask, **options), pooled)
    np.testing.assert_allclose(weights.sum(1), mask.any(1), 1e-6)
    assert not weights[~mask].any()


@pytest.mark.thorough
def test_vmap_agrees_with_a_loop():
    x, mask, *_ = drawn()
    xs = jnp.stack([x, 2 * x])

    def loss(x, query):
        return jnp.sum(attnpool_flax.attention_pooling(x, mask, query, implementation="pallas") ** 2)

    queries = jnp.stack([jnp.ones(5), jnp.arange(5.0)])
    got = jax.vmap(jax.grad(loss, (0, 1)))(xs, queries)
    each = [jax.grad(loss, (0, 1))(*pair) for pair in zip(xs, queries, strict=True)]
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7),
        got,
        tuple(map(jnp.stack, zip(*each, strict=True))),
    )


@pytest.mark.thorough
def test_examples_may_be_split_over_devices_by_shard_map():
    count = min(2, jax.device_count())
    mesh = jax.make_mesh((count,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    x, mask, *_ = drawn(batch=2)
    split, query = PartitionSpec("data"), jnp.ones(5)

    def pool(x, mask, query):
        return attnpool_flax.attention_pooling(x, mask, query, implementation="pallas")

    run = jax.shard_map(pool, mesh=mesh, in_specs=(split, split, PartitionSpec()), out_specs=split, check_vma=False)
    gradients = [
        jax.jit(jax.grad(lambda x, query, f=f: f(x, mask, query).sum(), (0, 1)))(x, query) for f in (run, pool)
    ]
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), *gradients)


@pytest.fixture
def not_interpreted(interpreted, monkeypatch):
    """Kernels are lowered for their platform, as without tests."""
    monkeypatch.delenv(pallas_softmax.INTERPRET)


@pytest.mark.parametrize("axis_name", [None, "parts"], ids=["examples", "tokens"])
def test_programs_for_a_tpu_take_check_vma(not_interpreted, axis_name):
    place = PartitionSpec("parts") if axis_name is None else PartitionSpec(None, "parts")
    out = place if axis_name is None else PartitionSpec()
    mesh = jax.sharding.AbstractMesh((2,), ("parts",), axis_types=(jax.sharding.AxisType.Auto,))

    def pool(x, mask, query):
        options = {"axis_name": axis_name, "implementation": "pallas"}
        return attnpool_flax.attention_pooling(x, mask, query, **options)

    run = jax.shard_map(pool, mesh=mesh, in_specs=(place, place, PartitionSpec()), out_specs=out)
    step = jax.jit(jax.grad(lambda x, mask, query: jnp.sum(run(x, mask, query) ** 2), (0, 2)))
    shapes = [jax.ShapeDtypeStruct(*own) for own in (((2, 6, 5), "float32"), ((2, 6), bool), ((5,), "float32"))]
    with jax.sharding.use_abstract_mesh(mesh):
        text = step.trace(*shapes).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("@tpu_custom_call") == 2


def test_with_x64_a_kernel_for_a_tpu_has_no_wide_arrays_and_indices():
    def kernel(x, codes, queries, limits, cotangent):
        vectors = limits, None, limits, cotangent
        return pallas_tpu.backward(x[None], codes[None, None], queries, None, None, *vectors, precision=None)

    shapes = ((300, 5), "float32"), ((300,), "int32"), ((1, 2, 5), "float32")
    shapes += ((1, 2), "float32"), ((1, 2, 5), "float32")
    with jax.enable_x64(True):
        program = jax.make_jaxpr(kernel)(*(jax.ShapeDtypeStruct(*shape) for shape in shapes)).jaxpr
    (call,) = (equation.params for equation in program.eqns if equation.primitive.name == "pallas_call")
    assert not re.findall(r"[fi]64\[\d.*", str(call["jaxpr"]))
    maps = [block.index_map_jaxpr for block in call["grid_mapping"].block_mappings]
    assert {index.dtype.name for own in maps for index in own.out_avals} == {"int32"}


# --------------------------------------------------------------------------------------------------------------
# Refusals

X = jnp.ones((2, 3, 4))
REFUSED = {
    "queries": (lambda: pool(X, 17), "multi_head_attention_pooling: .* at most 16 queries in all, not 17; pass None"),
    "normaliser": (
        lambda: attnpool_flax.attention_pooling(X, None, jnp.ones(4), normalizer="sparsemax", implementation="pallas"),
        "attention_pooling: `implementation` is 'pallas', which averages .* pass None, 'einsum' or 'tiles'",
    ),
    "another reduction": (lambda: attnpool_flax.mean_pooling(X, implementation="pallas"), "mean_pooling: .* pass None"),
    "many queries": (
        lambda: attnpool_flax.dot_product_attention(X, X, X, implementation="pallas"),
        "dot_product_attention: .* this call does not; pass None",
    ),
    "packed tokens": (
        lambda: attnpool_flax.segment_attention_pooling(
            X[0], jnp.zeros(3, int), 1, query=jnp.ones(4), indices_are_sorted=True, implementation="pallas"
        ),
        "segment_attention_pooling: `implementation` is 'pallas', whose kernels take no packed tokens; pass None",
    ),
    "another reduction of packed tokens": (
        lambda: attnpool_flax.segment_mean_pooling(X[0], jnp.zeros(3, int), 1, implementation="pallas"),
        "segment_mean_pooling: .* this call does not; pass None",
    ),
    "a kernel of another library": (
        lambda: attnpool_flax.dot_product_attention(X, X, X, implementation="splash"),
        "dot_product_attention: `implementation` is 'splash', needs .*; call that kernel yourself, as docs/questions.md#",
    ),
    "chosen": (
        lambda: chosen_implementation("mean_pooling", X, implementation="pallas"),
        "mean_pooling: `implementation` is 'pallas'",
    ),
    "precision": (
        lambda: attnpool_flax.attention_pooling(
            X, None, jnp.ones(4), implementation="pallas", precision=jax.lax.DotAlgorithmPreset.F32_F32_F32
        ),
        "takes a precision by one name",
    ),
}


def pool(x, count):
    """Multi-head pooling of tokens of width 4 under so many queries."""
    kernel = jnp.ones((4, count, 2))
    return attnpool_flax.multi_head_attention_pooling(
        x,
        query=jnp.ones((1, 4)),
        query_kernel=kernel,
        key_kernel=kernel,
        value_kernel=kernel,
        out_kernel=jnp.ones((count, 2, 4)),
        implementation="pallas",
    )


@pytest.mark.parametrize("call, message", REFUSED.values(), ids=REFUSED)
def test_what_no_kernel_takes_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_float64_and_wide_tokens_are_refused_by_name():
    with pytest.raises(ValueError, match="at most 8192 features, not 8193; pass None"):
        chosen_implementation(
            "attention_pooling",
            jax.ShapeDtypeStruct((1, 1, 8193), "float32"),
            None,
            np.ones(8193),
            implementation="pallas",
        )
    with jax.enable_x64(True), pytest.raises(ValueError, match="not float64; pass None"):
        attnpool_flax.attention_pooling(np.ones((2, 3, 4)), None, np.ones(4), implementation="pallas")


def test_it_is_chosen_only_on_request():
    arrays = X, None, jnp.ones(4)
    assert chosen_implementation("attention_pooling", *arrays, implementation="pallas") == "pallas"
    assert chosen_implementation("attention_pooling", *arrays) != "pallas"


def test_a_cpu_and_float16_on_a_tpu_are_refused_at_lowering(not_interpreted):
    def lowered(x, platform):
        def pooled(x):
            return attnpool_flax.attention_pooling(x, None, jnp.ones(4), implementation="pallas")

        return jax.jit(pooled).trace(x).lower(lowering_platforms=(platform,))

    x = jnp.ones((2, 5, 4))
    with pytest.raises(ValueError, match=f"only interpreted, with {pallas_softmax.INTERPRET}=1; pass None"):
        lowered(x, "cpu")
    with pytest.raises(ValueError, match="no float16 on a TPU; pass bfloat16, or pass None"):
        lowered(x.astype("float16"), "tpu")
    assert "tpu_custom_call" in lowered(x, "tpu").as_text()


def test_second_derivatives_and_forward_mode_are_refused_by_name():
    def loss(x):
        return jnp.sum(attnpool_flax.attention_pooling(x, None, jnp.ones(4), implementation="pallas") ** 2)

    with pytest.raises(TypeError, match='no second derivatives; pass implementation="einsum"'):
        jax.grad(lambda x: jnp.sum(jax.grad(loss)(x)))(X)
    with pytest.raises(TypeError, match='no second derivatives; pass implementation="einsum"'):
        jax.jvp(jax.grad(loss), (X,), (X,))
    with pytest.raises(TypeError, match=r'no forward mode .* pass implementation="einsum"'):
        jax.jvp(loss, (X,), (X,))


def test_pallas_is_imported_only_on_request():
    code = "import sys, attnpool_flax; print('jax.experimental.pallas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
