"""States: what merges to the dense result in any order, what does not merge, and what a loop over chunks keeps."""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import programs
import pytest
from packages import every_package
from refusals import Call, Refusal, every_refusal

import attnpool_flax
import attnpool_ref
from attnpool_flax.streaming import merging
from attnpool_ref import streaming, table
from attnpool_ref.conformance.checks import tolerances

RNG = np.random.default_rng(15)
X = RNG.standard_normal((3, 7, 4)).astype(np.float32)
MASK = np.array([[1] * 7, [0, 1, 0, 1, 1, 0, 0], [0] * 7], bool)


def drawn(**shapes):
    """Random arrays of these shapes."""
    return {key: RNG.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}


HEADS = drawn(query=(2, 4), query_kernel=(4, 3, 5), key_kernel=(4, 3, 5), query_bias=(3, 5))
VALUES = drawn(value_kernel=(4, 3, 2), out_kernel=(3, 2, 6), value_bias=(3, 2), out_bias=(6,))
NETWORK = {
    "kernel": np.float32([[0.5, -1, 2], [1, 0.25, -0.5], [-2, 1, 1], [0.5, 1.5, -1]]),
    "out_kernel": np.float32([[1, -2, 0.5, 1], [0.5, 1, -1, 2], [-1, 0.25, 1, -0.5]]),
}
LATENT = {"latents": (5, 6), "query_kernel": (4, 2, 3), "key_kernel": (6, 2, 3), "value_kernel": (6, 2, 7)}
LATENT |= {"out_kernel": (2, 7, 4), "mlp_kernel": (4, 10), "mlp_out_kernel": (5, 4)}
MORE = {
    "attentive_statistics_state": NETWORK,
    "first_state": {"start": 0},
    "last_state": {"start": 0},
    "attention_state": drawn(query=(4,)),
    "multi_head_attention_state": HEADS,
    "additive_attention_state": drawn(kernel=(4, 5), gate_kernel=(4, 5), out_kernel=(5, 2)),
    "latent_attention_state": drawn(**LATENT),
    "vlad_state": drawn(assign_kernel=(4, 5), centers=(3, 4)),
    "gated_sum_state": drawn(gate_kernel=(4, 5), value_kernel=(4, 5)),
}
NAMES = [row.name for row in table.STATES]

every_kind = pytest.mark.parametrize("name", NAMES)


def state_of(package, name, x=X, mask=MASK, **changed):
    """The state of a chunk."""
    return getattr(package, name)(x, mask=mask, **(MORE.get(name, {}) | changed))


def leaves(state):
    """The arrays of a state in JAX, or the result of one in NumPy, whose fields are private; an array as it is."""
    if isinstance(state, streaming.State):
        return [attnpool_ref.finalize_state(state)]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


def assert_same_bits(got, want):
    """Two states, or two arrays, are equal to the last bit."""
    for a, b in zip(*map(leaves, (got, want)), strict=True):
        np.testing.assert_array_equal(a, b)


def assert_near(got, want, terms=32):
    """Two results agree to the rounding of so many terms in float32."""
    size = float(np.max(np.abs(want)))
    off = np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64))
    assert np.max(off) <= tolerances.allowed_error(size, size, terms, "float32")


# The monoid


@pytest.mark.thorough
@every_package
@every_kind
def test_a_chunk_without_a_real_token_is_the_unit_to_the_last_bit(package, name):
    """Padded or of length 0, on either side, whatever padding holds; beside -inf as data too."""
    low = np.where(MASK[..., None] & (np.arange(4) == 1), -np.inf, X)
    empty = [
        state_of(package, name, np.full_like(X, np.nan), MASK & False),
        state_of(package, name, X[:, :0], MASK[:, :0]),
    ]
    for x in (
        (X,) if "attent" in name or name in ("vlad_state", "gated_sum_state") else (X, low)
    ):  # whose scores would be NaN
        state = state_of(package, name, x)
        for unit in empty:
            assert_same_bits(package.merge_states(state, unit), state)
            assert_same_bits(package.merge_states(unit, state), state)
    nothing = package.finalize_state(package.merge_states(*empty))
    assert nothing.dtype == np.float32 and not np.any(nothing)


