"""The commands and their options; each does its work in the module of its name."""

import click
from click.shell_completion import CompletionItem

import attnpool_ref
from attnpool_ref import variants
from attnpool_ref.commands import extras

DTYPES = ("float32", "bfloat16", "float16", "float64")
MASK_FORMS = ("boolean", "integer", "additive", "lengths", "segments")
ARRAYS = ("numpy", "jax", "torch", "keras")


class VariantName(click.ParamType):
    """The name of a row, checked; a wrong one is refused with the nearest names."""

    name = "name"

    def convert(self, value, param, ctx):
        """Returns the name as it is."""
        try:
            return variants.get(value).name
        except ValueError as error:
            raise click.ClickException(str(error)) from None

    def shell_complete(self, ctx, param, incomplete):
        """Offers the names of the table."""
        return [CompletionItem(name) for name in variants.BY_NAME if name.startswith(incomplete)]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(attnpool_ref.__version__, prog_name="attnpool")
def application():
    """Attention pooling: its definitions in NumPy, its implementation in JAX, and a judge between them."""


@application.command("list")
def list_command():
    """Show the table of variants."""
    from attnpool_ref.commands import listing

    listing.run()


@application.command()
@click.argument("name", type=VariantName())
def show(name):
    """Show one variant: equation, source, signature, definition and implementation."""
    from attnpool_ref.commands import show as showing

    showing.run(name)


@application.command()
@click.argument("candidate", default="attnpool_flax")
@click.option(
    "--only", type=VariantName(), multiple=True, metavar="NAME", help="Judge this row alone; may be repeated."
)
@click.option("--as", "row", type=VariantName(), metavar="NAME", help="The row that my.module:function implements.")
@click.option(
    "--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, help="Judge this dtype alone; may be repeated."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True), help="Also write the report here.")
@click.option("--implementation", metavar="NAME", help="Judge what takes `implementation`, with this one.")
@click.option(
    "--arg", "arguments", multiple=True, metavar="THEIRS=OURS", help="The candidate's name of an argument of the row."
)
@click.option("--padding-true", is_flag=True, help="The candidate's masks are True where there is padding.")
@click.option("--mask-form", type=click.Choice(MASK_FORMS), help="What the candidate takes as a mask.")
@click.option("--mask-required", is_flag=True, help="The candidate is never called without a mask.")
@click.option("--some-real", is_flag=True, help="The candidate is never asked where nothing is real.")
@click.option("--batched", is_flag=True, help="The candidate takes [B, L, d] and no other rank.")
@click.option("--same-batch", is_flag=True, help="All data of the candidate have the same batch axes.")
@click.option("--leave", multiple=True, metavar="NAME", help="An argument that stays at its default; may be repeated.")
@click.option("--arrays", type=click.Choice(ARRAYS), help="The candidate's arrays; found out unless given.")
@click.option("--time-limit", type=float, default=60.0, show_default=True, help="Seconds for one call.")
@click.option("--seed", default="", help="Draw other cases than those that derive from their names.")
@click.option("--quick", is_flag=True, help="Two dtypes and few shapes, in under a minute.")
def check(
    candidate,
    only,
    row,
    dtypes,
    json_file,
    implementation,
    arguments,
    padding_true,
    mask_form,
    mask_required,
    some_real,
    batched,
    same_batch,
    leave,
    arrays,
    time_limit,
    seed,
    quick,
):
    """Judge a candidate against the oracle.

    CANDIDATE is a module whose functions have the names of the table (attnpool_flax unless given), or
    my.module:function with --as NAME. Modules of the current directory are found.

    Exit status: 0 passed, 1 failed, 2 wrong use, 3 partial (a mask or an argument of it was never judged).
    """
    from attnpool_ref.commands import check as checking

    for pair in arguments:
        if not all(pair.partition("=")):
            raise click.UsageError(f"--arg {pair} needs THEIRS=OURS, as in --arg attention_mask=mask")
    found = checking.run(
        candidate,
        only=only,
        row=row,
        dtypes=dtypes,
        json_file=json_file,
        implementation=implementation,
        quick=quick,
        time_limit=time_limit,
        seed=seed,
        calls={
            "arguments": dict(pair.split("=", 1) for pair in arguments),
            "padding_true": padding_true,
            "mask_form": mask_form,
            "mask_required": mask_required,
            "some_real": some_real,
            "batched": batched,
            "same_batch": same_batch,
            "leave": leave,
            "arrays": arrays,
        },
    )
    checking.leave(found)


@application.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True),
    default="attnpool_demo.png",
    show_default=True,
    help="Where the picture goes.",
)
def demo(out):
    """Pool real embeddings in both packages, and show what a wrong mask does to them."""
    missing = extras.missing("flax", "plot")
    if missing:
        raise click.ClickException(missing.removeprefix("attnpool: "))
    from attnpool_ref.commands import demo as demonstration

    demonstration.run(out)
