"""``implementation="splash"``: JAX's kernel interpreted on a CPU, against the oracle and whole products; and lowered for a TPU."""

import functools

import jax
import jax.numpy as jnp
import many_queries
import numpy as np
import pytest
from constants import replaced
from jax.sharding import PartitionSpec
from kernel_agreement import LIMITS, UNIT, assert_near
from many_queries import ATTENTION, B, pairs
from marks import all_with_few_quick

import attnpool_flax
from attnpool_flax import chosen_implementation
from attnpool_flax.reductions import pallas_softmax, splash_attention

attended = functools.partial(many_queries.attended, implementation="splash")
every_function = pytest.mark.parametrize("name", ATTENTION)
pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("anew")]


SLOW = ("multi_head_attention", "float32"), ("dot_product_attention", "bfloat16")
CALLS = [
    pytest.param(name, dtype, marks=pytest.mark.thorough if (name, dtype) in SLOW else ())
    for name in ATTENTION
    for dtype in splash_attention.DTYPES
]


@pytest.mark.parametrize("name, dtype", CALLS)
def test_results_and_gradients_are_right(name, dtype, interpreted):
    many_queries.assert_judged_right(name, dtype, "splash")


@pytest.mark.parametrize("poison", [np.nan, np.inf, pytest.param(-np.inf, marks=pytest.mark.thorough)])
def test_padding_changes_no_bit_and_queries_without_keys_are_0(poison, interpreted):
    many_queries.assert_padding_has_no_effect(poison, "splash")


@pytest.mark.thorough
def test_a_scale_and_a_shared_mask_without_queries_are_taken(interpreted):
    many_queries.assert_takes_scales_and_shared_masks("splash")


COUNT, KEYS, HEADS = 130, 300, 2
"""Two blocks of queries and three of keys, if a block has at most 128; the last ones are not full."""


def masks():
    """A mask of each form, [B, 1 or heads, 1 or queries, keys], by name."""
    rng = np.random.default_rng(1)
    drawn = rng.random((B, HEADS, COUNT, KEYS)) < 0.5
    drawn[:, :, 3], drawn[0, 0], drawn[1, :, :, 7], drawn[2, 0, :, 128:] = False, False, False, False
    whole = np.zeros((B, 1, 1, KEYS), bool)
    whole[1], whole[2, ..., :129] = True, True  # the first example has no key
    return {
        "none": None,
        "keys": whole,
        "keys of heads": drawn[:, :, :1],
        "shared keys of heads": drawn[:1, :, :1] | (np.arange(KEYS) == 5),
        "pairs": drawn[:, :1],
        "pairs of heads": drawn,
        "shared pairs": drawn[1:2, :1],
        "shared pairs of heads": drawn[1:2],
    }


def in_heads(implementation, mask, dtype):
    """(result, gradients) of attention of two heads, which the kernels only separate; padding is NaN or infinite."""
    rng = np.random.default_rng(2)
    shapes = (B, COUNT, HEADS, 5), (B, KEYS, HEADS, 5), (B, KEYS, HEADS, 3), (B, COUNT, HEADS * 3)
    *arrays, cotangent = (rng.normal(size=shape).astype("float32").astype(dtype) for shape in shapes)
    if mask is not None:
        seeing, seen = (np.any(mask, axes)[..., None, None] for axes in ((1, 3), (1, 2)))
        padding = (seeing, np.nan), (seen, np.inf), (seen, np.nan)
        arrays = [np.where(real, a, poison).astype(dtype) for a, (real, poison) in zip(arrays, padding, strict=True)]
    identities = [jnp.eye(HEADS * width, dtype=dtype) for width in (5, 5, 3)]
    kernels = {
        f"{name}_kernel": jnp.reshape(own, (len(own), HEADS, -1))
        for name, own in zip(("query", "key", "value"), identities, strict=True)
    } | {"out_kernel": jnp.reshape(identities[2], (HEADS, -1, HEADS * 3))}

    def loss(*arrays):
        flat = (jnp.reshape(array, (*array.shape[:2], -1)) for array in arrays)
        found = attnpool_flax.multi_head_attention(*flat, mask, **kernels, implementation=implementation)
        return jnp.sum((found * cotangent).astype(jnp.promote_types(dtype, "float32"))), found

    (_, found), gradients = jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))(*arrays)
    return found, *gradients


@pytest.mark.parametrize("form", all_with_few_quick(masks(), ("pairs",)))
def test_several_blocks_and_every_form_of_masks_agree_with_whole_products_in_float64(form, interpreted):
    mask = masks()[form]
    with replaced(splash_attention, BLOCK=128), jax.debug_nans(True):
        got = in_heads("splash", mask, "float32")
    with jax.enable_x64(True):
        want = in_heads("einsum", mask, "float64")
    for one, other in zip(got, want, strict=True):
        assert_near(one, other, LIMITS["float32"] + UNIT["float32"])


@pytest.mark.thorough
def test_vmap_agrees_with_a_batch(interpreted):
    query, key, value, mask = pairs("float32")
    for own in (mask, mask[:, :1], None):
        want = attended(query, key, value, own)
        got = (
            jax.vmap(attended)(query, key, value, own)
            if own is not None
            else jax.vmap(lambda *arrays: attended(*arrays, None))(query, key, value)
        )
        assert_near(got, want, LIMITS["float32"])


def test_shard_map_runs_without_check_vma_and_is_refused_with_it(interpreted):
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    arrays, split = pairs("float32"), PartitionSpec("data")
    over = functools.partial(jax.shard_map, attended, mesh=mesh, in_specs=(split,) * 4, out_specs=split)
    assert_near(over(check_vma=False)(*arrays), attended(*arrays), LIMITS["float32"])
    with pytest.raises(ValueError, match=r"needs `check_vma=False` inside of jax\.shard_map; pass None"):
        over()(*arrays)


