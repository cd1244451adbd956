"""Index of names that papers and other libraries use, for ``attnpool find`` and ``docs/which.md``.

An entry (``entry.py``) is left out if this version does not have the functions, shapes or options that its call uses.
"""

from dataclasses import dataclass

from attnpool_ref.table.names import attention, bags, images, pairs, sets, texts
from attnpool_ref.table.names.entry import Entry


@dataclass(frozen=True)
class Group:
    """Entries under one heading of ``docs/which.md``."""

    title: str
    entries: tuple[Entry, ...]

    @property
    def shown(self):
        """The entries of which this version has all that their calls use."""
        return tuple(entry for entry in self.entries if not entry.missing)


GROUPS = (
    Group("Sentence embeddings and tokens", texts.SENTENCES),
    Group("Text classifiers", texts.CLASSIFIERS),
    Group("Spans and windows", texts.SPANS),
    Group("Multiple-instance learning", bags.INSTANCES),
    Group("Speech and sound", bags.SPEECH),
    Group("Images: means", images.MEANS),
    Group("Images: heads with a learned query", images.HEADS),
    Group("Images: clusters", images.CLUSTERS),
    Group("Sets and graphs", sets.SETS),
    Group("Packed and in chunks", sets.PACKED),
    Group("Retrieval and pairs", pairs.RETRIEVAL),
    Group("Matching and labels", pairs.MATCHING),
    Group("Fields and relations between examples", pairs.RELATIONS),
    Group("Attention and its scores", attention.ATTENTION),
    Group("Normalizers", attention.NORMALIZERS),
)
"""The groups, in the order of ``docs/which.md``."""

ENTRIES = tuple(entry for group in GROUPS for entry in group.entries)
