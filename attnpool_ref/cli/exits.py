"""Exit statuses of the command, and errors reported in one line."""

from pathlib import Path

import click

MISUSED = 2
"""Exit status if nothing was done: a wrong name, a missing file or extra. 1 is the verdict "fail"."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


INTERNAL = 70
"""Exit status after an error of attnpool itself: ``EX_SOFTWARE`` of sysexits.h."""


class Refused(click.ClickException):
    """Error for a request that cannot be carried out; the message gives the reason in one line."""

    exit_code = MISUSED


class Commands(click.Group):
    """Group of commands that has its own exit status after Ctrl-C."""

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
