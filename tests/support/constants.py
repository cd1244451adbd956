"""Temporary replacement of constants of a module, so that small arrays are processed in tiles as large ones are."""

import contextlib

import pytest

from attnpool_flax.call.compiled import FUNCTIONS


@contextlib.contextmanager
def replaced(module, **constants):
    """Replaces constants of ``module`` inside of a with block, where the public functions compile anew.

    What they compiled before is available again afterwards.
    """
    with pytest.MonkeyPatch.context() as patch, compiling_anew(*FUNCTIONS.values()):
        for name, value in constants.items():
            patch.setattr(module, name, value)
        yield


@contextlib.contextmanager
def compiling_anew(*frames):
    """Hides what the functions of these frames have compiled inside of a with block.

    It is put aside, because freeing it and compiling it again takes time.
    """
    with pytest.MonkeyPatch.context() as patch:
        for frame in frames:
            patch.setattr(frame, "specializations", {})
            patch.setattr(frame, "programs", {})
        yield
