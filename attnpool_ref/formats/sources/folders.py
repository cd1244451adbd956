"""Folders as Hugging Face's libraries write them: a configuration and one or several files of tensors."""

import json
import os
from pathlib import PurePosixPath, PureWindowsPath

from attnpool_ref.contract.text import brief
from attnpool_ref.formats.sources import safetensors
from attnpool_ref.formats.sources.files import Opened, Regular, there

LONGEST_JSON = 100_000_000
"""Largest size of a JSON file in bytes."""

PICKLED = (".pt", ".pth", ".pth.tar", ".bin", ".ckpt", ".pkl", ".pickle")
"""Endings of files that may be pickles."""

UNREAD = {
    PICKLED: "may be a pickle, which can run any code and is not read here; "
    "give what `torch.load({!r}, weights_only=True, map_location='cpu')` returns",
    (".msgpack",): "is a msgpack file, which is not read here; "
    "give what `flax.serialization.msgpack_restore(open({!r}, 'rb').read())` returns",
    (".h5", ".hdf5", ".keras"): "is a file of HDF5 or Keras, which is not read here; "
    "give `{{weight.path: weight for weight in model.weights}}`, where `model` is its model in Keras",
}
"""Endings of files that are not read, and what to give instead of a file of this name."""


def remedy(name):
    """Returns the text of ``UNREAD`` for a file, or None if there is none."""
    texts = (text.format(name) for endings, text in UNREAD.items() if name.lower().endswith(endings))
    return next(texts, None)


def hub_name(path):
    """Returns "owner/name" for a path that does not exist and looks like a model's name on a hub; else ""."""
    owned = (
        len(path.parts) == 2 and not path.is_absolute() and not path.parent.is_dir() and not path.suffix[1:].isalpha()
    )
    return "/".join(path.parts) if owned else ""


def download(path):
    """Returns the command that downloads the model of this name into the folder of the same path."""
    return f"`hf download {hub_name(path)} --local-dir {path}`"


def opened(folder):
    """Opens a folder: its tensors and its configuration.

    Messages show the name of the folder, even if it is given as ".".

    Raises:
      ValueError: if there is no file of tensors, if several are equally likely, or if one is corrupt.
    """
    folder = named(folder)
    return Opened(folder.name or str(folder), _tensors_of(folder), configuration(folder))


def named(folder):
    """Returns the folder's path with a name at its end: resolved if it ends with "." or ".."."""
    return folder.resolve() if folder.name in ("", "..") else folder


def configuration(folder):
    """Returns the configuration of a folder, ``config.json``, or None if there is none.

    Raises:
      ValueError: if the file is not a JSON object.
    """
    if not there(folder / "config.json"):
        return None
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ValueError(f"config.json of {folder.name} is no JSON object")
    return config


def sharded(index):
    """Opens the tensors of several files, which an index lists.

    Raises:
      ValueError: if the index is invalid, or names a file that is missing or outside of its folder, or a tensor that
        its file lacks.
    """
    listed = read_json(index)
    where = listed.get("weight_map") if isinstance(listed, dict) else None
    if not isinstance(where, dict) or not all(isinstance(name, str) for name in where.values()):
        raise ValueError(f"{index.name} has no `weight_map` from tensors to files")
    files = {}
    for name in sorted(set(where.values())):
        path = inside(index.parent, name, index.name)
        if path.is_dir():
            raise ValueError(f"{index.name} names {brief(name)}, which is no file")
        files[name] = safetensors.tensors_of(path)
    absent = sorted(name for name, file in where.items() if name not in files[file])
    if absent:
        raise ValueError(f"{index.name}: {where[absent[0]]} does not have {brief(absent[0])}")
    return {name: files[file][name] for name, file in where.items()}


def inside(folder, name, of, absent=False):
    """Returns the path of a file in a folder, which an index or list in the folder names.

    Args:
      folder: the folder.
      name: the file's name, or a path from the folder to it.
      of: the file that names it, for messages.
      absent: whether the file may be missing.

    Raises:
      ValueError: if the name leads out of the folder, or if there is no such file.
    """
    parts = PurePosixPath(name).parts + PureWindowsPath(name).parts
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root or ".." in parts:
        raise ValueError(f"{of} names {brief(name)}, which leads out of its folder")
    if not absent and not os.path.exists(folder / name):
        raise ValueError(f"{of} names {brief(name)}, which is not there")
    return folder / name


def read_json(path):
    """Reads a JSON file.

    Raises:
      ValueError: if the file is not JSON, or is larger than ``LONGEST_JSON``.
    """
    file = Regular(path)
    if file.size > LONGEST_JSON:
        raise ValueError(f"{file.name} has {file.size} bytes; {LONGEST_JSON} are allowed")
    try:
        return json.loads(file.read(0, file.size).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name} is no JSON: {error}") from None


def _tensors_of(folder):
    if there(folder / "model.safetensors"):
        return safetensors.tensors_of(folder / "model.safetensors")
    if there(folder / "model.safetensors.index.json"):
        return sharded(folder / "model.safetensors.index.json")
    files = sorted(folder.glob("*.safetensors"))
    if len(files) == 1:
        return safetensors.tensors_of(files[0])
    if files:
        raise ValueError(
            f"{folder.name} has {len(files)} .safetensors files and no index; name one: {files[0].name} ..."
        )
    unread = sorted(file.name for file in folder.iterdir() if remedy(file.name))
    if unread:
        raise ValueError(
            f"{folder.name} has {unread[0]} and no .safetensors file; it {remedy(unread[0])}, "
            "or write the folder again with its library, which now writes .safetensors"
        )
    for pattern in ("_METADATA", "*/_METADATA", "*/*/_METADATA"):
        for found in sorted(folder.glob(pattern)):
            raise ValueError(
                f"{folder.name} is a checkpoint of Orbax, which is not read here; give "
                f"`orbax.checkpoint.StandardCheckpointer().restore({str(found.parent.absolute())!r})`"
            )
    raise ValueError(f"{folder.name} has no .safetensors file; other files are not read out of a folder")