def test_padding_that_would_change_the_order_of_the_oracles_sums_is_left_out():
    x = np.random.default_rng(0).standard_normal((1001, 4))
    for name in ("mean_state", "sum_state", "logsumexp_state", "std_state"):
        state = state_of(attnpool_ref, name, x, None)
        padding = state_of(attnpool_ref, name, x[:37], np.zeros(37, bool))
        assert_same_bits(attnpool_ref.merge_states(padding, state), state)
        assert_same_bits(attnpool_ref.merge_states(state, padding), state)


@pytest.mark.thorough
@every_package
def test_extremes_and_tokens_are_the_same_bits_in_any_order(package):
    for name in ("max_state", "min_state", "first_state", "last_state"):
        parts = [
            state_of(package, name, X[:, a:b], MASK[:, a:b], **({"start": a} if "start" in MORE.get(name, {}) else {}))
            for a, b in ((0, 3), (3, 3), (3, 4), (4, 7))
        ]
        merged = functools.reduce(package.merge_states, parts)
        assert_same_bits(functools.reduce(package.merge_states, reversed(parts)), merged)
        pairs = package.merge_states(parts[2], parts[0]), package.merge_states(parts[3], parts[1])
        assert_same_bits(package.merge_states(*pairs), merged)
        dense = getattr(package, table.get(name).state)(X, MASK)
        np.testing.assert_array_equal(package.finalize_state(merged), dense)


def test_ties_share_the_gradient_over_all_chunks():
    """Three tokens reach the maximum, two of them in one chunk: a third for each."""
    x = jnp.array([[2.0, 5.0], [2.0, 1.0], [0.0, 5.0], [2.0, -1.0]])

    @jax.jit
    @jax.grad
    def gradient(x):
        a, b, c = (attnpool_flax.max_state(part) for part in (x[:2], x[2:3], x[3:]))
        return jnp.sum(attnpool_flax.finalize_state(attnpool_flax.merge_states(attnpool_flax.merge_states(a, c), b)))

    third = np.float32(1) / np.float32(3)
    np.testing.assert_allclose(
        gradient(x), [[third, 0.5], [third, 0], [0, 0.5], [third, 0]], rtol=np.finfo(np.float32).eps
    )


@every_package
def test_weights_that_cancel_within_a_chunk_do_not_make_it_the_unit(package):
    chunks = ([[1.0], [2.0]], [1.0, -1.0]), ([[5.0]], [2.0]), ([[7.0]], [0.0])
    parts = [package.weighted_state(np.float32(x), np.float32(weights)) for x, weights in chunks]
    assert np.asarray(package.finalize_state(functools.reduce(package.merge_states, parts))).item() == 4.5
    assert np.asarray(package.finalize_state(parts[0])).item() == 0


@every_package
def test_no_size_of_weights_tokens_or_scores_overflows_or_is_lost(package):
    """Sums of tokens near the largest number, weights of 1e38 and 1e-30, scores of 1e30 and -1e30."""
    large = np.full((1, 1), 3e38, np.float32)
    means = [package.mean_state(x) for x in (large, large, -large, large)]
    assert_near(package.finalize_state(functools.reduce(package.merge_states, means)), large[0] / 2)

    def weighted(x, weight):
        return package.weighted_state(np.float32([[x]]), np.float32([weight]))

    def merged(*states):
        return np.asarray(package.finalize_state(package.merge_states(*states))).item()

    assert merged(weighted(3e38, 2e38), weighted(3e38, 3e38)) == np.float32(3e38)
    assert merged(weighted(1, 1e-30), weighted(3, 1e-30)) == 2
    assert merged(weighted(1, 1e30), weighted(3, 1e-30)) == 1
    assert merged(weighted(3, 1e-30), weighted(1, 0)) == 3
    query = np.float32([1.0])
    for scale, largest in ((1e30, 2), (-1e30, 1)):
        assert (
            merged(*(package.attention_state(np.float32([[x]]), None, query, scale=scale) for x in (1, 2))) == largest
        )


