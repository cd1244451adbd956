"""Memory of programs for CPUs besides arguments and results, from XLA: no copy of masked tokens, no array over pairs."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import temporaries

import attnpool_flax
from attnpool_ref import table

pytestmark = pytest.mark.thorough


def described(dtype, shapes):
    """Returns arrays by name, of which only shape and dtype are known; numbers stay."""
    return {
        key: jax.ShapeDtypeStruct(shape, dtype) if isinstance(shape, tuple) else shape for key, shape in shapes.items()
    }


def size(array):
    """Returns the number of bytes of an array."""
    return math.prod(array.shape) * np.dtype(array.dtype).itemsize


def step(function):
    """From arrays by name, and others, to the gradients of the first ones for a cotangent that depends on the result."""

    def loss(arrays, others):
        results = jax.tree.leaves(function(**arrays, **others))
        return sum(jnp.sum(jnp.square(part.astype(jnp.float32))) for part in results)

    return jax.grad(loss)


def held(function, arrays, others=None):
    """Returns the bytes that a forward pass and a step of a function of keywords hold."""
    others = others or {}
    forward = temporaries(lambda arrays, others: function(**arrays, **others), arrays, others)
    return forward, temporaries(step(function), arrays, others)


# Pooling of masked tokens: shares of the bytes of x ---------------------------------------------------------------

D = 512
KERNELS = {
    "mean_pooling": {},
    "sum_pooling": {},
    "max_pooling": {},
    "min_pooling": {},
    "weighted_pooling": {"weights": None},
    "attention_pooling": {"query": (D,)},
    "multi_head_attention_pooling": {"query": (1, D)}
    | {f"{part}_kernel": (D, 8, 64) for part in ("query", "key", "value")},
    "additive_attention_pooling": {"kernel": (D, 64), "out_kernel": (64,)},
    "gated_sum_pooling": {"gate_kernel": (D, 64), "value_kernel": (D, 64)},
}
"""Shapes of the parameters; None is one number for each token."""

LONG, SHORT, HALF, PACKED = (16, 1601, D), (401, 61, D), (16, 801, D), (51200, D)
"""Shapes of x, of 50 MB, 25 MB and 100 MB in float32; lengths and batches that no piece divides."""

LIMITS = {
    LONG: {
        **dict.fromkeys(("mean_pooling", "sum_pooling", "max_pooling", "min_pooling"), (0.04, 0.04)),
        **dict.fromkeys(("weighted_pooling", "attention_pooling"), (0.07, 0.07)),
        "multi_head_attention_pooling": (0.12, 0.12),
        "additive_attention_pooling": (0.04, 0.25),
        "gated_sum_pooling": (0.04, 0.07),
    },
    SHORT: dict.fromkeys(("mean_pooling", "max_pooling", "weighted_pooling", "attention_pooling"), (0.04, 0.1)),
    HALF: {"attention_pooling": (0.1, 0.1)},
    PACKED: {
        **dict.fromkeys(("mean_pooling", "sum_pooling", "max_pooling", "weighted_pooling"), (0.08, 0.08)),
        "attention_pooling": (0.13, 0.13),
        "gated_sum_pooling": (0.08, 0.08),
    },
}
"""By shape and function: shares of the bytes of x that a forward pass and a step may hold."""


def shares(name, shape, dtype="float32", **options):
    """Returns the shares of the bytes of x that a forward pass and a step hold."""
    parameters = {key: own or shape[-2:-1] for key, own in KERNELS[name].items()}
    arrays = described(dtype, parameters | {"x": shape})
    if shape == PACKED:
        options |= {"num_segments": 32, "indices_are_sorted": True}
        others, name = described("int32", {"segment_ids": shape[:1]}), f"segment_{name}"
    else:
        others = described("bool", {"mask": shape[:-1]})
    function = functools.partial(getattr(attnpool_flax, name), **options)
    return [each / size(arrays["x"]) for each in held(function, arrays, others)]


@pytest.mark.parametrize(
    ("name", "shape"),
    [pytest.param(name, shape, id=f"{name}-{shape}") for shape, names in LIMITS.items() for name in names],
)
def test_masked_tokens_are_never_copied(name, shape):
    found, limits = shares(name, shape), LIMITS[shape][name]
    assert all(share <= limit for share, limit in zip(found, limits, strict=True)), (found, limits)


@pytest.mark.parametrize("name", ["mean_pooling", "max_pooling", "attention_pooling"])
@pytest.mark.parametrize("shape", [LONG, SHORT, PACKED], ids=str)
def test_bfloat16_tokens_are_widened_in_pieces_forward(name, shape):
    """XLA's CPU backend would widen the whole array, as the loop slices it. A step has x and its gradient in float32."""
    forward, _ = shares(name, shape, "bfloat16")
    assert forward <= 0.13


