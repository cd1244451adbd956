"""Words that people search for, held against names as they are written: MaxSim is max-sim and max sim."""

import difflib
import re

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def pieces(text):
    """The parts of a name that a reader sees, in lower case.

    >>> pieces("x-vector, NetVLAD, AttentionPool2d")
    ['x', 'vector', 'net', 'vlad', 'attention', 'pool', '2', 'd']
    """
    return [piece.lower() for piece in _PIECE.findall(text)]


def has(text, word):
    """Whether the word begins at the beginning of any part of the text, whatever stands between its own parts.

    >>> has("AttentionPool2d", "attention-pool"), has("AttentionPool2d", "pool2d"), has("AttentionPool2d", "tension")
    (True, True, False)
    """
    sought, parts = "".join(pieces(word)), pieces(text)
    if not sought:
        return False
    return any("".join(parts[place:]).startswith(sought) for place in range(len(parts)))


def has_all(text, words):
    """Whether the text has each of the words, or all of them as one name."""
    return all(has(text, word) for word in words) or has(text, "".join(words))


def nearest(words, names):
    """The names that are most like the words, the nearest first."""
    plain = {"".join(pieces(name)): name for name in names}
    return [plain[near] for near in difflib.get_close_matches("".join(pieces(" ".join(words))), plain, n=5, cutoff=0.5)]
