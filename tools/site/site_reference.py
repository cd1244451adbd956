"""Pages of the site that are made from the table (the reference), the bibliography or files of the repository's root.

Each build writes them into folders of ``docs/`` that git ignores.
"""

import inspect
import re
from itertools import groupby
from pathlib import Path

import bibliography

import attnpool_flax
import attnpool_ref
from attnpool_flax import linen, modules
from attnpool_ref import conformance, formats, table
from attnpool_ref.cli import show
from attnpool_ref.cli.heads import given, load_of
from attnpool_ref.table import language, names

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE, PROJECT = DOCS / "reference", DOCS / "project"

WITHOUT_ROW = {"masks": ["pad"], "segments": ["pack", "unpack"], "streaming": ["merge_states", "finalize_state"]}
"""Functions of both packages without a row in the table, by family."""

TITLES = {
    "masks": "Masks, positions and padding",
    "normalizers": "Normalizers: softmax, sparsemax, entmax",
    "scores": "Scores of queries and keys",
    "attention": "Attention: one result for each query",
    "pooling": "Pooling: mean, max, first, last, attention",
    "means": "Sums, order statistics and generalized means",
    "statistics": "Statistics pooling: mean and deviation",
    "additive": "Additive and gated attention pooling (ABMIL)",
    "readouts": "Readouts of sets: Set2Set, VLAD, gated sum",
    "layers": "Layers before and after a pooling",
    "segments": "Packed sequences: functions of segments",
    "pairs": "Pooling of two sequences: MaxSim, cross-attention",
    "decomposition": "Decomposition into similar and dissimilar parts",
    "relations": "Relations of examples, fields and labels",
    "streaming": "Chunks: states, merged and finalized",
}
"""Titles of the pages of functions, by family; results of a search show them."""

SHAPE = re.compile(r"(\[[^\]]*\](?: or \[[^\]]*\])*),? ")
"""Shapes at the start of an argument's description."""

OF_REPOSITORY = ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")
"""Files of the repository's root that are also pages of the site; files that include them end in ``.markdown``."""

JUDGE = """
The judge: check an implementation from Python
==============================================

.. automodule:: attnpool_ref.conformance
   :no-index:

.. currentmodule:: attnpool_ref.conformance

"""

FORMATS = """
Load and save trained heads
===========================

Trained heads of other libraries, into modules and back. :doc:`/heads` is the introduction.

.. currentmodule:: attnpool_flax

.. autofunction:: attnpool_flax.load

.. autofunction:: attnpool_flax.save

In NumPy, without JAX:

.. autofunction:: attnpool_ref.formats.read

.. autofunction:: attnpool_ref.formats.write

The formats
-----------
"""

PLOT = """
Plots of weights: attnpool_ref.plot
===================================

.. automodule:: attnpool_ref.plot
   :members: show_weights, show_heatmaps
   :member-order: bysource
"""

COMMAND = """
The command attnpool
====================

.. click:: attnpool_ref.cli.application:application
   :prog: attnpool
   :nested: full
"""

INTERACTIVE = """
Try it: padding, masks and weights
==================================

.. raw:: html

   <iframe src="../interactive/index.html" title="Padding, masks and weights" class="interactive"
     onload="new ResizeObserver(([{target}]) => this.style.height = `${target.scrollHeight}px`)
       .observe(this.contentDocument.body)"></iframe>
"""


def write():
    """Writes all pages, and removes those of deleted functions; unchanged pages keep their time."""
    pages = {REFERENCE / f"{name}.rst": text for name, text in reference().items()}
    pages |= {PROJECT / f"{name.lower()}.markdown": included(name) for name in OF_REPOSITORY}
    pages[PROJECT / "interactive.rst"] = INTERACTIVE
    pages[REFERENCE / "references.markdown"] = bibliography.page()
    for folder in (REFERENCE, PROJECT):
        for path in {path for path in folder.rglob("*") if path.is_file()} - pages.keys():
            path.unlink()
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def readable_signature(app, what, name, documented, options, signature, returned):
    """Writes the defaults of a signature as in Python, when Sphinx processes it."""
    del app, what, name, documented, options
    return signature and _readable(signature), returned


def tabulated(app, what, name, documented, options, lines):
    """Writes the arguments of a docstring as a table; a page's own object has its sentence and example above it."""
    del app, options
    if what not in ("function", "class", "method"):
        return
    text = inspect.cleandoc("\n".join(lines))
    if name.startswith("attnpool_flax.") and what != "method":
        _, text, _ = _split(text)
    before, args, rest = f"\n{text}".partition("\nArgs:\n")
    if args:
        block, blank, after = rest.partition("\n\n")
        text = f"{before}\n{_table(block, documented, table.BY_NAME.get(name.rpartition('.')[2]))}\n{blank}{after}"
    lines[:] = [*text.split("\n"), ""]


