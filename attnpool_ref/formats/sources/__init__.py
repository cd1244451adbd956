"""Sources and targets of tensors: files, folders, mappings. Reads are lazy; nothing is unpickled or downloaded."""

import os
import sys
from collections.abc import Mapping, MutableMapping
from functools import partial
from pathlib import Path

import numpy as np

from attnpool_ref.contract.text import brief, type_of
from attnpool_ref.formats.sources import folders, npz, safetensors
from attnpool_ref.formats.sources.files import Opened, Stored

__all__ = ["Opened", "Stored", "opened", "save"]

REPAIRS = {
    "state_dict": "what its `state_dict()` returns",  # of PyTorch
    "init_with_output": "its variables, as `init` returns them",  # of Linen
}
"""For modules, which are not sources: the mapping to pass instead, by the name of a method of the module."""


def opened(source):
    """Opens a source without reading its tensors.

    Args:
      source: a path, or a mapping from names to arrays, nested or not.

    Raises:
      ValueError: if the contents of a file do not fit its ending, or if the file is of an unsupported kind.
      FileNotFoundError: if there is no such file or folder.
      TypeError: if the source is neither a path nor a mapping.
    """
    if isinstance(source, Mapping):
        return Opened("the mapping", _tensors_of(source))
    if not isinstance(source, (str, os.PathLike)):
        repairs = [repair for method, repair in REPAIRS.items() if hasattr(source, method)]
        raise TypeError(
            f"a head is read from a path or a mapping, not from {type_of(source)}; "
            f"give {repairs[0] if repairs else 'a mapping from names to arrays'}"
        )
    path = Path(source)
    if path.is_dir():
        return folders.opened(path)
    if not path.exists():
        raise FileNotFoundError(
            f"there is no file or folder {str(path)!r}; nothing is downloaded"
            + (f". Get it by {folders.download(path)}" if folders.hub_name(path) else "")
        )
    if path.name.endswith(".safetensors.index.json"):
        return Opened(path.name, folders.sharded(path))
    if path.suffix == ".safetensors":
        return Opened(path.name, safetensors.tensors_of(path))
    if path.suffix == ".npz":
        return Opened(path.name, npz.tensors_of(path))
    if text := folders.remedy(path.name):
        raise ValueError(f"{path.name} {text}")
    raise ValueError(f"{path.name}: needs a .safetensors or .npz file, a folder or a mapping")


def save(tensors, target, framework=""):
    """Writes arrays into a file, which replaces an existing one only once it is complete, or puts them into a dict.

    Args:
      tensors: arrays by name.
      target: a path, whose ending selects the file format; or a dict, which is changed by ``update``.
      framework: the entry ``format`` of a ``.safetensors`` file; "" for none.

    Raises:
      ValueError: if the path has another ending than .safetensors and .npz, if the file format lacks the dtype of an
        array (such as bfloat16 in .npz), or if the path exists and is not a regular file.
      FileNotFoundError: if the folder of the path does not exist.
      TypeError: if the target is neither a path nor a dict.
    """
    if isinstance(target, MutableMapping):
        target.update(tensors)
        return
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"a head is written to a path or into a dict, not into {type_of(target)}")
    writers = {".safetensors": partial(safetensors.save, framework=framework), ".npz": npz.save}
    writer = writers.get(Path(target).suffix)
    if writer is None:
        raise ValueError(f"{Path(target).name}: needs an ending that is written here: {', '.join(writers)}")
    writer(tensors, target)


def _tensors_of(mapping):
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
