"""Models of sentence-transformers, without their encoders: what the library itself made of them, kept as files."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formats.sentence_stages import allowed_errors, pooled
from marks import one_in
from programs import precisions

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.linen import SentencePool
from attnpool_ref import formats

FOLDERS = sorted((Path(__file__).parent / "golden" / "sentence_transformers").iterdir())
every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
every_side = pytest.mark.parametrize("side", ["right", "left"])


def loaded(folder, side):
    """The head in float64, the library's tokens, mask and result, and how far from it a result may be in each dtype."""
    head = formats.read(folder, "sentence_transformers")
    stages = head.options["stages"]
    parameters = {name: np.asarray(array, np.float64) for name, array in head.parameters.items()}
    with np.load(folder / "expected.npz") as file:
        x, mask, expected = file["x"], file[f"{side}_mask"].astype(bool), file[side]
    return stages, parameters, x, mask, expected, allowed_errors(stages, parameters, x, mask, expected, 2)


@every_side
@every_folder
def test_a_model_is_read_as_the_library_has_it(folder, side):
    stages, parameters, x, mask, expected, errors = loaded(folder, side)
    np.testing.assert_allclose(pooled(stages, parameters, x, mask, 2), expected, atol=errors["float64"], rtol=0)


@pytest.mark.parametrize("folder", one_in(3, FOLDERS), ids=lambda folder: folder.name)
def test_the_modules_pool_as_the_library_does_and_padding_stays_outside(folder):
    model, (module, variables) = (
        attnpool_flax.load(folder, "sentence_transformers"),
        linen.load(folder, "sentence_transformers"),
    )
    for side in ("right", "left"):
        _, _, x, mask, expected, errors = loaded(folder, side)
        spoilt = jnp.asarray(np.where(mask[..., None], x, np.nan), jnp.float32)
        got = model(spoilt, mask, 2)
        np.testing.assert_allclose(got, expected, atol=errors["float32"], rtol=0)
        np.testing.assert_array_equal(module.apply(variables, spoilt, mask.astype(np.int32), 2), got)
        if side == "right":
            np.testing.assert_array_equal(model(spoilt, lengths=mask.sum(-1), prompt_length=2), got)

    def total(parameters, x):
        return jnp.sum(module.apply(parameters, x, mask, jnp.array(2)) ** 2)

    gradients = jax.jit(jax.grad(total, argnums=(0, 1)))(variables, spoilt)
    assert all(np.isfinite(part).all() for part in jax.tree.leaves(gradients))
    assert not np.asarray(gradients[1])[np.broadcast_to(~mask[..., None], x.shape)].any()
    empty = [model(jnp.full(x.shape, value, jnp.float32), jnp.zeros(mask.shape, bool)) for value in (1, np.nan)]
    np.testing.assert_array_equal(*empty)
    assert np.isfinite(empty[0]).all()


@pytest.mark.thorough
def test_narrow_tokens_are_pooled_as_wide_ones_and_rounded_once():
    """bfloat16 cannot count beyond 256, and float16 sums of 1000 tokens of 300 overflow."""
    stage = formats.sentences.Stage("pooling", modes=("weightedmean", "mean_sqrt_len_tokens"))
    model = SentencePool((stage,))
    x = np.random.default_rng(0).uniform(200, 300, (1, 1000, 2))
    for dtype in (jnp.bfloat16, jnp.float16):
        narrow = jnp.asarray(x, dtype)
        exact = pooled((stage,), {}, np.asarray(narrow, np.float64), np.ones((1, 1000), bool), 0)
        got = model.apply({}, narrow)
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got, np.float64), exact, rtol=float(jnp.finfo(dtype).eps), atol=0)


