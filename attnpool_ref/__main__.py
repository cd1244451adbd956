"""The command line ``attnpool``: list, show, check, demo. Also ``python -m attnpool_ref``."""

import sys

from attnpool_ref.commands import extras


def main():
    """Runs the command line; without its extra, says in one line which one to install."""
    missing = extras.missing("cli")
    if missing:
        sys.exit(missing)
    from attnpool_ref.commands.application import application

    application(prog_name="attnpool")


if __name__ == "__main__":
    main()
