"""The command line ``attnpool``: list, find, formats, inspect, show, check, vectors. Also ``python -m attnpool_ref``."""

import contextlib
import errno
import io
import os
import sys
import threading

from attnpool_ref import cli

MISUSED, INTERRUPTED = 2, 130  # as cli/exits.py has them, which needs an extra


def main():
    """Runs the command; without the extra ``cli``, prints one line that says how to install it and exits with 2.

    ``attnpool find`` needs no extra: it then prints plain text.
    """
    missing = cli.missing("cli")
    if missing and sys.argv[1:2] == ["find"] and sys.argv[2:] and not sys.argv[2].startswith("-"):
        from attnpool_ref.cli import finding

        sys.exit(finding.find(sys.argv[2:]))
    if missing:
        print(missing, file=sys.stderr)
        sys.exit(MISUSED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a pipe on Windows has no letters but those of its code page
    try:
        status = _run()
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        status = _unwritten(error)
    if status == INTERRUPTED or _is_kept_alive():
        _stop(status)
    sys.exit(status)


def _run():
    """Runs the command; returns its exit status, 130 after Ctrl-C."""
    try:
        from attnpool_ref.cli.application import application

        application(prog_name="attnpool")
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:
        return end.code


def _unwritten(error):
    """Discards output that cannot be written (closed pipe, full disk); reports a full disk. Returns exit status 2."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno()
        )  # else the interpreter tries again at its end
    if error.errno != errno.EPIPE:
        print(f"Error: the output cannot be written: {error.strerror}", file=sys.stderr)
    return MISUSED


def _is_kept_alive():
    """Returns whether a thread or process that an implementation has started would keep this process alive."""
    multiprocessing = sys.modules.get("multiprocessing")
    own = threading.main_thread(), threading.current_thread()
    threads = [thread for thread in threading.enumerate() if thread not in own and not thread.daemon]
    return bool(threads) or (multiprocessing is not None and bool(multiprocessing.active_children()))


def _stop(status):
    """Writes buffered output and ends the process at once, without waiting for its threads, child processes or JAX."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
