"""Exit statuses of the command, and errors reported in one line."""

from pathlib import Path

import click

MISUSED = 2
"""Exit status if nothing was done: a wrong name, a missing file or extra. 1 is the verdict "fail"."""

NOTHING_FOUND = 1
"""Exit status of a search without a result, as of grep."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


INTERNAL = 70
"""Exit status after an error of attnpool itself: ``EX_SOFTWARE`` of sysexits.h."""


class Refused(click.ClickException):
    """Error for a request that cannot be carried out; the message gives the reason in one line."""

    exit_code = MISUSED


MOVED = {"demo": "the demonstration is examples/demo.py of the repository: run `make demo` there"}
"""Commands that left, each with what to do instead."""


class Commands(click.Group):
    """Group of commands that has its own exit status after Ctrl-C."""

    def resolve_command(self, ctx, args):
        """Finds a command by its name; a name of :data:`MOVED` is refused with its sentence."""
        if args[0] in MOVED:
            raise Refused(MOVED[args[0]])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx):
        """Runs a command; after Ctrl-C the exit status is :data:`INTERRUPTED`."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would end with 1, which is the verdict "fail"
            click.echo("Stopped by Ctrl-C.", err=True)
            ctx.exit(INTERRUPTED)


def need_folder(file):
    """Raises :class:`Refused` if the folder of a file does not exist; called before anything is computed."""
    if not Path(file).absolute().parent.is_dir():
        raise Refused(f"there is no folder for {file}")
