"""A tensor that has not been read yet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stored:
    """A tensor whose shape is known.

    Attributes:
      shape: its shape.
      read: returns it as a NumPy array.
    """

    shape: tuple[int, ...]
    read: Callable[[], Any]


@dataclass(frozen=True)
class Opened:
    """A source.

    Attributes:
      title: its name in messages.
      tensors: by name.
      config: their configuration, or None.
    """

    title: str
    tensors: Mapping[str, Stored]
    config: dict[str, Any] | None = None
