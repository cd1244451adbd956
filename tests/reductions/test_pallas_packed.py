"""Kernels of Pallas for packed tokens, interpreted: ``implementation="pallas"`` against whole products and the oracle."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec
from kernel_agreement import LIMITS, assert_agreement, assert_near, with_gradients

import attnpool_flax
import attnpool_ref
from attnpool_flax import chosen_implementation
from attnpool_flax.reductions import (
    packed_softmax,
    pallas_chunks,
    pallas_packed,
    pallas_segments,
    pallas_softmax,
    pallas_triton,
    pallas_triton_packed,
)
from attnpool_flax.reductions.segment_sums import segments_of

HIGHEST = jax.lax.Precision.HIGHEST
COUNT, WIDTH = 11, 5
EMPTY, LONG, MASKED = 1, 2, 4
"""A segment without tokens, one with more tokens than a chunk, and a fully masked one."""

thorough = pytest.mark.thorough


@pytest.fixture(autouse=True)
def small_chunks(interpreted, monkeypatch):
    """Kernels run on a CPU, with chunks of 128 tokens and groups of as few segments as possible."""
    monkeypatch.setattr(pallas_chunks, "TOKENS", 128)
    monkeypatch.setattr(pallas_chunks, "ROWS", 8)


@pytest.fixture
def on_gpu(monkeypatch):
    """The kernels for GPUs run on a CPU, with several blocks in a part and several parts of a segment."""

    def of_gpu(name, x, queries, count, precision):
        del x, queries
        return functools.partial(getattr(pallas_triton_packed, name), count=count, precision=precision, interpret=True)

    monkeypatch.setattr(pallas_segments, "_on_platforms", of_gpu)
    monkeypatch.setattr(pallas_triton, "ELEMENTS", 32)
    monkeypatch.setattr(pallas_triton.heads, "TOKENS", 4)


@pytest.fixture
def on_platform(request):
    """The kernels for the platform that is the parameter run on a CPU."""
    if request.param == "gpu":
        request.getfixturevalue("on_gpu")


every_platform = pytest.mark.parametrize("on_platform", ["tpu", "gpu"], indirect=True)


def drawn(dtype="float32", length=301, heads=1, own=False, extra=True):
    """(tokens, segment numbers, mask, has_query, queries, multiplier, bias); padding is NaN or infinite."""
    random = np.random.default_rng(7)
    ids = random.choice(np.delete(np.arange(-1, COUNT + 2), EMPTY + 1), length)
    ids[: max(0, length - 160)] = LONG
    ids = np.sort(ids).astype(np.int32)
    mask = (random.random(length) < 0.8) & (ids != MASKED)
    real = mask & (ids >= 0) & (ids < COUNT)
    x = random.normal(size=(length, WIDTH)).astype(np.float32)
    x[~real] = np.resize([np.nan, np.inf, -np.inf], x[~real].shape)
    queries = random.normal(size=(COUNT if own else 1, heads, WIDTH)).astype(np.float32)
    multiplier, bias = random.uniform(0, 2, (2, length, heads)).astype(np.float32)
    multiplier[~real], bias[~real] = np.nan, np.inf
    has_query = jnp.arange(COUNT) != 3
    if not extra:
        multiplier = bias = has_query = None
    return jnp.asarray(x, dtype), ids, mask, has_query, queries, multiplier, bias


def real_of(arrays):
    """Which tokens are real."""
    _, ids, mask, *_ = arrays
    return mask & (ids >= 0) & (ids < COUNT)


def compared(kernel, arrays, widened=None):
    """(scores, state), and gradients by name, of a kernel; in float64 with ``widened``."""
    x, ids, mask, has_query, queries, multiplier, bias = arrays
    segments = segments_of(jnp.asarray(ids), jnp.asarray(mask), COUNT, True)
    heads = queries.shape[1]
    shapes = (len(x), heads), (COUNT, heads), (COUNT, heads, WIDTH), (COUNT, heads, WIDTH)
    given = {"x": x, "queries": queries, "multiplier": multiplier, "bias": bias}

    def of(x, queries, multiplier, bias):
        return kernel(x, segments, has_query, queries, multiplier, bias, HIGHEST)

    return with_gradients(of, given, shapes, widened)


def forms(quick, numbers_of_heads):
    """Parametrizes a test by these forms of a call, and by all dtypes, few and many tokens, in the thorough run."""
    every = [
        pytest.param(dtype, length, heads, own, True, marks=thorough)
        for dtype in LIMITS
        for length in (1, 257)
        for heads in numbers_of_heads
        for own in (False, True)
    ]
    return pytest.mark.parametrize("dtype, length, heads, own, extra", [*quick, *every])


@forms([("bfloat16", 301, 5, True, True)], (1, 2, 8, 16))
def test_every_form_agrees_with_whole_products_in_float64(dtype, length, heads, own, extra):
    assert_right(drawn(dtype, length, heads, own, extra))


def assert_right(arrays):
    """Compares a kernel with whole products in float64 of the same arrays."""
    found = compared(pallas_segments.kernel, arrays)
    with jax.enable_x64(True):
        expected = compared(packed_softmax.plain, arrays, "float64")
    assert_agreement(found, expected, arrays[0].dtype.name, real=real_of(arrays), empty=[EMPTY, MASKED])


@pytest.mark.usefixtures("on_gpu")
@forms([("bfloat16", 301, 1, False, True), pytest.param("float32", 301, 3, False, False, marks=thorough)], (1, 2, 16))
def test_the_kernels_for_gpus_agree_with_whole_products(dtype, length, heads, own, extra):
    assert_right(drawn(dtype, length, heads, own, extra))


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize(
    "heads, real",
    [(2, True), *(pytest.param(*own, marks=thorough) for own in ((1, True), (1, False), (2, False)))],
)
def test_segments_of_any_length_agree_with_whole_products_on_a_gpu(heads, real):
    lengths = [1, 0, 131, 1, 0, 2, 3, 5, 7, 16, 13]
    ids = np.repeat(np.arange(COUNT), lengths).astype(np.int32)
    x, _, _, _, queries, _, _ = drawn(length=len(ids), heads=heads, extra=False)
    x = jnp.nan_to_num(x, posinf=1, neginf=-1) if real else jnp.full_like(x, jnp.nan)
    assert_right((x, ids, np.full(len(ids), real), None, queries, None, None))


@thorough
@pytest.mark.parametrize("heads", [1, 2])
def test_a_group_that_ends_with_a_chunk_is_counted_once(heads):
    x, *_, queries, _, _ = drawn(length=256, heads=heads, extra=False)
    ids = np.repeat([0, COUNT - 1], 128).astype(np.int32)
    assert_right((jnp.nan_to_num(x, posinf=1, neginf=-1), ids, np.ones(256, bool), None, queries, None, None))


@thorough
@pytest.mark.parametrize("heads, own", [(1, False), (5, True)])
def test_memory_that_nobody_wrote_is_not_used(heads, own):
    x, ids, mask, _, queries, multiplier, bias = drawn(heads=heads, own=own)
    segments = segments_of(jnp.asarray(ids), jnp.asarray(mask), COUNT, True)
    factors = jnp.asarray(queries), jnp.asarray(multiplier).T, jnp.asarray(bias).T
    random = np.random.default_rng(8)
    shapes = (heads, len(x)), (COUNT, heads), (COUNT, heads, WIDTH)
    cotangents = [random.normal(size=shape).astype(np.float32) for shape in shapes]

    def run(interpret):
        options = {"count": COUNT, "precision": HIGHEST, "interpret": interpret}
        arrays = x, segments.ids, segments.real
        sums = pallas_packed.forward(*arrays, *factors, **options)
        scores = pallas_packed.scores(*arrays, factors[0], factors[2], **options)
        return *sums, scores, *pallas_packed.backward(*arrays, *factors, sums[0], *cotangents, **options)

    strict = run(pltpu.InterpretParams(uninitialized_memory="nan", detect_races=True))
    for got, want in zip(strict, run(True), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize("fill", [np.nan, pytest.param(0.0, marks=thorough), pytest.param(-np.inf, marks=thorough)])
def test_padding_changes_no_bit(fill):
    arrays = drawn("bfloat16")
    same = jnp.where(real_of(arrays)[:, None], arrays[0], fill)
    first, second = (compared(pallas_segments.kernel, (x, *arrays[1:])) for x in (arrays[0], same))
    jax.tree.map(np.testing.assert_array_equal, first, second)


@thorough
@every_platform
@pytest.mark.usefixtures("on_platform")
@pytest.mark.parametrize("poison", [np.nan, -np.inf, np.inf])
@pytest.mark.parametrize("own, after, heads", [(False, LONG, 1), (True, LONG, 2), (True, COUNT - 2, 1)])
def test_a_token_that_is_not_finite_stays_in_its_segment(poison, own, after, heads):
    arrays = drawn(own=own, extra=False, heads=heads)
    place = int(np.flatnonzero(real_of(arrays) & (arrays[1] > after))[0])
    query = arrays[4][arrays[1][place] if own else 0, 0]
    bad = arrays[0].at[place, 1].set(poison * np.sign(query[1]))  # a score of -inf hides no token
    found = [compared(pallas_segments.kernel, (x, *arrays[1:])) for x in (arrays[0], bad)]
    ((_, clean), clean_gradients), ((_, state), gradients) = found
    other, tokens = np.arange(COUNT) != arrays[1][place], arrays[1] != arrays[1][place]
    assert np.isnan(state.numerator[arrays[1][place], :, 1]).all()
    for got, want in zip(state, clean, strict=True):
        np.testing.assert_array_equal(got[other], want[other])
    np.testing.assert_array_equal(gradients["x"][tokens], clean_gradients["x"][tokens])
    assert not gradients["x"][~real_of(arrays)].any()
    if own:
        np.testing.assert_array_equal(gradients["queries"][other], clean_gradients["queries"][other])


@thorough
@pytest.mark.parametrize("length, count", [(1, 1), (900, 1), (900, 60), (300, 600), (128, 8)])
def test_the_steps_take_each_token_with_its_segment_and_every_group(length, count):
    random = np.random.default_rng(length + count)
    for some in range(1, 20):
        ids = np.sort(random.choice(random.integers(count, size=some), length)).astype(np.int32)
        chunks = pallas_chunks.chunks_of(jnp.zeros((length, WIDTH)), jnp.zeros((1, 1, WIDTH)), count)
        chunk, group = map(np.asarray, pallas_chunks.steps_of(jnp.asarray(ids), chunks))
        pairs = list(zip(chunk.tolist(), group.tolist(), strict=True))
        assert pairs == sorted(pairs) and len(pairs) == chunks.steps
        assert np.all(np.diff(chunk) >= 0) and np.all(np.diff(group) >= 0)
        assert {*zip(np.arange(length) // chunks.size, ids // chunks.group, strict=True)} <= {*pairs}
        assert {*group} == {*range(chunks.groups)} and {*chunk} == {*range(chunks.chunks)}


# --------------------------------------------------------------------------------------------------------------
# Functions


def packed_tokens():
    """(tokens, segment numbers, mask), all segment numbers in range."""
    x, ids, mask, *_ = drawn()
    x = jnp.where(jnp.asarray(real_of((x, ids, mask)))[:, None], x, 0)
    return x, np.clip(ids, 0, COUNT - 1), mask


def heads_of(count=2):
    """Keywords of multi-head pooling."""
    random = np.random.default_rng(9)
    kernel = (WIDTH, count, 3)
    shapes = {"query": (1, WIDTH), "query_kernel": kernel, "key_kernel": kernel, "value_kernel": kernel}
    shapes |= {"value_bias": (count, 3), "out_kernel": (count, 3, 4)}
    return {key: random.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}


CALLS = {
    "attention_pooling": {"query": np.linspace(-1, 1, WIDTH, dtype=np.float32)},
    "multi_head_attention_pooling": heads_of(),
}


@pytest.mark.parametrize(
    "on_platform, name",
    [("tpu", name) for name in CALLS] + [pytest.param("gpu", name, marks=thorough) for name in CALLS],
    indirect=["on_platform"],
)
@pytest.mark.usefixtures("on_platform")
def test_functions_agree_with_the_oracle_and_their_gradients_with_whole_products(name):
    (x, ids, mask), options = packed_tokens(), CALLS[name]
    pool = functools.partial(getattr(attnpool_flax, f"segment_{name}"), indices_are_sorted=True)

    def loss(x, implementation):
        found = pool(x, ids, COUNT, mask, **options, implementation=implementation)
        return jnp.sum(jnp.sin(found)), found

    got, want = (jax.value_and_grad(loss, has_aux=True)(x, own) for own in ("pallas", "einsum"))
    jax.tree.map(functools.partial(assert_near, limit=LIMITS["float32"]), got, want)
    expected = getattr(attnpool_ref, f"segment_{name}")(np.asarray(x), ids, COUNT, mask, **options)
    assert_near(got[0][1], expected, LIMITS["float32"])


@pytest.mark.parametrize("on_platform", ["tpu", pytest.param("gpu", marks=thorough)], indirect=True)
@pytest.mark.usefixtures("on_platform")
def test_asking_for_the_weights_changes_no_bit_of_the_result():
    x, ids, mask = packed_tokens()
    options = {"query": jnp.ones(WIDTH), "implementation": "pallas", "indices_are_sorted": True}
    pool = functools.partial(attnpool_flax.segment_attention_pooling, x, ids, COUNT, mask, **options)
    pooled, weights = pool(return_weights=True)
    np.testing.assert_array_equal(pool(), pooled)
    sums = np.bincount(ids, np.asarray(weights), COUNT)
    np.testing.assert_allclose(sums, np.bincount(ids, mask, COUNT) > 0, 1e-6)
    assert not weights[~mask].any()


@pytest.mark.parametrize("length, count", [(0, 3), (1, 1), pytest.param(7, 0, marks=thorough)])
def test_any_number_of_tokens_and_segments(length, count):
    x, ids = jnp.ones((length, WIDTH)), jnp.zeros(length, jnp.int32)
    options = {"query": jnp.ones(WIDTH), "implementation": "pallas", "indices_are_sorted": True}
    found = attnpool_flax.segment_attention_pooling(x, ids, count, **options)
    np.testing.assert_array_equal(found, np.full((count, WIDTH), 1.0 if length else 0.0))


@thorough
@every_platform
@pytest.mark.usefixtures("on_platform")
@pytest.mark.parametrize("own_ids", [False, True])
def test_vmap_agrees_with_a_loop(own_ids):
    x, ids, mask = packed_tokens()
    xs, queries = jnp.stack([x, 2 * x]), jnp.stack([jnp.ones(WIDTH), jnp.arange(1.0 * WIDTH)])
    numbers = jnp.stack([ids, np.minimum(ids, 3)])

    def loss(x, query, ids):
        options = {"query": query, "implementation": "pallas", "indices_are_sorted": True}
        return jnp.sum(attnpool_flax.segment_attention_pooling(x, ids, COUNT, mask, **options) ** 2)

    gradient = jax.grad(loss, (0, 1))
    got = jax.vmap(gradient, (0, 0, 0 if own_ids else None))(xs, queries, numbers if own_ids else numbers[0])
    each = [gradient(xs[i], queries[i], numbers[i if own_ids else 0]) for i in range(2)]
    same = functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7)
    jax.tree.map(same, got, tuple(map(jnp.stack, zip(*each, strict=True))))


def test_programs_for_a_tpu_take_check_vma(monkeypatch):
    monkeypatch.delenv(pallas_softmax.INTERPRET)
    mesh = jax.sharding.AbstractMesh((2,), ("parts",), axis_types=(jax.sharding.AxisType.Auto,))
    place = PartitionSpec("parts")

    def pool(x, ids, query):
        options = {"query": query, "implementation": "pallas", "indices_are_sorted": True}
        return attnpool_flax.segment_attention_pooling(x, ids, 3, **options)

    run = jax.shard_map(pool, mesh=mesh, in_specs=(place, place, PartitionSpec()), out_specs=place)
    step = jax.jit(jax.grad(lambda x, ids, query: jnp.sum(run(x, ids, query) ** 2), (0, 2)))
    shapes = [jax.ShapeDtypeStruct(*own) for own in (((600, 5), "float32"), ((600,), "int32"), ((5,), "float32"))]
    with jax.sharding.use_abstract_mesh(mesh):
        text = step.trace(*shapes).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("@tpu_custom_call") == 2


# --------------------------------------------------------------------------------------------------------------
# Refusals

X, IDS = jnp.ones((7, WIDTH)), jnp.zeros(7, jnp.int32)


def pool(x=X, **options):
    """Attention pooling of two segments."""
    options = {"query": jnp.ones(x.shape[1]), "indices_are_sorted": True, "implementation": "pallas"} | options
    return attnpool_flax.segment_attention_pooling(x, IDS, 2, **options)


def test_what_no_kernel_takes_is_refused_by_name(monkeypatch):
    name = "segment_attention_pooling: `implementation` is 'pallas', which "
    message = (
        "takes packed tokens in the order of their segments; sort them and pass indices_are_sorted=True, or pass None, "
    )
    with pytest.raises(ValueError, match=name + message):
        pool(indices_are_sorted=False)
    with pytest.raises(ValueError, match=name + "averages tokens under the softmax .*; this call does not; pass None"):
        pool(normalizer="sigmoid")
    with pytest.raises(ValueError, match=r"segment_mean_pooling: .* this call does not; pass None"):
        attnpool_flax.segment_mean_pooling(X, IDS, 2, indices_are_sorted=True, implementation="pallas")
    with jax.enable_x64(True), pytest.raises(ValueError, match=name + "takes .*, not float64; pass None"):
        pool(np.ones((7, WIDTH)))
    monkeypatch.setattr(pallas_segments, "STEPS", 0)
    with pytest.raises(ValueError, match="at most 0 blocks of packed tokens and groups of segments, not 1; pass None"):
        pool()


def test_it_is_chosen_only_on_request():
    call = functools.partial(chosen_implementation, "segment_attention_pooling", X, IDS, 2, query=jnp.ones(WIDTH))
    for platform in (None, "tpu", "cuda"):
        assert call(implementation="pallas", indices_are_sorted=True, platform=platform) == "pallas"
    assert call(indices_are_sorted=True) != "pallas"
    with pytest.raises(ValueError, match="in the order of their segments"):
        call(implementation="pallas")


def test_a_cpu_and_float16_on_a_tpu_are_refused_at_lowering(monkeypatch):
    def lowered(x, platform):
        return jax.jit(pool).trace(x).lower(lowering_platforms=(platform,))

    monkeypatch.delenv(pallas_softmax.INTERPRET)
    with pytest.raises(ValueError, match=f"only interpreted, with {pallas_softmax.INTERPRET}=1; pass None"):
        lowered(X, "cpu")
    with pytest.raises(ValueError, match="no float16 on a TPU; pass bfloat16, or pass None"):
        lowered(X.astype("float16"), "tpu")
    assert "tpu_custom_call" in lowered(X, "tpu").as_text()


def test_second_derivatives_and_forward_mode_are_refused_by_name():
    def loss(x):
        return jnp.sum(pool(x) ** 2)

    with pytest.raises(TypeError, match='no second derivatives; pass implementation="einsum"'):
        jax.grad(lambda x: jnp.sum(jax.grad(loss)(x)))(X)
    with pytest.raises(TypeError, match=r'no forward mode .* pass implementation="einsum"'):
        jax.jvp(loss, (X,), (X,))
