"""Selection of the reader for a source, and of the writer for a target."""

import os
from collections.abc import Mapping, MutableMapping
from functools import partial
from pathlib import Path

from attnpool_ref.contract.type_names import type_of
from attnpool_ref.formats.sources import folders, mappings, npz, safetensors
from attnpool_ref.formats.sources.stored import Opened

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
        return Opened("the mapping", mappings.tensors_of(source))
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
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}; nothing is downloaded")
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
