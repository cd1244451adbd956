"""``attnpool show``: one function, with its definition in NumPy and its implementation in JAX.

Both are read as text, so that JAX is not imported.
"""

import ast
import inspect
import re
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

from rich.console import Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.cli import finding
from attnpool_ref.cli.exits import Refused
from attnpool_ref.cli.finding import console, facts
from attnpool_ref.table import names

MARKS = {
    "[..., L, d]": ("an array; ... are leading batch axes, any number of them, the same for all data", r"\[\.\.\."),
    "[d, c]": ("an array of exactly these axes; a letter is one size wherever it stands", r"\[[^\].]+\]"),
    "name?": ("may be None, or left away", r"\w\?"),
    "mask": ("boolean, True = real; broadcasts to these axes", r"mask\?*\["),
    "name?~": ("broadcasts to these axes, and never widens the result's dtype", "~"),
    "name[]": ("a number", r"\w\??\[\]"),
    "a|b": ("either shape", r"\|"),
    ":lengths": ("integers, in place of the mask: the first so many tokens are real", ":lengths"),
    ":segments": ("integers: the segment to which each token belongs", ":segments"),
    ":position": ("an integer of at least 0", ":position"),
    ":int": ("integers", ":int"),
    ":index": ("integers that count slots", ":index"),
    "[h, n?]": ("an axis that a call has in every place that shows it, or in none", r"\w\?[,\]]"),
    ":bool": ("a boolean array of exactly these axes", ":bool"),
    "->": ("the result, or a tuple of results", "->"),
}
"""Marks in shapes (:mod:`attnpool_ref.table.language`) in the order in which they are shown: explanation, pattern."""


def mark_stands_in(mark, shapes):
    """Returns whether the shapes of a function, as text, have this mark, a key of :data:`MARKS`."""
    return re.search(MARKS[mark][1], shapes) is not None


@dataclass(frozen=True)
class Source:
    """Source code of one function, and of the functions in its file that it calls.

    Attributes:
      place: the file, beginning with the name of the package, and the line, as in "attnpool_ref/means.py:10".
      signature: the name and the parameters.
      summary: the first line of the docstring, without markup.
      arguments: for each argument its description in the docstring.
      text: the code.
    """

    place: str
    signature: str
    summary: str
    arguments: dict[str, str]
    text: str


def run(name):
    """Prints the equation, the shapes, the arguments and the code of the function called ``name``.

    For a module it prints its function, for another name what ``attnpool find`` finds.

    Raises:
      Refused: nothing has this name.
    """
    row = _row(name)
    if row is None:
        _find_elsewhere(name)
        return
    if row.name != name:
        print(f"{name} is a module of attnpool_flax. Its function:\n")
    oracle, twin = read_source("attnpool_ref", row), read_source("attnpool_flax", row)
    out = console()
    out.print(_heading(row, oracle))
    out.print(_pane("definition, NumPy", oracle))
    if twin is not None:
        out.print(_pane("implementation, JAX", twin))


def _row(name):
    """Returns the row of a function, or of a module's function; for ``pad`` and others without a row, a stand-in."""
    function = getattr(attnpool_ref, name, None)
    if name in attnpool_ref.__all__ and name not in table.BY_NAME and inspect.isfunction(function):
        family = function.__module__.split(".")[1]
        unknown = dict.fromkeys(("equation", "source", "shapes", "weights", "module", "state"), "")
        return SimpleNamespace(name=name, family=family, packed=False, **unknown)
    return table.BY_NAME.get(name) or next((row for row in table.VARIANTS if row.module == name), None)


def _find_elsewhere(name):
    """Prints what ``attnpool find`` finds; raises :class:`Refused` if it finds nothing."""
    if not finding.search([name], names.entries()):
        raise Refused(f"no function is called {name!r}{table.did_you_mean(name, table.BY_NAME)}")
    finding.find([name])


def read_source(package, row):
    """Returns the source of a function in a package, or None; the package is not imported."""
    spec = find_spec(package)
    for directory in (spec and spec.submodule_search_locations) or ():
        folder = Path(directory)
        for path in [folder / f"{row.family}.py", *sorted((folder / row.family).glob("*.py"))]:
            source = _find(path, row.name, folder.parent) if path.is_file() else None
            if source:
                return source
    return _derived(package, row) if row.packed or row.state else None


