"""A tensor that has not been read yet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stored:
    """A tensor whose shape is known.

    Attributes:
      shape: its shape.
      read: gives it as a NumPy array.
    """

    shape: tuple[int, ...]
    read: Callable[[], Any]


@dataclass(frozen=True)
class Opened:
    """A source.

    Attributes:
      title: what messages call it.
      tensors: by name.
      config: the configuration beside them, None where there is none.
    """

    title: str
    tensors: Mapping[str, Stored]
    config: dict[str, Any] | None = None
