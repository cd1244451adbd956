"""Scores, normalisers and attention in JAX are the oracle's in float64, with its gradients, and never read padding."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rounding import rounded

import attnpool_flax
import attnpool_ref
from attnpool_ref import contract, variants

SIZES = {"n": 2, "m": 5, "L": 5, "d": 3, "e": 4, "v": 6, "h": 7, "H": 2, "c": 8, "c'": 9, "o": 10}
NORMALIZERS, KERNELS = (
    ("softmax", "sparsemax", "entmax15"),
    ("gaussian", "boxcar", "triangular", "epanechnikov", "constant"),
)
CASES = [
    ("sparsemax", {}),
    ("entmax15", {}),
    ("bilinear_score", {}),
    ("cosine_score", {}),
    ("additive_score", {}),
    ("concat_score", {}),
    ("tanh_sum_score", {}),
    ("location_score", {}),
    ("trilinear_score", {}),
    ("gaussian_score", {}),
    *(("attend", {"normalizer": normalizer}) for normalizer in NORMALIZERS),
    ("additive_attention", {}),
    ("tanh_sum_attention", {}),
    ("location_attention", {}),
    ("multi_head_attention", {}),
    *(("kernel_regression", {"kernel": kernel}) for kernel in KERNELS),
    ("multi_head_attention_pooling", {}),
]
EACH = pytest.mark.parametrize(
    ("name", "options"), CASES, ids=lambda part: part if isinstance(part, str) else "-".join(part.values())
)


def size_of(axis):
    """An axis of the table's language; sums and multiples as in [d+e] and [3d]."""
    if axis in SIZES:
        return SIZES[axis]
    return sum(int(term[0]) * SIZES[term[1:]] if term[0].isdigit() else SIZES[term] for term in axis.split("+"))


def draw(name, batch, shared=()):
    """Arrays by name: scattered masks, one query (of pairs) or one example (of slots) that sees nothing."""
    row, rng = variants.get(name), np.random.default_rng(list(name.encode()))
    own = {"scores": ("n", "m"), "mask": ("n", "m")} if row.family == "normalizers" else {}
    drawn = {}
    for key, argument in contract.arguments_of(row.shapes).items():
        axes = own.get(key) or argument.shapes[0]
        lead = () if argument.kind in ("parameter", "number") or key in shared else batch
        shape = (*lead, *(size_of(axis) for axis in axes if axis != "..."))
        if argument.kind == "mask":
            mask = rng.random(shape) < 0.6
            mask[..., -1] = False
            if batch:
                mask[(0,) * len(batch)] = False
                mask[(-1,) * len(batch)] = np.arange(SIZES["m"]) < 4
            drawn[key] = mask
        elif argument.kind == "number":
            drawn[key] = np.array(1.75)
        else:
            drawn[key] = rng.normal(size=shape)
    return drawn


def call(package, name, options, arrays):
    weights = {"return_weights": True} if variants.get(name).weights else {}
    return jax.tree.leaves(getattr(package, name)(**arrays, **options, **weights))


def assert_twins(name, options, arrays):
    expected = call(attnpool_ref, name, options, arrays)
    actual = [np.asarray(part) for part in call(attnpool_flax, name, options, arrays)]
    chex.assert_trees_all_equal_shapes_and_dtypes(actual, expected)
    largest = max(float(np.max(np.abs(array), initial=1)) for array in arrays.values())
    allowed = rounded([*expected, largest**3], terms=64, dtype="float64")  # three factors at most, before they cancel
    chex.assert_trees_all_close(actual, expected, atol=allowed, rtol=0)


@EACH
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_twins_agree(name, options, batch):
    with jax.enable_x64(True):
        assert_twins(name, options, draw(name, batch))


def shareable():
    """Each data array of each function that has another one to give the batch axes."""
    for name in dict(CASES):
        arguments = contract.arguments_of(variants.get(name).shapes)
        data = [key for key, argument in arguments.items() if argument.kind == "data"]
        yield from ((name, key) for key in data if len(data) > 1)


@pytest.mark.parametrize(("name", "key"), list(shareable()))
def test_twins_agree_where_an_array_is_shared(name, key):
    with jax.enable_x64(True):
        assert_twins(name, {}, draw(name, (2, 3), (key,)))


@EACH
def test_gradients_are_those_of_differences(name, options):
    """Forward and reverse, padding and empty rows included; the boxcar's values alone, its weights are steps."""
    arrays = draw(name, (2,))
    still = {"mask"} | ({"query", "key", "bandwidth"} if options.get("kernel") == "boxcar" else set())
    fixed = {key: array for key, array in arrays.items() if key in still}
    moving = {key: array for key, array in arrays.items() if key not in still}
    with jax.enable_x64(True), jax.debug_nans(True):
        check_grads(lambda moving: call(attnpool_flax, name, options, fixed | moving), (moving,), order=1)


def padded_places(name, arrays):
    """Where nothing may be read, by the arrays' names."""
    if "mask" not in arrays:
        return {}
    mask = arrays["mask"]
    if name == "location_attention":
        return {"value": ~mask, "state": np.broadcast_to(~mask.any(-1, keepdims=True), arrays["state"].shape[:-1])}
    if name == "multi_head_attention_pooling":
        dropped = arrays["dropout_multiplier"]
        return {"x": ~mask, "dropout_multiplier": np.broadcast_to(~mask[..., None, None, :], dropped.shape)}
    places = {"scores": ~mask, "query": ~mask.any(-1), "key": ~mask.any(-2), "value": ~mask.any(-2)}
    if "dropout_multiplier" in arrays:
        pairs = ~mask if arrays["dropout_multiplier"].ndim == mask.ndim else ~mask[..., None, :, :]
        places["dropout_multiplier"] = np.broadcast_to(pairs, arrays["dropout_multiplier"].shape)
    return {key: place for key, place in places.items() if key in arrays}


@pytest.mark.parametrize(
    ("name", "options"),
    [case for case in CASES if "mask?" in variants.get(case[0]).shapes],
    ids=lambda part: part if isinstance(part, str) else "-".join(part.values()),
)
def test_padding_content_changes_no_bit_of_results_and_gradients(name, options):
    arrays = draw(name, (2, 3))
    mask = arrays.pop("mask")
    arrays = {key: array.astype(np.float32) for key, array in arrays.items()}
    places = padded_places(name, arrays | {"mask": mask})

    def loss(arrays):
        parts = call(attnpool_flax, name, options, arrays | {"mask": mask})
        return sum(
            jnp.vdot(part, jnp.cos(jnp.arange(part.size, dtype=part.dtype)).reshape(part.shape)) for part in parts
        ), parts

    def outcome(content):
        poisoned = {key: array.copy() for key, array in arrays.items()}
        for key, place in places.items():
            poisoned[key][place] = content
        own = call(attnpool_ref, name, options, poisoned | {"mask": mask})
        return jax.grad(loss, has_aux=True)(poisoned), own

    clean = outcome(0)
    assert places and all(place.any() for place in places.values())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(clean))
    for content in (np.nan, np.inf, -np.inf, 1e30):
        chex.assert_trees_all_equal(outcome(content), clean, strict=True)
    for key, place in places.items():
        chex.assert_trees_all_equal(np.asarray(clean[0][0][key])[place], np.zeros_like(arrays[key][place]))
