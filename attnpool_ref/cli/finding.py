"""``attnpool find``: search for a function by the names that papers and other libraries have for it."""

import ast
import functools
import textwrap
from importlib.util import find_spec
from pathlib import Path

from rich.padding import Padding
from rich.text import Text

from attnpool_ref.cli import matching
from attnpool_ref.cli.listing import console, facts
from attnpool_ref.table import names

LEGEND = (
    "x [..., L, d] are tokens, mask [..., L] says which are real; q, kernels, biases and functions are yours. "
    "`attnpool show NAME` says more of a function."
)


def run(words):
    """Prints the entries that have all of the words; returns the exit status, 0 or, if there are none, 1."""
    words = " ".join(words).split()  # an argument of the command may have several words
    found = search(words, entries())
    if not found:
        known = [name for entry in entries() for name in (*entry.names, *entry.functions)]
        return matching.nothing_found(f"Nothing is called {' '.join(words)!r} here.", words, known)
    out = console()
    for entry in found:
        _print(out, entry)
    out.print(Text(LEGEND, "dim"))
    return 0


def entries():
    """Returns the entries of the index that this version can show."""
    return [entry for group in names.GROUPS for entry in group.shown]


def search(words, entries):
    """Returns the entries whose names, call, module and source together have all of the words; exact names come first."""
    sought = "".join(matching.pieces("".join(words)))

    def distance(entry):
        if any("".join(matching.pieces(name)) == sought for name in entry.names):
            return 0
        if entry.call.startswith(f"{''.join(words)}("):
            return 1
        return 2 if any(matching.has_all(name, words) for name in entry.names) else 3

    def text(entry):
        return " ; ".join([*entry.names, entry.call, entry.module, entry.source])

    return sorted((entry for entry in entries if matching.has_all(text(entry), words)), key=distance)


@functools.cache
def modules():
    """Returns the names of the module classes of attnpool_flax, from its stub: importing them needs JAX."""
    spec = find_spec("attnpool_flax")
    folder = next(iter((spec and spec.submodule_search_locations) or ()), None)
    stub = Path(folder, "__init__.pyi").read_text(encoding="utf-8") if folder else ""
    imports = [node for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.ImportFrom)]
    modules = [alias for node in imports if "modules" in (node.module or "") for alias in node.names]
    return frozenset(
        alias.name for alias in modules if alias.asname and alias.name[0].isupper()
    )  # "import X as X" makes a name public


def module_of(entry):
    """Returns the name of an entry's module if this version has it, or ""."""
    return entry.module if entry.module in modules() else ""


def _print(out, entry):
    first, *others = entry.names
    out.print(Text.assemble((first, "bold"), f"; {', '.join(others)}" if others else ""))
    for line in entry.call.splitlines():  # lines of code are not broken if they fit, so that they can be copied
        lines = textwrap.wrap(line, out.width - 4, subsequent_indent="    ", break_on_hyphens=False)
        out.print(Padding(Text("\n".join(lines), "cyan"), (0, 0, 0, 4), expand=False))
    module = module_of(entry)
    entries = {
        "    module": f"attnpool_flax.{module}" if module else "",
        "    source": entry.source,
        "    note" if entry.call else "    instead": entry.differs,
    }
    out.print(facts(entries.items()))
    out.print()