@pytest.mark.parametrize("length", [1300, 577], ids=["parts divide the tokens", "no part does"])
def test_unmasked_tokens_are_not_copied(length):
    arrays = described("float32", {"x": (16, length, 64), "query": (64,)})
    forward, _ = held(attnpool_flax.attention_pooling, arrays)
    assert forward < size(arrays["x"]) / 3


@pytest.mark.parametrize("masked", [False, True])
def test_only_masked_tokens_are_reduced_in_a_loop(masked):
    x, mask = jnp.ones((8, 512, 96)), jnp.ones((8, 512), bool) if masked else None
    program = jax.jit(lambda x: attnpool_flax.attention_pooling(x, mask)).lower(x)
    assert ("stablehlo.while" in program.as_text()) == masked


# Scores of pairs: shares of the bytes of all scores, or of all hidden units -----------------------------------------

N, W = 4096, 8
ATTENTION = {"query": (N, W), "key": (N, W), "value": (N, W)}
LEFT_AND_RIGHT = {"x": (N, W), "y": (N, W)}
MANY_DOCUMENTS = {"x": (16, 64, W), "y": (240, 96, W)}
MANY_QUERIES = {"x": (256, 64, W), "y": (30, 96, W)}
PAIRS = {
    "attend": {"scores": (N, N), "value": (N, W)},
    "dot_product_attention": ATTENTION,
    "kernel_regression": ATTENTION,
    "code_wise_attention": {"query": (N, W), "context": (N, W)},
    "mask_attention": {"query": (N, W), "context": (N, W)},
    "bidaf_attention": {"context": (N, W), "query": (N, W), "kernel": (3 * W,)},
    "label_attention": {"labels": (N, W)} | {f"{part}_kernel": (W, W) for part in ("query", "key", "value")},
    "maxsim_score": LEFT_AND_RIGHT,
    "cross_attention_pooling": {key: (1, *shape) for key, shape in LEFT_AND_RIGHT.items()} | {"reduction": "max"},
    "cross_attention_pooling_all_pairs": MANY_DOCUMENTS | {"reduction": "max"},
    "maxsim_score_all_pairs": MANY_DOCUMENTS,
}
"""Shapes of arrays, and options, by function; a block of scores is a sixteenth of them."""


def shares_of_pairs(name, shapes, pairs):
    """Returns the shares of the bytes of so many float32 numbers that a forward pass and a step hold."""
    options = {key: own for key, own in shapes.items() if not isinstance(own, tuple)}
    arrays = described("float32", {key: own for key, own in shapes.items() if isinstance(own, tuple)})
    function = functools.partial(getattr(attnpool_flax, name), **options)
    return [each / (4 * pairs) for each in held(function, arrays)]


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        *PAIRS.items(),
        ("cross_attention_pooling_all_pairs", MANY_QUERIES | {"reduction": "max"}),
        ("maxsim_score_all_pairs", MANY_QUERIES),
    ],
    ids=str,
)
def test_scores_of_all_pairs_never_exist_at_once(name, shapes):
    of_all = {MANY_DOCUMENTS["x"]: 16 * 64 * 240 * 96, MANY_QUERIES["x"]: 256 * 64 * 30 * 96}
    forward, both = shares_of_pairs(name, shapes, of_all.get(shapes.get("x"), N * N))
    assert forward <= 0.2
    assert both <= 0.3


