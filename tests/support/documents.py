"""Pages of documentation: their code blocks, the output of these blocks, headings and links."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
CUT = "[...]"
"""Text in a printed output that marks an omission."""


def blocks(page):
    """Returns (language, text) of each code block of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def blocks_of(page, language):
    """Returns the texts of a page's blocks in one language."""
    return [text for of, text in blocks(page) if of == language]


def python_blocks(page):
    return blocks_of(page, "python")


def section(page, title):
    """Returns the text under a heading of the second level."""
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def shell_lines(page):
    """Returns the shell commands of a page."""
    return [line for text in blocks_of(page, "sh") for line in text.splitlines()]


def own_files(page):
    """Returns the files that a page tells its reader to write, by the name in the first comment of a block."""
    named = (re.match(r"# (\w+\.py)\n", text) for text in python_blocks(page))
    return {match[1]: match.string for match in named if match}


def assert_prints_what_it_says(text, capsys):
    """Runs a block; asserts that each ``print`` prints the comment after it, and that lines raise the errors that they name.

    Options of NumPy that the block sets, how it prints and what it warns of, end with it.
    """
    expected = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert len(expected) == len(re.findall(r"^ *print\(", text, re.MULTILINE))
    text = re.sub(r"^(.+)  # (\w+Error)(?:: (.*))?$", _expecting, text, flags=re.MULTILINE)
    with np.printoptions(), np.errstate():
        exec(compile(text, "block", "exec"), {"__name__": "block", "_raises": pytest.raises})
    assert capsys.readouterr().out.splitlines() == expected


def _expecting(line):
    """Returns a statement that asserts the error, and the part of its message, that stand behind a line."""
    code, error, message = line.groups()
    return f"with _raises({error}, match={message and re.escape(message)!r}): {code}"


def assert_shown_is_printed(shown, printed):
    """Asserts that a block of output is the whole output, except for parts marked as omitted."""
    first, *others = (part.strip("\n") for part in shown.split(CUT))
    assert printed.startswith(first)
    begin = len(first)
    for part in others:
        found = printed.find(part.strip(), begin)
        assert found >= 0, f"{part!r} is not in what follows:\n{printed[begin:]}"
        begin = found + len(part.strip())
    assert shown.rstrip().endswith(CUT) or not printed[begin:].strip()


def heading_anchor(title):
    """Returns the anchor of a heading, which a link has after #."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def anchors(page):
    """Returns the anchors of a page, which links have after #: those of headings, and ``<a id="…">``."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {*map(heading_anchor, titles), *re.findall(r'<a id="([^"]+)">', prose)}


def broken_links(path):
    """Yields the links of a page whose target does not exist; what ``make site`` writes is checked there."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        page, _, heading = target.partition("#")
        file = path.parent / page if page else path
        if page.startswith("https://") or file.is_relative_to(ROOT / "docs" / "project"):
            continue
        if not file.exists() or (heading and heading not in anchors(file.read_text(encoding="utf-8"))):
            yield target
