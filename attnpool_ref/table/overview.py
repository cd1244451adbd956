"""Overview at the beginning of ``help`` of a package: its names by family."""

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
    return "\n".join(_paragraph(family.ljust(first), names) for family, names in families.items())


def _paragraph(start, names):
    """Joins names by commas into lines of at most ``WIDTH`` columns, indented below the first one."""
    lines, line = [], start + names[0]
    for name in names[1:]:
        if len(line) + len(name) + 3 > WIDTH:
            lines.append(line + ",")
            line = " " * len(start) + name
        else:
            line += ", " + name
    return "\n".join([*lines, line])
