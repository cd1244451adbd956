"""The commands and their options; each does its work in the module of its name."""

import ast

import click
from click.shell_completion import CompletionItem

import attnpool_ref
from attnpool_ref import extras, table
from attnpool_ref.cli.exits import Commands, Refused, need_folder

DTYPES = ("float32", "bfloat16", "float16", "float64")
MASK_FORMS = ("boolean", "integer", "additive", "lengths", "segments")
FILE = click.Path(dir_okay=False, writable=True, allow_dash=True)
ARRAYS = ("numpy", "jax", "torch", "keras")


class VariantName(click.ParamType):
    """The name of a row, checked; a wrong one is refused with the nearest names."""

    name = "name"

    def convert(self, value, param, ctx):
        """Returns the name as it is."""
        try:
            return table.get(value).name
        except ValueError as error:
            raise Refused(str(error)) from None

    def shell_complete(self, ctx, param, incomplete):
        """Offers the names of the table."""
        return [CompletionItem(name) for name in table.BY_NAME if name.startswith(incomplete)]


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(attnpool_ref.__version__, prog_name="attnpool")
@click.pass_context
def application(context):
    """Attention pooling: its definitions in NumPy, its implementation in JAX, and a judge between them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


FAMILIES = tuple(dict.fromkeys(row.family for row in table.BY_NAME.values()))


@application.command("list")
@click.option("--family", "families", type=click.Choice(FAMILIES), multiple=True, help="Only these; may be repeated.")
@click.option(
    "--search", "words", multiple=True, metavar="WORD", help="Only rows that have this word; may be repeated."
)
@click.pass_context
def list_command(context, families, words):
    """Show the table of functions."""
    from attnpool_ref.cli import listing

    context.exit(listing.run(families, words))


@application.command()
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.pass_context
def find(context, words):
    """Find a pooling by a name from elsewhere: ABMIL, GeM, CLS, ColBERT, global attention ...

    Exit status: 1 where nothing is found.
    """
    from attnpool_ref.cli import finding

    context.exit(finding.run(words))


@application.command("formats")
@click.argument("words", nargs=-1, metavar="[WORD...]")
@click.pass_context
def formats_command(context, words):
    """List the trained heads of other libraries that can be loaded, with their library and required options.

    With words only those that have all of them: siglip, timm, torch ...

    Exit status: 1 where nothing is found.
    """
    from attnpool_ref.cli import heads

    context.exit(heads.list_formats(words))


@application.command()
@click.argument("file", type=click.Path(exists=True))
@click.pass_context
def inspect(context, file):
    """Say which formats fit the names in FILE, and under which prefix.

    FILE is a .safetensors or .npz file, a .safetensors.index.json, or a folder. Only names and shapes are read, and the
    configuration of a folder.

    Exit status: 1 if no format fits, 2 for a corrupt file.
    """
    from attnpool_ref.cli import heads

    context.exit(heads.inspect(file))


@application.command()
@click.argument("name", type=VariantName())
def show(name):
    """Show one function: equation, source, signature, definition and implementation."""
    from attnpool_ref.cli import show as showing

    showing.run(name)


@application.command()
@click.argument("candidate", default="attnpool_flax")
@click.option(
    "--only", type=VariantName(), multiple=True, metavar="NAME", help="Judge only this function; may be repeated."
)
@click.option("--layouts", is_flag=True, help="With --only: also its packed and chunked forms.")
@click.option(
    "--as", "row", type=VariantName(), metavar="NAME", help="The function that my.module:function implements."
)
@click.option(
    "--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, help="Judge only this dtype; may be repeated."
)
@click.option("--json", "json_file", type=FILE, help="Also write the report here, as JSON; - is standard output.")
@click.option(
    "--junit", "junit_file", type=FILE, help="Also write the report here, as JUnit XML; - is standard output."
)
@click.option(
    "--html", "html_file", type=FILE, help="Also write the report here, as a page with heat maps; - is standard output."
)
@click.option(
    "--implementation", metavar="NAME", help="Judge only functions with the argument `implementation`, with this value."
)
@click.option("--arg", "arguments", multiple=True, metavar="THEIRS=OURS", help="Your name of an argument.")
@click.option("--padding-true", is_flag=True, help="Your masks are True at padding.")
@click.option("--mask-form", type=click.Choice(MASK_FORMS), help="The form of your masks.")
@click.option("--mask-required", is_flag=True, help="Never call your implementation without a mask.")
@click.option("--some-real", is_flag=True, help="Never test fully masked rows.")
@click.option("--batched", is_flag=True, help="Your implementation takes only [B, L, d].")
@click.option("--same-batch", is_flag=True, help="Give all data the same batch axes.")
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="ARGUMENT=ATTRIBUTE",
    help="An argument that your implementation holds itself, such as query=q or key_kernel=key.kernel, in the same "
    "layout; a transposition needs Python.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="AXIS=NUMBER",
    help="The only size of an axis that your implementation takes.",
)
@click.option(
    "--fixed", multiple=True, metavar="ARGUMENT=VALUE", help="Your value of an argument, instead of its default."
)
@click.option("--leave", multiple=True, metavar="NAME", help="Leave this argument at its default; may be repeated.")
@click.option("--refusals", is_flag=True, help="Also test that bad input is refused.")
@click.option("--integers", is_flag=True, help="Also test data of integers.")
@click.option("--mixed", is_flag=True, help="Also test arguments of several dtypes for the dtype of the contract.")
@click.option("--broadcasting", is_flag=True, help="Also test masks of integers, of a lower rank, and with axes of 1.")
@click.option("--contract", is_flag=True, help="Test all guarantees of attnpool itself; always on for attnpool_flax.")
@click.option(
    "--waive",
    multiple=True,
    metavar="NAME=REASON",
    help="A guarantee, or FUNCTION/GUARANTEE, that need not hold; may be repeated.",
)
@click.option("--arrays", type=click.Choice(ARRAYS), help="The library of your arrays; detected by default.")
@click.option("--time-limit", type=float, default=60.0, show_default=True, help="Seconds for one call.")
@click.option("--seed", default="", help="Draw other cases than those that derive from their names.")
@click.option(
    "--examples", type=click.IntRange(0), default=0, metavar="N", help="Search N more calls a row (hypothesis)."
)
@click.option(
    "--jobs",
    type=click.IntRange(0),
    metavar="N",
    help="Judge in N child processes; by default one for each core, at most four, and one for each 8 rows. 0 judges in "
    "this process, for debuggers: without a time limit, and with its output on the screen.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Two dtypes and few shapes: on one core about 2 s a row in JAX, 0.1 s in NumPy; without it 20 s and 0.3 s.",
)
@click.pass_obj
def check(
    then,
    candidate,
    only,
    layouts,
    row,
    dtypes,
    json_file,
    junit_file,
    html_file,
    implementation,
    arguments,
    padding_true,
    mask_form,
    mask_required,
    some_real,
    batched,
    same_batch,
    parameters,
    sizes,
    fixed,
    leave,
    refusals,
    integers,
    mixed,
    broadcasting,
    contract,
    waive,
    arrays,
    time_limit,
    seed,
    examples,
    jobs,
    quick,
):
    """Judge an implementation against the oracle.

    CANDIDATE is a module whose functions have the names of the table (attnpool_flax unless given), or
    my.module:function with --as NAME. Modules of the current directory are found; ./file.py:function works too.
    A child process imports and calls it.

    Exit status: 0 passed, 1 failed (or a waiver waived nothing), 2 wrong use, 3 partial (a mask or an argument of it was never judged), 130 stopped by Ctrl-C.
    """
    from attnpool_ref.cli import check as checking

    if layouts and not only:
        raise click.UsageError("--layouts needs --only; without both every row is judged anyway")
    found = (then or checking.run)(  # pytest uses this name itself
        candidate,
        only=tuple(other for name in only for other in table.in_all_layouts(name)) if layouts else only,
        row=row,
        dtypes=dtypes,
        files={"json": json_file, "junit": junit_file, "html": html_file},
        implementation=implementation,
        quick=quick,
        jobs=jobs,
        refusals=refusals,
        integers=integers,
        mixed=mixed,
        broadcasting=broadcasting,
        contract=contract or candidate == "attnpool_flax",
        waive=_waivers(waive),
        time_limit=time_limit,
        seed=seed,
        examples=examples,
        calls={
            "arguments": _pairs("--arg", arguments, "THEIRS=OURS", "attention_mask=mask"),
            "padding_true": padding_true,
            "mask_form": mask_form,
            "mask_required": mask_required,
            "some_real": some_real,
            "batched": batched,
            "same_batch": same_batch,
            "sizes": _sizes(sizes),
            "fixed": {key: _value(text) for key, text in _pairs("--fixed", fixed, "ARGUMENT=VALUE", "scale=1").items()},
            "parameters": _pairs("--parameter", parameters, "ARGUMENT=ATTRIBUTE", "query=q") or None,
            "leave": leave,
            "arrays": arrays,
        },
    )
    if then is None:
        raise SystemExit(found)
    return found


def _pairs(option, pairs, form, example):
    """Parses pairs with an equals sign into a mapping.

    Raises:
      UsageError: one has none, or nothing on one side.
    """
    for pair in pairs:
        if not all(pair.partition("=")):
            raise click.UsageError(f"{option} {pair} needs {form}, as in {option} {example}")
    return dict(pair.split("=", 1) for pair in pairs)


def _sizes(pairs):
    """Sizes by their axes.

    Raises:
      UsageError: one is no whole number above 0.
    """
    found = _pairs("--size", pairs, "AXIS=NUMBER", "d=6")
    for axis, number in found.items():
        if not number.isdecimal() or int(number) == 0:
            raise click.UsageError(f"--size {axis}={number} needs a whole number above 0, as in --size d=6")
    return {axis: int(number) for axis, number in found.items()}


def _value(text):
    """Parses a number, a truth value or None in Python's notation; returns other text unchanged."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _waivers(pairs):
    """Parses the waived guarantees, each with its reason.

    Raises:
      UsageError: there is no reason, or no such promise.
    """
    from attnpool_ref.conformance.report import waivers

    for pair in pairs:
        if not all(pair.partition("=")):
            raise click.UsageError(
                f"--waive {pair!r} needs NAME=REASON, as in --waive '1e30 in padding=inputs are finite'"
            )
    waive = dict(pair.split("=", 1) for pair in pairs)
    try:
        waivers.check_names(waive)
    except ValueError as error:
        raise click.UsageError(f"--waive: {error}") from None
    return waive


@application.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True),
    default="attnpool_demo.png",
    show_default=True,
    help="File of the picture.",
)
def demo(out):
    """Pool real embeddings in both packages, and show what a wrong mask does to them."""
    need_folder(out)
    missing = extras.missing("flax", "plot")
    if missing:
        raise Refused(missing.removeprefix("attnpool: "))
    from attnpool_flax import demo as demonstration

    demonstration.run(out)
