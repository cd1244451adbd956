"""Opened sources, and tensors in them that are read on demand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stored:
    """A tensor of a source, which is read on demand.

    Attributes:
      shape: the shape of the tensor.
      read: a function that returns the tensor as a NumPy array.
    """

    shape: tuple[int, ...]
    read: Callable[[], Any]


@dataclass(frozen=True)
class Opened:
    """An opened source: a file, a folder or a mapping.

    Attributes:
      title: the name of the source in messages.
      tensors: its tensors by name.
      config: its configuration, or None.
    """

    title: str
    tensors: Mapping[str, Stored]
    config: dict[str, Any] | None = None