def _find(path, name, root):
    text = path.read_text(encoding="utf-8")
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        return None
    function, lines = functions[name], text.splitlines()
    return Source(
        place=f"{path.relative_to(root).as_posix()}:{function.lineno}",
        signature=f"{name}({ast.unparse(function.args)})",
        summary=_plain((ast.get_docstring(function) or "").partition("\n")[0]),
        arguments=_arguments(ast.get_docstring(function) or ""),
        text="\n\n\n".join(_text(node, lines) for node in _with_called(function, functions)),
    )


def _derived(package, row):
    """Returns the source of the dense function from which a packed or chunked one is derived, with its signature."""
    name = row.state or row.name.removeprefix("segment_")
    dense = read_source(package, table.get(name))
    if dense is None:
        return None
    function = getattr(attnpool_ref, row.name)
    docstring = inspect.getdoc(function) or ""
    return replace(
        dense,
        signature=f"{row.name}{inspect.signature(function)}",
        summary=_plain(docstring.partition("\n")[0]),
        arguments=_arguments(docstring),
        text=f"# {row.name} is derived from {name}:\n\n{dense.text}",
    )


def _arguments(docstring):
    """Returns the description of each argument in the docstring, by name."""
    section = re.search(r"^Args:\n((?:  .*\n|\n(?=  ))*)", docstring + "\n", re.MULTILINE)
    entries = re.findall(r"^  (\w+): (.*(?:\n    .*)*)", section[1] if section else "", re.MULTILINE)
    return {name: _plain(" ".join(text.split())) for name, text in entries}


def _plain(text):
    """Returns the text of a docstring without its markup."""
    return re.sub(r"\\(?=[a-z])", "", re.sub(r":\w+:`~?([^`]*)`", r"\1", text)).replace("`", "")


def _with_called(function, functions):
    """Returns a function, then those that it calls in its file, in file order, without other attnpool functions.

    All are nodes of the syntax tree; ``functions`` has those of the file by name.
    """
    reached, waiting = {function.name: function}, [function]
    while waiting:
        used = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)}
        for name in used & functions.keys() - reached.keys() - table.BY_NAME.keys():
            reached[name] = functions[name]
            waiting.append(functions[name])
    return [function, *(node for name, node in functions.items() if name in reached and node is not function)]


def _text(function, lines):
    """Returns the code of a function with the first paragraph of its docstring; the rest is shown above the code.

    ``function`` is its node of the syntax tree, and ``lines`` are those of the file.
    """
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    kept = lines[first - 1 : function.end_lineno]
    if ast.get_docstring(function) is None:
        return "\n".join(kept)
    docstring = function.body[0]
    start, end = docstring.lineno - first, docstring.end_lineno - first + 1
    paragraph = list(kept[start:end])
    if "" in paragraph:
        paragraph = paragraph[: paragraph.index("")]
        paragraph[-1] += '"""'
    return "\n".join(kept[:start] + paragraph + kept[end:])


def _heading(row, oracle):
    entries = {
        "equation": row.equation,
        "source": f"{table.SOURCES[row.source]} ({row.source})" if row.source else "",
        "shapes": row.shapes,
        "weights": f"return_weights=True adds {row.weights}" if row.weights else "",
        "module": f"attnpool_flax.{row.module}" if row.module else "",
    }
    grid = facts(entries.items(), "cyan")
    grid.add_row("signature", _syntax(oracle.signature))
    title = Text.assemble((row.name, "bold"), f"  {oracle.summary}")
    arguments = facts(((f"  {name}", text) for name, text in oracle.arguments.items()), "bold")
    marks = facts((f"  {mark}", text) for mark, (text, _) in MARKS.items() if mark_stands_in(mark, row.shapes))
    parts = [title, Text(), grid, Text(), Text("arguments", "cyan"), arguments, Text()]
    if row.shapes:
        parts += [Text("how to read the shapes", "cyan"), marks, Text()]
    return Group(*parts)


def _pane(kind, source):
    title = Text(f"{kind}: {source.place}")
    return Panel(_syntax(source.text), title=title, title_align="left", border_style="dim")


def _syntax(text):
    return Syntax(text, "python", theme="ansi_dark", background_color="default", word_wrap=True)
