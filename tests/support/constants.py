"""Temporary replacement of constants of a module, so that small arrays are processed in tiles as large ones are."""

import contextlib

import pytest

from attnpool_flax.call.compiled import FUNCTIONS


@contextlib.contextmanager
def replaced(module, **constants):
    """Replaces constants of ``module`` inside of a with block; JAX compiles attnpool's functions anew with them.

    After the block the functions use their earlier compiled programs again.
    """
    with pytest.MonkeyPatch.context() as patch, compiling_anew(*FUNCTIONS.values()):
        for name, value in constants.items():
            patch.setattr(module, name, value)
        yield


@contextlib.contextmanager
def compiling_anew(*frames):
    """Gives functions an empty cache of compiled programs inside of a with block.

    Their own caches are restored after the block, because filling them again takes time. ``frames`` are values of
    :data:`attnpool_flax.call.compiled.FUNCTIONS`.
    """
    with pytest.MonkeyPatch.context() as patch:
        for frame in frames:
            patch.setattr(frame, "specializations", {})
        yield
