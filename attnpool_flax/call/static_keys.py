"""Static arguments in the keys of caches: a caller's function is referenced weakly, so that caches do not keep it alive."""

import types
import weakref


def static_key(value):
    """Returns (type, value) of a static argument, for a function or method with a weak reference in place of the value.

    A callable object whose class compares by value, such as a frozen dataclass, is referenced strongly: another object
    that equals it shares its compiled program.
    """
    if callable(value):
        owner = _owner(value)
        if type(owner).__eq__ is object.__eq__ and getattr(type(owner), "__weakrefoffset__", 0):
            return type(value), (weakref.ref if owner is value else weakref.WeakMethod)(value)
    return type(value), value


def value_of(key):
    """Returns the static argument of a :func:`static_key`, which must still exist."""
    return key[1]() if isinstance(key[1], weakref.ref) else key[1]


def forget_with_functions(cache, key):
    """Removes an entry of a cache when a function is deleted to which its key, a tuple, has a :func:`static_key`."""
    for part in key:
        if isinstance(part, tuple) and part and isinstance(part[-1], weakref.ref):
            weakref.finalize(_owner(part[-1]()), cache.pop, key, None).atexit = False


def _owner(function):
    """Returns the object of a method, which lives as long as the method can be called; else the function itself."""
    return function.__self__ if isinstance(function, types.MethodType) else function
