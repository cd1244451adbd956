"""Heads of other libraries, each built there with random weights, loaded here: the same numbers, masks and gradients.

The rows are those of ``tools/studies/golden_heads`` that need nothing but a library, with other weights than the golden files.
"""

from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from formats.comparing import within
from formats.goldens import allowed, as_the_original, opened
from golden_heads import GOLDENS

import attnpool_flax
from attnpool_ref.conformance.checks import tolerances

SEED = 1
OF_THE_EXTRA = ("transformers", "torch", "flax", "keras", "equinox", "haiku")
ROWS = [row for row in GOLDENS if row.library and find_spec(row.library)]


def test_every_library_of_the_extra_has_its_rows():
    assert set(OF_THE_EXTRA) <= {row.library for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_loaded_head_is_its_own_library_s(row):
    made = row.made(None, np.random.default_rng(SEED))
    golden = opened(row.name, _rewound(row.stored(None, made)))
    head = golden.head(np.float64)
    for mask, output in golden.pairs():
        within(as_the_original(golden, head, mask), output, allowed(golden, head, mask))

    inputs = list(golden.wide().values())
    mask = golden.mask if made.masked_by == "its own mask" else None
    output = golden.output if mask is None else golden.masked_output
    factors = np.random.default_rng(SEED).normal(size=output.shape)
    with jax.enable_x64(True):
        ours, errors = _with_errors(golden, inputs, mask, factors)
    within(ours[0], output, errors[0])
    if hasattr(made.call, "gradients"):
        for got, expected, error in zip(
            ours[1:], made.call.gradients(golden.wide(), mask, factors), errors[1:], strict=True
        ):
            assert np.max(np.abs(expected)) > 2 * error
            within(got, expected, error)


def _torch(torch):
    return torch.nn.MultiheadAttention(8, 2).state_dict()


def _nnx(flax):
    return nnx.MultiHeadAttention(2, 4, rngs=nnx.Rngs(0), decode=False)


def _linen(flax):
    from flax import linen

    return linen.MultiHeadDotProductAttention(2).init(jax.random.key(0), jnp.ones((3, 4)))


def _keras(keras):
    layer = keras.layers.MultiHeadAttention(2, 3)
    layer.build((1, 3, 4), (1, 3, 4))
    return {variable.path: variable.value.detach() for variable in layer.variables}


def _equinox(equinox):
    return equinox.nn.MultiheadAttention(2, 4, use_query_bias=True, key=jax.random.key(0))


def _haiku(haiku):
    layer = haiku.transform(lambda x: haiku.MultiHeadAttention(2, 3, w_init=haiku.initializers.RandomNormal())(x, x, x))
    return layer.init(jax.random.key(0), jnp.ones((3, 4)))


SOURCES = [
    ("torch", _torch),
    ("flax", _nnx),
    ("flax", _linen),
    ("keras", _keras),
    ("equinox", _equinox),
    ("haiku", _haiku),
]


@pytest.mark.parametrize(("library", "make"), SOURCES, ids=lambda value: getattr(value, "__name__", None))
def test_what_a_library_has_is_loaded_as_it_is_and_every_tensor_saved(library, make):
    source = make(pytest.importorskip(library))
    heads = {} if library in ("flax", "keras") else {"num_heads": 2}
    tensors = {}
    attnpool_flax.save(attnpool_flax.load(source, f"{library}_mha", **heads), tensors, f"{library}_mha")
    leaves = jax.tree.leaves(nnx.state(source, nnx.Param) if isinstance(source, nnx.Module) else source)
    arrays = [np.asarray(leaf) for leaf in leaves if hasattr(leaf, "shape")]
    assert sorted(array.tobytes() for array in tensors.values()) == sorted(array.tobytes() for array in arrays)


def _rewound(file):
    file.seek(0)
    return file


def _with_errors(golden, inputs, mask, factors):
    """The module's output and its gradients by the inputs, and how far a rounding of each may be from another's."""
    wide = {key: array.astype(np.float64) for key, array in golden.tensors.items()}
    module = attnpool_flax.load(wide, golden.about["format"], **golden.about["given"])
    definition, state = nnx.split(module)
    leaves, structure = jax.tree.flatten(state)
    seen = None if mask is None else mask[:, None] if "key" in golden.inputs else mask

    @jax.jit
    def with_gradients(leaves, inputs):
        def loss(inputs):
            output = nnx.merge(definition, jax.tree.unflatten(structure, leaves))(*inputs, seen)
            return jnp.sum(output * factors), output

        gradients, output = jax.grad(loss, has_aux=True)(inputs)
        return output, *gradients

    def function(arrays):
        arrays = list(arrays.values())
        return [np.asarray(part) for part in with_gradients(arrays[: len(leaves)], arrays[len(leaves) :])]

    arrays = {str(place): np.asarray(array) for place, array in enumerate([*leaves, *inputs])}
    results = function(arrays)
    terms = 8 + sum(sum(array.shape) for array in arrays.values())
    sensitive = tolerances.sensitivity(function, arrays, golden.rng())
    errors = [
        2 * tolerances.allowed_error(float(np.max(np.abs(part))), float(np.max(moved)), terms, "float64")
        for part, moved in zip(results, sensitive, strict=True)
    ]
    return results, errors
