"""Data for a new child process: an implementation as a pickle, and the configuration of the parent process."""

import enum
import importlib
import io
import pickle
import sys
import types
from dataclasses import dataclass, field
from typing import Any

from attnpool_ref.conformance.candidates import naming


@dataclass(frozen=True)
class Setup:
    """Data that a new child process gets before everything else.

    Attributes:
      source: a pickled :class:`Candidate`, or a pickled function that imports one and returns it with the names of the
        functions to judge (empty for all of them).
      settings: JAX's configuration, which is set before the import.
      folders: :data:`~attnpool_ref.conformance.candidates.naming.FOLDERS` of the parent process.
      environment: environment variables to set.
      first: whether no other process has imported the implementation; the import's output then goes to standard error.
    """

    source: bytes
    settings: dict[str, Any] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    first: bool = False


def setup_of(candidate):
    """Returns the :class:`Setup` of a Candidate, or None if it cannot be pickled."""
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump(candidate)
    except Exception:  # pickling runs the implementation's code, which may raise anything
        return None
    return Setup(stream.getvalue(), jax_settings(), dict(naming.FOLDERS))


class _Pickler(pickle.Pickler):
    """Pickler of modules by name; refuses objects of ``__main__``, which is another module in a child process."""

    def reducer_override(self, obj):
        if isinstance(obj, types.ModuleType) and obj.__name__ != "__main__":
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, types.ModuleType) or getattr(obj, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{obj!r} is of __main__")
        return NotImplemented


def jax_settings():
    """Returns the entries of JAX's configuration that are plain values; none if JAX is not imported."""
    if "jax" not in sys.modules:
        return {}
    values = {k: v.value if isinstance(v, enum.Enum) else v for k, v in sys.modules["jax"].config.values.items()}
    return {k: v for k, v in values.items() if isinstance(v, naming.PLAIN)}


def configure_jax(settings):
    """Sets the configuration that JAX has in the parent process."""
    if settings:
        import jax

        for key, value in jax_settings().items():
            if settings.get(key, value) != value:
                jax.config.update(key, settings[key])
