"""Regular files, open for reading. FIFOs, devices and sockets are errors: they may block, or be read only once."""

import os
import stat
import threading

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Names of other kinds of files, for messages."""


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
