"""``attnpool list``: the table, by family."""

import itertools
import os
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnpool_ref import variants

UNBOUNDED = 160  # columns where no terminal sets them


def console(file=None):
    """A console as wide as the terminal, or wide enough for the tables where there is none."""
    file = file or sys.stdout
    return Console(file=file, width=None if file.isatty() or "COLUMNS" in os.environ else UNBOUNDED, highlight=False)


def run():
    """Prints the table and what its sources stand for."""
    out = console()
    table = Table(title=f"{len(variants.BY_NAME)} variants", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("Variant", style="bold", no_wrap=True)
    table.add_column("Definition", overflow="fold")
    table.add_column("Weights, module", overflow="fold")
    table.add_column("Source", no_wrap=True)
    for family, rows in itertools.groupby(variants.BY_NAME.values(), key=lambda row: row.family):
        table.add_section()
        table.add_row(Text(family, style="cyan"))
        for row in rows:  # as Text: a shape such as [..., m] must not be read as markup
            cells = row.equation, "\n".join(filter(None, [row.weights, row.module])), row.source
            table.add_row(Text(f"  {row.name}"), *map(Text, cells))
    out.print(table)
    out.print()
    for key in sorted({row.source for row in variants.BY_NAME.values()}):
        out.print(Text.assemble((f"{key:14}", "dim"), " ", variants.SOURCES[key]))
