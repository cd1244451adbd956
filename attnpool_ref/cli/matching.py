"""Matching of search words with names in any spelling: "max-sim" and "max sim" match MaxSim."""

import difflib
import functools
import re
import sys
import unicodedata

from attnpool_ref.cli.exits import NOTHING_FOUND

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u4e00-\u9fff]")
"""Pattern of a part of a name: a run of capitals, a word, a number, one Chinese character."""

_BRITISH = re.compile(r"(?<=al|ar)is(?=(?:e[ds]?|ing|ation)$)")

ENOUGH = 3
"""Smallest number of letters that match only the beginning of a part, if those before them match the parts before it.

So "hopfield pool" matches HopfieldPooling, but "berts" does not match the text "BERT; sentence".
"""


@functools.cache
def pieces(text):
    """Splits a name into words and numbers, in lower case, without accents, with z in words such as generalised.

    >>> pieces("x-vector, NetVLAD, AttentionPool2d")
    ('x', 'vector', 'net', 'vlad', 'attention', 'pool', '2', 'd')
    >>> pieces("Radenović")
    ('radenovic',)
    """
    plain = unicodedata.normalize("NFKD", text)  # Radenovic finds Radenović
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return tuple(_BRITISH.sub("iz", piece.lower()) for piece in _PIECE.findall(plain))


def has(text, word):
    """Returns whether the text has the word at the beginning of one of its parts; separators in the word do not matter.

    >>> has("AttentionPool2d", "attention-pool"), has("AttentionPool2d", "pool2d"), has("AttentionPool2d", "tension")
    (True, True, False)
    """
    sought, parts = _joined(word), pieces(text)
    if not sought or sought not in _joined(text):  # quick test: most texts fail it
        return False
    return any(_begins(parts[place:], sought) for place in range(len(parts)))


@functools.cache
def _joined(text):
    return "".join(pieces(text))


def _begins(parts, sought):
    """Returns whether the joined parts begin with ``sought``; see :data:`ENOUGH` for a word that ends within a part."""
    for place, part in enumerate(parts):
        if part.startswith(sought):
            return place == 0 or part == sought or len(sought) >= ENOUGH
        if not sought.startswith(part):
            return False
        sought = sought[len(part) :]
    return False


def has_all(text, words):
    """Returns whether the text has each of the words, or all of them joined as one name."""
    return all(has(text, word) for word in words) or has(text, "".join(words))


def nothing_found(sentence, words, names, more=""):
    """Prints a sentence to standard error, with up to five names that are similar to the words, best first.

    Returns the exit status of a search without a result.
    """
    plain = {"".join(pieces(name)): name for name in names}
    near = difflib.get_close_matches("".join(pieces(" ".join(words))), plain, n=5, cutoff=0.5)
    hint = f" Near it: {', '.join(plain[each] for each in near)}." if near else ""
    print(f"{sentence}{hint}{more}", file=sys.stderr)
    return NOTHING_FOUND
