"""Atomic replacement of files: readers see either the old file or the complete new one, also after a crash.

The new file is written under a random name that no other file has, in the folder of the old one, and then renamed over
the old one.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""Errors of folders that cannot be synced: no permission to list them, or a network share."""


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
