"""Regular files to read, files that replace others atomically, and opened sources with tensors read on demand."""

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Names of other kinds of files, for messages."""

UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""Errors of folders that cannot be synced: no permission to list them, or a network share."""


@dataclass(frozen=True)
class Stored:
    """A tensor of a source, which is read on demand.

    Attributes:
      shape: the shape of the tensor.
      read: a function that returns the tensor as a NumPy array.
    """

    shape: tuple[int, ...]
    read: Callable[[], Any]


@dataclass(frozen=True)
class Opened:
    """An opened source: a file, a folder or a mapping.

    Attributes:
      title: the name of the source in messages.
      tensors: its tensors by name.
      config: its configuration, or None.
    """

    title: str
    tensors: Mapping[str, Stored]
    config: dict[str, Any] | None = None


class Regular:
    """A regular file that stays open while it is referenced: all reads see one file, even if it is replaced.

    Attributes:
      name: the name of the file in messages.
      size: its size in bytes when it was opened; bytes after that are not read.
      stream: the open binary file, for :mod:`zipfile`.

    Raises:
      ValueError: if the file is of another kind, or a broken link.
      FileNotFoundError: if there is no such file.
    """

    def __init__(self, path):
        self._descriptor = None
        self.name = os.path.basename(path)
        _check(path, self.name, os.stat)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags)
        _check(self._descriptor, self.name, os.fstat)  # again, because a FIFO may have replaced it since
        self.size = os.fstat(self._descriptor).st_size
        self.stream = open(self._descriptor, "rb", closefd=False)  # noqa: SIM115  open as long as this object exists
        self._lock = threading.Lock()

    def read(self, begin, length):
        """Reads bytes from ``begin`` on, fewer at the end of the file."""
        with self._lock:
            self.stream.seek(begin)
            return self.stream.read(max(min(length, self.size - begin), 0)) or b""

    def __del__(self):
        if self._descriptor is not None:
            os.close(self._descriptor)


def there(path):
    """Returns whether the path exists, as a file of any kind or as a link, even a broken one."""
    return os.path.lexists(path)


def _check(file, name, status):
    try:
        kind = stat.S_IFMT(status(file).st_mode)
    except FileNotFoundError:
        if there(file):
            raise ValueError(f"{name} is a link to a file that does not exist") from None
        raise
    if kind != stat.S_IFREG:
        raise ValueError(f"{name} is {KINDS.get(kind, 'a file of another kind')}; only regular files are read")


@contextlib.contextmanager
def replacing(target):
    """Opens a new binary file that replaces the target at the end; a failure leaves the target unchanged.

    A target that is a link remains a link: the file that it points to is replaced, in its own folder. The new file has
    the owner, the group and the permissions of the old one, where the system can set them. If the group cannot be set,
    the new file's group gets only the permissions that others have, too. Without an old file the mode is ``0o666 &
    ~umask``.

    Args:
      target: a path.

    Raises:
      ValueError: if the target exists and is not a regular file.
      FileNotFoundError: if its folder does not exist.
    """
    target, old = _resolved(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r}; none is made")
    successor = target.with_name(f".attnpool-{os.urandom(16).hex()}.partial")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(successor, flags, 0o666 if old is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            if old is not None:
                _take_on(descriptor, old)
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(successor, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(successor)
        raise
    _sync(target.parent)


def _resolved(target):
    """Returns (the file that a path leads to after links, its status or None if it does not exist yet)."""
    target = Path(target)
    try:
        old = os.stat(target)  # the system follows links first, and refuses those of other users in a shared folder
    except (FileNotFoundError, NotADirectoryError):
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise ValueError(f"{target.name} is no regular file, and is not replaced")
    return Path(os.path.realpath(target)), old


def _take_on(descriptor, old):
    """Copies owner, group and mode to a file. If the group cannot be set, the group gets only the rights of others."""
    if not hasattr(os, "fchmod"):
        return
    mode, new = stat.S_IMODE(old.st_mode) & 0o777, os.fstat(descriptor)
    if new.st_uid != old.st_uid:
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, -1)
    if new.st_gid != old.st_gid:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        except PermissionError:
            mode &= ~0o070 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)


def _sync(folder):
    """Syncs a folder, where the system can open folders, so that the replacement survives a power failure."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise
    finally:
        if descriptor is not None:
            os.close(descriptor)