@every_function
def test_forward_and_step_are_lowered_to_the_kernel_alone(name):
    for text, calls in zip(many_queries.lowered(name, "tpu", "splash"), (1, 3), strict=True):
        assert text.count("@tpu_custom_call") == calls
        assert "stablehlo.exponential" not in text


@pytest.mark.parametrize("form", ["pairs", "keys", "none"])
def test_a_tpu_takes_it_with_x64_and_strict_promotion(form):
    query, key, value, mask = pairs("float32")
    mask = {"pairs": mask, "keys": mask[:, :1], "none": None}[form]
    step = jax.grad(lambda *arrays: jnp.sum(attended(*arrays, mask)), (0, 1, 2))
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        text = jax.jit(step).trace(query, key, value).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("@tpu_custom_call") == 3


DEFAULT, HIGHEST = jax.lax.Precision.DEFAULT, jax.lax.Precision.HIGHEST
PRECISIONS = {
    "float32": ("float32", None, None, "float32", HIGHEST),
    "bfloat16": ("bfloat16", None, None, "bfloat16", DEFAULT),
    "float32 in one pass": ("float32", "default", None, "float32", DEFAULT),
    "bfloat16 in full": ("bfloat16", "highest", None, "float32", HIGHEST),
    "setting": ("float32", None, "bfloat16", "float32", DEFAULT),
    "wide setting": ("float32", None, "tensorfloat32", "float32", HIGHEST),
}


@pytest.mark.parametrize("name", PRECISIONS)
def test_float32_products_are_in_full_float32_in_the_gradient_too(name):
    dtype, precision, setting, operands, passes = PRECISIONS[name]

    def step(query, key, value, mask):
        return jnp.sum(attended(query, key, value, mask, precision=precision))

    with jax.default_matmul_precision(setting):
        program = jax.make_jaxpr(jax.grad(step, (0, 1, 2)))(*pairs(dtype))
    kernels = list(inside(program.jaxpr, "pallas_call"))
    assert len(kernels) == 3
    for kernel in kernels:
        products = list(inside(kernel.params["jaxpr"], "dot_general"))
        assert products[0].invars[0].aval.dtype.name == operands  # queries and keys
        assert {product.params["precision"] for product in products} == {(passes, passes)}


def inside(program, name):
    """The equations of a primitive in a program and in its parts."""
    for equation in program.eqns:
        if equation.primitive.name == name:
            yield equation
            continue
        leaves = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns"))
        for leaf in leaves:
            if hasattr(leaf, "eqns") or hasattr(getattr(leaf, "jaxpr", None), "eqns"):
                yield from inside(getattr(leaf, "jaxpr", leaf), name)


def described(batch):
    """Arrays without numbers: queries, keys, values and a mask of pairs."""
    shapes = [((batch, 512, 8), "float32")] * 3 + [((batch, 512, 512), bool)]
    return [jax.ShapeDtypeStruct(*each) for each in shapes]


REFUSED = many_queries.refused("splash") | {
    "float16": (lambda: attended(*pairs("float16")), "takes float32 and bfloat16, not float16; pass None"),
    "wide": (lambda: attended(*pairs(width=257)), "takes widths up to 256, not 257; pass None"),
    "scalar memory": (
        lambda: chosen_implementation("dot_product_attention", *described(2000), implementation="splash"),
        "takes fewer examples, or shorter ones, with a mask of pairs: .* pass None",
    ),
    "precision": (
        lambda: attended(*pairs(), precision=jax.lax.DotAlgorithmPreset.F32_F32_F32),
        "takes a precision by one name, not .*F32_F32_F32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_splash_attention_does_not_take_is_refused_by_name(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_float64_is_refused_by_name():
    with jax.enable_x64(True), pytest.raises(ValueError, match="not float64; pass None"):
        attended(*pairs("float64"))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_other_platforms_refuse_by_name(platform):
    trace = jax.jit(lambda *arrays: attended(*arrays)).trace(*pairs())  # a new function: nothing was traced before
    message = f"'splash', which is for TPUs only; on a CPU it runs interpreted, with {pallas_softmax.INTERPRET}=1; pass"
    with pytest.raises(ValueError, match=message):
        trace.lower(lowering_platforms=(platform,))


def test_an_interpreted_kernel_is_lowered_for_no_accelerator(interpreted):
    trace = jax.jit(lambda *arrays: attended(*arrays)).trace(*pairs())  # a new function: nothing was traced before
    with pytest.raises(ValueError, match=f"is interpreted, for a CPU only, because {pallas_softmax.INTERPRET} is 1"):
        trace.lower(lowering_platforms=("tpu",))


def test_second_derivatives_and_forward_mode_are_refused_by_name(interpreted):
    query, *others = pairs("float32")

    def loss(query):
        return jnp.sum(attended(query, *others) ** 2)

    with pytest.raises(TypeError, match='no second derivatives; pass implementation="einsum"'):
        jax.grad(lambda query: jnp.sum(jax.grad(loss)(query)))(query)
    with pytest.raises(TypeError, match='no second derivatives; pass implementation="einsum"'):
        jax.jvp(jax.grad(loss), (query,), (query,))
    with pytest.raises(TypeError, match=r'no forward mode .* pass implementation="einsum"'):
        jax.jvp(loss, (query,), (query,))


def test_it_is_chosen_only_on_request():
    arrays = pairs()
    assert chosen_implementation("dot_product_attention", *arrays, implementation="splash") == "splash"
    assert chosen_implementation("dot_product_attention", *arrays, platform="tpu") != "splash"
