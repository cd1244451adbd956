"""Other constants of a module for a while, so that small arrays are walked as large ones are."""

import contextlib

from attnpool_flax.implementation import FRAMES


@contextlib.contextmanager
def replaced(module, **constants):
    """Other constants of ``module``; what the public functions compiled under others is forgotten, and nothing else."""
    before = {name: getattr(module, name) for name in constants}
    try:
        _set(module, constants)
        yield
    finally:
        _set(module, before)


def _set(module, constants):
    for name, value in constants.items():
        setattr(module, name, value)
    for frame in FRAMES.values():
        frame.plans.clear()
        frame.programs.clear()
