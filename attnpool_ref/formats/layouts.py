"""Layouts of tensors in files, and their conversion to the layouts of attnpool and back, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Layout:
    """Layout of a tensor in a file.

    Attributes:
      title: a description of the layout, for the documentation.
      read: converts the file's tensor to a parameter; also takes the sizes of axes by their letters.
      write: converts a parameter to the file's tensor.
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
    """Splits a tensor of the file along its first axis into ``count`` parameters, and reads each in this layout."""
    return [layout.read(part, sizes) for part in np.split(tensor, count)]


def joined(layout, parameters):
    """Writes parameters in this layout, and concatenates them along the first axis into a tensor of the file."""
    return np.concatenate([layout.write(ours) for ours in parameters])
