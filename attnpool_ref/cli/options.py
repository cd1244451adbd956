"""Options of ``attnpool check``, made from the declarations in ``Scope`` and ``Candidate``."""

import ast
import shlex
from dataclasses import fields
from typing import Any

import click
from click.shell_completion import CompletionItem

from attnpool_ref import table
from attnpool_ref.cli.exits import Refused


class FunctionName(click.ParamType):
    """Type of an option whose value is the name of an attnpool function; the error for others has the nearest names."""

    name = "name"

    def convert(self, value, param, ctx):
        """Returns the name unchanged.

        Raises:
          Refused: there is no such function.
        """
        try:
            return table.get(value).name
        except ValueError as error:
            raise Refused(str(error)) from None

    def shell_complete(self, ctx, param, incomplete):
        """Returns the names of functions that begin with ``incomplete``."""
        return [CompletionItem(name) for name in table.BY_NAME if name.startswith(incomplete)]


class JudgingCommand(click.Command):
    """A command that also takes the options of the judge, which are imported when they are first needed."""

    _own: list[click.Parameter]
    _all: list[click.Parameter] | None = None

    @property
    def params(self):
        """All parameters: first the arguments, then the options of the judge, then the command's own options."""
        if self._all is None:
            arguments = [each for each in self._own if isinstance(each, click.Argument)]
            self._all = [*arguments, *_options_of_the_judge(), *(each for each in self._own if each not in arguments)]
        return self._all

    @params.setter
    def params(self, own):
        self._own, self._all = own, None


def _options_of_the_judge():
    from attnpool_ref.conformance import Candidate, Scope
    from attnpool_ref.conformance.scope import REMOVED

    options = [_option(*each) for kind in (Scope, Candidate) for each in _declared(kind)]
    return [*options, *(_removed(name, why) for name, why in REMOVED.items())]


def _declared(kind):
    """Returns (field, its ``Option``) for each option of a dataclass that the command has."""
    from attnpool_ref.conformance.option import options_of

    named = {each.name: each for each in fields(kind)}
    return [(named[name], declared) for name, declared in options_of(kind).items() if declared.flag]


def _option(each, declared):
    plain: dict[str, dict[str, Any]] = {
        "flag": {"is_flag": True},
        "text": {"default": each.default},
        "number": {"default": each.default, "type": float, "show_default": True},
        "count": {"default": each.default, "type": click.IntRange(0)},
        "choice": {"type": click.Choice(declared.choices)},
        "choices": {"type": click.Choice(declared.choices), "multiple": True},
        "functions": {"type": FunctionName(), "multiple": True},
        "names": {"multiple": True},
    }
    settings = plain.get(declared.kind, {"multiple": True})
    if declared.command_default is not ...:
        settings["default"] = declared.command_default
    return click.Option([declared.flag, each.name], metavar=declared.metavar, help=declared.help, **settings)


def _removed(name, why):
    """Returns a hidden option, with or without a value, that is a usage error with the reason for its removal."""

    def refuse(context, parameter, value):
        if value is not None:
            raise click.UsageError(f"the judge no longer has --{name}: {why}")

    return click.Option([f"--{name}"], is_flag=False, flag_value="", hidden=True, expose_value=False, callback=refuse)


def values_of(kind, given):
    """Removes the options of a dataclass from the command's parameters, and returns them as values of its fields.

    Raises:
      click.UsageError: a pair has no equals sign or nothing on one side of it, or a value is not valid.
    """
    found = {}
    for each, declared in _declared(kind):
        value = given.pop(each.name)
        if declared.kind in _PARSERS:
            value = {key: _PARSERS[declared.kind](declared, key, text) for key, text in _pairs(declared, value)}
            value = value or (None if each.default is None else {})
            check = each.metadata["check"]
            if check is not None:
                try:
                    check(value)
                except ValueError as error:
                    raise click.UsageError(f"{declared.flag}: {error}") from None
        found[each.name] = value
    return found


def _pairs(declared, pairs):
    for pair in pairs:
        if not all(pair.partition("=")):
            needed = f"{declared.metavar}, as in {declared.flag} {shlex.quote(declared.example)}"
            raise click.UsageError(f"{declared.flag} {shlex.quote(pair)} needs {needed}")
        yield pair.split("=", 1)


def _size(declared, key, text):
    if text.rstrip("'").isidentifier():  # another axis; the judge knows which there are
        return text
    if not text.isdecimal():
        example = f"{declared.flag} {declared.example}"
        needs = f"a whole number, as in {example}, or the name of another axis"
        raise click.UsageError(f"{declared.flag} {key}={text} needs {needs}")
    return int(text)


def _literal(_declared, _key, text):
    """Returns the value of a Python literal, such as 1, True or None; any other text unchanged."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


_PARSERS = {"pairs": lambda _declared, _key, text: text, "sizes": _size, "literals": _literal}
