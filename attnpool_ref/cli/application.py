"""Commands of ``attnpool`` and their options; each command does its work in another module of this package.

The options of ``attnpool check`` are made from the declarations in ``Scope`` and ``Candidate``.
"""

import ast
import shlex
from dataclasses import fields
from typing import Any

import click
from click.shell_completion import CompletionItem

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.cli.exits import Commands, Refused


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

    def parse_args(self, ctx, args):
        """Parses the arguments, and stores the command line in ``ctx.meta``."""
        ctx.meta["command"] = shlex.join(["attnpool", "check", *args])
        return super().parse_args(ctx, args)

    @params.setter
    def params(self, own):
        self._own, self._all = own, None


def _options_of_the_judge():
    from attnpool_ref.conformance import Candidate, Scope

    return [_option(*each) for kind in (Scope, Candidate) for each in _declared(kind)]


def _declared(kind):
    """Returns (field, its ``Option``) for each option of a dataclass that the command has."""
    from attnpool_ref.conformance.option import options_of

    named = {each.name: each for each in fields(kind)}
    return [(named[name], declared) for name, declared in options_of(kind).items() if declared.flag]


def _option(each, declared):
    plain: dict[str, dict[str, Any]] = {
        "flag": {"is_flag": True},
        "text": {"default": each.default},
        "count": {"type": click.IntRange(0)},
        "choice": {"type": click.Choice(declared.choices)},
        "choices": {"type": click.Choice(declared.choices), "multiple": True},
        "functions": {"type": FunctionName(), "multiple": True},
        "names": {"multiple": True},
    }
    settings = plain.get(declared.kind, {"multiple": True})
    return click.Option([declared.flag, each.name], metavar=declared.metavar, help=declared.help, **settings)


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


