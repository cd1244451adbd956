"""Attention by other libraries, called as :mod:`attnpool_flax` is called, on the same parameters; ``bench`` times the same layers.

Each function takes a dict of arrays by the names of ``multi_head_attention`` or ``dot_product_attention`` and a boolean mask
[B, m] or [B, n, m]; `gradients` of each are by the same names and in the same layouts, for the transfer of the parameters is
part of what is differentiated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import torch

import attnpool_flax
from bench import layers_flax, layers_torch


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


@from_jax
def ours(arrays, mask):
    """With weights."""
    return attnpool_flax.multi_head_attention(mask=mask[..., None, :], return_weights=True, **arrays)


@from_jax
def ours_without_weights(arrays, mask):
    """The result alone."""
    return [attnpool_flax.multi_head_attention(mask=mask[..., None, :], **arrays)]


@from_torch
def torch_module(arrays, mask):
    """With weights."""
    return layers_torch.torch_layer(arrays, mask, need_weights=True)


@from_jax
def linen_module(arrays, mask):
    """Linen's MultiHeadDotProductAttention, with the weights that it sows."""
    return layers_flax.linen_layer(arrays, mask, need_weights=True)


torch_module_without_weights = from_torch(layers_torch.torch_layer)
nnx_module = from_jax(layers_flax.nnx_layer)
torch_function = from_torch(layers_torch.torch_function)


@from_jax
def our_function(arrays, mask):
    """dot_product_attention, with a bias if there is one; heads are batch axes."""
    return [attnpool_flax.dot_product_attention(mask=mask[:, None], **arrays)]
