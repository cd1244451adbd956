"""Golden files of plain multi-head attention layers, with as many different widths as each layer takes."""

import os

import numpy as np
import torch

from golden_heads import numbers
from golden_heads.golden import Golden, run
from golden_heads.in_torch import Calling, filled

HEADS, HEAD = 2, 5
QUERY, KEY, VALUE, OUT = 6, 7, 8, 9


def torch_mha(checkouts, rng, widths=(8, 8, 8), **options):
    """Runs PyTorch's layer, whose mask is True at padding."""
    query, key, value = widths
    head = torch.nn.MultiheadAttention(query, HEADS, kdim=key, vdim=value, batch_first=True, **options)
    head, tensors = filled(head, rng)
    data = numbers.inputs(rng, query=query, key=key, value=value)
    call = Calling(lambda q, k, v, mask: head(q, k, v, None if mask is None else ~mask)[0])
    return run(call, tensors, data, own=True)


def _inputs(rng, one_width=False):
    return numbers.inputs(rng, query=QUERY, key=KEY, value=KEY if one_width else VALUE)


def _drawn(rng, shapes):
    return {key: numbers.drawn(rng, key, shape, torch=False) for key, shape in shapes.items()}


def _in_jax(call):
    """Returns arrays by name and a mask [B, 1, 1, m], in float64."""
    import jax

    def over(inputs, mask):
        with jax.enable_x64(True):
            wide = {name: jax.numpy.asarray(array) for name, array in inputs.items()}
            return np.asarray(call(wide, None if mask is None else mask[:, None, None]))

    return over


def _plain(tree):
    """Returns the leaves of a tree by their paths."""
    import jax

    pairs = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in pairs}


def flax_linen(checkouts, rng):
    """Runs Linen's layer, whose keys and values may have other widths than its queries."""
    import jax
    from flax import linen

    layer = linen.MultiHeadDotProductAttention(HEADS, qkv_features=HEADS * HEAD, out_features=OUT)
    data = _inputs(rng)
    shapes = jax.eval_shape(layer.init, jax.random.key(0), *data.values())["params"]
    tensors = _drawn(rng, {key: leaf.shape for key, leaf in _plain(shapes).items()})

    def call(inputs, mask):
        tree = jax.tree.unflatten(jax.tree.structure(shapes), [tensors[key].astype(float) for key in _plain(shapes)])
        return layer.apply({"params": tree}, *inputs.values(), mask=mask)

    return run(_in_jax(call), tensors, data, own=True)


def flax_nnx(checkouts, rng):
    """Runs NNX's layer without biases; without dropout it would compute in float32."""
    import jax
    from flax import nnx

    data = _inputs(rng, one_width=True)
    with jax.enable_x64(True):
        layer = nnx.MultiHeadAttention(
            HEADS,
            QUERY,
            HEADS * HEAD,
            OUT,
            in_kv_features=KEY,
            use_bias=False,
            dropout_rate=0.5,
            deterministic=True,
            dtype=np.float64,
            param_dtype=np.float64,
            rngs=nnx.Rngs(0),
            decode=False,
        )
        state = nnx.to_pure_dict(nnx.state(layer, nnx.Param))
        tensors = _drawn(rng, {key: leaf.shape for key, leaf in _plain(state).items()})
        leaves = [jax.numpy.asarray(tensors[key], np.float64) for key in _plain(state)]
        nnx.update(layer, jax.tree.unflatten(jax.tree.structure(state), leaves))
    return run(_in_jax(lambda inputs, mask: layer(*inputs.values(), mask=mask)), tensors, data, own=True)