def _split(text):
    """Splits a docstring into its first sentence, the rest, and its example."""
    summary, _, rest = text.partition("\n\n")
    rest, prompt, example = f"\n{rest}".partition("\n>>> ")
    return summary, rest.strip("\n"), prompt.strip("\n") + example.rstrip()


def _table(block, documented, row):
    """Returns the table of the arguments in the block below ``Args:``; a shape is from the text, or from the row."""
    parameters = inspect.signature(documented).parameters
    shapes = language.parse_shapes(row.shapes)[0] if row else {}
    rows = []
    _, *found = re.split(r"^  (\*{0,2}\w+): ", block, flags=re.MULTILINE)
    for name, text in zip(found[::2], found[1::2], strict=True):
        meaning = " ".join(text.split())
        shape = SHAPE.match(meaning)
        if shape:
            meaning, shape = meaning[shape.end() :], shape[1]
        elif name in shapes:
            shape = str(shapes[name]).removeprefix("a ")
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        needed = "" if name.startswith("*") else "required"
        given = needed if default is inspect.Parameter.empty else f"``{_readable(repr(default))}``"
        rows.append((f"``{name}``", f"``{shape}``" if shape else "", given, meaning))
    rows.insert(0, ("Argument", "Shape", "Default", "Meaning"))
    if not any(shape for _, shape, *_ in rows[1:]):
        rows = [(name, *others) for name, _, *others in rows]
    items = "\n".join("   * - " + "\n     - ".join(row) for row in rows)
    return f"\n.. list-table::\n   :class: arguments\n   :header-rows: 1\n\n{items}\n"


def _readable(signature):
    return re.sub(r"<class '([\w.]+)'>", r"\1", signature)


def reference():
    """Returns the text of each page of the reference, by its name: one for each function, module and family."""
    families = {family: [row.name for row in rows] for family, rows in groupby(table.BY_NAME.values(), _family)}
    families = {family: [*members, *WITHOUT_ROW.get(family, [])] for family, members in families.items()}
    classes = {module: list(members) for module, members in groupby(modules.__all__, _file)}
    pages = {family: _page_of_family(family, members) for family, members in families.items()}
    pages |= {f"modules/{module}": _page_of_modules(members) for module, members in classes.items()}
    pages |= {name: _function(name) for members in families.values() for name in members}
    pages |= {f"modules/{name}": _class(name) for name in modules.__all__}
    pages |= {"load": _page_of_formats(), "judge": _page_of_the_judge(), "plot": PLOT, "command": COMMAND}
    return pages | {"index": _index(families, classes), "modules/index": _index_of_classes(classes)}


def included(name):
    """Returns a page that includes a file of the repository's root."""
    return f"```{{include}} ../../{name}.md\n```\n"


def _family(row):
    return row.family


def _file(name):
    return getattr(attnpool_flax, name).__module__.rpartition(".")[2]


def _title(text, line="="):
    return f"{text}\n{line * len(text)}"


def _toctree(entries):
    return ".. toctree::\n   :hidden:\n\n" + "\n".join(f"   {entry}" for entry in entries)


def _page_of_family(family, members):
    module = __import__(f"attnpool_ref.{family}", fromlist=["*"])
    parts = [_title(TITLES[family]), inspect.getdoc(module), _listed(members, "func", attnpool_ref), _toctree(members)]
    return "\n\n".join(parts) + "\n"


def _page_of_modules(members):
    text = inspect.getdoc(inspect.getmodule(getattr(attnpool_flax, members[0])))
    title = "M" + re.split("[:,.]", text.removeprefix("NNX m"))[0]
    return "\n\n".join([_title(title), text, _listed(members, "class", attnpool_flax), _toctree(members)]) + "\n"


def _page(name, known, documented, *parts):
    """Returns the page of a function or module: its name, sentence and example, then the parts."""
    summary, _, example = _split(inspect.getdoc(documented))
    code = ".. code-block:: pycon\n\n" + "\n".join(f"   {line}".rstrip() for line in example.split("\n"))
    start = [_title(name), *_indexed(known), ".. currentmodule:: attnpool_flax", summary, *([code] if example else [])]
    return "\n\n".join([*start, *parts]) + "\n"


def _function(name):
    """Returns the page of one function: help of the function in JAX, then the definition in NumPy."""
    function, known = getattr(attnpool_ref, name), _known_as(name)
    row = table.BY_NAME.get(name)
    module = f"Module: :class:`~attnpool_flax.{row.module}`." if row and row.module else ""
    packed = f"segment_{name}"
    facts = [
        f"Known as: {', '.join(known)}." if known not in ([], [name]) else "",
        module,
        f"Packed: :func:`~attnpool_flax.{packed}`." if packed in table.BY_NAME else "",
    ]
    return _page(
        name,
        known,
        getattr(attnpool_flax, name) if row else function,
        f".. autofunction:: attnpool_flax.{name}",
        *([" ".join(filter(None, facts))] if any(facts) else []),
        _definition(row, function) if row else f".. autofunction:: attnpool_ref.{name}",
    )


