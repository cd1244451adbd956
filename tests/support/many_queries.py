"""Attention of many queries by kernels of other libraries: arrays, and the tests that every such kernel passes.

Each test takes ``implementation``, the kernel's name, and runs it on a CPU: a fixture sees to that.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.gradients import gradient
from attnpool_ref.conformance.checks.subject import Subject

B, N, M, D = 3, 4, 6, 8
HEADS = {"H": 2, "c": D, "c'": D}
ATTENTION = ("dot_product_attention", "multi_head_attention")
LEFT_OUT = ("bias", "dropout_multiplier")


class OnePass(JaxArrays):
    """JAX arrays of a device that multiplies narrow numbers in one pass."""

    def reduced_products(self):
        return True


def assert_judged_right(name, dtype, implementation):
    """Compares results and gradients, with and without the weights, with the oracle's."""
    row = table.get(name)
    title = cases.fullest_way(row)
    names, options = next((names, options) for own, names, options in cases.configurations(row) if own == title)
    names = [key for key in names if key not in LEFT_OUT]
    case = cases.draw(row, title, names, options, (B,), {"n": N, "m": M, "d": D, "v": D, **HEADS})
    function = functools.partial(getattr(attnpool_flax, name), implementation=implementation)
    subject = Subject(row, function, JaxArrays() if dtype == "float32" else OnePass(), dtype)
    for weights in (False, True):
        assert not agreement(subject, case, weights).message
        assert not gradient(subject, case, weights).message


def pairs(dtype="bfloat16", width=D, count=N, keys=M):
    """Queries, keys, values, and a mask in which one query of each example sees no key, and no query the last key."""
    rng = np.random.default_rng(0)
    query, key, value = (jnp.asarray(rng.normal(size=(B, n, width)), dtype) for n in (count, keys, keys))
    mask = rng.random((B, count, keys)) < 0.6
    mask[:, 1], mask[..., -1], mask[:, 0, 0] = False, False, True
    return query, key, value, jnp.asarray(mask)


def attended(query, key, value, mask, implementation, **options):
    """dot_product_attention by a kernel."""
    return attnpool_flax.dot_product_attention(query, key, value, mask, implementation=implementation, **options)


def assert_padding_has_no_effect(poison, implementation):
    """Compares results and gradients, bit for bit, with those of arrays whose padding is ``poison``."""
    query, key, value, mask = pairs()

    def step(query, key, value):
        return jnp.sum(attended(query, key, value, mask, implementation).astype(jnp.float32) ** 2)

    poisoned = query.at[:, 1].set(poison), key.at[:, -1].set(poison), value.at[:, -1].set(poison)
    clean, dirty = (attended(*arrays, mask, implementation) for arrays in ((query, key, value), poisoned))
    chex.assert_trees_all_equal(clean, dirty)
    chex.assert_trees_all_equal(clean[:, 1], jnp.zeros_like(clean[:, 1]))
    slopes, own = (jax.grad(step, (0, 1, 2))(*arrays) for arrays in ((query, key, value), poisoned))
    chex.assert_trees_all_equal(slopes, own)
    assert not np.any(slopes[0][:, 1])
    assert not np.any(slopes[2][:, -1])


def assert_takes_scales_and_shared_masks(implementation):
    """Compares a default scale, a Python float and an array, under one mask for all queries, with the default."""
    query, key, value, mask = pairs()
    shared = mask[:, :1]
    for options in ({}, {"scale": 0.5}, {"scale": jnp.asarray(0.5)}):
        want = attnpool_flax.dot_product_attention(query, key, value, shared, **options)
        got = attended(query, key, value, shared, implementation, **options)
        chex.assert_trees_all_close(np.float32(got), np.float32(want), atol=0.05)


def lowered(name, platform, implementation):
    """Returns the texts of forward and step, lowered for a platform."""
    kernel = jax.ShapeDtypeStruct((D, 2, D), jnp.bfloat16)
    kernels = {f"{part}_kernel": kernel for part in ("query", "key", "value")}
    kernels |= {"out_kernel": jax.ShapeDtypeStruct((2, D, D), jnp.bfloat16)}
    own = kernels if name == "multi_head_attention" else {}

    def forward(query, key, value, mask, own):
        function = getattr(attnpool_flax, name)
        return jnp.sum(function(query, key, value, mask, **own, implementation=implementation).astype(jnp.float32))

    for function in (forward, jax.grad(forward, (0, 1, 2))):
        yield jax.jit(function).trace(*pairs(), own).lower(lowering_platforms=(platform,)).as_text()


KERNEL = jnp.ones((D, 1, D), jnp.bfloat16)


def refused(implementation):
    """Calls that no such kernel supports, and the messages, by name."""
    call, names = functools.partial(attended, implementation=implementation), repr(implementation)
    return {
        "empty": (lambda: call(*(array[:, :0] for array in pairs()[:3]), None), "takes no empty arrays"),
        "bias": (lambda: call(*pairs(), bias=jnp.ones((B, N, M))), f"{names}, which takes no `bias`; pass None"),
        "multiplier": (
            lambda: attnpool_flax.multi_head_attention(
                *pairs(),
                query_kernel=KERNEL,
                key_kernel=KERNEL,
                value_kernel=KERNEL,
                out_kernel=jnp.ones((1, D, D), jnp.bfloat16),
                dropout_multiplier=jnp.ones((B, 1, N, M)),
                implementation=implementation,
            ),
            "multi_head_attention: .* takes no `dropout_multiplier`",
        ),
        "another function": (
            lambda: attnpool_flax.mean_pooling(pairs()[0], implementation=implementation),
            f"mean_pooling: `implementation` is {names}, which averages values .* pass None, 'einsum' or 'tiles'",
        ),
        "scores": (
            lambda: attnpool_flax.attend(jnp.ones((N, M)), jnp.ones((M, D)), implementation=implementation),
            "attend: .* this call does not",
        ),
        "chosen": (
            lambda: attnpool_flax.chosen_implementation(
                "dot_product_attention", *pairs(), bias=jnp.ones((B, N, M)), implementation=implementation
            ),
            "dot_product_attention: .* takes no `bias`",
        ),
    }
