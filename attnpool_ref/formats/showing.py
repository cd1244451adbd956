"""Names and values of files in messages: printable, and short, whatever the file holds."""

LONGEST = 200
"""Characters of one name or value."""

MOST = 10
"""Names in one list."""


def shown(name):
    """A name: what moves a terminal's cursor, or cannot be printed at all, is escaped; the middle of a long one is left out."""
    return _short(name if name.isprintable() else repr(name)[1:-1])


def brief(value):
    """The ``repr`` of a value, without the middle of a long one; a number of more digits than Python prints is described."""
    try:
        return _short(repr(value))
    except ValueError:
        return f"a {type(value).__name__} with thousands of digits"


def listed(names, write="`{}`".format):
    """The first names of a list, and how many more there are.

    >>> listed(["b", "a"])
    '`b`, `a`'
    >>> listed([str(number) for number in range(12)])
    '`0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `9` and 2 more'
    """
    names = list(names)
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(write(name) for name in names[:MOST]) + more


def _short(text):
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}...{text[-half:]}"
