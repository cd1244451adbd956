"""A file that is saved takes the place of another at one moment, and nobody can turn it aside."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from optional import posix

from attnpool_ref.formats import sources
from attnpool_ref.formats.sources import opened
from attnpool_ref.formats.sources.files import replacing

every_ending = pytest.mark.parametrize("ending", [".safetensors", ".npz"])


def head(number, size=1000):
    """Tensors all of whose elements are one number."""
    return {name: np.full(size, number, np.float32) for name in ("probe", "kernel", "bias")}


def number_of(file):
    """The number of a file that is whole."""
    arrays = [tensor.read() for tensor in opened(file).tensors.values()]
    assert len(arrays) == 3
    (number,) = np.unique(np.concatenate(arrays))
    return number


def mode_of(file):
    return stat.S_IMODE(file.stat().st_mode)


KILLED = """
import os, random, signal, sys, time
import numpy as np
from attnpool_ref.formats import sources
from formats.test_saving import head, number_of

target, random = sys.argv[1], random.Random(0)
begin = time.perf_counter()
for _ in range(3):
    sources.save(head(0, 30_000), target)
once = (time.perf_counter() - begin) / 3
found, seen = 0, set()
for kill in range(1, 51):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b".")
        while True:
            for number in (2 * kill, 2 * kill + 1):
                sources.save(head(number, 30_000), target)
    os.read(reader, 1)
    os.close(reader), os.close(writer)
    time.sleep(random.uniform(0, 4 * once))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found, before = number_of(target), found
    assert found in (before, 2 * kill, 2 * kill + 1), (kill, before, found)
    seen.add(found)
print(len(seen))
"""


@posix
@every_ending
def test_a_process_killed_while_it_saves_leaves_the_old_head_or_the_new_one(ending, tmp_path):
    paths = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", KILLED, str(tmp_path / f"head{ending}")]
    result = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert not result.returncode, result.stderr
    assert int(result.stdout) > 1  # heads of several children, or else none was killed between two of its heads
    assert list(tmp_path.glob("*.partial"))  # or else none was killed while it wrote
    assert number_of(tmp_path / f"head{ending}") >= 0


@every_ending
def test_what_a_killed_process_leaves_is_no_file_of_a_folder(ending, tmp_path):
    sources.save(head(1), tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").rename(tmp_path / "head.safetensors")
    (tmp_path / ".attnpool-0123.partial").write_bytes(b"half of a head")
    assert opened(tmp_path).tensors.keys() == head(1).keys()


@every_ending
def test_two_threads_that_save_one_file_never_mix_their_heads(ending, tmp_path):
    target, failures = tmp_path / f"head{ending}", []

    def save(number):
        try:
            for _ in range(20):
                sources.save(head(number), target)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert not target.exists() or number_of(target) in (1, 2)
    assert not failures and number_of(target) in (1, 2)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@every_ending
def test_two_processes_of_one_number_never_share_a_file(ending, tmp_path, monkeypatch):
    """Two containers with one folder have processes of the same number; one saves here while the other does."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    target = tmp_path / f"head{ending}"
    with replacing(target) as file:
        file.write(b"the first half of a head")
        sources.save(head(2), target)
        assert number_of(target) == 2
        file.write(b", and the second")
    assert target.read_bytes() == b"the first half of a head, and the second"


@posix
@every_ending
def test_a_file_that_is_replaced_while_it_is_read_is_read_to_its_end(ending, tmp_path):
    target = tmp_path / f"head{ending}"
    sources.save(head(1), target)
    tensors = opened(target).tensors
    first = tensors["probe"].read()
    sources.save(head(2), target)
    assert {float(first[0]), *(float(tensors[name].read()[-1]) for name in tensors)} == {1.0}


@posix
def test_a_file_that_was_private_stays_private_and_a_new_one_is_as_others(tmp_path):
    old = os.umask(0o027)
    try:
        target = tmp_path / "head.safetensors"
        sources.save(head(1), target)
        assert mode_of(target) == 0o640
        for mode in (0o600, 0o400, 0o664, 0o644):
            target.chmod(mode)
            sources.save(head(2), target)
            assert mode_of(target) == mode
    finally:
        os.umask(old)


@posix
@pytest.mark.parametrize(("mode", "kept"), [(0o660, 0o600), (0o664, 0o644), (0o646, 0o646)])
def test_a_group_that_cannot_be_kept_gives_no_other_group_its_rights(mode, kept, tmp_path, monkeypatch):
    target = tmp_path / "head.npz"
    sources.save(head(1), target)
    target.chmod(mode)
    status = os.stat(target)

    def refused(*arguments):
        raise PermissionError

    def of_another_group(path, *, real=os.stat, **options):
        found = real(path, **options)
        return os.stat_result([*found[:5], status.st_gid + 1, *found[6:]]) if path == target else found

    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr(os, "stat", of_another_group)
    sources.save(head(2), target)
    assert mode_of(target) == kept and number_of(target) == 2


@posix
def test_a_link_stays_one_and_the_file_that_it_points_to_is_replaced_beside_itself(tmp_path):
    cache, here = tmp_path / "cache", tmp_path / "here"
    for folder in (cache, here):
        folder.mkdir()
    link, file = here / "head.safetensors", cache / "blob.safetensors"
    link.symlink_to(file)
    for number in (1, 2):  # a link to nothing, and to a file
        sources.save(head(number), link)
        assert link.is_symlink() and not file.is_symlink()
        assert number_of(file) == number
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["cache", "here", file.name, link.name])
    link.unlink()
    link.symlink_to(tmp_path / "absent" / "head.safetensors")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*absent'; none is made"):
        sources.save(head(3), link)
    link.unlink()
    link.symlink_to(link.name)
    with pytest.raises(OSError, match="symbolic links"):
        sources.save(head(3), link)


@posix
@every_ending
def test_a_link_that_was_planted_before_is_not_followed(ending, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    mine.write_text("do not touch")
    guessed = f".attnpool-{bytes(16).hex()}.partial"
    for name in (f".head{ending}.{os.getpid()}", f"head{ending}.tmp", guessed):
        (tmp_path / name).symlink_to(mine)
    sources.save(head(1), tmp_path / f"head{ending}")
    assert number_of(tmp_path / f"head{ending}") == 1
    monkeypatch.setattr(os, "urandom", bytes)
    with pytest.raises(FileExistsError):
        sources.save(head(2), tmp_path / f"head{ending}")
    assert mine.read_text() == "do not touch"
    assert number_of(tmp_path / f"head{ending}") == 1
    assert (tmp_path / guessed).is_symlink()  # which was not ours to remove


@posix
def test_only_a_regular_file_is_replaced(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    os.mkfifo(tmp_path / "pipe.npz")
    for name in ("folder.npz", "pipe.npz"):
        with pytest.raises(ValueError, match=f"^{name} is no regular file, and is not replaced$"):
            sources.save(head(1), tmp_path / name)
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*file'; none is made"):
        sources.save(head(1), tmp_path / "file" / "head.npz")


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, full_disk):
    target = tmp_path / "head.npz"
    sources.save(head(1), target)
    full_disk()
    with pytest.raises(OSError, match="No space left"):
        sources.save(head(2), target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert number_of(target) == 1


@posix
def test_the_file_is_synced_before_it_takes_the_place_and_the_folder_after(tmp_path, monkeypatch):
    done, sync, replace = [], os.fsync, os.replace

    def fsync(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def replaced(*paths):
        done.append("replace")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replaced)
    sources.save(head(1), tmp_path / "head.safetensors")
    assert done == ["file", "replace", "folder"]
