"""Heads: projections to them, their masks, and their results side by side."""

import numpy as np

from attnpool_ref.primitives.exchange import primitive


@primitive
def project_to_heads(x, kernel, bias):
    """Projects [..., L, d] by a kernel [d, H, c] to [..., H, L, c], and adds a bias [H, c] unless it is None."""
    d, number, c = kernel.shape
    heads = np.swapaxes((x @ kernel.reshape(d, number * c)).reshape(*x.shape[:-1], number, c), -3, -2)
    return heads if bias is None else heads + bias[:, None, :]


@primitive
def mask_of_heads(mask, number):
    """Repeats a mask [..., n, m] for each of several heads: [..., H, n, m]."""
    return np.broadcast_to(mask[..., None, :, :], (*mask.shape[:-2], number, *mask.shape[-2:]))


@primitive
def concatenate_heads(heads):
    """Concatenates the heads [..., H, n, c] of each query: [..., n, Hc]."""
    heads = np.swapaxes(heads, -3, -2)
    return heads.reshape(*heads.shape[:-2], heads.shape[-2] * heads.shape[-1])
