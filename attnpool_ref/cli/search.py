"""Search in the names of papers and libraries, and ``attnpool find`` as plain text, for which no extra is needed.

Search words match names in any spelling: "max-sim" and "max sim" match MaxSim.
"""

import difflib
import functools
import re
import shutil
import sys
import textwrap
import unicodedata

from attnpool_ref.cli import NOTHING_FOUND

UNBOUNDED = 160
"""Columns of output that does not go to a terminal."""

LEGEND = (
    "x [..., L, d] are tokens, mask [..., L] says which are real; q, kernels, biases and functions are yours. "
    "`attnpool show NAME` says more of a function."
)

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u4e00-\u9fff]")
"""Pattern of a part of a name: a run of capitals, a word, a number, one Chinese character."""

_BRITISH = re.compile(r"(?<=al|ar)is(?=(?:e[ds]?|ing|ation)$)")

ENOUGH = 3
"""Smallest number of letters that match only the beginning of a part, if those before them match the parts before it.

So "hopfield pool" matches HopfieldPooling, but "berts" does not match the text "BERT; sentence".
"""


def find(words, show=None):
    """Finds the entries that have all of the words; returns the exit status, 0 or, if there are none, 1.

    ``show`` prints a list of entries; None prints them as plain text.
    """
    words = " ".join(words).split()  # an argument of the command may have several words
    found = search(words, entries())
    if not found:
        known = [name for entry in entries() for name in (*entry.names, *entry.functions)]
        return nothing_found(f"Nothing is called {' '.join(words)!r} here.", words, known)
    (show or _plain)(found)
    return 0


def _plain(found):
    width = shutil.get_terminal_size((UNBOUNDED, 24)).columns
    fill = functools.partial(textwrap.fill, width=width, break_on_hyphens=False)
    for entry in found:
        first, *others = entry.names
        print(fill(f"{first}; {', '.join(others)}" if others else first))
        for lines in lines_of(entry, width):
            print(textwrap.indent("\n".join(lines), "    "))
        facts = {name: text for name, text in facts_of(entry).items() if text}
        room = max(map(len, facts), default=0) + 6
        for name, text in facts.items():
            print(fill(text, initial_indent=f"    {name}".ljust(room), subsequent_indent=" " * room))
        print()
    print(fill(LEGEND))


def lines_of(entry, width):
    """Yields the lines in which each line of an entry's code is printed; it is not broken if it fits."""
    for line in entry.call.splitlines():
        yield textwrap.wrap(line, width - 4, subsequent_indent="    ", break_on_hyphens=False)


def facts_of(entry):
    """Returns the facts that are printed of an entry, by name; those that it lacks are ""."""
    module = f"attnpool_flax.{entry.module}" if entry.module else ""
    return {"module": module, "source": entry.source, "note" if entry.call else "instead": entry.differs}


def entries():
    """Returns the entries of the index that this version can show."""
    from attnpool_ref.table import names  # takes a while, and only these entries need it

    return [entry for group in names.GROUPS for entry in group.shown]


def search(words, entries):
    """Returns the entries whose names, call, module and source together have all of the words; exact names come first."""
    sought = "".join(pieces("".join(words)))

    def distance(entry):
        if any("".join(pieces(name)) == sought for name in entry.names):
            return 0
        if entry.call.startswith(f"{''.join(words)}("):
            return 1
        return 2 if any(has_all(name, words) for name in entry.names) else 3

    def text(entry):
        return " ; ".join([*entry.names, entry.call, entry.module, entry.source])

    return sorted((entry for entry in entries if has_all(text(entry), words)), key=distance)


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
