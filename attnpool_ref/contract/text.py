"""Parts of messages: names of types, suggestions, and names and values from files."""

VOWELS = ("a", "e", "i", "o", "nd", "nn")
"""What nouns begin with that are spoken with a vowel first."""

LONGEST = 200
"""Largest number of characters that are shown of one name or value."""

MOST = 10
"""Largest number of names in one list."""


def type_of(value):
    """Returns the name of a value's type with its article.

    >>> type_of(1), type_of("1"), type_of(None)
    ('an int', 'a str', 'a NoneType')
    """
    return with_article(type(value).__name__)


def with_article(noun):
    """Puts "a" or "an" before a noun, by its sound: an "int", an "ndarray", a "uint8"."""
    return f"{'an' if noun.lower().startswith(VOWELS) else 'a'} {noun}"


def printable(name):
    """Escapes a name that has unprintable characters, and omits the middle of a long one."""
    return _short(name if name.isprintable() else repr(name)[1:-1])


def brief(value):
    """Returns the ``repr`` of a value without the middle of a long one; describes integers too long to print."""
    try:
        return _short(repr(value))
    except ValueError:
        return f"{type_of(value)} with thousands of digits"


def listed(names, write="`{}`".format):
    """Lists the first names, and the number of the others.

    >>> listed(["b", "a"])
    '`b`, `a`'
    >>> listed([str(number) for number in range(12)])
    '`0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `9` and 2 more'
    """
    names = list(names)
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(write(name) for name in names[:MOST]) + more


def suggested(suggestions):
    """Returns the end of a message, or "" without suggestions.

    >>> suggested(["`mask != 0`", "`lengths=`"])
    '; did you mean `mask != 0`, or `lengths=`?'
    """
    *others, last = suggestions or [""]
    return f"; did you mean {', '.join([*others, 'or ' * bool(others) + last])}?" if suggestions else ""


def bracketed(shape):
    """Formats a shape such as [2, d], of sizes or of letters."""
    return f"[{', '.join(map(str, shape))}]"


def _short(text):
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}...{text[-half:]}"
