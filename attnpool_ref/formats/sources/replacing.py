"""Files that are replaced once their successor is whole."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def replacing(target):
    """A file beside the target, which takes its place at the end; what fails leaves the target as it was."""
    target = Path(target)
    successor = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield successor
        successor.replace(target)
    finally:
        successor.unlink(missing_ok=True)
