"""What the argument of ``attnpool check`` names."""

import functools
import importlib
import inspect
import os
import sys
import types

import click

from attnpool_ref import variants
from attnpool_ref.commands import extras


def find_candidate(candidate, row=None):
    """What a candidate names, and the rows to judge (none: all of them).

    Args:
      candidate: "my.module" or "my.module:function".
      row: the row that the function implements; needless where it has the row's name.

    Raises:
      ClickException: nothing of that name can be imported, or it is not clear which row it is.
    """
    module_name, _, attribute = candidate.partition(":")
    if row and not attribute:
        raise click.ClickException(f"--as {row} needs one function: {module_name}:function")
    module = _import(module_name)
    if not attribute:
        return module, ()
    function = module
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise click.ClickException(f"{module_name} has no function {attribute!r}")
    row = row or attribute.rpartition(".")[2]
    if row not in variants.BY_NAME:
        raise click.ClickException(
            f"{row!r} is no row of the table; say which one it is: --as NAME (see attnpool list)"
        )
    return function, (row,)


def forced(namespace, implementation, rows=()):
    """The functions of a namespace that take ``implementation``, each with this one; and the rows that they are.

    Raises:
      ClickException: no function takes it.
    """
    functions = {}
    for name in rows or variants.BY_NAME:
        function = getattr(namespace, name, None)
        if function is not None and "implementation" in inspect.signature(function).parameters:
            functions[name] = functools.partial(function, implementation=implementation)
    if not functions:
        raise click.ClickException("no function of the candidate takes `implementation`")
    states = {name: getattr(namespace, name, None) for name in ("merge_states", "finalize_state")}
    return types.SimpleNamespace(**functions, **states), tuple(functions)


def _import(name):
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # an installed command does not look there by itself
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in extras.EXTRAS["flax"]:
            raise click.ClickException(extras.missing("flax").removeprefix("attnpool: ")) from None
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise click.ClickException(f"there is no module {name!r}, here or among what is installed") from None
        raise click.ClickException(f"{name} needs {error.name!r}, which is not installed") from None
    except Exception as error:  # the candidate's own fault, whatever it is
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise click.ClickException(f"{name} cannot be imported ({reason})") from None
