"""Mappings from names to arrays: a state dict, an archive that is open, a tree of parameters."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from attnpool_ref.formats.sources import safetensors
from attnpool_ref.formats.sources.stored import Stored


def tensors_of(mapping):
    """The leaves of a mapping by name; the names of nested ones are joined by "/".

    What is no array is left out: a file may hold a version or a vocabulary beside a model.

    Raises:
      ValueError: one name twice.
    """
    tensors = {}
    for name, leaf in _leaves(mapping, ""):
        if name in tensors:
            raise ValueError(f"the mapping holds {name!r} twice")
        tensors[name] = leaf
    return tensors


def _leaves(mapping, prefix):
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/")
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            yield name, Stored(tuple(value.shape), str(value.dtype), partial(_array, value))


def _array(value):
    """A NumPy array of what may be one of PyTorch's or JAX's; on the host, without a gradient, with its bits."""
    if type(value).__module__.partition(".")[0] == "torch":
        value = value.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":
            import torch

            return safetensors.bfloat16(value.view(torch.int16).numpy().view(np.uint16))
        return value.numpy()
    return np.asarray(value)
