"""Overview at the beginning of ``help`` of a package: its names by family."""

import textwrap

WIDTH = 100


def overview(rows, **others):
    """Returns a text with a paragraph for each family: the name of its file, and the names in it.

    Args:
      rows: rows of the table, in the order of the documentation.
      **others: names of functions without a row, by family.
    """
    families = {}
    for row in rows:
        families.setdefault(row.family, []).append(row.name)
    for family, names in others.items():
        families.setdefault(family, []).extend(names)
    first = max(map(len, families)) + 2
    return "\n".join(
        textwrap.fill(", ".join(names), WIDTH, initial_indent=family.ljust(first), subsequent_indent=" " * first)
        for family, names in families.items()
    )
