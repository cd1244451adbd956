"""Layouts of tensors in files, converted to those of attnpool and back, bit for bit: they only move numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Layout:
    """One layout.

    Attributes:
      title: what the file has, as the documentation shows it.
      read: from the file's tensor and the sizes by their letters to ours.
      write: from ours to the file's.
    """

    title: str
    read: Callable[[Any, dict], Any]
    write: Callable[[Any], Any]


SAME = Layout("as here", lambda tensor, sizes: tensor, lambda ours: ours)

TRANSPOSED = Layout("(out, in)", lambda tensor, sizes: tensor.T, lambda ours: ours.T)

LEADING = Layout("a leading axis of 1", lambda tensor, sizes: tensor[0], lambda ours: ours[None])

CONVOLUTION = Layout(
    "a convolution over one token, (out, in, 1)",
    lambda tensor, sizes: tensor[..., 0].T,
    lambda ours: ours.T[..., None],
)

IN_HEADS = Layout(
    "(in, heads together)",
    lambda tensor, sizes: tensor.reshape(len(tensor), sizes["H"], -1),
    lambda ours: ours.reshape(len(ours), -1),
)

OUT_OF_HEADS = Layout(
    "(heads together, out)",
    lambda tensor, sizes: tensor.reshape(sizes["H"], -1, tensor.shape[-1]),
    lambda ours: ours.reshape(-1, ours.shape[-1]),
)

BIAS_OF_HEADS = Layout(
    "heads together",
    lambda tensor, sizes: tensor.reshape(sizes["H"], -1),
    lambda ours: ours.reshape(-1),
)

TORCH_IN_HEADS = Layout(
    "(heads together, in)",
    lambda tensor, sizes: IN_HEADS.read(tensor.T, sizes),
    lambda ours: IN_HEADS.write(ours).T,
)

TORCH_OUT_OF_HEADS = Layout(
    "(out, heads together)",
    lambda tensor, sizes: OUT_OF_HEADS.read(tensor.T, sizes),
    lambda ours: OUT_OF_HEADS.write(ours).T,
)

QUERIES_IN_HEADS = Layout(
    "a leading axis of 1, heads together",
    lambda tensor, sizes: tensor[0].reshape(tensor.shape[1], sizes["H"], -1),
    lambda ours: ours.reshape(1, len(ours), -1),
)


def split(layout, tensor, count, sizes):
    """The parameters that a tensor holds one after another."""
    return [layout.read(part, sizes) for part in np.split(tensor, count)]


def joined(layout, parameters):
    """The tensor that holds them."""
    return np.concatenate([layout.write(ours) for ours in parameters])
