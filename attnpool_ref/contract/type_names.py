"""Names of types in messages."""

VOWELS = ("a", "e", "i", "o", "nd", "nn")
"""What nouns begin with that are spoken with a vowel first."""


def type_of(value):
    """Returns the name of a value's type with its article.

    >>> type_of(1), type_of("1"), type_of(None)
    ('an int', 'a str', 'a NoneType')
    """
    return with_article(type(value).__name__)


def with_article(noun):
    """Puts "a" or "an" before a noun, by its sound: an "int", an "ndarray", a "uint8"."""
    return f"{'an' if noun.lower().startswith(VOWELS) else 'a'} {noun}"
