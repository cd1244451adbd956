"""``implementation="cudnn"``: what surrounds the kernel, computed with XLA's in its place; and the kernel, lowered for a GPU.

No machine of the tests has cuDNN. JAX asks for its version before it traces: the version is given here.
"""

import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew

import attnpool_flax
from attnpool_flax import chosen_implementation
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions import cudnn_attention
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

every_function = pytest.mark.parametrize("name", ATTENTION)


@pytest.fixture(autouse=True)
def anew():
    """What was traced with another kernel is not taken again."""
    with compiling_anew(*(FUNCTIONS[name] for name in ATTENTION)):
        yield


@pytest.fixture
def versioned(monkeypatch):
    """JAX finds cuDNN's version."""
    fused = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
    monkeypatch.setattr(fused, "check_cudnn_version", lambda: 91300)


@pytest.fixture
def by_xla(monkeypatch):
    """XLA's kernel for cuDNN's, in float32, on the CPU: it has no narrower one."""
    own = jax.nn.dot_product_attention

    def attention(*arrays, implementation, **options):
        assert implementation == "cudnn"
        assert {array.dtype.name for array in arrays} <= set(cudnn_attention.DTYPES)
        wide = own(*(array.astype(jnp.float32) for array in arrays), **options, implementation="xla")
        return wide.astype(arrays[0].dtype)

    monkeypatch.setattr(jax.nn, "dot_product_attention", attention)
    monkeypatch.setattr(cudnn_attention._ON_GPUS, "bind", lambda array: array)


class OnePass(JaxArrays):
    """JAX arrays of a device that multiplies narrow numbers in one pass."""

    def reduced_products(self):
        return True


@every_function
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_results_and_gradients_are_right(name, dtype, by_xla):
    row = table.get(name)
    title = cases.fullest_way(row)
    names, options = next((names, options) for own, names, options in cases.configurations(row) if own == title)
    names = [key for key in names if key not in LEFT_OUT]
    case = cases.draw(row, title, names, options, (B,), {"n": N, "m": M, "d": D, "v": D, **HEADS})
    function = functools.partial(getattr(attnpool_flax, name), implementation="cudnn")
    subject = Subject(row, function, OnePass(), dtype)
    for weights in (False, True):
        assert not agreement(subject, case, weights).message
        assert not gradient(subject, case, weights).message


def pairs(dtype="bfloat16", width=D):
    """Queries, keys, values, and a mask in which one query of each example sees no key, and no query the last key."""
    rng = np.random.default_rng(0)
    query, key, value = (jnp.asarray(rng.normal(size=(B, n, width)), dtype) for n in (N, M, M))
    mask = rng.random((B, N, M)) < 0.6
    mask[:, 1], mask[..., -1], mask[:, 0, 0] = False, False, True
    return query, key, value, jnp.asarray(mask)


def attended(query, key, value, mask, **options):
    """dot_product_attention by cuDNN."""
    return attnpool_flax.dot_product_attention(query, key, value, mask, implementation="cudnn", **options)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_padding_changes_no_bit_and_queries_without_keys_are_0(poison, by_xla):
    query, key, value, mask = pairs()

    def step(query, key, value):
        return jnp.sum(attended(query, key, value, mask).astype(jnp.float32) ** 2)

    poisoned = query.at[:, 1].set(poison), key.at[:, -1].set(poison), value.at[:, -1].set(poison)
    clean, dirty = (attended(*arrays, mask) for arrays in ((query, key, value), poisoned))
    chex.assert_trees_all_equal(clean, dirty)
    chex.assert_trees_all_equal(clean[:, 1], jnp.zeros_like(clean[:, 1]))
    slopes, own = (jax.grad(step, (0, 1, 2))(*arrays) for arrays in ((query, key, value), poisoned))
    chex.assert_trees_all_equal(slopes, own)
    assert not np.any(slopes[0][:, 1])
    assert not np.any(slopes[2][:, -1])


def test_a_scale_and_a_shared_mask_without_queries_are_taken(by_xla):
    query, key, value, mask = pairs()
    shared = mask[:, :1]
    for options in ({}, {"scale": 0.5}, {"scale": jnp.asarray(0.5)}):
        want = attnpool_flax.dot_product_attention(query, key, value, shared, **options)
        got = attended(query, key, value, shared, **options)
        chex.assert_trees_all_close(np.float32(got), np.float32(want), atol=0.05)


