"""Names of poolings in papers and other libraries, with the calls: the entries of ``names.md``, for ``attnpool find``.

``names.md`` is edited by hand. An entry is a list item with the names, and a nested list: each statement of the call as
code, the note, the module if it is not that of a function in the call, and the source.
"""

import functools
import re
from dataclasses import dataclass
from importlib import resources

import attnpool_ref
from attnpool_ref import table

_ENTRY = re.compile(r"^\* (\*\*.*(?:\n  .*)*)", re.MULTILINE)
_ITEM = re.compile(r"\n  \* ")
_CODE = re.compile(r"`([^`]*)`")
_LINK = re.compile(r"\[([^\]]*)\]\(\.\./\.\./([^)]*)\)")


@dataclass(frozen=True)
class Entry:
    """One entry of the index.

    Attributes:
      names: names in use, the usual one first.
      call: Python statements; empty if attnpool does not have the function, and ``note`` then says what to do.
      source: the paper, and well-known code.
      note: the difference from that code, or what the call needs, in one to three short sentences.
      module: the class of attnpool_flax that holds the parameters, if any.
    """

    names: tuple[str, ...]
    call: str
    source: str
    note: str
    module: str

    @property
    def functions(self):
        """The functions of attnpool that the call names, in their order."""
        return _functions(self.call)


@functools.cache
def entries():
    """Returns the entries of ``names.md``, in its order."""
    text = resources.files(__package__).joinpath("names.md").read_text(encoding="utf-8")
    return tuple(map(entry, _ENTRY.findall(text)))


def entry(text):
    r"""Returns the entry that a list item describes.

    >>> found = entry("**DeepSets**; sum pooling\n  * `sum_pooling(f(x), mask)`\n  * An empty\n    set gives 0.\n  * Source: Zaheer")
    >>> found.names, found.call, found.note, found.source
    (('DeepSets', 'sum pooling'), 'sum_pooling(f(x), mask)', 'An empty set gives 0.', 'Zaheer')
    """
    names, *items = (" ".join(item.split()) for item in _ITEM.split(text))
    statements, note, module, source = [], [], "", ""
    for item in items:
        if code := _CODE.fullmatch(item):
            statements.append(code[1])
        elif item.startswith("Module: "):
            module = item.removeprefix("Module: ").strip("`")
        elif item.startswith("Source: "):
            source = item.removeprefix("Source: ")
        else:
            note.append(item)
    call = "\n".join(statements)
    module = module or _module(call)
    return Entry(
        names=tuple(names.replace("**", "").split("; ")),
        call=call,
        source=_without_links(source),
        note=_without_links(" ".join(note)),
        module="" if module == "none" else module,
    )


def _without_links(text):
    """Returns a text with the paths of links behind their words, from the root of the repository."""
    return _LINK.sub(r"\1 (\2)", text)


def _functions(call):
    called = re.findall(r"(?<![\w.])(\w+)\(", call)
    return tuple(name for name in dict.fromkeys(called) if name in attnpool_ref.__all__)


def _module(call):
    """Returns the module of the first function in a call that has one, or ""."""
    rows = (table.BY_NAME[name] for name in _functions(call) if name in table.BY_NAME)
    return next((row.module for row in rows if row.module), "")