def _definition(row, function):
    """Returns the signature and the folded source of a definition; its docstring is in the help above."""
    lines = show.read_source("attnpool_ref", row).text.splitlines()
    code = "\n".join(f"         {line}".rstrip() for line in lines)
    return (
        f".. py:function:: {row.name}{inspect.signature(function)}\n   :module: attnpool_ref\n\n"
        f"   The definition, in NumPy.\n\n   .. dropdown:: Source\n\n      .. code-block:: python\n\n{code}"
    )


def _known_as(name):
    """Returns the names of other libraries whose calls are calls of only this function."""
    return _names(entry for entry in names.entries() if entry.functions == (name,))


def _names(entries):
    return list(dict.fromkeys(word for entry in entries for word in entry.names))


def _indexed(words):
    """Returns index entries for words; entries with ``!`` come first in a search."""
    entries = [f"   ! single: {word.replace(';', ',')}" for word in words]
    return [".. index::\n" + "\n".join(entries)] if entries else []


def _class(name):
    """Returns the page of one module: help of the NNX module, then the signature of the Linen module."""
    known = _names(entry for entry in names.entries() if entry.module == name)
    return _page(
        name,
        known,
        getattr(attnpool_flax, name),
        f".. autoclass:: attnpool_flax.{name}\n   :members: __call__\n   :special-members: __call__",
        *([f"Known as: {', '.join(known)}."] if known else []),
        f".. py:class:: {name}{_readable(str(inspect.signature(getattr(linen, name))))}\n   :module: attnpool_flax.linen\n\n"
        "   The same in Flax Linen.",
    )


def _page_of_formats():
    """Returns the page of ``load`` and ``save``, with a section for each format."""
    return "\n\n".join([FORMATS.strip(), *map(_format, formats.FORMATS.values())]) + "\n"


def _format(row):
    required = given(row).replace("nothing", "none")
    facts = {
        "Required": f"{required}.",
        "Usual prefix": f"``{row.usual}``" if row.usual else "",
        "Module": f":class:`~attnpool_flax.{row.module}`",
        "Largest difference from the original's results, relative to the largest of them": f"{row.verified}.",
        "Source": row.source,
    }
    lines = [f"* {name}: {text}" for name, text in facts.items() if text]
    notes = re.sub(r"`([^`]+)`", r"``\1``", row.notes)
    call = f".. code-block:: python\n\n   {load_of(row)}"
    title = re.sub(r"`([^`]+)`", r"``\1``", row.title)
    return "\n\n".join(filter(None, [_title(row.name, "~"), f"Loads {title}.", call, "\n".join(lines), notes]))


def _page_of_the_judge():
    functions = [
        f".. autofunction:: {name}{_bare(getattr(conformance, name))}" for name in ("check", "judge", "each_guarantee")
    ]
    others = [name for name in conformance.__all__ if inspect.isclass(getattr(conformance, name))]
    return JUDGE + "\n\n".join([*functions, *(f".. autoclass:: {name}\n   :members:" for name in others)]) + "\n"


def _bare(function):
    """Returns the signature of a function without its long types."""
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=signature.empty)


def _summary(documented):
    return inspect.getdoc(documented).partition("\n")[0]


def _listed(names_of, kind, package):
    return "\n".join(f"* :{kind}:`~attnpool_flax.{name}`: {_summary(getattr(package, name))}" for name in names_of)


INDEX = """
All functions and modules
=========================

Every function is in both packages under the same name: ``attnpool_ref`` is the definition in NumPy, ``attnpool_flax`` the
implementation in JAX. :doc:`/conventions` says what all of them guarantee about masks, dtypes and batch axes.
"""


def _index(families, classes):
    others = ["modules/index", "load", "judge", "plot", "command"]
    parts = [INDEX.strip(), _toctree([*map(_short, families), *others])]
    for family, members in families.items():
        parts += [_title(f":doc:`{family.capitalize()} <{family}>`", "-"), _listed(members, "func", attnpool_ref)]
    parts += [_title(":doc:`Modules <modules/index>`", "-"), *_of_classes(classes)]
    return "\n\n".join(parts) + "\n"


def _short(page):
    """Returns an entry of the side bar with the name of the page, because its title is longer."""
    return f"{page.capitalize()} <{page}>"


def _index_of_classes(classes):
    introduction = (
        "Modules hold the parameters of functions. Those of ``attnpool_flax`` are Flax NNX; those of the same names in\n"
        "``attnpool_flax.linen`` are Flax Linen."
    )
    parts = [_title("Modules"), introduction, _toctree(map(_short, classes))]
    return "\n\n".join([*parts, *_of_classes(classes)]) + "\n"


def _of_classes(classes):
    return [_listed(members, "class", attnpool_flax) for members in classes.values()]
