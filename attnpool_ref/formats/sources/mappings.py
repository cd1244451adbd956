"""Mappings from names to arrays: a state dict, an open archive, a tree of parameters."""

import sys
from collections.abc import Mapping
from functools import partial

import numpy as np

from attnpool_ref.formats.printable import brief
from attnpool_ref.formats.sources import safetensors
from attnpool_ref.formats.sources.stored import Stored


def tensors_of(mapping):
    """Returns the leaves of a mapping by name; the names of nested mappings are joined by "/".

    Values that are not arrays are skipped, because a file may also hold a version or a vocabulary.

    Raises:
      ValueError: if a name occurs twice.
    """
    tensors = {}
    for name, leaf in _leaves(mapping, ""):
        if name in tensors:
            raise ValueError(f"the mapping holds {brief(name)} twice")
        tensors[name] = leaf
    return tensors


def _leaves(mapping, prefix):
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/")
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            yield name, Stored(tuple(value.shape), partial(_array, name, value))


def _array(name, value):
    """Converts an array of NumPy, PyTorch or JAX to NumPy, on the host, bit for bit."""
    if any(kind.__module__.partition(".")[0] == "torch" for kind in type(value).__mro__):
        try:
            return _of_torch(value)
        except (TypeError, RuntimeError) as error:  # sparse, on "meta", or of a dtype that NumPy lacks
            raise ValueError(f"{brief(name)} is a tensor that cannot be read: {error}") from None
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{brief(name)} is a masked array, needs a plain one; give `array.filled(value)`")
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("="), copy=False)  # JAX takes only the native byte order


def _of_torch(tensor):
    tensor = tensor.detach().cpu().resolve_neg().contiguous()
    if str(tensor.dtype) == "torch.bfloat16":
        torch = sys.modules["torch"]  # is loaded, as it made the tensor
        return safetensors.bfloat16(tensor.view(torch.int16).numpy().view(np.uint16))
    return tensor.numpy()
