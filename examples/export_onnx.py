"""Poolings of attnpool in ONNX Runtime: exported once, right for three lengths, and unaffected by padding.

The poolings are those of an encoder's last layer: a learned query, several heads, a MAP head, gated attention over a
bag, and the mean of packed tokens. Each is exported by jax2onnx with a batch of any size, run by ONNX Runtime on
sequences of three lengths with NaN in the padding, and compared with the definitions in ``attnpool_ref``.

Run it: ``python examples/export_onnx.py`` (half a minute on two cores); the models are left in the folder ``build/onnx``.
"""

import argparse
import contextlib
import sys
import warnings
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from flax import nnx
from jax2onnx import to_onnx

import attnpool_flax
import attnpool_ref

HEADS = 4


@contextlib.contextmanager
def exportable():
    """Makes the traced programs such as ONNX Runtime knows: for one platform, without a loop, of at least one token.

    jax2onnx 0.17 has no ``initial`` of ``jnp.max``, which only a sequence without tokens needs, and no choice by the
    platform, and no gradients that are given apart. ONNX Runtime 1.32 has no BitCast, by which layer normalizations and means find the power of two in whose
    unit nothing overflows: here the unit is 1.
    """
    largest = jnp.max

    def without_initial(*args, initial=None, **options):
        return largest(*args, **options)

    def for_cpu(*arrays, default, cpu=None, **others):
        return (cpu or default)(*arrays)

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(jax.lax, "platform_dependent", for_cpu))
        stack.enter_context(mock.patch.object(jnp, "max", without_initial))
        stack.enter_context(mock.patch("attnpool_flax.tokens.dense.tiling_of", lambda *sizes: None))
        replaced = {"power_of_two": jnp.ones_like, "with_gradient_of": lambda value, total: value}
        for name, module in list(sys.modules.items()):
            for function in replaced.keys() & vars(module).keys() if name.startswith("attnpool_flax.") else ():
                stack.enter_context(mock.patch.object(module, function, replaced[function]))
        yield


def export(pool, *inputs, path):
    """Writes an ONNX model of ``pool(*inputs)``; a size of an input that is a string may have any value."""

    def traced(*arrays):
        with exportable():  # within jax2onnx, which replaces functions of jax.numpy as well
            return pool(*arrays)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Explicitly requested dtype float64", UserWarning)  # by jax2onnx
        to_onnx(traced, inputs, model_name=path.stem, return_mode="file", output_path=str(path))


def run(path, *arrays):
    """Returns the first result of an ONNX model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; the optimizer warns of constants that it has replaced
    session = onnxruntime.InferenceSession(path, options)
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


def modules(width, rngs):
    """Returns (module, its definition from (x, mask, the parameters by name)) by name."""
    ref = attnpool_ref

    def map_head(x, mask, **learned):
        layers = {key.removeprefix("mlp_"): learned.pop(key) for key in list(learned) if key.startswith("mlp_")}
        layers |= {key: learned.pop(key) for key in list(learned) if key.startswith("norm_")}
        pooled = ref.multi_head_attention_pooling(x, mask, **learned)
        return ref.residual_feed_forward(pooled, activation="gelu_tanh", **layers)

    heads = {"num_heads": HEADS, "in_features": width}
    return {
        "attention": (attnpool_flax.AttentionPool(width, qk_features=16, rngs=rngs), ref.attention_pooling),
        "multi_head": (
            attnpool_flax.MultiHeadAttentionPool(num_queries=2, **heads, rngs=rngs),
            ref.multi_head_attention_pooling,
        ),
        "map_head": (attnpool_flax.MAPHead(hidden_features=2 * width, **heads, rngs=rngs), map_head),
        "gated": (
            attnpool_flax.AdditiveAttentionPool(width, 16, gated=True, rngs=rngs),
            ref.additive_attention_pooling,
        ),
    }


def main(arguments=None):
    """Exports, runs and compares the poolings; returns the largest difference of each by name."""
    options = parser().parse_args(arguments)
    folder, slots, width = Path(options.folder), options.slots, options.width
    folder.mkdir(parents=True, exist_ok=True)
    rng, off = np.random.default_rng(0), {}
    tokens = jax.ShapeDtypeStruct(("batch", slots, width), jnp.float32)
    mask = jax.ShapeDtypeStruct(("batch", slots), jnp.bool_)
    for name, (pool, definition) in modules(width, nnx.Rngs(0)).items():
        path = folder / f"{name}.onnx"
        export(pool, tokens, mask, path=path)
        learned = {key: np.asarray(value) for key, value in nnx.to_pure_dict(nnx.state(pool, nnx.Param)).items()}
        off[name] = max(compared(path, definition, learned, each, options, rng) for each in lengths(options))
    off["packed_mean"] = packed_mean(folder / "packed_mean.onnx", options, rng)
    for name, most in off.items():
        print(f"{folder / f'{name}.onnx'}: largest difference from the definition {most:.1e}")
    return off


def lengths(options):
    """Returns the three lengths of sequences: one token, half of the slots, all of them."""
    return 1, options.slots // 2, options.slots


def compared(path, definition, learned, length, options, rng):
    """Returns the largest difference of a model for sequences of one length, an empty one among them."""
    x = rng.standard_normal((5, options.slots, options.width)).astype(np.float32)
    mask = np.broadcast_to(np.arange(options.slots) < length, x.shape[:2]).copy()
    mask[-1] = False
    x[~mask] = np.nan
    return difference(run(path, x, mask), definition(x, mask, **learned))


def difference(result, right):
    """Returns the largest difference of two arrays of one shape."""
    assert result.shape == right.shape
    return float(np.max(np.abs(result - right)))


def packed_mean(path, options, rng):
    """Exports and runs the mean of packed tokens, as many as the slots of three sequences; returns the difference."""
    number = 3 * options.slots
    shapes = jax.ShapeDtypeStruct((number, options.width), jnp.float32), jax.ShapeDtypeStruct((number,), jnp.int32)
    export(lambda x, ids: attnpool_flax.segment_mean_pooling(x, ids, 3), *shapes, path=path)
    ids = np.repeat(np.arange(4, dtype=np.int32), [*lengths(options), number - sum(lengths(options))])  # 3 is padding
    x = rng.standard_normal((number, options.width)).astype(np.float32)
    x[ids == 3] = np.nan
    right = attnpool_ref.segment_mean_pooling(x, np.where(ids == 3, 0, ids), 3, ids < 3)
    return difference(run(path, x, ids), right)


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default="build/onnx")
    parser.add_argument("--slots", type=int, default=128, help="the length to which sequences are padded")
    parser.add_argument("--width", type=int, default=384)
    return parser


if __name__ == "__main__":
    main()
