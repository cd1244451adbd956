"""The command line ``attnpool``: list, find, show, check, demo. Also ``python -m attnpool_ref``."""

import sys

from attnpool_ref.commands import extras


def main():
    """Runs the command line; without its extra, says in one line which one to install."""
    missing = extras.missing("cli")
    if missing:
        print(missing, file=sys.stderr)
        sys.exit(2)  # as every wrong use: 1 is the verdict "fail"
    from attnpool_ref.commands.application import application

    application(prog_name="attnpool")


if __name__ == "__main__":
    main()