def keras_mha(checkouts, rng, bias=True):
    """Runs Keras' layer on PyTorch; without returned weights it would compute in float32."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    layer = keras.layers.MultiHeadAttention(HEADS, HEAD, use_bias=bias, output_shape=OUT, dtype="float64")
    data = _inputs(rng)
    layer.build(*(data[name].shape for name in ("query", "value", "key")))
    tensors = _drawn(rng, {variable.path: tuple(variable.shape) for variable in layer.variables})
    for variable in layer.variables:
        variable.assign(tensors[variable.path])
    prefix = f"{layer.name}/"

    def forward(query, key, value, mask):
        seen = None if mask is None else mask[:, None].expand(-1, query.shape[1], -1)
        return layer(query, value, key, attention_mask=seen, return_attention_scores=True)[0]

    tensors = {key.removeprefix(prefix): array for key, array in tensors.items()}
    return run(Calling(forward), tensors, data, own=True)


def equinox_mha(checkouts, rng, bias=True):
    """Runs Equinox' layer, one example at a time."""
    import equinox
    import jax

    biases = dict.fromkeys((f"use_{part}_bias" for part in ("query", "key", "value", "output")), bias)
    layer = equinox.nn.MultiheadAttention(HEADS, QUERY, KEY, VALUE, OUT, HEAD, HEAD, **biases, key=jax.random.key(0))
    arrays, rest = equinox.partition(layer, equinox.is_array)
    named = {key.replace("/", "."): leaf for key, leaf in _plain(arrays).items()}
    tensors = {key: numbers.drawn(rng, key, leaf.shape) for key, leaf in named.items()}

    def call(inputs, mask):
        wide = jax.tree.unflatten(jax.tree.structure(arrays), [tensors[key].astype(float) for key in named])
        full = equinox.combine(jax.tree.map(jax.numpy.asarray, wide), rest)
        queries = inputs["query"].shape[1]
        results = [
            full(*(array[i] for array in inputs.values()), mask=None if mask is None else mask[i, 0].repeat(queries, 0))
            for i in range(len(inputs["query"]))
        ]
        return np.stack(results)

    return run(_in_jax(call), tensors, _inputs(rng), own=True)


def haiku_mha(checkouts, rng, bias=True):
    """Runs Haiku's layer."""
    import haiku
    import jax

    def attention(query, key, value, mask=None):
        layer = haiku.MultiHeadAttention(
            HEADS, HEAD, model_size=OUT, with_bias=bias, w_init=haiku.initializers.Constant(0)
        )
        return layer(query, key, value, mask)

    layer = haiku.without_apply_rng(haiku.transform(attention))
    data = _inputs(rng)
    shapes = jax.eval_shape(layer.init, jax.random.key(0), *data.values())
    tensors = _drawn(rng, {f"{m}/{k}": leaf.shape for m, leaves in shapes.items() for k, leaf in leaves.items()})

    def call(inputs, mask):
        wide = {m: {k: tensors[f"{m}/{k}"].astype(float) for k in leaves} for m, leaves in shapes.items()}
        return layer.apply(wide, *inputs.values(), mask)

    prefix = "multi_head_attention/"
    made = run(_in_jax(call), tensors, data, own=True)
    made.tensors = {key.removeprefix(prefix): array for key, array in tensors.items()}
    return made


def _row(name, library, make, prefix="", distribution=None, num_heads=HEADS, **options):
    given = {} if num_heads is None else {"num_heads": num_heads}
    given |= {key: options[key] for key in ("add_zero_attn",) if key in options}
    return Golden(name, distribution or library, make, given, prefix, options=options, library=library)


GOLDENS = (
    _row("torch_mha", "torch", torch_mha, "self_attn."),
    _row("torch_mha-widths", "torch", torch_mha, widths=(8, 6, 7)),
    _row("torch_mha-no_bias", "torch", torch_mha, bias=False),
    _row("torch_mha-zero_attn", "torch", torch_mha, add_zero_attn=True),
    _row("flax_mha-linen", "flax", flax_linen, "params/attention/", num_heads=None),
    _row("flax_mha-nnx_no_bias", "flax", flax_nnx, num_heads=None),
    _row("keras_mha", "keras", keras_mha, "multi_head_attention/", num_heads=None),
    _row("keras_mha-no_bias", "keras", keras_mha, num_heads=None, bias=False),
    _row("equinox_mha", "equinox", equinox_mha, "attention."),
    _row("equinox_mha-no_bias", "equinox", equinox_mha, bias=False),
    _row("haiku_mha", "haiku", haiku_mha, "multi_head_attention/", "dm-haiku"),
    _row("haiku_mha-no_bias", "haiku", haiku_mha, distribution="dm-haiku", bias=False),
)
