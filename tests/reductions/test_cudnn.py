"""``implementation="cudnn"``: what surrounds the kernel, computed with XLA's in its place; and the kernel, lowered for a GPU.

No machine of the tests has cuDNN. JAX asks for its version before it traces: the version is given here.
"""

import functools
import re

import jax
import jax.numpy as jnp
import many_queries
import numpy as np
import pytest
from many_queries import ATTENTION, B, M, pairs

from attnpool_flax import chosen_implementation
from attnpool_flax.reductions import cudnn_attention

attended = functools.partial(many_queries.attended, implementation="cudnn")
every_function = pytest.mark.parametrize("name", ATTENTION)
pytestmark = pytest.mark.usefixtures("anew")


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
    monkeypatch.setattr(cudnn_attention, "only_on", lambda platform, array, *_: array)


@pytest.mark.compiles
@every_function
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_results_and_gradients_are_right(name, dtype, by_xla):
    many_queries.assert_judged_right(name, dtype, "cudnn")


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_padding_changes_no_bit_and_queries_without_keys_are_0(poison, by_xla):
    many_queries.assert_padding_has_no_effect(poison, "cudnn")


def test_a_scale_and_a_shared_mask_without_queries_are_taken(by_xla):
    many_queries.assert_takes_scales_and_shared_masks("cudnn")


@every_function
def test_forward_and_step_are_lowered_to_cudnn_alone(name, versioned):
    for text, calls in zip(many_queries.lowered(name, "cuda", "cudnn"), ([""], ["", "Backward"]), strict=True):
        assert re.findall(r"@__cudnn\$fmhaScaleBiasSoftmax(\w*)\(", text) == calls
        assert not re.search(r"stablehlo.exponential", text)


REFUSED = many_queries.refused("cudnn") | {
    "float32": (lambda: attended(*pairs("float32")), "takes bfloat16 and float16, not float32; pass None"),
    "width": (lambda: attended(*pairs(width=12)), "multiples of 8 up to 256, not 12; pass None"),
    "wide": (lambda: attended(*pairs(width=264)), "multiples of 8 up to 256, not 264"),
    "two widths": (lambda: attended(*pairs()[:2], jnp.ones((B, M, 16), "bfloat16"), None), "not 8 and 16"),
    "odd": (
        lambda: attended(*(array[:, :3] for array in pairs()[:3]), jnp.ones((B, 3, 3), bool)),
        "takes even numbers of queries and keys with a mask, not 3 and 3",
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
