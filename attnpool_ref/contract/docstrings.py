"""Parser and writer of docstrings: a summary, paragraphs, sections with entries, an example."""

import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace

from attnpool_ref.table.language import Needs, NotZero, OrFunction

TITLES = ("Args", "Returns", "Raises", "Source", "In JAX", "Packed")
"""Titles of sections, in their order. ``Packed`` has text for the packed function only, and is not shown in help."""

WIDTH = 120


@dataclass(frozen=True)
class Docstring:
    """Parts of one docstring.

    Attributes:
      paragraphs: the summary and the paragraphs after it, before the first section.
      sections: the lines of each section, by its title.
      example: the example, or an empty text.
      packed_example: the example in the section ``Packed``, or an empty text.
    """

    paragraphs: tuple[str, ...]
    sections: Mapping[str, str]
    example: str = ""
    packed_example: str = ""

    def entries(self, title):
        """Returns the entries ``name: text`` of a section, by name; an empty dict if there is no such section."""
        found, name = {}, ""
        for line in self.sections.get(title, "").splitlines():
            if line.startswith(" "):  # continues an entry
                found[name] += f"\n{line}"
            else:
                name, _, text = line.partition(": ")
                found[name] = text
        return found

    def with_section(self, title, text):
        """Returns a copy with another text of a section, or without the section if the text is empty."""
        return replace(self, sections={**self.sections, title: text})

    def with_entries(self, title, entries):
        """Returns a copy with more entries at the end of a section: a dict from names to texts, which are wrapped."""
        lines = [self.sections.get(title, ""), *(filled(f"{name}: {text}", "  ") for name, text in entries.items())]
        return self.with_section(title, "\n".join(filter(None, lines)))

    def without_packed(self):
        """Returns a copy without the section ``Packed`` and its example."""
        sections = {title: text for title, text in self.sections.items() if title != "Packed"}
        return replace(self, sections=sections, packed_example="")

    def __str__(self):
        shown = [title for title in TITLES if self.sections.get(title) or (title == "Packed" and self.packed_example)]
        sections = {title: f"{title}:\n{textwrap.indent(self.sections[title], '  ')}".rstrip() for title in shown}
        packed = sections.pop("Packed", "")
        return "\n\n".join(
            filter(None, [*self.paragraphs, *sections.values(), self.example, packed, self.packed_example])
        )


@functools.cache  # a definition's text is needed for its help, its packed function, its state, its twin and its module
def parse(text):
    """Parses the text that :func:`inspect.getdoc` returns; the result is empty if Python strips docstrings."""
    paragraphs, sections, examples, title = [], {}, {}, None
    for block in filter(None, (text or "").split("\n\n")):
        first, _, rest = block.partition("\n")
        if first.endswith(":") and first[:-1] in TITLES:
            title = first[:-1]
            sections[title] = textwrap.dedent(rest)
        elif block.startswith(">>> "):
            examples["packed_example" if title == "Packed" else "example"] = block
        elif title is None:
            paragraphs.append(block)
        else:  # a section's next paragraph
            sections[title] += f"\n\n{textwrap.dedent(block)}"
    return Docstring(tuple(paragraphs), sections, **examples)


def of(function):
    """Parses a function's docstring."""
    return parse(inspect.getdoc(function))


def with_errors(row, function):
    """Returns the docstring of a definition; without a section ``Raises`` it gets the errors that follow from the row."""
    found = of(function)
    if not found.paragraphs or "Raises" in found.sections:  # Python strips docstrings (``-OO``)
        return function.__doc__
    return str(found.with_section("Raises", filled(f"ValueError: {_errors(row)}.", "  ")))


def _errors(row):
    masks = [key for key, argument in row.arguments.items() if argument.kind == "mask"]
    of_masks = [f"{'the' if len(masks) == 1 else 'a'} mask has a float dtype"] if masks else []
    of_weights = ["the weights are boolean (then they are probably a mask)"] if "weights" in row.arguments else []
    named = [f"the {option}" for option, values in row.options.items() if isinstance(values, tuple)]
    reasons = [
        "shapes disagree",
        *of_masks,
        *of_weights,
        *(f"``{r.argument}`` is given without ``{r.option}``" for r in row.relations if isinstance(r, Needs)),
        *(f"``{r.argument}`` is 0 without ``{r.option}``" for r in row.relations if isinstance(r, NotZero)),
        *([f"{' or '.join(named)} is unknown"] if named else []),
        *(
            f"``{option}`` is narrower than the arguments"
            for option, values in row.options.items()
            if values == "dtype"
        ),
        *(f"``{option}`` is less than 1" for option, values in row.options.items() if values == "positive"),
    ]
    if any(isinstance(values, OrFunction) for values in row.options.values()):
        reasons.append("a normalizer function returns weights of another shape than its scores")
    if "axis" in row.options:
        reasons = [f"{text} or does not broadcast" for text in of_masks]
        reasons.append(f"``{next(iter(row.arguments))}`` has no axis ``axis``")
    *others, last = reasons
    return f"if {', if '.join(others)}, or if {last}" if others else f"if {last}"


def help_text(function):
    """Returns the docstring of a function without its section ``Packed``, which is for the packed function only."""
    found = of(function)
    return function.__doc__ if "Packed" not in found.sections else str(found.without_packed())


@functools.cache  # modules and packed functions repeat entries
def filled(text, subsequent_indent=""):
    """Wraps a paragraph of a section to the line width."""
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(" ".join(text.split()), WIDTH - 2, subsequent_indent=subsequent_indent, **options)
