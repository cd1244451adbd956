"""Commands of ``attnpool`` and their options; each command does its work in another module of this package."""

import click

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.cli.exits import Commands
from attnpool_ref.cli.options import FunctionName, JudgingCommand, values_of

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
    from attnpool_ref.cli import listing

    context.exit(listing.run(families, words))


@application.command()
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.pass_context
def find(context, words):
    """Find a function by the name that a paper or another library has for it: ABMIL, GeM, CLS, global attention ...

    Of several words, an entry must have all.

    Exit status: 1 if nothing is found.
    """
    from attnpool_ref.cli import finding

    context.exit(finding.run(words))


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
@click.argument("file", type=click.Path(exists=True))
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


@application.command(cls=JudgingCommand)
@click.argument("candidate", default="attnpool_flax")
@click.option("--layouts", is_flag=True, help="With --only: also judge the forms for packed tokens and for chunks.")
@click.option(
    "--as", "row", type=FunctionName(), metavar="NAME", help="The function that my.module:function implements."
)
@click.option(
    "--implementation",
    metavar="NAME",
    help="Judge only functions with the argument `implementation`, with this value, such as einsum.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Judge few cases, gradients only in float32, and float32 and bfloat16 unless --dtype is given: on one core "
    "about 2 s a row in JAX, 0.1 s in NumPy; without it 20 s and 0.3 s.",
)
@click.option("--all", "everything", is_flag=True, help="Also list what held, and what was not judged and why.")
@click.option("--json", "json_file", type=FILE, help=f"Also write the report as JSON{TO_FILE}")
@click.option("--junit", "junit_file", type=FILE, help=f"Also write the report as JUnit XML{TO_FILE}")
@click.option("--html", "html_file", type=FILE, help=f"Also write the report as a page with heat maps{TO_FILE}")
@click.pass_obj
def check(
    then, candidate, layouts, row, implementation, quick, everything, json_file, junit_file, html_file, **options
):
    """Judge an implementation against attnpool's definitions in NumPy (the oracle).

    CANDIDATE is the implementation: a module whose functions are named as in attnpool (by default attnpool_flax), or
    my.module:function with --as NAME. Modules of the current directory are found; ./file.py:function works too.
    Child processes import and call the implementation, except with --jobs 0.

    Exit status: 0 passed, 1 failed (or a waiver waived nothing, or nothing could be judged), 2 wrong use (or a missing
    package, or CANDIDATE cannot be imported), 3 partial (nothing failed, but gradients, a mask or another argument were
    never judged, or the implementation takes no mask), 70 an error inside attnpool, 130 stopped by Ctrl-C.
    """
    from attnpool_ref.cli import check as checking
    from attnpool_ref.conformance import Candidate, Scope

    calls, scope = values_of(Candidate, options), values_of(Scope, options)
    if layouts and not scope["only"]:
        raise click.UsageError("--layouts needs --only; without both every row is judged anyway")
    if layouts:
        scope["only"] = table.in_all_layouts(*scope["only"])
    scope["contract"] = scope["contract"] or candidate == "attnpool_flax"
    found = (then or checking.run)(  # the pytest plugin passes another function
        candidate,
        row=row,
        implementation=implementation,
        quick=quick,
        everything=everything,
        files={"json": json_file, "junit": junit_file, "html": html_file},
        calls=calls,
        **scope,
    )
    if then is None:
        raise SystemExit(found)
    return found
