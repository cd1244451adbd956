"""Declaration of the options of the judge: default, help, name on the command line and validation, in one place.

An option is a field of :class:`~attnpool_ref.conformance.Scope` (what is judged) or of
:class:`~attnpool_ref.conformance.Candidate` (how the implementation is called), made by :func:`option`. The options
of ``attnpool check`` are made from the fields of both, the signatures of ``judge`` and ``check`` from those of Scope.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

WIDTH = 116
"""Width in columns of the options' help in docstrings, without the indentation of the docstring."""


@dataclass(frozen=True)
class Option:
    """Text of an option, and its form on the command line.

    Attributes:
      says: the option's help, in Python and on the command line.
      flag: the option's name on the command line, such as "--dtype", or "" if the command does not have it.
      kind: the form of the value on the command line: "flag", "text", "count" (an integer of at least
        0), "choice" (one of ``choices``), "choices" (several of them), "names" (several texts), "functions" (names of
        attnpool functions); or several KEY=VALUE, where the values are texts ("pairs"), sizes or names of axes
        ("sizes"), or Python literals, or else texts ("literals"). The default on the command line is that in Python
        for a text, and False, None or () for the other kinds.
      choices: the values that a "choice" and "choices" allow.
      metavar: the placeholder of the value in the command's help.
      example: an example of a pair, for error messages.
    """

    says: str = ""
    flag: str = ""
    kind: str = "flag"
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    example: str = ""

    @property
    def help(self):
        """The option's help on the command line."""
        text = self.says.replace("``", "").replace('"', "")
        repeated = "" if self.kind in ("flag", "text", "count", "choice") else " May be repeated."
        return text[:1].upper() + text[1:] + repeated


def option(default, says, check: Callable[[Any], Any] | None = None, **on_the_command_line) -> Any:
    """Returns a dataclass field that is an option.

    Args:
      default: the option's default; if it is a type, such as ``dict``, each instance gets a new object of this type.
      says: the option's help.
      check: validates the value and returns it in the form that the field holds.
      **on_the_command_line: the fields of :class:`Option` but ``says``.
    """
    metadata = {"option": Option(says, **on_the_command_line), "check": check}
    return (
        field(default_factory=default, metadata=metadata)
        if isinstance(default, type)
        else field(default=default, metadata=metadata)
    )


def options_of(kind):
    """Returns the options of a dataclass, by name."""
    return {each.name: each.metadata["option"] for each in fields(kind) if "option" in each.metadata}


def validate(instance):
    """Replaces each field of a dataclass that has a ``check`` (see :func:`option`) by the value that this returns.

    Errors of a ``check`` are passed on.
    """
    for each in fields(instance):
        if each.metadata.get("check"):
            object.__setattr__(instance, each.name, each.metadata["check"](getattr(instance, each.name)))


def takes_options_of(kind, without=(), **defaults):
    """Returns a decorator that gives a function's ``**options`` the names, defaults and help of a dataclass's options.

    The options appear in the function's signature, and in its docstring in place of the line about ``**options``. The
    function refuses the options named in ``without`` with a TypeError; ``defaults`` replace those of the dataclass.
    """
    options = {each.name: each for each in fields(kind) if "option" in each.metadata and each.name not in without}

    def decorate(function):
        *before, last = inspect.signature(function).parameters.values()
        keywords = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, each.default), annotation=each.type
            )
            for name, each in options.items()
        ]
        function.__signature__ = inspect.Signature([*before, *keywords, last.replace(name="calls")])
        function.__doc__ = _documented(function.__doc__ or "", options)

        @functools.wraps(function)
        def with_defaults(*args, **given):
            __tracebackhide__ = True  # pytest shows no source of the judge
            for name in without:
                if name in given:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **defaults | given)

        return with_defaults

    return decorate


def documented(kind):
    """Adds the help of a dataclass's options to its docstring, in place of the line about ``**options``."""
    kind.__doc__ = _documented(
        kind.__doc__ or "", {each.name: each for each in fields(kind) if "option" in each.metadata}, []
    )
    return kind


CALLS = ["**calls: the calling convention: the fields of :class:`~attnpool_ref.conformance.Candidate`."]


def _documented(text, options, more=CALLS):
    lines = [f"{name}: {each.metadata['option'].says}" for name, each in options.items()] + more
    wrapped = [
        textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        for line in lines
    ]
    before, _, after = inspect.cleandoc(text).partition("  **options: ")
    return f"{before}{chr(10).join(wrapped)}{''.join(after.partition(chr(10))[1:])}"
