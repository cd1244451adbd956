"""``attnpool formats`` and ``attnpool inspect``: trained heads of other libraries."""

import json
import os
from pathlib import Path

from rich.padding import Padding
from rich.text import Text

from attnpool_ref import formats
from attnpool_ref.cli import NOTHING_FOUND
from attnpool_ref.cli.exits import Refused
from attnpool_ref.cli.finding import console, facts, has_all, nothing_found
from attnpool_ref.formats.row import GIVEN
from attnpool_ref.formats.sources.folders import remedy

LEGEND = (
    "attnpool_flax.load(source, format, ...) makes a module of them; `attnpool inspect FILE` says which fit a file."
)


def list_formats(words=()):
    """Prints the formats that have all of the words: name, module, library, required options, source.

    Returns the exit status: 0, or 1 if there are none.
    """
    words = " ".join(words).split()
    rows = [row for row in formats.FORMATS.values() if has_all(_text(row), words)]
    if not rows:
        sentence, more = f"No format has {' '.join(words)!r}.", " `attnpool formats` lists them."
        return nothing_found(sentence, words, formats.FORMATS, more)
    out = console()
    for row in sorted(rows, key=lambda row: [row.name] != words):  # a format with exactly this name comes first
        out.print(Text.assemble((row.name, "bold"), "  ", (row.module, "cyan")))
        out.print(Padding(Text(row.title), (0, 0, 0, 4), expand=False))
        entries = {"give": given(row), "usual prefix": row.usual, "differs by": row.verified, "note": row.notes}
        entries["source"] = row.source
        out.print(facts((f"    {name}", text) for name, text in entries.items()))
        out.print()
    out.print(Text(LEGEND, "dim"))
    return 0


def _text(row):
    return " ; ".join([row.name, row.module, row.title, row.source, row.usual, row.notes])


def inspect(source):
    """Prints the formats that fit a source, or that nearly do; returns the exit status, 0 or, if none fits, 1.

    Args:
      source: a path, or a mapping as :func:`attnpool_ref.formats.read` takes it, such as what ``torch.load`` returns.

    Raises:
      Refused: the file cannot be read.
    """
    is_path = isinstance(source, (str, os.PathLike))
    try:
        found = formats.examined(source)
    except (ValueError, OSError) as error:
        more = "; in Python, `attnpool_ref.cli.heads.inspect` takes it" if is_path and remedy(Path(source).name) else ""
        raise Refused(f"{error}{more}") from None
    if is_path and Path(source).name in ("", ".."):
        source = Path(source).resolve()
    file, code = (str(source), str(source)) if is_path else ("the mapping", None)
    out = console()
    if not found:
        print(f"No format fits {file}, nor does one nearly. `attnpool formats` lists them.")
        return NOTHING_FOUND
    fits = found[0][2] is None
    out.print(Text(f"{file} holds:" if fits else f"No format fits {file}. Nearest:"))
    rows = [row for row, _, reason, _ in found if reason is None]
    for row, prefix, reason, asked in found:
        nearly = "" if reason is None or not fits else "nearly "
        out.print(Text.assemble("  ", nearly, (row.name, "bold"), "  ", (row.module, "cyan"), f"  prefix {prefix!r}"))
        text = load_of(row, code, prefix if rows.count(row) > 1 else None, asked) if reason is None else reason
        out.print(Padding(Text(text), (0, 0, 0, 4), expand=False))
        if reason is None:
            out.print(Padding(Text(row.title, "dim"), (0, 0, 0, 4), expand=False))
    return 0 if fits else NOTHING_FOUND


def given(row):
    """Describes the options that a call of ``load`` must have for a format, and the defaults of the others."""
    words = ", ".join(_must(row)) or "nothing"
    if row.config:
        words += ", or a folder with its config.json"
    width = row.num_heads if isinstance(row.num_heads, int) else None  # a letter is read from the shapes
    options = {"heads of width": width, "epsilon": row.epsilon, "activation": row.activation}
    defaults = [f"{name} {default}" for name, default in options.items() if default not in (None, GIVEN)]
    return f"{words}; by default {', '.join(defaults)}" if defaults else words


def _must(row):
    """Returns the names of the options that every call needs if the source has no configuration."""
    options = {"num_heads": row.num_heads, "epsilon": row.epsilon, "activation": row.activation}
    return [name for name, default in options.items() if default == GIVEN]


def load_of(row, source=None, prefix=None, asked=None):
    """Returns code that loads a head of this format; ``...`` marks the values that the caller must fill in.

    ``source`` is the file or folder; None writes the name ``source``. ``prefix`` is that of the head's names in the
    file; None leaves it out, so that ``load`` finds it. ``asked`` has the names of the options to fill in; None takes
    those that every call needs if the source has no configuration.
    """
    asked = _must(row) if asked is None else asked
    arguments = ["source" if source is None else json.dumps(str(source)), json.dumps(row.name)]
    arguments += [] if prefix is None else [f"prefix={json.dumps(prefix)}"]
    arguments += [f"{name}=..." for name in asked]
    return f"attnpool_flax.load({', '.join(arguments)})"