def test_sums_that_are_merged_from_many_chunks_do_not_drift():
    """A million chunks of one token each, by the bound of the contract; a plain float32 sum is 1e-2 off."""
    x, weights = jnp.full((1, 1), 0.1), jnp.array([0.3])
    parts = [attnpool_flax.mean_state(x), attnpool_flax.weighted_state(x, weights)]
    parts.append(attnpool_flax.attention_state(x, None, jnp.array([0.7])))

    @jax.jit
    def merged(parts):
        def step(whole, _):
            return list(map(attnpool_flax.merge_states, whole, parts)), None

        return jax.lax.scan(step, parts, length=10**6 - 1)[0]

    for state in merged(parts):
        pooled = attnpool_flax.finalize_state(state)
        assert abs(float(pooled[0] / x[0, 0]) - 1) <= 1e-5  # the drift that contract 9 allows


# What states finalize to


@every_package
def test_multi_head_states_finalize_with_kernels_to_the_dense_result(package):
    """The value bias does not reach what has no real token, and the output bias does."""
    parts = [state_of(package, "multi_head_attention_state", X[:, a:b], MASK[:, a:b]) for a, b in ((4, 7), (0, 4))]
    got = package.finalize_state(package.merge_states(*parts), **VALUES)
    assert_near(got, attnpool_ref.multi_head_attention_pooling(X, MASK, **HEADS, **VALUES))
    np.testing.assert_array_equal(got[2], np.broadcast_to(VALUES["out_bias"], (2, 6)))
    plain = package.finalize_state(package.merge_states(*parts))
    assert plain.shape == (3, 2, 3, 4)


@every_package
def test_the_dtype_is_that_of_two_arguments_of_one_call(package):
    def mean(*dtypes):
        parts = [package.mean_state(jnp.ones((2, 3), dtype)) for dtype in dtypes]
        return package.finalize_state(functools.reduce(package.merge_states, parts)).dtype.name

    assert mean("bfloat16") == "bfloat16" and mean("bfloat16", "float16") == "float32"
    assert mean("int32", "float16") == "float16" and mean("float16", "float32") == "float32"
    assert mean("int32") == ("float64" if package is attnpool_ref else "float32")
    narrow = {name: value.astype(np.float16) for name, value in HEADS.items()}
    state = package.multi_head_attention_state(X.astype(np.float16), MASK, **narrow)
    assert package.finalize_state(state).dtype == np.float16
    assert package.finalize_state(state, **VALUES).dtype == np.float32
    assert all(leaf.dtype.itemsize >= 4 for leaf in jax.tree.leaves(state) if package is attnpool_flax)


def test_under_x64_states_are_as_wide_as_what_they_are_merged_from():
    with jax.enable_x64(True):
        narrow = attnpool_flax.mean_state(jnp.full((1, 2), 0.1, jnp.float32))
        wide = attnpool_flax.mean_state(jnp.full((1, 2), 0.1, jnp.float64))
        whole = attnpool_flax.merge_states(narrow, wide)
        assert whole.sum.dtype == np.float64 and attnpool_flax.finalize_state(whole).dtype == np.float64
        whole = attnpool_flax.merge_states(narrow, attnpool_flax.mean_state(jnp.ones((1, 2), int)))
        assert attnpool_flax.finalize_state(whole).dtype == np.float32
        late = attnpool_flax.last_state(jnp.ones((1, 2)), start=2**40)
        assert late.position == 2**40


# What is refused


