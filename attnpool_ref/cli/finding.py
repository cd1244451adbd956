"""``attnpool list`` and ``attnpool find``: search in the table of functions and in the names of papers and libraries.

Search words match names in any spelling: "max-sim" and "max sim" match MaxSim. ``attnpool find`` works without the extra
``cli``, as plain text, so rich is imported only where it is used.
"""

import difflib
import functools
import inspect
import itertools
import os
import re
import shlex
import shutil
import sys
import textwrap
import unicodedata

from attnpool_ref import cli, table
from attnpool_ref.cli import NOTHING_FOUND
from attnpool_ref.table import names

UNBOUNDED = 160  # columns of output that does not go to a terminal
TABULAR = 130  # columns; below, names and definitions would be cut into pieces

LEGEND = (
    "x [..., L, d] are tokens, mask [..., L] says which are real; q, kernels, biases and functions are yours. "
    "`attnpool show NAME` says more of a function."
)

_PIECE = re.compile(r"[A-Z]+(?=v\d)|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u4e00-\u9fff]")
"""Pattern of a part of a name: a run of capitals, a word, a number, one Chinese character."""

_BRITISH = re.compile(r"(?<=al|ar)is(?=(?:e[ds]?|ing|ation)$)")

BEST = 5
"""Number of entries that ``attnpool find`` prints without ``--all``; a sixth that is the last is printed too."""

ENOUGH = 3
"""Smallest number of letters that match only the beginning of a part, if those before them match the parts before it.

So "hopfield pool" matches HopfieldPooling, but "berts" does not match the text "BERT; sentence".
"""


def console(file=None):
    """Returns a console as wide as the terminal; without a terminal, wide enough for the tables.

    The environment variable ``COLUMNS`` sets another width, with or without a terminal.
    """
    from rich.console import Console

    file = file or sys.stdout
    return Console(file=file, width=None if file.isatty() or "COLUMNS" in os.environ else UNBOUNDED, highlight=False)


def facts(entries, style="dim"):
    """Returns (name, text) pairs as a table without lines; those without a text are left out."""
    from rich.table import Table
    from rich.text import Text

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
    from rich.table import Table
    from rich.text import Text

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
    from rich.padding import Padding
    from rich.text import Text

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


def find(words, everything=False):
    """Prints the best entries that have all of the words, or else the functions; returns 0, or 1 if there are none.

    Args:
      words: the words, as written in the command.
      everything: whether to print all of them, in place of the best :data:`BEST`.
    """
    words = " ".join(words).split()  # an argument of the command may have several words
    found = search(words, names.entries()) or search(words, functions())
    if not found:
        known = [name for entry in names.entries() for name in (*entry.names, *entry.functions)]
        return nothing_found(f"Nothing is called {' '.join(words)!r} here.", words, known)
    shown = found if everything or len(found) == BEST + 1 else found[:BEST]
    hidden = len(found) - len(shown)
    more = f"{hidden} more: attnpool find --all {shlex.join(words)}" if hidden else ""
    (_print_plain if cli.missing("cli") else _print)(shown, more)
    return 0


def functions():
    """Returns an entry for each function, with its name and the names in parentheses in its first line."""
    import attnpool_ref

    for row in table.VARIANTS:
        function = getattr(attnpool_ref, row.name)
        first = (inspect.getdoc(function) or "").partition("\n")[0].replace("``", "`")
        others = [name for inner in re.findall(r"\(([^)]*)\)", first) for name in inner.split(", ")]
        parameters = inspect.signature(function).parameters.values()
        arguments = ", ".join(one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)
        source = table.SOURCES[row.source]
        yield names.Entry((row.name, *others), f"{row.name}({arguments})", source, first, row.module)


def search(words, entries):
    """Returns the entries that have all of the words, exact names first.

    Words match whole parts of the names, the call, the module and the source. Only if no entry has them, a word may also be
    the beginning of a part of a name. So "DIN" does not find DINOv3, and "keepdim" no call with ``keepdims=True``.
    """
    sought, joined = "".join(pieces("".join(words))), "".join(words)

    def distance(entry):
        if any("".join(pieces(name)) == sought for name in entry.names):
            return 0
        if entry.call.startswith(f"{joined}("):
            return 1
        return 2 if any(has_all(name, words) for name in entry.names) else 3

    def found(entry, whole):
        name, other = " ; ".join(entry.names), " ; ".join([entry.call, entry.module, entry.source])
        each = all(has(name, word, whole) or has(other, word, whole=True) for word in words)
        return each or has(name, joined, whole) or has(other, joined, whole=True)

    entries = tuple(entries)
    best = [entry for entry in entries if found(entry, whole=True)]
    return sorted(best or (entry for entry in entries if found(entry, whole=False)), key=distance)