@every_function
def test_forward_and_step_are_lowered_to_cudnn_alone(name, versioned):
    kernel = jax.ShapeDtypeStruct((D, 2, D), jnp.bfloat16)
    kernels = {f"{part}_kernel": kernel for part in ("query", "key", "value")}
    kernels |= {"out_kernel": jax.ShapeDtypeStruct((2, D, D), jnp.bfloat16)}
    arrays = pairs()
    own = kernels if name == "multi_head_attention" else {}

    def forward(query, key, value, mask, own):
        function = getattr(attnpool_flax, name)
        return jnp.sum(function(query, key, value, mask, **own, implementation="cudnn").astype(jnp.float32))

    for function, calls in ((forward, [""]), (jax.grad(forward, (0, 1, 2)), ["", "Backward"])):
        text = jax.jit(function).trace(*arrays, own).lower(lowering_platforms=("cuda",)).as_text()
        assert re.findall(r"@__cudnn\$fmhaScaleBiasSoftmax(\w*)\(", text) == calls
        assert not re.search(r"stablehlo.exponential", text)


KERNEL = jnp.ones((D, 1, D), jnp.bfloat16)
REFUSED = {
    "float32": (lambda: attended(*pairs("float32")), "takes bfloat16 and float16, not float32; pass None"),
    "width": (lambda: attended(*pairs(width=12)), "multiples of 8 up to 256, not 12; pass None"),
    "wide": (lambda: attended(*pairs(width=264)), "multiples of 8 up to 256, not 264"),
    "two widths": (lambda: attended(*pairs()[:2], jnp.ones((B, M, 16), "bfloat16"), None), "not 8 and 16"),
    "odd": (
        lambda: attended(*(array[:, :3] for array in pairs()[:3]), jnp.ones((B, 3, 3), bool)),
        "takes even numbers of queries and keys with a mask, not 3 and 3",
    ),
    "empty": (lambda: attended(*(array[:, :0] for array in pairs()[:3]), None), "takes no empty arrays"),
    "bias": (lambda: attended(*pairs(), bias=jnp.ones((B, N, M))), "takes no `bias`; pass None"),
    "multiplier": (
        lambda: attnpool_flax.multi_head_attention(
            *pairs(),
            query_kernel=KERNEL,
            key_kernel=KERNEL,
            value_kernel=KERNEL,
            out_kernel=jnp.ones((1, D, D), jnp.bfloat16),
            dropout_multiplier=jnp.ones((B, 1, N, M)),
            implementation="cudnn",
        ),
        "multi_head_attention: .* takes no `dropout_multiplier`",
    ),
    "another function": (
        lambda: attnpool_flax.mean_pooling(pairs()[0], implementation="cudnn"),
        "mean_pooling: `implementation` is 'cudnn', which averages values under the softmax .* pass None, 'einsum' or 'tiles'",
    ),
    "scores": (
        lambda: attnpool_flax.attend(jnp.ones((N, M)), jnp.ones((M, D)), implementation="cudnn"),
        "attend: .* this call does not",
    ),
    "chosen": (
        lambda: chosen_implementation("dot_product_attention", *pairs("float32"), implementation="cudnn"),
        "dot_product_attention: .* not float32",
    ),
    "no cuDNN": (lambda: attended(*pairs()), "which JAX refuses here \\(cuDNN is not detected.\\); pass None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cudnn_does_not_take_is_refused_by_name(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_other_platforms_refuse_by_name(platform, versioned):
    trace = jax.jit(attended).trace(*pairs())
    with pytest.raises(ValueError, match="'cudnn', which is for NVIDIA GPUs only; pass None"):
        trace.lower(lowering_platforms=(platform,))


def test_it_is_chosen_only_on_request(versioned):
    arrays = pairs()
    assert chosen_implementation("dot_product_attention", *arrays, implementation="cudnn") == "cudnn"
    assert chosen_implementation("dot_product_attention", *arrays, platform="cuda") != "cudnn"
