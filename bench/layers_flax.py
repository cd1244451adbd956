"""Flax's attention layers with the parameters of ``attnpool_flax.multi_head_attention``.

Each function takes a dict of arrays by that function's argument names, and a boolean mask [B, m].
"""

import flax.linen as nn
from flax import nnx


def heads_of(arrays):
    """Returns the number of heads and the width of each."""
    return arrays["query_kernel"].shape[1:]


def parameters_of(arrays):
    """Returns [(part, kernel, bias or None)] of the four affine maps."""
    return [(part, arrays[f"{part}_kernel"], arrays.get(f"{part}_bias")) for part in ("query", "key", "value", "out")]


def inputs_of(arrays):
    """Returns queries, keys and values."""
    return tuple(arrays[part] for part in ("query", "key", "value"))


def _maps(arrays):
    """Returns the parameters by Flax's names."""
    return {
        part: {"kernel": kernel} if bias is None else {"kernel": kernel, "bias": bias}
        for part, kernel, bias in parameters_of(arrays)
    }


def linen_layer(arrays, mask):
    """Computes Linen's ``MultiHeadDotProductAttention``."""
    heads, width = heads_of(arrays)
    module = nn.MultiHeadDotProductAttention(
        heads,
        qkv_features=heads * width,
        out_features=arrays["out_kernel"].shape[-1],
        use_bias="out_bias" in arrays,
        deterministic=True,
    )
    variables, mask = {"params": _maps(arrays)}, mask[:, None, None]
    return [module.apply(variables, *inputs_of(arrays), mask=mask)]


def nnx_layer(arrays, mask):
    """Computes NNX's ``MultiHeadAttention``."""
    heads, width = heads_of(arrays)
    module = nnx.MultiHeadAttention(
        heads,
        in_features=arrays["query"].shape[-1],
        in_kv_features=arrays["key"].shape[-1],
        qkv_features=heads * width,
        out_features=arrays["out_kernel"].shape[-1],
        use_bias="out_bias" in arrays,
        deterministic=True,
        decode=False,
        rngs=nnx.Rngs(0),
    )
    definition, parameters, rest = nnx.split(module, nnx.Param, ...)
    nnx.replace_by_pure_dict(parameters, _maps(arrays))
    module = nnx.merge(definition, parameters, rest)
    return [module(*inputs_of(arrays), mask=mask[:, None, None])]
