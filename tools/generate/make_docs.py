"""Generator of the pages ``variants``, ``which`` and ``heads`` from tables and docstrings."""

import importlib
import inspect
import re
import textwrap
from itertools import groupby
from pathlib import Path

from introductions import (
    FAMILIES,
    HEADS_INTRODUCTION,
    INTRODUCTION,
    MODULES_INTRODUCTION,
    WHICH_INTRODUCTION,
)

import attnpool_flax
import attnpool_ref
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import formats, plot, table
from attnpool_ref.cli.heads import given, load_of
from attnpool_ref.table import names
from attnpool_ref.table.language import OrFunction

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PATH, WHICH_PATH, HEADS_PATH = DOCS / "variants.md", DOCS / "which.md", DOCS / "heads.md"
STATES = (attnpool_ref.merge_states, attnpool_ref.finalize_state)
"""Functions of states, which have no row in the table."""

UNLISTED = (
    (
        "Lists of sequences",
        "Arrays from lists of sequences that differ in length, and back. The same names are in both packages.",
        (attnpool_ref.pad, attnpool_ref.pack, attnpool_ref.unpack),
    ),
    (
        "Pictures",
        "Heat maps of attention weights. `import attnpool_ref.plot` needs matplotlib: in a clone `pip install -e '.[plot]'`.",
        (plot.show_weights, plot.show_heatmaps),
    ),
)
"""Sections of other functions without a row: title, introduction, functions."""

MODULE_ARGUMENTS = {"dropout_rate": "`dropout_rate`", "segment_ids": "packed tokens", "axis_name": "`axis_name`"}
"""What the table of modules says of a module, by an argument of its constructor or of its call."""

SECTIONS = ("Args", "Returns", "Raises", "Source")


def page():
    """Returns the text of the page of variants."""
    parts = [INTRODUCTION]
    for family, rows in groupby(table.BY_NAME.values(), key=lambda row: row.family):
        module = importlib.import_module(f"attnpool_ref.{family}")
        introduction = [inspect.getdoc(module).partition("\n\n")[0], *filter(None, [FAMILIES.get(family)])]
        parts += [f"## {family}", *introduction, *map(_variant, rows)]
        parts += [_of_states(function) for function in STATES if function.__module__ == module.__name__]
    for title, introduction, functions in UNLISTED:
        parts += [f"## {title}", introduction, *map(_unlisted, functions)]
    parts += ["## Flax modules", MODULES_INTRODUCTION, _modules()]
    return "\n\n".join(parts) + "\n"


def which_page():
    """Returns the text of the page of names."""
    parts = [WHICH_INTRODUCTION]
    for group in names.GROUPS:
        if group.shown:
            parts += [f"## {group.title}", *map(_known, group.shown)]
    return "\n\n".join(parts) + "\n"


def heads_page():
    """Returns the text of the page of trained heads."""
    parts = [HEADS_INTRODUCTION]
    for row in formats.FORMATS.values():
        facts = [
            f"* Required arguments of `load`, besides file and format: {given(row).replace('nothing', 'none').replace('; by default', '. Default:')}.",
            *([f"* Usual prefix in a file: `{row.usual}`"] if row.usual else []),
            f"* Module: `{row.module}`",
            f"* Largest difference from the original's results, relative to the largest of them: {row.verified}.",
            *([f"* {row.notes}"] if row.notes else []),
            f"* Source: {row.source}",
        ]
        parts += [
            f"## {row.name}\n\nLoads {row.title}.",
            f"```text\n{load_of(row)}\n```",
            "\n".join(facts),
        ]
    return "\n\n".join(parts) + "\n"


def _known(entry):
    """Returns the text for a name: its other names, the call, the module, the source, the note."""
    first, *others = entry.names
    facts = [
        *([f"* Also: {', '.join(others)}"] if others else []),
        *([f"* Module: `{entry.module}`"] if entry.module else []),
        f"* Source: {entry.source}",
        f"* {'Note' if entry.call else 'Instead'}: {entry.differs}",
    ]
    return "\n\n".join([f"### {first}", *([f"```python\n{entry.call}\n```"] if entry.call else []), "\n".join(facts)])


def _variant(row):
    sections = _parts(inspect.getdoc(getattr(attnpool_ref, row.name)))[1]
    facts = [
        f"* shapes: `{_plain(row.shapes)}`" + (", the shape that `finalize_state(state)` returns" if row.state else "")
    ]
    if row.weights:
        facts.append(f"* `return_weights=True` also returns the weights: `{row.weights}`")
    facts += [f"* `{key}` is one of {_choices(names)}" for key, names in _named_options(row)]
    facts.append(_in_jax(row.name))
    if row.module:
        facts.append(f"* Flax module: `{row.module}`")
    facts.append(f"* source: {_inline(sections['Source'])} `{row.source}`")
    return _section(row.name, facts)


