"""Changes to module classes: the signature that ``help`` shows, errors for sizes by position, short tracebacks."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from attnpool_ref import contract


class _OfClass:
    """Attribute that a class has and its instances have not: the signature of an instance is that of its call."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner):
        if instance is not None:
            raise AttributeError("__signature__")
        return self.value


def show_signature(kind: type):
    """Sets the signature that ``help`` shows for a module's class, without annotations and Linen's ``parent``."""
    parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
    parameters = [each for each in parameters if each.name not in ("self", "parent")]
    shown = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in parameters])
    setattr(kind, "__signature__", _OfClass(shown))  # noqa: B010  a type has no such attribute to a checker


def refuse_in_own_name(kind: type, *methods: str):
    """Shortens the tracebacks of errors in these methods of a class; a class of another package is not changed."""
    if kind.__module__.partition(".")[0] == "attnpool_flax":
        for name in vars(kind).keys() & set(methods):
            method: Any = contract.with_short_traceback(getattr(kind, name))
            method.__code__ = method.__code__.replace(co_name=method.__qualname__)  # the frame names the class
            setattr(kind, name, method)


def keyword_only(kind: type, omitted: Mapping[str, str]):
    """Makes a constructor whose sizes are keyword-only raise a clear TypeError if they are passed by position.

    The message has the call to write instead. Two sizes that no data can tell apart, such as ``num_heads`` and
    ``num_queries``, would otherwise be swapped silently. ``omitted`` has the message for each argument that other
    constructors take and this one does not.
    """
    init, name = vars(kind)["__init__"], kind.__name__
    parameters = [each for each in inspect.signature(init).parameters.values() if each.name not in ("self", "parent")]
    by_position = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
    required = [each.name for each in parameters if each.default is each.empty and each.name != "rngs"]

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        for key in kwargs.keys() & omitted.keys():
            raise TypeError(f"{name}: {omitted[key]}")
        fits = len(args) <= len(required)
        if by_position < len(args) and (fits or not by_position):
            missing = [name for name in required if name not in kwargs]
            given = dict(zip(missing, args if fits else [kind] * len(missing), strict=False)) | kwargs
            call = ", ".join(f"{name}={_shown(name, value)}" for name, value in given.items())
            notes = "" if fits else "".join(f"; {text}" for key, text in omitted.items() if key != "rngs")
            raise TypeError(f"{name}: sizes are passed by keyword: `{name}({call})`{notes}")
        init(self, *args, **kwargs)

    setattr(kind, "__init__", contract.with_frame_name(__init__, init))  # noqa: B010  a type has no such attribute to a checker


def _shown(name, value):
    """Returns a number, text or None as Python code, and for any other value the argument's name."""
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else name


def name_of(module: object) -> str:
    """Returns the name of a module's class, or of the class of this package of which it is a subclass."""
    return getattr(type(module), "_pooling", type(module).__name__)
