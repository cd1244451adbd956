"""The decorator of primitives, and the context in which some of them are exchanged."""

import contextlib
import contextvars
import functools

_EXCHANGED: contextvars.ContextVar[dict] = contextvars.ContextVar("exchanged", default={})  # noqa: B039 (never changed)

PRIMITIVES: list = []
"""All primitives."""


def primitive(function):
    """Returns a function that calls ``function``, or within :func:`exchanged` what takes its place."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return _EXCHANGED.get().get(call, function)(*args, **kwargs)

    PRIMITIVES.append(call)
    return call


@contextlib.contextmanager
def exchanged(others):
    """Exchanges primitives: ``others`` is a dict from primitives to functions of the same arguments.

    Within these functions, as outside of the ``with`` block, ``primitive.__wrapped__`` is the right one.
    """
    before = _EXCHANGED.set(_EXCHANGED.get() | others)
    try:
        yield
    finally:
        _EXCHANGED.reset(before)


@contextlib.contextmanager
def recorded():
    """Yields a set, to which the primitives are added that the ``with`` block calls."""
    called = set()

    def noted(each):
        def call(*args, **kwargs):
            called.add(each)
            return each.__wrapped__(*args, **kwargs)

        return call

    with exchanged({each: noted(each) for each in PRIMITIVES}):
        yield called