def _modules():
    """Returns the table of the modules: the function of each, and which optional arguments it takes."""
    lines = ["| module | function | takes |", "| --- | --- | --- |"]
    for name, spec in SPECS.items():
        made = getattr(attnpool_flax, name)
        taken = " ".join({**inspect.signature(made).parameters, **inspect.signature(made.__call__).parameters})
        has = ", ".join(words for key, words in MODULE_ARGUMENTS.items() if key in taken)
        lines.append(f"| `{name}` | `{spec.function}` | {has} |".replace("  ", " "))
    return "\n".join(lines)


def _of_states(function):
    """Returns the section of a function of states."""
    name, sections = function.__name__, _parts(inspect.getdoc(function))[1]
    return _section(name, [_in_jax(name), f"* source: {_inline(sections['Source'])}"])


def _unlisted(function):
    """Returns the section of a function without a row in the table."""
    body, sections, example = _parts(inspect.getdoc(function))
    package, _, module = function.__module__.partition(".")
    name = function.__name__ if function.__name__ in attnpool_ref.__all__ else f"{package}.{module}.{function.__name__}"
    facts = [f"* source: {_inline(sections['Source'])}"] if "Source" in sections else []
    return "\n\n".join(
        [
            f"### {function.__name__}",
            _blocks(body),
            f"```python\n{name}{inspect.signature(function)}\n```",
            *facts,
            "Arguments:\n\n" + _arguments(sections["Args"]),
            f"Returns: {_inline(sections['Returns'])}",
            f"Raises {_inline(sections['Raises'])}",
            *([f"```pycon\n{example}\n```"] if example else []),
        ]
    )


def _in_jax(name):
    """Returns the arguments that only the function of ``attnpool_flax`` has."""
    signature = inspect.signature(getattr(attnpool_ref, name))
    in_jax = inspect.signature(getattr(attnpool_flax, name)).parameters.items()
    added = [f"`{parameter}`" for key, parameter in in_jax if key not in signature.parameters]
    return (
        f"* [only in attnpool_flax](#variants): {', '.join(added)}" if added else "* attnpool_flax: the same signature"
    )


def _section(name, facts):
    function = getattr(attnpool_ref, name)
    body, sections, example = _parts(inspect.getdoc(function))
    return "\n\n".join(
        [
            f"### {name}",
            _blocks(body),
            f"```python\n{name}{inspect.signature(function)}\n```",
            "\n".join(facts),
            "Arguments:\n\n" + _arguments(sections["Args"]),
            f"Returns: {_inline(sections['Returns'])}",
            f"Raises {_inline(sections['Raises'])}",
            f"```pycon\n{example}\n```",
        ]
    )


def _choices(names):
    or_function = ["a function"] if isinstance(names, OrFunction) else []
    return ", ".join([f"`{name!r}`" for name in names] + or_function)


def _named_options(row):
    return [(key, allowed) for key, allowed in row.options.items() if isinstance(allowed, tuple)]


def _parts(docstring):
    """Returns the text before the sections, the sections by name, and the example."""
    head, _, rest = docstring.partition("\nArgs:\n")
    rest, _, example = ("Args:\n" + rest).partition("\n>>> ")
    pieces = re.split(rf"^({'|'.join(SECTIONS)}):\n", rest, flags=re.MULTILINE)[1:]
    sections = {name: textwrap.dedent(text).strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}
    return head.strip(), sections, ">>> " + example.strip() if example else ""


def _blocks(body):
    """Returns the docstring's head in Markdown: displayed mathematics, then inline roles."""
    return re.sub(
        r"^\.\. math:: (.*(?:\n[ \t]+.*)*)",
        lambda match: "```math\n" + re.sub(r"\s*\n\s*", "\n", match[1]) + "\n```",
        _roles(body),
        flags=re.MULTILINE,
    )


def _roles(text):
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    return re.sub(r":(?:func|mod|data|class):`([^`]*)`", r"`\1`", text).replace("``", "`")


def _inline(text):
    return _roles(re.sub(r"\s*\n\s*", " ", text))


def _arguments(text):
    entries = re.split(r"\n(?=\w+: )", text)
    return "\n".join(f"* `{name}`: {_inline(rest)}" for name, _, rest in (entry.partition(": ") for entry in entries))


def _plain(shapes):
    """Returns the shapes without the marks that only the checks read."""
    return re.sub(r":\w+", "", shapes.replace("?~", "?"))


if __name__ == "__main__":
    PATH.write_text(page())
    WHICH_PATH.write_text(which_page())
    HEADS_PATH.write_text(heads_page())