FILE = click.Path(dir_okay=False, writable=True, allow_dash=True)
TO_FILE = " to this file, which is replaced if it exists; - is standard output."


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(attnpool_ref.__version__, prog_name="attnpool")
@click.pass_context
def application(context):
    """Attention pooling: definitions in NumPy, the same functions in JAX, and a judge that compares implementations."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


FAMILIES = tuple(dict.fromkeys(row.family for row in table.BY_NAME.values()))


@application.command("list")
@click.option(
    "--family",
    "families",
    type=click.Choice(FAMILIES),
    multiple=True,
    help="Only functions of this family; may be repeated.",
)
@click.option(
    "--search",
    "words",
    multiple=True,
    metavar="WORD",
    help="Only functions with this word in name, equation, module or source; may be repeated, for all words.",
)
@click.pass_context
def list_command(context, families, words):
    """Show the table of functions.

    Exit status: 1 if nothing is found.
    """
    from attnpool_ref.cli import finding

    context.exit(finding.list_functions(families, words))


@application.command()
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--all", "everything", is_flag=True, help="Show all that is found, in place of the best five.")
@click.pass_context
def find(context, words, everything):
    """Find a function by the name that a paper or another library has for it: ABMIL, GeM, CLS, global attention ...

    Of several words, an entry must have all.

    Exit status: 1 if nothing is found.
    """
    from attnpool_ref.cli import finding

    context.exit(finding.find(words, everything))


@application.command("formats")
@click.argument("words", nargs=-1, metavar="[WORD...]")
@click.pass_context
def formats_command(context, words):
    """List the trained heads of other libraries that can be loaded, with their library and required options.

    With words, list only heads that have all of them: siglip, timm, torch ...

    Exit status: 1 if nothing is found.
    """
    from attnpool_ref.cli import heads

    context.exit(heads.list_formats(words))


@application.command()
@click.argument("file", type=click.Path())
@click.pass_context
def inspect(context, file):
    """Say which formats (see `attnpool formats`) fit the weights in FILE, and the prefix of their names in FILE.

    FILE is a .safetensors or .npz file, a .safetensors.index.json, or a folder. Of the weights only names and shapes
    are read; of a folder also its configuration, and of a sentence-transformers model (a folder with modules.json) also
    the weights of the layers after the encoder.

    Exit status: 1 if no format fits, 2 if FILE cannot be read: it is missing, corrupt or of another kind.
    """
    from attnpool_ref.cli import heads

    context.exit(heads.inspect(file))


@application.command()
@click.argument("name", shell_complete=FunctionName().shell_complete)
def show(name):
    """Show one function: equation, source, signature, definition and implementation.

    For a module show its function, for another name what `attnpool find` finds.
    """
    from attnpool_ref.cli import show as showing

    showing.run(name)


@application.command("vectors")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option(
    "--output", type=click.Path(file_okay=False), required=True, help="The folder of the files; it is made if missing."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(("json", "safetensors")),
    default="json",
    show_default=True,
    help="Their format.",
)
def vectors_command(names, output, kind):
    """Write files of inputs and expected results for tests of a port in any language, one for each function.

    Without NAME, for all poolings, scores and normalizers that have them. Each number is exact in every dtype that the
    case is for.
    """
    from attnpool_ref.conformance import vectors

    try:
        files = vectors.write(names, output, kind)
    except (ValueError, OSError) as error:
        raise Refused(str(error)) from None
    click.echo(
        f"{len(files)} file{'s' * (len(files) != 1)}, {sum(file.stat().st_size for file in files):,} bytes: {output}"
    )


@application.command(cls=JudgingCommand)
@click.argument("candidate", required=False)
@click.option("--layouts", is_flag=True, help="With --only: also judge the forms for packed tokens and for chunks.")
@click.option(
    "--as", "row", type=FunctionName(), metavar="NAME", help="The function that my.module:function implements."
)
@click.option(
    "--command",
    "program",
    metavar="COMMAND",
    help="Judge a program in place of CANDIDATE. The judge runs it and calls it in lines of JSON (docs/protocol.md).",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Judge few cases, gradients only in float32, and float32 and bfloat16 unless --dtype is given: on one core "
    "about 2 s a function in JAX, 0.1 s in NumPy; without it 20 s and 0.3 s.",
)
@click.option("--all", "everything", is_flag=True, help="Also list what held, and what was not judged and why.")
@click.option("--json", "json_file", type=FILE, help=f"Also write the report as JSON{TO_FILE}")
@click.option("--junit", "junit_file", type=FILE, help=f"Also write the report as JUnit XML{TO_FILE}")
@click.option(
    "--time-limit",
    type=float,
    default=60.0,
    show_default=True,
    help="Longest duration of one call in seconds, compilation included; a longer call ends the judging of its function.",
)
@click.option(
    "--jobs",
    type=click.IntRange(0),
    metavar="N",
    help="Judge in N child processes; by default one for each core, at most four, and one for each 2 functions, but only "
    "one with JAX on an accelerator. 0 judges in this process, for debuggers: without a time limit, and with its output "
    "on the screen.",
)
@click.pass_obj
def check(
    then, candidate, layouts, row, program, quick, everything, json_file, junit_file, time_limit, jobs, **options
):
    """Judge an implementation against attnpool's definitions in NumPy (the oracle).

    CANDIDATE is the implementation: a module whose functions are named as in attnpool (by default attnpool_flax), or
    my.module:function with --as NAME. Modules of the current directory are found; ./file.py:function works too.
    Child processes import and call the implementation, except with --jobs 0. --command takes a program in any language.

    Exit status: 0 passed, 1 failed (or a waiver waived nothing, or nothing could be judged), 2 wrong use (or a missing
    package, or CANDIDATE cannot be imported), 3 partial (nothing failed, but gradients, a mask or another argument were
    never judged, or the implementation takes no mask), 70 an error inside attnpool, 130 stopped by Ctrl-C.
    """
    from attnpool_ref.cli import check as checking
    from attnpool_ref.conformance import Candidate, Scope

    calls, scope = values_of(Candidate, options), values_of(Scope, options)
    if program is not None:
        if candidate is not None:
            raise click.UsageError(
                f"--command {shlex.quote(program)} is judged in place of CANDIDATE: leave out {candidate}"
            )
        candidate = program
    candidate = candidate or "attnpool_flax"
    if layouts and not scope["only"]:
        raise click.UsageError("--layouts needs --only; without both every function is judged anyway")
    if layouts:
        scope["only"] = table.in_all_layouts(*scope["only"])
    scope["whole_contract"] = candidate == "attnpool_flax"
    scope["is_command"] = program is not None
    found = (then or checking.run)(  # the pytest plugin passes another function
        candidate,
        row=row,
        quick=quick,
        everything=everything,
        files={"json": json_file, "junit": junit_file},
        time_limit=time_limit,
        jobs=jobs,
        command=click.get_current_context().meta["command"],
        calls=calls,
        **scope,
    )
    if then is None:
        raise SystemExit(found)
    return found