def test_linear_reductions_of_all_pairs_have_no_scores():
    shapes = {"x": (6, 200, W), "y": (5, 300, W), "reduction": "sum"}
    assert max(shares_of_pairs("cross_attention_pooling_all_pairs", shapes, 6 * 200 * 5 * 300)) <= 0.1


HIDDEN = [row.name for row in table.VARIANTS if row.name.startswith(("additive", "concat", "tanh_sum", "gaussian"))]
HIDDEN = [name for name in [*HIDDEN, "kernel_regression"] if "pooling" not in name]


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_units_of_all_pairs_never_exist_at_once(name):
    n, m, h = 1030, 128, 96
    wide = name in ("gaussian_score", "kernel_regression")  # the differences of all pairs are as wide as the tokens
    query, key = (h, h) if wide else (3, 4)
    shapes = {"query": (n, query), "key": (m, key)} | ({} if name.endswith("_score") else {"value": (m, 5)})
    if name.startswith("additive"):
        shapes |= {"query_kernel": (query, h), "key_kernel": (key, h), "out_kernel": (h,)}
    elif not wide:
        shapes |= {"kernel": (query + key, h)} | ({"out_kernel": (h,)} if name == "concat_score" else {})
    assert max(shares_of_pairs(name, shapes, n * m * h)) <= 0.1


def test_additive_attention_holds_no_more_under_vmap_than_with_batch_axes():
    """512 examples of 2**18 hidden numbers each: 528 MB when each example was one block."""
    examples, n, h = 512, 64, 64
    shapes = {"query": (examples, n, 8), "key": (examples, n, 8), "value": (examples, n, 8)}
    arrays = described("float32", shapes | {"query_kernel": (8, h), "key_kernel": (8, h), "out_kernel": (h,)})
    function = attnpool_flax.additive_attention

    def mapped(query, key, value, **kernels):
        return jax.vmap(lambda *own: function(*own, **kernels))(query, key, value)

    (forward, both), (_, batched) = held(mapped, arrays), held(function, arrays)
    assert forward <= 64e6
    assert both <= batched + 2 * 4 * examples * n * n


def test_hidden_units_of_a_gated_sum_are_those_of_a_piece():
    arrays = described("float32", {"gate_kernel": (32, 1024), "value_kernel": (32, 1024)})
    arrays |= described("bfloat16", {"x": (1, 2**13, 32)})
    forward, _ = held(attnpool_flax.gated_sum_pooling, arrays)
    assert forward < 4 * 2**13 * 2048 / 6


# Gradients of small programs ----------------------------------------------------------------------------------------


def test_gradients_are_not_padded_to_the_size_of_what_was_sliced():
    """Of tokens in slices of a sum; and of the gate that is the second half of a product."""

    def weighed(x, weights):
        return jnp.sum(attnpool_flax.weighted_pooling(x, weights))

    def gated(x, kernel):
        options = {"kernel": kernel, "gate_kernel": kernel, "out_kernel": jnp.ones(4)}
        return jnp.sum(attnpool_flax.additive_attention_pooling(x, **options))

    assert "1300,4] = pad[" not in str(jax.make_jaxpr(jax.grad(weighed, (0, 1)))(jnp.ones((1300, 4)), jnp.ones(1300)))
    assert "[1,50,8] = pad[" not in str(jax.make_jaxpr(jax.grad(gated, (0, 1)))(jnp.ones((1, 50, 6)), jnp.ones((6, 4))))


def test_what_has_no_gradient_in_a_sum_gives_none():
    def pooled(x, weights):
        return jnp.sum(attnpool_flax.weighted_pooling(*jax.lax.stop_gradient((x, weights))))

    assert not jnp.any(jax.grad(pooled)(jnp.ones((1300, 4)), jnp.ones(1300)))
