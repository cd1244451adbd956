"""A disk that is full."""

import os

import pytest


@pytest.fixture
def full_disk(monkeypatch):
    """Returns a function that makes the disk full after so many files."""

    def fill(after=0):
        left = [after]

        def sync(descriptor):
            if not left[0]:
                raise OSError(28, "No space left on device")
            left[0] -= 1

        monkeypatch.setattr(os, "fsync", sync)

    return fill
