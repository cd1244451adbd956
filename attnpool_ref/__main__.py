"""The command line ``attnpool``: list, find, show, check, demo. Also ``python -m attnpool_ref``."""

import os
import sys

from attnpool_ref.commands import extras

MISUSED, INTERRUPTED = 2, 130  # as commands/exits.py has them, which needs an extra


def main():
    """Runs the command line; without its extra, says in one line which one to install."""
    missing = extras.missing("cli")
    if missing:
        print(missing, file=sys.stderr)
        sys.exit(MISUSED)
    try:
        from attnpool_ref.commands.application import application

        application(prog_name="attnpool")
    except KeyboardInterrupt:
        _stop()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _stop()
        raise


def _stop():
    """Ends at once, without the second that JAX takes to leave."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
