"""``attnpool list`` and ``attnpool find``: tables and entries on a terminal."""

import itertools
import os
import sys

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnpool_ref import table
from attnpool_ref.cli import search
from attnpool_ref.cli.search import has_all, nothing_found

TABULAR = 130  # columns; below, names and definitions would be cut into pieces


def console(file=None):
    """Returns a console as wide as the terminal; without a terminal, wide enough for the tables.

    The environment variable ``COLUMNS`` sets another width, with or without a terminal.
    """
    file = file or sys.stdout
    return Console(
        file=file, width=None if file.isatty() or "COLUMNS" in os.environ else search.UNBOUNDED, highlight=False
    )


def facts(entries, style="dim"):
    """Returns (name, text) pairs as a table without lines; those without a text are left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=style, no_wrap=True)
    for name, text in entries:
        if text:
            grid.add_row(Text(name), Text(text))
    return grid


def list_functions(families=(), words=()):
    """Prints the functions of these families (empty for all) that have all of the words, and their sources.

    The words are searched in the name, the equation, the module and the source. Returns the exit status: 0, or 1 if no
    function is found.
    """
    out = console()
    rows = [row for row in table.BY_NAME.values() if row.family in (families or [row.family])]
    rows = [row for row in rows if has_all(_text(row), words)]
    if not rows:
        sentence, more = f"No function has {' '.join(words)!r}.", " `attnpool find` knows other names."
        return nothing_found(sentence, words, table.BY_NAME, more)
    title = f"{len(rows)} function{'s' * (len(rows) != 1)}"
    (_print_table if out.width >= TABULAR else _print_lines)(out, title, rows)
    out.print()
    out.print(facts((key, table.SOURCES[key]) for key in sorted({row.source for row in rows})))
    return 0


def _text(row):
    return " ".join([row.name, row.equation, row.module, row.source, table.SOURCES[row.source]])


def _print_table(out, title, rows):
    grid = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    grid.add_column("Function", style="bold", no_wrap=True)
    grid.add_column("Definition", overflow="fold")
    grid.add_column("Weights, module", no_wrap=True)
    grid.add_column("Source", no_wrap=True)
    for family, group in itertools.groupby(rows, key=lambda row: row.family):
        grid.add_section()
        grid.add_row(Text(family, style="cyan"))
        for row in group:  # as Text: a shape such as [..., m] must not be read as markup
            cells = row.equation, "\n".join(filter(None, [row.weights, row.module])), row.source
            grid.add_row(Text(f"  {row.name}"), *map(Text, cells))
    out.print(grid)


def _print_lines(out, title, rows):
    out.print(Text(title, "italic"))
    room = max(len(row.name) for row in rows) + 2
    for family, group in itertools.groupby(rows, key=lambda row: row.family):
        out.print()
        out.print(Text(family, "cyan"))
        for row in group:
            beside = room + len(row.source) <= out.width - 2
            name = f"{row.name:{room}}" if beside else f"{row.name}\n    "
            out.print(Text.assemble("  ", (name, "bold"), (row.source, "dim")))
            out.print(Padding(Text(row.equation), (0, 0, 0, 4), expand=False))
            more = [f"weights {row.weights}" * bool(row.weights), f"module {row.module}" * bool(row.module)]
            if any(more):
                out.print(Padding(Text("; ".join(filter(None, more)), "dim"), (0, 0, 0, 4), expand=False))


def find(words):
    """Prints the entries that have all of the words; returns the exit status, 0 or, if there are none, 1."""
    return search.find(words, _show)


def _show(found):
    out = console()
    for entry in found:
        _print(out, entry)
    out.print(Text(search.LEGEND, "dim"))


def _print(out, entry):
    first, *others = entry.names
    out.print(Text.assemble((first, "bold"), f"; {', '.join(others)}" if others else ""))
    for lines in search.lines_of(entry, out.width):
        out.print(Padding(Text("\n".join(lines), "cyan"), (0, 0, 0, 4), expand=False))
    out.print(facts((f"    {name}", text) for name, text in search.facts_of(entry).items()))
    out.print()
