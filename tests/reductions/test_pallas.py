"""Kernels of Pallas, interpreted: ``implementation="pallas"`` has the results and gradients of whole products, and its refusals."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew, replaced
from marks import thorough
from rounding import rounded

import attnpool_flax
from attnpool_flax import chosen_implementation
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.kernels import softmax as kernels
from attnpool_flax.kernels import triton


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Runs the kernels on a CPU, in programs that no other test takes."""
    monkeypatch.setenv(kernels.INTERPRET, "1")
    with compiling_anew(*FUNCTIONS.values()):
        yield


MASK = np.arange(131) < np.array([[131], [0], [5]])
X = np.where(MASK[..., None], np.random.default_rng(7).normal(size=(*MASK.shape, 5)), np.nan)
ONES = jnp.ones((2, 3, 4))


def heads(width, count):
    """Keywords of multi-head pooling of tokens of a width under so many queries."""
    shapes = {f"{part}_kernel": (width, count, 3) for part in ("query", "key", "value")}
    shapes |= {"query": (1, width), "out_kernel": (count, 3, 4)}
    return {key: np.random.default_rng(9).normal(size=shape).astype(np.float32) for key, shape in shapes.items()}


CALLS = {
    "attention_pooling": {"query": np.ones(5, np.float32)},
    "multi_head_attention_pooling": heads(5, 2),
}


@pytest.mark.parametrize("dtype", ["bfloat16", *thorough(["float16", "float32"])])
@pytest.mark.parametrize("platform", ["tpu", *thorough(["gpu"])])
@pytest.mark.parametrize("name", ["multi_head_attention_pooling", *thorough(["attention_pooling"])])
def test_results_and_gradients_are_those_of_whole_products(name, platform, dtype):
    """With NaN at padding, and an example without a real token."""

    def loss(x, implementation):
        found = getattr(attnpool_flax, name)(x, MASK, **CALLS[name], implementation=implementation)
        return jnp.sum(jnp.sin(found.astype("float32"))), found

    def on_gpu(name, *_):
        return functools.partial(getattr(triton, name), interpret=True)

    changed = {"_on_platforms": on_gpu} if platform == "gpu" else {}
    with replaced(kernels, **changed):
        found = jax.value_and_grad(loss, has_aux=True)(jnp.asarray(X, dtype), "pallas")
        wanted = jax.value_and_grad(loss, has_aux=True)(jnp.asarray(X, dtype), "einsum")
    for ours, own in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        ours, own = np.asarray(ours, np.float64), np.asarray(own, np.float64)
        np.testing.assert_allclose(ours, own, rtol=0, atol=rounded(own, 64) + rounded(own, 2, dtype))


def attention(x=ONES, **options):
    return attnpool_flax.attention_pooling(x, None, jnp.ones(4), implementation="pallas", **options)


REFUSED = {
    "multi_head_attention_pooling: .* at most 16 queries in all, not 17; pass None": lambda: (
        attnpool_flax.multi_head_attention_pooling(ONES, **heads(4, 17), implementation="pallas")
    ),
    "attention_pooling: `implementation` is 'pallas', which averages .* pass None, 'einsum' or 'tiles'": lambda: (
        attention(normalizer="sparsemax")
    ),
    "mean_pooling: .* pass None": lambda: attnpool_flax.mean_pooling(ONES, implementation="pallas"),
    "dot_product_attention: .* this call does not; pass None": lambda: attnpool_flax.dot_product_attention(
        ONES, ONES, ONES, implementation="pallas"
    ),
    "segment_attention_pooling: `implementation` is 'pallas', whose kernels take no packed tokens; pass None": lambda: (
        attnpool_flax.segment_attention_pooling(
            ONES[0], jnp.zeros(3, int), 1, query=jnp.ones(4), indices_are_sorted=True, implementation="pallas"
        )
    ),
    "dot_product_attention: `implementation` is 'splash', needs .*; call that kernel yourself, as docs/questions.md#": (
        lambda: attnpool_flax.dot_product_attention(ONES, ONES, ONES, implementation="splash")
    ),
    "takes a precision by one name": lambda: attention(precision=jax.lax.DotAlgorithmPreset.F32_F32_F32),
    "at most 8192 features, not 8193; pass None": lambda: chosen_implementation(
        "attention_pooling", np.ones((1, 1, 8193), "f"), None, np.ones(8193, "f"), implementation="pallas"
    ),
    'no second derivatives; pass implementation="einsum"': lambda: jax.hessian(lambda x: attention(x).sum())(ONES),
    'no forward mode .* pass implementation="einsum"': lambda: jax.jvp(attention, (ONES,), (ONES,)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_kernel_takes_is_refused_by_name(message):
    with pytest.raises((TypeError, ValueError), match=message):
        REFUSED[message]()


def test_platforms_and_dtypes_without_a_kernel_are_refused_and_it_is_chosen_only_on_request(monkeypatch):
    monkeypatch.delenv(kernels.INTERPRET)
    for platform, dtype, message in (
        ("cpu", "float32", f"only interpreted, with {kernels.INTERPRET}=1; pass None"),
        ("tpu", "float16", "no float16 on a TPU; pass bfloat16, or pass None"),
    ):
        with pytest.raises(ValueError, match=message):
            jax.jit(attention).trace(ONES.astype(dtype)).lower(lowering_platforms=(platform,))
    with jax.enable_x64(True), pytest.raises(ValueError, match="not float64; pass None"):
        attention(np.ones((2, 3, 4)))
    assert chosen_implementation("attention_pooling", ONES, None, jnp.ones(4)) != "pallas"
    code = "import sys, attnpool_flax; assert 'jax.experimental.pallas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
