"""Links and side bar of the site, made from pages whose links are those of the repository.

The side bar is ``docs/README.md``: its headings are the captions, and its lists the pages. A ``README.md`` in a
subfolder lists the pages of that folder in the same way.
"""

import posixpath
import re
from pathlib import Path

from site_notebooks import with_pictures
from site_tabs import tabbed

from attnpool_ref.table import names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
LISTED = re.compile(r"^ *\* \[[^\]]*\]\(([^)#]+)\)", re.MULTILINE)
ELSEWHERE = {
    "docs/README.md": "index.md",
    "docs/references.bib": "reference/references.markdown",
    "attnpool_ref/README.md": "reference/index.rst",
    "attnpool_ref/table/names.md": "which.md",
    "docs/interactive/index.html": "project/interactive.rst",
    **{
        f"{name}.md": f"project/{name.lower()}.markdown" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")
    },
}
"""Pages with another path on the site, by their paths from the repository's root and from ``docs/``."""

TERMS = {
    "masks": ("segment_ids", "lengths", "NaN", "padding"),
    "judging": ("torch", "PyTorch", "waiver"),
    "guides/sentence-embeddings": ("left padding",),
    "deploying": ("bfloat16",),
    "scale": ("packed", "chunks"),
}
"""Words, by the page that explains them; a search for such a word shows this page first.

A guide also has the names of ``attnpool find`` that its text has.
"""


def of_page(app, docname, source):
    """Changes the links of a page when Sphinx reads it, and adds toctrees to pages that list others."""
    del app
    if docname.startswith("reference/"):
        return
    folder = posixpath.dirname(docname)
    text = tabbed(moved(source[0], posixpath.join("docs", folder)))
    terms = [*TERMS.get(docname, ()), *(named(source[0]) if folder == "guides" else ())]
    if terms:
        text = re.sub(r"^# .*\n", lambda title: title[0] + index(terms), text, count=1, flags=re.MULTILINE)
    if docname == "index":
        text += "".join(map(toctree, *zip(*captions(), strict=True)))
    elif docname.startswith("notebooks/0"):
        text = with_pictures(text, posixpath.basename(docname))
    elif docname.endswith("/README"):
        text += toctree("", pages_of(source[0], folder))
    source[0] = text


def of_included(app, path, docname, source):
    """Changes the links of a file outside of ``docs/`` that a page of the site includes."""
    del app, docname
    if Path(path).suffix == ".md":
        source[0] = moved(source[0], (DOCS / path).resolve().parent.relative_to(ROOT).as_posix())


def moved(text, folder):
    """Returns the text with links from the site's root to pages that have another path on the site.

    Args:
      text: Markdown.
      folder: the folder of the text, from the repository's root.
    """

    def link(match):
        words, target, place = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target:
            return match[0]
        if path in ELSEWHERE:
            target = f"/{ELSEWHERE[path]}"
        elif not f"{folder}/".startswith("docs/"):
            target = f"/{path.removeprefix('docs/')}" if path.startswith("docs/") else f"/../{path}"
        named = words.endswith(".md") and posixpath.basename(words) == posixpath.basename(path)
        return f"[{'' if named else words}]({target}{place})"  # a link without words gets the title of its page

    return LINK.sub(link, text)


def captions():
    """Returns the sections of ``docs/README.md``: the caption and the pages of each."""
    _, *sections = re.split(r"^## ", (DOCS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(section.partition("\n")[0], pages_of(section, "")) for section in sections]


def pages_of(text, folder):
    """Returns the site's pages in a Markdown list, from the site's root."""
    paths = (posixpath.normpath(posixpath.join("docs", folder, target)) for target in LISTED.findall(text))
    pages = ["/" + posixpath.splitext(ELSEWHERE.get(path, path.removeprefix("docs/")))[0] for path in paths]
    return [f"README <{page}>" if page == "/project/readme" else page for page in pages]  # its title is the project's


def toctree(caption, pages):
    """Returns a hidden toctree in Markdown."""
    options = f":caption: {caption}\n" if caption else ""
    return f"\n\n```{{toctree}}\n:hidden:\n{options}\n" + "\n".join(pages) + "\n```\n"


def named(text):
    """Returns the names of functions in other libraries and papers that a text has, as whole words."""
    known = dict.fromkeys(name for entry in names.entries() for name in entry.names)
    return [name for name in known if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)]


def index(terms):
    """Returns index entries as one directive in Markdown; a separate target would have no text to show."""
    return "\n```{eval-rst}\n.. index::\n" + "".join(f"   ! single: {term}\n" for term in terms) + "```\n"
