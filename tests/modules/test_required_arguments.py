"""Every module with its required arguments only: it is made, called, written to a file and read back."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from marks import one_in
from modules.cases import constructor, same_bits

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.linen import SentencePool as LinenSentencePool
from attnpool_flax.modules.sentences import SentencePool
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import formats, table
from attnpool_ref.formats.sentences import Stage

SIZE = 4
"""Of every axis, and so of every size that a constructor needs."""

STAGES = (Stage("pooling", modes=("mean", "max")), Stage("dense", (("kernel", (8, 3)), ("bias", (3,)))))
REQUIRED = {"stages": STAGES}
"""What is required and is no size."""

OF_DEFAULT_VARIANT = {"AttentiveProbe": {"hidden_features": SIZE}}
"""What the default variant requires and another one lacks, so that the signature cannot require it."""

KINDS = {name: (getattr(attnpool_flax, name), getattr(linen, name)) for name in SPECS}
KINDS |= {"SentencePool": (SentencePool, LinenSentencePool)}
HELD = {
    "MultiHeadAttention": {"torch_mha", "flax_mha", "keras_mha", "equinox_mha", "haiku_mha"},
    "MAPHead": {"siglip", "siglip_bv", "timm_latent", "perception_encoder"},
    "AttentionalPooler": {"coca"},
    "AttentionPool2d": {"clip", "timm_pool2d"},
    "AttentiveProbe": {"vjepa", "vjepa2_hf"},
    "AdditiveAttentionPool": {"clam", "abmil"},
    "AttentiveStatisticsPool": {"wespeaker_astp"},
}
"""The formats that hold a module of the defaults, which must not become fewer."""


def required(module):
    """Its required arguments."""
    needed = [p for p in constructor(module).values() if p.default is p.empty and p.name != "rngs"]
    sizes = {parameter.name: REQUIRED.get(parameter.name, SIZE) for parameter in needed}
    return sizes | OF_DEFAULT_VARIANT.get(module.__name__, {})


def data_of(name):
    """What a call requires, two examples whose axes all have one size, in the order of the call."""
    row = table.get(SPECS[name].function if name in SPECS else "mean_pooling")
    call = inspect.signature(KINDS[name][0].__call__).parameters
    needed = [key for key, parameter in call.items() if parameter.default is parameter.empty and key != "self"]
    shapes = [[2 if axis == "..." else SIZE for axis in row.arguments[key].shapes[0]] for key in needed]
    return [jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32) for shape in shapes]


def leaves_of(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def called(module, data):
    """The shape and the dtype of the result; nothing is compiled."""
    return nnx.eval_shape(lambda module: module(*data), module)


@pytest.mark.parametrize("name", one_in(3, KINDS))
def test_a_module_of_required_arguments_only_is_made_and_called(name):
    (ours, theirs), data = KINDS[name], data_of(name)
    result = called(ours(**required(ours), rngs=nnx.Rngs(0)), data)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(result))
    module = theirs(**required(theirs))
    assert jax.eval_shape(lambda: module.init_with_output(jax.random.key(0), *data)[0]) == result


@pytest.mark.parametrize("name", HELD)
def test_a_module_of_the_defaults_is_written_in_every_format_that_holds_it_and_read_back(name, tmp_path):
    ours, theirs = KINDS[name]
    module, held = ours(**required(ours), rngs=nnx.Rngs(0)), set()
    variables = {"params": nnx.to_pure_dict(nnx.state(module, nnx.Param))}
    for row in formats.FORMATS.values():
        if row.module != name:
            continue
        files = [tmp_path / f"{row.name}_{kind}.safetensors" for kind in ("nnx", "linen")]
        try:
            attnpool_flax.save(module, files[0], row.name, prefix=f"head{row.separator}")
        except ValueError:
            continue
        held.add(row.name)
        linen.save(theirs(**required(theirs)), variables, files[1], row.name, prefix=f"head{row.separator}")
        assert files[0].read_bytes() == files[1].read_bytes()
        given = {"num_heads": SIZE, "epsilon": 1e-6, "activation": "gelu_tanh"}
        asked = {"num_heads": row.num_heads, "epsilon": row.epsilon, "activation": row.activation}
        asked = {key: given[key] for key, default in asked.items() if default == "given" or isinstance(default, int)}
        again = attnpool_flax.load(files[0], row.name, **asked)
        same_bits(leaves_of(nnx.state(again)), leaves_of(nnx.state(module)))
        assert called(again, data_of(name)) == called(module, data_of(name))
    assert held == HELD[name]


def test_every_format_that_is_written_is_tried():
    assert {row.module for row in formats.FORMATS.values() if row.forms} == set(HELD)
