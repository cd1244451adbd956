"""Bibliography: reads ``docs/references.bib``, writes ``attnpool_ref/table/sources.py`` and a page of the site."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIB, MODULE = ROOT / "docs/references.bib", ROOT / "attnpool_ref/table/sources.py"

INTRODUCTION = """
# References

Every paper, book and website that the documentation names. `attnpool list` and `attnpool show` name sources by these
keys. [references.bib](/references.bib) has the same entries for LaTeX.
""".strip()

MODULE_HEAD = '''"""Sources of the functions: papers, books and software. Written from ``docs/references.bib`` by ``make docs``, not by hand."""'''


@dataclass(frozen=True)
class Reference:
    """One entry of the bibliography.

    Attributes:
      key: the key of the entry.
      authors: last names, in order; only the first of many.
      others: whether there are more authors.
      title: the title, followed by the usual name of the method in parentheses if the title does not contain it.
      venue: conference, journal or institution, or "".
      year: four digits, or "".
      arxiv: the arXiv number, or "".
    """

    key: str
    authors: tuple[str, ...]
    others: bool
    title: str
    venue: str
    year: str
    arxiv: str

    def __str__(self):
        authors = ", ".join(self.authors) + " et al." * self.others
        journal = re.search(r"\d|,", self.venue)
        place = (", " if journal else " ").join(filter(None, (self.venue, self.year)))
        end = "" if self.title.endswith("?") else "."
        return f"{authors}: {self.title}{end} {place}." if authors else f"{self.title}."


def read():
    """Returns the entries by key, in the order of the file."""
    entries = re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", BIB.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return {
        key: _reference(key, dict(re.findall(r"^  (\w+) = \{(.*)\},$", text, re.MULTILINE))) for key, text in entries
    }


def _reference(key, fields):
    names = tuple(name.strip("{}") for name in fields.get("author", "").split(" and ") if name)
    venue = fields.get("booktitle") or fields.get("journal") or fields.get("howpublished", "")
    return Reference(
        key,
        tuple(name for name in names if name != "others"),
        "others" in names,
        fields["title"].strip("{}"),
        venue,
        fields.get("year", ""),
        fields.get("eprint", ""),
    )


def page():
    """Returns the text of the site's page."""
    lines = [f"* `{reference.key}`: {reference}{_link(reference)}" for reference in read().values()]
    return INTRODUCTION + "\n\n" + "\n".join(lines) + "\n"


def _link(reference):
    return f" [arXiv:{reference.arxiv}](https://arxiv.org/abs/{reference.arxiv})" if reference.arxiv else ""


def module():
    """Returns the text of ``attnpool_ref/table/sources.py``."""
    lines = [f'    "{reference.key}": "{reference}",' for reference in read().values()]
    return "\n".join(
        [MODULE_HEAD, "", "SOURCES = {", *lines, "}", '"""References by the rows\' ``source`` keys."""', ""]
    )


if __name__ == "__main__":
    MODULE.write_text(module(), encoding="utf-8")
