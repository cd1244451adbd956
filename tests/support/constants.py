"""Other constants of a module for a while, so that small arrays are walked as large ones are."""

import contextlib

import pytest

from attnpool_flax.call.compiled import FUNCTIONS


@contextlib.contextmanager
def replaced(module, **constants):
    """Other constants of ``module``, under which the public functions compile anew; what they compiled before is kept."""
    with pytest.MonkeyPatch.context() as patch, compiling_anew(*FUNCTIONS.values()):
        for name, value in constants.items():
            patch.setattr(module, name, value)
        yield


@contextlib.contextmanager
def compiling_anew(*frames):
    """Without what the functions of these frames have compiled: it is put aside, since freeing it and making it again costs."""
    with pytest.MonkeyPatch.context() as patch:
        for frame in frames:
            patch.setattr(frame, "specializations", {})
            patch.setattr(frame, "programs", {})
        yield
