"""Attention by other libraries, called as :mod:`attnpool_flax` is called, on the same parameters.

Each function takes a dict of arrays by the names of ``multi_head_attention`` or ``dot_product_attention`` and a boolean mask
[B, m] or [B, n, m]; `gradients` of each are by the same names and in the same layouts, for the transfer of the parameters is
part of what is differentiated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import attnpool_flax


@dataclass(frozen=True)
class Library:
    """A way to attend.

    Attributes:
      forward: from a dict of arrays and a mask to a list of results.
      gradients: from these and a list of what stands before the sum of each result, to a dict of arrays.
    """

    forward: Callable
    gradients: Callable


def from_jax(attend):
    """A library whose arrays are JAX's."""

    def loss(arrays, mask, factors):
        return sum(jnp.sum(part * factor) for part, factor in zip(attend(arrays, mask), factors, strict=True))

    compiled, gradient = jax.jit(attend), jax.jit(jax.grad(loss))

    def forward(arrays, mask):
        return [np.asarray(part) for part in compiled(arrays, mask)]

    def gradients(arrays, mask, factors):
        return jax.tree.map(np.asarray, gradient(arrays, mask, factors))

    return Library(forward, gradients)


def from_torch(attend):
    """A library whose arrays are PyTorch's."""

    def forward(arrays, mask):
        tensors = {name: torch.tensor(x) for name, x in arrays.items()}
        with torch.no_grad():
            return [part.numpy() for part in attend(tensors, torch.tensor(mask))]

    def gradients(arrays, mask, factors):
        tensors = {name: torch.tensor(x, requires_grad=True) for name, x in arrays.items()}
        results = attend(tensors, torch.tensor(mask))
        loss = sum((part * torch.tensor(factor)).sum() for part, factor in zip(results, factors, strict=True))
        return dict(zip(tensors, (x.numpy() for x in torch.autograd.grad(loss, list(tensors.values()))), strict=True))

    return Library(forward, gradients)


def heads_of(arrays):
    """The number of heads and the width of each."""
    return arrays["query_kernel"].shape[1:]


def parameters_of(arrays):
    """[(part, kernel, bias or None)] of the four affine maps."""
    return [(part, arrays[f"{part}_kernel"], arrays.get(f"{part}_bias")) for part in ("query", "key", "value", "out")]


@from_jax
def ours(arrays, mask):
    """With weights."""
    return attnpool_flax.multi_head_attention(mask=mask[..., None, :], return_weights=True, **arrays)


@from_jax
def ours_without_weights(arrays, mask):
    """The result alone."""
    return [attnpool_flax.multi_head_attention(mask=mask[..., None, :], **arrays)]


def _torch_module(arrays, mask, need_weights):
    """nn.MultiheadAttention; its parameters are ours, turned and flattened, and True in its mask means padding."""
    heads, width = heads_of(arrays)
    embed, biased = heads * width, "out_bias" in arrays
    widths = [arrays[part].shape[-1] for part in ("query", "key", "value")]
    module = torch.nn.MultiheadAttention(
        embed, heads, bias=biased, kdim=widths[1], vdim=widths[2], batch_first=True, dtype=arrays["query"].dtype
    )
    kernels = {part: kernel.reshape(-1, embed).T for part, kernel, _ in parameters_of(arrays)}
    parameters = {"out_proj.weight": kernels.pop("out")}
    if len(set(widths)) == 1:
        parameters["in_proj_weight"] = torch.cat(list(kernels.values()))
    else:
        parameters |= {f"{part[0]}_proj_weight": kernel for part, kernel in kernels.items()}
    if biased:
        biases = [bias.reshape(-1) for _, _, bias in parameters_of(arrays)]
        parameters |= {"in_proj_bias": torch.cat(biases[:3]), "out_proj.bias": biases[3]}
    assert parameters.keys() == dict(module.named_parameters()).keys()
    result, weights = torch.func.functional_call(
        module,
        parameters,
        tuple(arrays[part] for part in ("query", "key", "value")),
        {"key_padding_mask": ~mask, "need_weights": need_weights, "average_attn_weights": False},
    )
    return [result, weights] if need_weights else [result]


@from_torch
def torch_module(arrays, mask):
    """With weights."""
    return _torch_module(arrays, mask, need_weights=True)


@from_torch
def torch_module_without_weights(arrays, mask):
    """The result alone, which PyTorch computes in another way."""
    return _torch_module(arrays, mask, need_weights=False)


def _maps(arrays):
    """The parameters as Flax names them."""
    return {
        part: {"kernel": kernel} if bias is None else {"kernel": kernel, "bias": bias}
        for part, kernel, bias in parameters_of(arrays)
    }


@from_jax
def linen_module(arrays, mask):
    """Linen's MultiHeadDotProductAttention, with the weights that it sows."""
    heads, width = heads_of(arrays)
    module = nn.MultiHeadDotProductAttention(
        heads,
        qkv_features=heads * width,
        out_features=arrays["out_kernel"].shape[-1],
        use_bias="out_bias" in arrays,
        deterministic=True,
    )
    inputs = (arrays[part] for part in ("query", "key", "value"))
    result, sown = module.apply(
        {"params": _maps(arrays)}, *inputs, mask=mask[:, None, None], sow_weights=True, mutable=["intermediates"]
    )
    return [result, *sown["intermediates"]["attention_weights"]]


@from_jax
def nnx_module(arrays, mask):
    """NNX's MultiHeadAttention."""
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
    return [module(*(arrays[part] for part in ("query", "key", "value")), mask=mask[:, None, None])]


@from_jax
def our_function(arrays, mask):
    """dot_product_attention, with a bias if there is one; heads are batch axes."""
    return [attnpool_flax.dot_product_attention(mask=mask[:, None], **arrays)]


@from_torch
def torch_function(arrays, mask):
    """F.scaled_dot_product_attention: one argument for either the mask or the bias, which then says both."""
    bias = arrays.get("bias")
    seen = mask[:, None]
    given = seen if bias is None else torch.where(seen, bias, -torch.inf)
    inputs = (arrays[part] for part in ("query", "key", "value"))
    return [torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=given)]