MEANS = (formats.sentences.Stage("pooling", modes=("weightedmean", "mean_sqrt_len_tokens"), include_prompt=False),)
X, MASK = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([[True, True, False], [True, True, True]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, MASK, -1), "`prompt_length` is -1, needs an integer of at least 0"),
        ((X, MASK, np.int64(-1)), "`prompt_length` is .*-1.*, needs an integer of at least 0"),
        ((X, MASK, np.array([1, 2, 0])), r"`prompt_length` is array\(\[1, 2, 0\]\), needs an integer"),
        ((X, MASK, 1.5), "`prompt_length` is 1.5, needs an integer"),
        ((X, MASK, True), "`prompt_length` is True, needs an integer"),
        ((X, MASK, None), "`prompt_length` is None, needs an integer"),
        ((X, MASK.astype(np.float32)), "`mask` has dtype float32, but a mask is boolean"),
        ((X, MASK * 2), "`mask` has the value 2, but a mask is boolean"),
        ((X, MASK[:, :2]), r"`mask` has shape \(2, 2\), needs a shape that broadcasts to \[..., L\] = \(2, 3\)"),
        ((X[0, 0],), r"`x` has shape \(4,\), needs \[..., L, d\]"),
    ],
)
def test_what_cannot_be_pooled_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=f"^SentencePool: {message}"):
        SentencePool(MEANS).apply({}, *arguments)


def test_tokens_or_lengths_of_another_shape_are_refused():
    layers = (formats.sentences.Stage("layers", (("layer_weights", (2,)),)), *MEANS)
    dense = (*MEANS, formats.sentences.Stage("dense", (("kernel", (6, 5)),)))
    for stages, x, options, message in (
        (MEANS, X, {"lengths": np.array([1, 2, 3])}, r"`lengths` has shape \(3,\), needs \(\) or \(2,\)"),
        (MEANS, X, {"lengths": 2, "mask": MASK}, "`mask` and `lengths` are both given"),
        (layers, X[0], {}, r"`x` has shape \(3, 4\), needs \[layers, ..., L, d\]"),
        (dense, X, {}, r"`kernel_1` is \[6, 5\], and the vector before it has width 8; are the tokens"),
    ):
        with pytest.raises(ValueError, match=f"^SentencePool: {message}"):
            SentencePool(stages).init(jax.random.key(0), x, **options)


def test_a_negative_prompt_on_a_device_pools_no_padding():
    spoilt = np.where(MASK[..., None], X, np.nan)
    got = SentencePool(MEANS).apply({}, spoilt, MASK, jnp.array(-1))
    np.testing.assert_array_equal(got, SentencePool(MEANS).apply({}, spoilt, MASK, 0))


def test_tokens_of_integers_are_pooled_to_floats():
    got = SentencePool(MEANS).apply({}, X.astype(np.int32), MASK)
    np.testing.assert_array_equal(got, SentencePool(MEANS).apply({}, X, MASK))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_nothing_is_promoted_where_all_have_one_dtype(dtype):
    stages = (
        formats.sentences.Stage("layers", (("layer_weights", (2,)),)),
        formats.sentences.Stage("pooling", modes=formats.sentences.MODES),
        formats.sentences.Stage("dense", (("kernel", (24, 5)), ("bias", (5,)))),
        formats.sentences.Stage("layer_norm", (("scale", (5,)), ("bias", (5,)))),
        formats.sentences.Stage("normalize"),
    )
    model, x = SentencePool(stages, param_dtype=dtype), jnp.asarray(np.stack([X, X]), dtype)
    variables = jax.eval_shape(lambda x: model.init(jax.random.key(0), x, MASK), x)
    with jax.numpy_dtype_promotion("strict"):
        assert jax.eval_shape(lambda variables, x: model.apply(variables, x, MASK, 1), variables, x).dtype == dtype


MULTIPLYING = (
    formats.sentences.Stage("layers", (("layer_weights", (2,)),)),
    *MEANS,  # "weightedmean" is a product
    formats.sentences.Stage("dense", (("kernel", (8, 5)), ("residual_kernel", (8, 5))), residual=True),
)


@pytest.mark.parametrize(
    ("given", "setting", "expected"),
    [({}, None, "HIGHEST"), ({}, "bfloat16", "DEFAULT"), ({"precision": "high"}, "bfloat16", "HIGH")],
)
def test_products_have_full_precision_unless_the_caller_or_a_setting_of_jax_says_another(given, setting, expected):
    model, x = SentencePool(MULTIPLYING, **given), np.stack([X, X])
    variables = model.init(jax.random.key(0), x)
    with jax.default_matmul_precision(setting):
        assert precisions(model.apply, variables, x) == {expected}


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match=r"^SentencePool: `precision` is 'best', needs None, a name such as 'highest'"):
        SentencePool(MEANS, precision="best").apply({}, X)
