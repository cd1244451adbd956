"""Exit statuses of the command, and errors reported in one line."""

from pathlib import Path

import click

MISUSED = 2
"""Nothing was done: a wrong name, a file that is not there, an extra that is not installed. 1 is a verdict."""

NOTHING_FOUND = 1
"""Nothing has the words that were searched for, as with grep."""

INTERRUPTED = 130
"""Stopped by Ctrl-C, as shells have it."""


class Refused(click.ClickException):
    """Error for a request that cannot be carried out; the message gives the reason in one line."""

    exit_code = MISUSED


class Commands(click.Group):
    """Commands with a separate exit status for interruption."""

    def invoke(self, ctx):
        """Runs one of them."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would end with 1, which is the verdict "fail"
            click.echo("Stopped by Ctrl-C.", err=True)
            ctx.exit(INTERRUPTED)


def need_folder(file):
    """Refuses a file whose folder does not exist, before anything is computed."""
    if not Path(file).absolute().parent.is_dir():
        raise Refused(f"there is no folder for {file}")
