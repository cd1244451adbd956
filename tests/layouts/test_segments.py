"""Packed sequences: padding by numbers out of range, sums that do not drift."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from marks import thorough
from packages import every_package
from rounding import assert_close

import attnpool_flax
import attnpool_ref
from attnpool_ref.conformance.checks.definition import DRIFT

# Numbers out of range


@every_package
def test_bad_numbers_are_refused_where_they_can_be_read(package):
    x = np.ones((3, 2))
    for numbers, mask in ((np.array([0, 2, 1]), None), (np.array([0, -1, 1]), np.array([True, False, True]))):
        with pytest.raises(ValueError, match=r"`segment_ids` has the value (2|-1), needs 0 to `num_segments` - 1 = 1"):
            package.segment_mean_pooling(x, numbers, 2, mask)
    for numbers in (np.array([True, False, True]), np.array([0.0, 1.0, 1.0])):
        with pytest.raises(ValueError, match=r"`segment_ids` has dtype (bool|float64), needs integers"):
            package.segment_mean_pooling(x, numbers, 2)
    with pytest.raises(ValueError, match=r"`segment_ids` has shape \(3, 1\), needs \[N\]"):
        package.segment_mean_pooling(x, np.zeros((3, 1), int), 2)
    with pytest.raises(ValueError, match=r"`segment_ids` has shape \(1,\) but `x` has \(3, 2\)"):
        package.segment_mean_pooling(x, np.zeros(1, int), 2)
    for count in (-1, True, 2.0):
        with pytest.raises(ValueError, match=r"`num_segments` is"):
            package.segment_mean_pooling(x, np.zeros(3, int), count)
    with pytest.raises(ValueError, match=r"`query` has shape \(4, 2\) but `num_segments` is 2"):
        package.segment_attention_pooling(x, np.zeros(3, int), 2, query=np.ones((4, 2)))
    with pytest.raises(ValueError, match="the largest score needs every pair of tokens"):
        package.segment_cross_attention_pooling(x, np.zeros(3, int), x, np.zeros(3, int), 1, reduction="max")


def test_a_traced_number_of_segments_is_refused_by_name():
    with pytest.raises(ValueError, match="`num_segments` is traced"):
        jax.jit(attnpool_flax.segment_mean_pooling)(jnp.ones((3, 2)), jnp.zeros(3, int), 2)


@every_package
def test_no_segments_and_no_tokens_keep_their_axes(package):
    none = np.zeros(0, np.int32)
    for name in ("mean", "max", "first", "attention"):
        pool = getattr(package, f"segment_{name}_pooling")
        assert pool(np.ones((0, 2)), none, 0).shape == (0, 2)
        chex.assert_trees_all_equal(np.asarray(pool(np.ones((0, 2)), none, np.array(3))) == 0, np.ones((3, 2), bool))


def test_numbers_of_any_integer_dtype_are_the_same():
    x, numbers = jnp.arange(8.0)[:, None], np.array([3, 0, 1, 3, 2, 2, 0, 1])
    want = np.asarray(attnpool_flax.segment_mean_pooling(x, numbers, 4))
    for dtype in ("int8", "uint8", "uint32", "int64"):
        chex.assert_trees_all_equal(np.asarray(attnpool_flax.segment_mean_pooling(x, numbers.astype(dtype), 4)), want)


# Programs


@pytest.mark.parametrize("ordered", [True, *thorough([False])])
def test_a_million_equal_tokens_of_one_segment_do_not_drift(ordered):
    x, numbers = np.full((10**6, 1), 0.1, np.float32), np.zeros(10**6, np.int32)
    options = {"query": np.ones(1, np.float32), "return_weights": True, "indices_are_sorted": ordered}
    pooled, weights = attnpool_flax.segment_attention_pooling(x, numbers, 2, **options)
    chex.assert_trees_all_close(np.asarray(pooled)[0], x[0], rtol=DRIFT)
    chex.assert_trees_all_close(np.asarray(weights)[:1], np.full(1, 1e-6, np.float32), rtol=DRIFT)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["random", "skewed", "one"])
@pytest.mark.parametrize("size", [(1, 2), (17, 40), (513, 2), (5000, 60)], ids=str)
def test_noisy_or_of_any_segments_is_that_of_an_exported_program_and_the_product(kind, size, rng):
    """Tokens are combined in slots of consecutive ones, or by a scan if their number is a symbol."""
    length, count = size
    ids = {
        "random": rng.integers(0, count, length),
        "skewed": np.where(rng.random(length) < 0.95, 0, rng.integers(0, count, length)),
        "one": np.full(length, count - 2),
    }[kind].astype(np.int32)
    x = (rng.random((length, 3)) * 0.02).astype(np.float32)
    x[::97] = 1  # an event that is certain

    def step(x, ids):
        def loss(x):
            result = attnpool_flax.segment_noisy_or_pooling(x, ids, count)
            return jnp.sum(jnp.sin(result)), result

        return jax.grad(loss, has_aux=True)(x)

    arrays = jnp.asarray(x), jnp.asarray(ids)
    shapes = jax.export.symbolic_args_specs(arrays, ("n, 3", "n"))
    gradient, result = jax.jit(step)(*arrays)
    neither = np.ones((count, 3))
    np.multiply.at(neither, ids, 1 - np.float64(x))
    assert_close(result, np.float32(1 - neither), 8)
    chex.assert_trees_all_close((gradient, result), jax.export.export(jax.jit(step))(*shapes).call(*arrays), atol=1e-6)


# Lists of sequences, and modules


@every_package
def test_lists_go_into_one_array_and_come_back(package):
    sequences = [np.ones((2, 3), np.float32), np.zeros((0, 3), np.float32), np.full((1, 3), 2, np.float32)]
    x, numbers, count = package.pack(sequences)
    assert (x.dtype, numbers.tolist(), count) == (np.float32, [0, 0, 2], 3)
    for found, want in zip(package.unpack(x, numbers, count), sequences, strict=True):
        chex.assert_trees_all_equal(np.asarray(found), want)
    for side, places in (("right", [[1, 1, 0], [0, 0, 0], [1, 0, 0]]), ("left", [[0, 1, 1], [0, 0, 0], [0, 0, 1]])):
        x, mask = package.pad(sequences, length=3, side=side)
        chex.assert_trees_all_equal(np.asarray(mask), np.array(places, bool))
        for padded, real, want in zip(np.asarray(x), np.asarray(mask), sequences, strict=True):
            chex.assert_trees_all_equal(padded[real], want)
            assert not np.any(padded[~real])


def test_packed_tokens_fill_up_to_the_shapes_of_a_jitted_program():
    sequences = [np.full((2, 3), 2.0, np.float32), np.ones((0, 3), np.float32), np.full((1, 3), 5.0, np.float32)]

    @jax.jit
    @chex.assert_max_traces(n=1)
    def pooled(x, segment_ids):
        return attnpool_flax.segment_mean_pooling(x, segment_ids, 4, indices_are_sorted=True)

    for package in (attnpool_ref, attnpool_flax):
        for count in (1, 3):
            x, segment_ids, num_segments = package.pack(sequences[:count], length=5, num_segments=4)
            assert (x.shape, x.dtype, num_segments) == ((5, 3), np.float32, 4)
            assert np.asarray(segment_ids).tolist() == ([0, 0, 4, 4, 4] if count == 1 else [0, 0, 2, 4, 4])
            want = [2.0, 0.0, 0.0 if count == 1 else 5.0, 0.0]
            chex.assert_trees_all_equal(np.asarray(pooled(x, segment_ids.astype(np.int32)))[:, 0].tolist(), want)
        with pytest.raises(ValueError, match="pack: `length` is 2, but the sequences have 3 tokens together"):
            package.pack(sequences, length=2)
        with pytest.raises(ValueError, match="pack: `num_segments` is 2, but there are 3 sequences"):
            package.pack(sequences, num_segments=2)


@every_package
def test_the_dtypes_of_sequences_are_those_of_arguments_of_one_call(package):
    half, brain = np.ones((1, 2), np.float16), np.asarray(jnp.ones((1, 2), jnp.bfloat16))
    for function in (package.pack, package.pad):
        assert function([half, brain])[0].dtype == np.float32
        assert function([half, np.ones((1, 2), int)])[0].dtype == np.float16
        default = np.float64 if package is attnpool_ref else jnp.result_type(float)
        assert function([np.ones((1, 2), int)])[0].dtype == default


@every_package
def test_lists_that_fit_no_array_are_refused_by_name(package):
    for name in ("pack", "pad"):
        function = getattr(package, name)
        with pytest.raises(ValueError, match=f"{name}: `sequences` is empty"):
            function([])
        with pytest.raises(ValueError, match=rf"{name}: `sequences\[1\]` has shape \(1, 3\) but `sequences\[0\]` has"):
            function([np.ones((2, 2)), np.ones((1, 3))])
        with pytest.raises(ValueError, match=rf"{name}: `sequences\[0\]` has shape \(2,\), needs \[L, d\]"):
            function([np.ones(2)])
        with pytest.raises(TypeError, match=rf"{name}: `sequences\[1\]` is None"):
            function([np.ones((2, 2)), None])
        with pytest.raises(TypeError, match=f"{name}: `sequences` is a"):
            function(3)
    with pytest.raises(ValueError, match=r"pad: `sequences\[0\]` has 2 tokens, needs at most `length` = 1"):
        package.pad([np.ones((2, 2))], length=1)
    with pytest.raises(ValueError, match="pad: `side` is 'top'"):
        package.pad([np.ones((2, 2))], side="top")
    with pytest.raises(ValueError, match="unpack: `segment_ids` has the value 2"):
        package.unpack(np.ones((2, 2)), np.array([0, 2]), 2)


def test_unpack_reads_numbers_of_a_device_and_refuses_traced_ones():
    with pytest.raises(ValueError, match="unpack: `segment_ids` has the value 2"):
        attnpool_flax.unpack(jnp.ones((2, 2)), jnp.array([0, 2]), 2)
    with pytest.raises(ValueError, match="unpack: `segment_ids` is traced"):
        jax.jit(lambda x, numbers: attnpool_flax.unpack(x, numbers, 2))(jnp.ones((2, 2)), jnp.array([0, 1]))


def tokens():
    """Tokens [40, 8] and the numbers of their segments."""
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.standard_normal((40, 8), np.float32)), jnp.asarray(np.sort(rng.integers(0, 40, 40)))


@pytest.mark.parametrize(
    ("made", "heads", "function"),
    [
        ("AttentionPool", {}, "attention_pooling"),
        ("MultiHeadAttentionPool", {"num_heads": 2}, "multi_head_attention_pooling"),
    ],
)
def test_modules_pool_packed_tokens_as_their_function_does(made, heads, function):
    x, numbers = tokens()
    module = getattr(attnpool_flax, made)(in_features=8, **heads, rngs=nnx.Rngs(0))
    parameters = {k: v[...] for k, v in nnx.to_pure_dict(nnx.state(module, nnx.Param)).items()}
    want = getattr(attnpool_flax, f"segment_{function}")(x, numbers, 40, **parameters)
    chex.assert_trees_all_equal(module(x, segment_ids=numbers, num_segments=40), want)
    linen = getattr(attnpool_flax.linen, made)(**heads)
    assert isinstance(linen, nn.Module)
    chex.assert_trees_all_equal(linen.apply({"params": parameters}, x, segment_ids=numbers, num_segments=40), want)
    for given in ({"segment_ids": numbers}, {"num_segments": 40}):
        with pytest.raises(ValueError, match=f"{made}: `.*` is given without `"):
            module(x, **given)


def test_pairs_of_packed_tokens_go_through_their_module():
    x, numbers = tokens()
    given = {"x_segment_ids": numbers, "y_segment_ids": numbers, "num_segments": 40}
    want = attnpool_flax.segment_cross_attention_pooling(x, numbers, x, numbers, 40)
    chex.assert_trees_all_equal(attnpool_flax.CrossAttentionPool()(x, x, **given), want)
    chex.assert_trees_all_equal(attnpool_flax.linen.CrossAttentionPool().apply({}, x, x, **given), want)
    with pytest.raises(ValueError, match="CrossAttentionPool: `x_segment_ids` is given without `y_segment_ids`"):
        attnpool_flax.CrossAttentionPool()(x, x, x_segment_ids=numbers, num_segments=40)