REFUSED = [
    Call("attention_state", X, MASK).raises(
        TypeError, "`query` is None, needs an array: the mean of all tokens is not known before the last chunk"
    ),
    Call("first_state", X, start=-1).raises(ValueError, "`start` has the value -1, needs at least 0"),
    Call("last_state", X, start=np.arange(2)).raises(ValueError, "`start` has shape (2,), needs an integer"),
    Refusal(
        lambda p: p.merge_states([p.mean_state(X)]),
        TypeError,
        "merge_states() missing 1 required positional argument: 'b'; "
        "did you mean `functools.reduce(merge_states, states)` for a list of states?",
    ),
    Refusal(
        lambda p: p.merge_states(p.mean_state(X), X),
        TypeError,
        "merge_states: `b` is an ndarray, needs a state, such as `attention_state` gives",
    ),
    Refusal(
        lambda p: p.merge_states(p.mean_state(X), p.max_state(X)),
        ValueError,
        "merge_states: `a` is a MeanState but `b` is a MaxState, needs states of one kind",
    ),
    Refusal(
        lambda p: p.merge_states(p.weighted_state(X, np.ones((3, 7))), p.weighted_state(X, np.ones(X.shape))),
        ValueError,
        "merge_states: `a` is a WeightedState but `b` is a ChannelState, needs states of one kind",
    ),
    Refusal(
        lambda p: p.merge_states(p.mean_state(X), p.mean_state(X[..., :3])),
        ValueError,
        "merge_states: `a` has shape (3, 4) but `b` has (3, 3), needs states of equal widths and batch axes",
    ),
    Refusal(
        lambda p: p.merge_states(state_of(p, "vlad_state"), state_of(p, "vlad_state", normalize=False)),
        ValueError,
        "merge_states: `a` has `normalize` True but `b` has False, needs states of equal options",
    ),
    Refusal(
        lambda p: p.merge_states(p.power_mean_state(X), p.power_mean_state(X, None, np.float32([3, 2, 3, 3]))),
        ValueError,
        "merge_states: `a` has `p` 3.0 but `b` has 2.0, needs states of equal options",
    ),
    Refusal(
        lambda p: p.merge_states(p.std_state(X), p.merge_states(*2 * [p.std_state(X, ddof=1, epsilon=1)])),
        ValueError,
        "merge_states: `a` has `ddof` 0.0 but `b` has 1.0, needs states of equal options",
    ),
    Call("finalize_state", X).raises(
        TypeError, "`state` is an ndarray, needs a state, such as `attention_state` gives"
    ),
    Refusal(
        lambda p: p.finalize_state(p.mean_state(X), out_kernel=VALUES["out_kernel"]),
        ValueError,
        "finalize_state: `out_kernel` is given but `state` is a MeanState, needs a MultiHeadAttentionState",
    ),
    Refusal(
        lambda p: p.finalize_state(heads(p), out_kernel=VALUES["out_kernel"]),
        ValueError,
        "finalize_state: `out_kernel` is given without `value_kernel`, needs `value_kernel` as well",
    ),
    Refusal(
        lambda p: p.finalize_state(heads(p), **VALUES | {"value_kernel": "text"}),
        TypeError,
        "finalize_state: `value_kernel` is a str, needs an array of numbers",
    ),
    Refusal(
        lambda p: p.finalize_state(heads(p), **VALUES | {"value_kernel": VALUES["value_kernel"][:3]}),
        ValueError,
        "finalize_state: `value_kernel` has shape (3, 3, 2) but `state` has (3, 2, 3, 4): `value_kernel` needs [d, H, c'] "
        "with d = 4",
    ),
]


def heads(package):
    return state_of(package, "multi_head_attention_state")


@every_refusal(REFUSED)
def test_bad_input_is_refused_in_the_same_words(package, refusal):
    refusal.check(package)


def test_a_position_that_jax_does_not_hold_is_refused():
    needs = "needs at most 2147483641 without x64, as the chunk has 7 tokens"
    with pytest.raises(ValueError, match=f"`start` has the value 3000000000, {needs}"):
        attnpool_flax.first_state(X, start=3 * 10**9)


# In JAX


def test_a_state_is_a_pytree_that_prints_and_pickles():
    state = attnpool_flax.attention_state(X[0], None, MORE["attention_state"]["query"])
    assert repr(state).startswith("AttentionState(top=Array(") and "sum=Array([" in repr(state)
    assert_same_bits(pickle.loads(pickle.dumps(state)), state)
    copied = jax.tree.map(np.asarray, state)
    assert type(copied) is type(state) and copied.dtype == np.float32 and state.decided == "float32"
    assert_same_bits(attnpool_flax.merge_states(copied, state), attnpool_flax.merge_states(state, copied))


