"""Tabs of the site, made from headings: a code host shows the headings ``### NNX`` and ``### Linen``."""

import re

PAIR = re.compile(r"^### NNX\n(.*?)^### Linen\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def tabbed(text):
    """Returns Markdown in which a section ``### NNX`` and the next one, ``### Linen``, are two tabs."""
    return PAIR.sub(lambda pair: tabs({"NNX": pair[1], "Linen": pair[2]}), text)


def tabs(texts):
    """Returns a set of tabs; sets with the same titles change together on a page."""
    items = "\n".join(
        f":::{{tab-item}} {title}\n:sync: {title}\n\n{text.strip()}\n:::" for title, text in texts.items()
    )
    return f"::::{{tab-set}}\n:sync-group: {'-'.join(texts)}\n\n{items}\n::::\n\n"
