"""Modules of the golden files: the oracle's numbers, no bit of padding, and every tensor given back."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from formats.comparing import same_arrays, same_heads, within
from formats.goldens import GOLDENS, allowed, computed

import attnpool_flax
from attnpool_flax import linen
from attnpool_ref import formats

pytestmark = pytest.mark.thorough


@partial(nnx.jit, static_argnums=0)
def outputs(twin, module, variables, inputs, mask):
    """The module's, and its Linen twin's."""
    return module(*inputs, mask), twin.apply(variables, *inputs, mask)


@nnx.jit
def gradients(module, inputs, mask):
    """By the parameters, and by the inputs; a program of its own, for it would change the last bits of the outputs."""
    definition, parameters, rest = nnx.split(module, nnx.Param, ...)

    def loss(parameters, inputs):
        return jnp.sum(nnx.merge(definition, parameters, rest)(*inputs, mask) ** 2)

    of_parameters, of_inputs = jax.grad(loss, argnums=(0, 1))(parameters, inputs)
    return nnx.to_pure_dict(of_parameters), of_inputs


class Loaded:
    """A golden file as modules of both kinds; masks are [B, L]."""

    def __init__(self, golden):
        self.golden = golden
        arguments = (golden.tensors, golden.about["format"])
        self.module = attnpool_flax.load(*arguments, **golden.about["given"])
        self.twin, self.variables = linen.load(*arguments, **golden.about["given"])

    def outputs(self, inputs, mask):
        variables = {name: tree for name, tree in self.variables.items() if name != "extras"}
        return jax.tree.map(np.asarray, outputs(self.twin, self.module, variables, *_in_order(inputs, mask)))

    def gradients(self, inputs, mask):
        return jax.tree.map(np.asarray, gradients(self.module, *_in_order(inputs, mask)))


def _in_order(inputs, mask):
    return [*inputs.values()], mask[:, None] if "key" in inputs else mask


def arranged(inputs, order, change=None):
    """Tokens in another order, or with another number where ``change`` is True; queries as they are."""
    return {
        name: array if name == "query" else np.take_along_axis(_changed(array, change), order[..., None], 1)
        for name, array in inputs.items()
    }


def _changed(array, change):
    return array if change is None else np.where(change[..., None], np.float32(np.nan), array)


def same_bits(got, expected):
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b, strict=True), got, expected)


def everything(golden):
    """The mask of which all is real."""
    return np.ones(next(array for name, array in golden.inputs.items() if name != "query").shape[:2], bool)


def poisoning(golden):
    """(mask, inputs with NaN in its padding): a whole example, one with gaps and an empty one."""
    whole = everything(golden)[0]
    mask = np.stack([whole, whole & (np.arange(len(whole)) % 2 == 0), ~whole])
    as_it_is = np.broadcast_to(np.arange(len(whole)), mask.shape)
    return mask, arranged(golden.inputs, as_it_is, ~mask)


@pytest.mark.parametrize("golden", GOLDENS, ids=str)
def test_a_loaded_module_is_right_masked_and_saved_as_it_was(golden, tmp_path):
    loaded, head = Loaded(golden), golden.head()
    wide = head._replace(
        parameters={key: None if array is None else np.float64(array) for key, array in head.parameters.items()}
    )
    whole = everything(golden)
    for mask in [whole] if golden.mask is None else [whole, golden.mask]:
        _agrees(loaded.outputs(golden.inputs, mask), golden, wide, mask)

    mask, poisoned = poisoning(golden)
    clean = loaded.outputs(golden.inputs, mask)
    _agrees(clean, golden, wide, mask)
    same_bits(loaded.outputs(poisoned, mask), clean)
    if head.module != "AttentionPool2d":  # its tokens have their places
        errors = allowed(golden, wide, mask, "float32")
        for order in (np.argsort(~mask, kind="stable"), np.argsort(mask, kind="stable")):
            moved = loaded.outputs(arranged(golden.inputs, order), np.take_along_axis(mask, order, 1))
            within(moved[0], clean[0], errors)

    again = nnx.merge(*nnx.split(loaded.module))  # it has been through nnx.jit as well
    _saved(partial(attnpool_flax.save, again), golden, tmp_path / "nnx")
    _saved(partial(linen.save, loaded.twin, loaded.variables), golden, tmp_path / "linen")


@pytest.mark.parametrize("golden", GOLDENS, ids=str)
def test_no_gradient_of_a_loaded_module_sees_what_stands_in_padding(golden):
    mask, poisoned = poisoning(golden)
    loaded = Loaded(golden)
    slopes = loaded.gradients(golden.inputs, mask)
    same_bits(loaded.gradients(poisoned, mask), slopes)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    for name, slope in zip(golden.inputs, slopes[1], strict=True):
        if name != "query":
            np.testing.assert_array_equal(slope[~mask], 0)


def _agrees(results, golden, head, mask):
    output, twin = results
    same_bits(output, twin)
    exact = computed(head, golden.wide(), mask)
    assert output.dtype == np.float32
    within(output, exact, allowed(golden, head, mask, "float32"))


def _saved(save, golden, path):
    """Into a dict and into files of both kinds."""
    name, prefix, given = golden.about["format"], golden.about["prefix"], golden.about["given"]
    tensors = {}
    save(tensors, name, prefix=prefix)
    same_arrays(tensors, golden.owned)
    for ending in (".safetensors", ".npz"):
        save(path.with_suffix(ending), name, prefix=prefix)
        same_heads(formats.read(path.with_suffix(ending), name, **given), golden.head())