def _print(found, more):
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    for entry in found:
        first, *others = entry.names
        out.print(Text.assemble((first, "bold"), f"; {', '.join(others)}" if others else ""))
        for lines in _code(entry, out.width):
            out.print(Padding(Text("\n".join(lines), "cyan"), (0, 0, 0, 4), expand=False))
        out.print(facts((f"    {name}", text) for name, text in _facts(entry).items()))
        out.print()
    if more:
        out.print(more, markup=False)
    out.print(Text(LEGEND, "dim"))


def _print_plain(found, more):
    width = shutil.get_terminal_size((UNBOUNDED, 24)).columns
    fill = functools.partial(textwrap.fill, width=width, break_on_hyphens=False)
    for entry in found:
        first, *others = entry.names
        print(fill(f"{first}; {', '.join(others)}" if others else first))
        for lines in _code(entry, width):
            print(textwrap.indent("\n".join(lines), "    "))
        facts = {name: text for name, text in _facts(entry).items() if text}
        room = max(map(len, facts), default=0) + 6
        for name, text in facts.items():
            print(fill(text, initial_indent=f"    {name}".ljust(room), subsequent_indent=" " * room))
        print()
    if more:
        print(fill(more))
    print(fill(LEGEND))


def _code(entry, width):
    """Yields the lines in which each line of an entry's code is printed; it is not broken if it fits, to be copied."""
    for line in entry.call.splitlines():
        yield textwrap.wrap(line, width - 4, subsequent_indent="    ", break_on_hyphens=False)


def _facts(entry):
    module = f"attnpool_flax.{entry.module}" if entry.module else ""
    return {"module": module, "source": entry.source, "note" if entry.call else "instead": entry.note}


@functools.cache
def pieces(text):
    """Splits a name into words and numbers, in lower case, without accents, with z in words such as generalised.

    >>> pieces("x-vector, NetVLAD, AttentionPool2d")
    ('x', 'vector', 'net', 'vlad', 'attention', 'pool', '2', 'd')
    >>> pieces("DINOv3")
    ('dino', 'v', '3')
    >>> pieces("Radenović")
    ('radenovic',)
    """
    plain = unicodedata.normalize("NFKD", text)  # Radenovic finds Radenović
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return tuple(_BRITISH.sub("iz", piece.lower()) for piece in _PIECE.findall(plain))


def has(text, word, whole=False):
    """Returns whether the text has the word at the beginning of one of its parts; separators in the word do not matter.

    With ``whole`` the word must also end with a part.

    >>> has("AttentionPool2d", "attention-pool"), has("AttentionPool2d", "pool2d"), has("AttentionPool2d", "tension")
    (True, True, False)
    >>> has("keepdims", "keepdim"), has("keepdims", "keepdim", whole=True), has("a, keepdims", "keepdims", whole=True)
    (True, False, True)
    """
    sought, parts = _joined(word), pieces(text)
    if not sought or sought not in _joined(text):  # quick test: most texts fail it
        return False
    return any(_begins(parts[place:], sought, whole) for place in range(len(parts)))


@functools.cache
def _joined(text):
    return "".join(pieces(text))


def _begins(parts, sought, whole):
    """Returns whether the joined parts begin with ``sought``; see :data:`ENOUGH` for a word that ends within a part."""
    for place, part in enumerate(parts):
        if part.startswith(sought):
            return part == sought or (not whole and (place == 0 or len(sought) >= ENOUGH))
        if not sought.startswith(part):
            return False
        sought = sought[len(part) :]
    return False


def has_all(text, words):
    """Returns whether the text has each of the words, or all of them joined as one name."""
    return all(has(text, word) for word in words) or has(text, "".join(words))


def nothing_found(sentence, words, known, more=""):
    """Prints a sentence to standard error, with up to five of the known names that are similar to the words, best first.

    Returns the exit status of a search without a result.
    """
    plain = {"".join(pieces(name)): name for name in known}
    near = difflib.get_close_matches("".join(pieces(" ".join(words))), plain, n=5, cutoff=0.5)
    hint = f" Near it: {', '.join(plain[each] for each in near)}." if near else ""
    print(f"{sentence}{hint}{more}", file=sys.stderr)
    return NOTHING_FOUND