def test_a_state_of_the_oracle_prints_pickles_and_keeps_no_reference_to_the_callers_arrays():
    x, mask, query = X.copy(), MASK.copy(), MORE["attention_state"]["query"].copy()
    state = attnpool_ref.attention_state(x, mask, query)
    pooled = attnpool_ref.finalize_state(state)
    for array in (x, mask, query):
        array[:] = 0  # a buffer that is read into again
    assert_same_bits(state, pooled)
    assert repr(state) == "<AttentionState of 1 chunk(s), result (3, 4)>"
    assert_same_bits(pickle.loads(pickle.dumps(attnpool_ref.merge_states(state, state))), pooled)


@pytest.mark.parametrize("name", ["weighted_state", "std_state", "attention_state", "additive_attention_state"])
def test_chunks_with_and_without_an_optional_argument_of_the_tokens_merge(name):
    """Weights of None are 1, a bias of None is 0, and values of None are the tokens."""
    key, neutral = {
        "attention_state": ("bias", np.zeros((3, 7))),
        "additive_attention_state": ("value", X),
    }.get(name, ("weights", np.ones((3, 7))))
    parts = [state_of(attnpool_ref, name, X[:, :4], MASK[:, :4], **{key: given}) for given in (None, neutral[:, :4])]
    rest = state_of(attnpool_ref, name, X[:, 4:], MASK[:, 4:], **{key: neutral[:, 4:]})
    assert_same_bits(*(attnpool_ref.merge_states(part, rest) for part in parts))


def test_chunks_with_weights_for_each_token_and_for_each_feature_merge_in_statistics():
    each = np.broadcast_to(np.float32([1, 2, 3, 4]), X.shape)
    parts = [attnpool_ref.std_state(X[:, :4], None, np.ones(4)), attnpool_ref.std_state(X[:, 4:], None, each[:, 4:])]
    whole = attnpool_ref.std_pooling(X, None, np.concatenate([np.ones((3, 4, 4)), each[:, 4:]], 1))
    assert_near(attnpool_ref.finalize_state(attnpool_ref.merge_states(*parts)), whole)


def test_no_two_kinds_of_states_have_the_same_structure():
    """Where two have, a program that merges one of them may be taken for the other."""
    structures = [jax.tree.structure(jax.eval_shape(lambda name=name: state_of(attnpool_flax, name))) for name in NAMES]
    for i, one in enumerate(structures):
        assert one not in structures[:i]


def test_options_are_compared_where_the_caller_gave_numbers_and_never_read_from_a_device():
    state = attnpool_flax.logsumexp_state
    x, twice, thrice = jnp.zeros((1, 1)), jnp.float32(2), jnp.float32(3)
    with jax.transfer_guard("disallow_explicit"):
        on_device = attnpool_flax.merge_states(state(x, scale=twice), state(x, scale=thrice))
    assert on_device.scale == 2 and dict(on_device.known) == {"scale": None}
    both = attnpool_flax.merge_states(state(x, scale=2), state(x, scale=np.float32([2])))
    assert dict(both.known) == {"scale": (2.0,)}
    with pytest.raises(ValueError, match=r"`a` has `scale` 2\.0 but `b` has 3\.0"):
        jax.jit(lambda x: attnpool_flax.merge_states(state(x, scale=2), state(x, scale=3)).total)(x)

    def chunk(carry, x):
        return attnpool_flax.merge_states(carry, state(x, scale=2)), None

    whole, _ = jax.lax.scan(chunk, both, jnp.ones((3, 1, 1)))
    assert whole.count == 5


def test_a_start_is_traced_and_no_value_of_it_compiles_again():
    count = []

    @jax.jit
    def first(x, start):
        count.append(start)
        return attnpool_flax.first_state(x, start=start)

    assert [int(first(X[0], start).position) for start in (np.int32(0), jnp.int32(7), np.int32(9))] == [0, 7, 9]
    assert len(count) == 1
    mapped = jax.vmap(lambda x, start: attnpool_flax.last_state(x, start=start))(X, jnp.array([0, 7, 14]))
    np.testing.assert_array_equal(mapped.position, [6, 13, 20])


