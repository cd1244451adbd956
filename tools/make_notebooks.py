"""Runs the pages of ``docs/notebooks/``: writes what they print beside each ``print``, and the pictures they save.

The blocks of a page run one after another, in one namespace, as the cells of a notebook do.
"""

import contextlib
import io
import os
import re
from pathlib import Path
from unittest import mock

import matplotlib

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
PAGES = sorted(FOLDER.glob("0*.md"))

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINT = re.compile(r"^( *print\(.*?\))(?:  # .*)?$", re.MULTILINE)


def executed(page, folder):
    """The text of a page with what its blocks print; their pictures go to ``folder``."""
    names = {"__name__": "page"}

    def run(block):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], "a page of docs/notebooks", "exec"), names)
        lines = printed.getvalue().splitlines()
        statements = PRINT.findall(block[1])
        if len(lines) != len(statements):
            raise ValueError(f"{len(statements)} lines with print, each runs once and prints one line, gave {lines}")
        remaining = iter(lines)
        return "```python\n" + PRINT.sub(lambda line: f"{line[1]}  # {next(remaining)}", block[1]) + "```"

    with (
        contextlib.chdir(folder),
        matplotlib.rc_context({"svg.hashsalt": "attnpool"}),  # no random ids in a picture
        mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "0"}),  # nor the date of today
    ):
        return BLOCK.sub(run, page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(executed(path.read_text(), FOLDER))
