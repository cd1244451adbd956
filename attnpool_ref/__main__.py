"""The command line ``attnpool``: list, find, show, check, demo. Also ``python -m attnpool_ref``."""

import contextlib
import os
import sys
import threading

from attnpool_ref.commands import extras

MISUSED, INTERRUPTED = 2, 130  # as commands/exits.py has them, which needs an extra
UNWRITTEN = 1


def main():
    """Runs the command line; without its extra, says in one line which one to install."""
    missing = extras.missing("cli")
    if missing:
        print(missing, file=sys.stderr)
        sys.exit(MISUSED)
    status = 0
    try:
        from attnpool_ref.commands.application import application

        application(prog_name="attnpool")
    except KeyboardInterrupt:
        status = INTERRUPTED
    except SystemExit as end:
        status = end.code
        if status != INTERRUPTED and not _is_kept_alive():
            raise
    _stop(status)


def _is_kept_alive():
    """Whether something that an implementation has started here would keep the process alive."""
    multiprocessing = sys.modules.get("multiprocessing")
    own = threading.main_thread(), threading.current_thread()
    threads = [thread for thread in threading.enumerate() if thread not in own and not thread.daemon]
    return bool(threads) or (multiprocessing is not None and bool(multiprocessing.active_children()))


def _stop(status):
    """Ends at once, without the second that JAX takes to leave."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