KEPT = {
    "attention_state": {"query": (64,)},
    "multi_head_attention_state": {"query": (1, 64), "query_kernel": (64, 2, 4), "key_kernel": (64, 2, 4)},
    "additive_attention_state": {"kernel": (64, 16), "gate_kernel": (64, 16), "out_kernel": (16,)},
    "weighted_state": {"weights": (2048,)},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", KEPT)
def test_the_gradient_of_a_loop_over_chunks_keeps_no_copy_of_the_tokens(name):
    """Of 8 chunks the temporaries are less than half of x: a few chunks, and not all of them."""
    state_of = getattr(attnpool_flax, name)

    def loss(learned, x, mask):
        def step(whole, chunk):
            tokens, real = chunk
            return attnpool_flax.merge_states(whole, state_of(tokens, mask=real, **learned)), None

        empty = state_of(jnp.zeros_like(x[0]), mask=jnp.zeros_like(mask[0]), **learned)
        return jnp.sum(attnpool_flax.finalize_state(jax.lax.scan(step, empty, (x, mask))[0]) ** 2)

    learned = {key: jax.ShapeDtypeStruct(shape, np.float32) for key, shape in KEPT[name].items()}
    x = jax.ShapeDtypeStruct((8, 4, 2048, 64), np.float32)
    used = programs.temporaries(jax.grad(loss), learned, x, jax.ShapeDtypeStruct(x.shape[:-1], bool))
    more = name == "additive_attention_state" and jax.__version_info__ < (0, 11)
    assert used < x.size * x.dtype.itemsize * (3 / 4 if more else 1 / 2)


def test_states_of_other_options_merge_and_finalize_by_the_same_programs():
    def sizes_after(ddof):
        state = attnpool_flax.std_state(X, MASK, ddof=ddof)
        attnpool_flax.finalize_state(attnpool_flax.merge_states(state, state))
        return merging._merged._cache_size(), merging._finalized._cache_size()

    assert sizes_after(0) == sizes_after(1) == sizes_after(0.5)


@every_package
def test_a_sink_enters_once_when_a_state_is_finalized(package):
    """The result is that of the whole sequence, in two chunks, for states of one query, of heads and of hops."""
    rng = np.random.default_rng(3)
    x, mask, query = (
        rng.normal(size=(2, 5, 4)).astype("f"),
        np.array([[1, 1, 0, 1, 1], [0] * 5], bool),
        np.float32([[1, 0, 2, 1]]),
    )
    heads = {f"{part}_kernel": rng.normal(size=(4, 3, 2)).astype("f") for part in ("query", "key", "value")}
    value_bias, kernels = rng.normal(size=(3, 2)).astype("f"), {"kernel": query.T, "out_kernel": np.float32([[1, -2]])}
    sinks = np.float32([0.5, -np.inf, 2])

    def whole(function, *arguments, sink, kernels=None, **options):
        parts = (function(x[:, own], mask[:, own], *arguments, **options) for own in (slice(2), slice(2, 5)))
        return package.finalize_state(package.merge_states(*parts), sink=sink, **(kernels or {}))

    found = [
        whole(package.attention_state, query[0], sink=sinks[:2]),
        whole(package.additive_attention_state, sink=0.0, **kernels),
        whole(
            package.multi_head_attention_state,
            sink=sinks,
            kernels={"value_kernel": heads["value_kernel"], "value_bias": value_bias},
            query=query,
            **{key: heads[key] for key in ("query_kernel", "key_kernel")},
        ),
    ]
    exact = [
        attnpool_ref.attention_pooling(x, mask, query[0], sink=sinks[:2]),
        attnpool_ref.additive_attention_pooling(x, mask, sink=0.0, **kernels),
        attnpool_ref.multi_head_attention_pooling(x, mask, query=query, **heads, value_bias=value_bias, sink=sinks),
    ]
    for got, want in zip(found, exact, strict=True):
        assert_near(got, want)


@every_package
def test_only_states_of_attention_take_a_sink_of_their_shape(package):
    state = package.attention_state(np.ones((2, 5, 4)), None, np.ones(4))
    with pytest.raises(ValueError, match=r"`sink` has shape \(3,\), needs a shape that broadcasts to"):
        package.finalize_state(state, sink=np.zeros(3))
    with pytest.raises(ValueError, match="`sink` is given but `state` is a MeanState, needs a state of an attention"):
        package.finalize_state(package.mean_state(np.ones((2, 5, 4))), sink=0.0)
