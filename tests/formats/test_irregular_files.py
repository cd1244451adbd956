"""What is no regular file is refused by name, before anything of it is read: a FIFO would be waited for without end."""

import json
import os
import signal
import socket

import numpy as np
import pytest
from formats import heads

from attnpool_ref import formats
from attnpool_ref.formats.sources import opened, safetensors

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs, devices and sockets of POSIX")


@pytest.fixture(autouse=True)
def impatient():
    """Ends a test that waits."""

    def late(*_):
        raise AssertionError("it is being waited for")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def linked(path, target):
    path.symlink_to(target)


def listening(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


KINDS = {
    "a FIFO": os.mkfifo,
    "a socket": listening,
    "a device": lambda path: linked(path, "/dev/zero"),
    "a link to a file that does not exist": lambda path: linked(path, "absent"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def refused(name, kind, source, format="siglip"):
    with pytest.raises(ValueError, match=f"^{name} is {kind}(; only regular files are read)?$"):
        formats.read(source, format)


@every_kind
@pytest.mark.parametrize("name", ["x.safetensors", "x.npz", "model.safetensors.index.json"])
def test_it_is_refused_as_a_file_of_tensors(name, kind, tmp_path):
    KINDS[kind](tmp_path / name)
    if "link" in kind:
        with pytest.raises(FileNotFoundError, match="there is no file or folder"):
            formats.read(tmp_path / name, "siglip")
    else:
        refused(name, kind, tmp_path / name)


@every_kind
@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", "x.safetensors", "config.json"])
def test_it_is_refused_within_a_folder(name, kind, tmp_path):
    if name == "config.json":
        safetensors.save(heads.tensors_of("siglip"), tmp_path / "model.safetensors")
    KINDS[kind](tmp_path / name)
    refused(name, kind, tmp_path)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "model.safetensors").mkdir()
    refused("model.safetensors", "a folder", tmp_path)


@every_kind
def test_it_is_refused_as_a_part_of_a_sharded_file(kind, tmp_path):
    index = {"weight_map": {"probe": "part.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    KINDS[kind](tmp_path / "part.safetensors")
    if "link" in kind:
        with pytest.raises(ValueError, match=r"names 'part.safetensors', which is not there"):
            formats.read(tmp_path, "siglip")
    else:
        refused("part.safetensors", kind, tmp_path)


@every_kind
@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors"])
def test_it_is_refused_within_a_model_of_sentence_transformers(name, kind, tmp_path):
    pooling = {"embedding_dimension": 4, "pooling_mode": "mean"}
    for folder, config in (("1_Pooling", pooling), ("2_Dense", {})):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps(config))
    parts = [
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        {"type": "sentence_transformers.models.Dense", "path": "2_Dense"},
    ]
    (tmp_path / "modules.json").write_text(json.dumps(parts))
    (tmp_path / name).unlink(missing_ok=True)
    KINDS[kind](tmp_path / name)
    refused(os.path.basename(name), kind, tmp_path, "sentence_transformers")


def test_links_are_followed_as_caches_have_them(tmp_path):
    (tmp_path / "blobs").mkdir()
    blob, folder = tmp_path / "blobs" / "0123abcd", tmp_path / "snapshot"
    safetensors.save(heads.tensors_of("siglip"), blob)
    folder.mkdir()
    (folder / "model.safetensors").symlink_to("../blobs/0123abcd")
    for source in (folder, folder / "model.safetensors"):
        assert formats.read(source, "siglip", num_heads=2).module == "MAPHead"


def test_a_fifo_that_takes_the_place_of_a_file_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    file, real = tmp_path / "x.npz", os.open
    np.savez(file, a=np.ones(2))

    def swapped(path, flags, *mode):
        if path == file:
            file.unlink()
            os.mkfifo(file)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(ValueError, match=r"^x.npz is a FIFO; only regular files are read$"):
        opened(file)
