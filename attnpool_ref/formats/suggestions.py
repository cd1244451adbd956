"""Suggestions for a file without a head of the requested format, or without one under the requested prefix."""

from attnpool_ref.formats.matching import match, prefixes
from attnpool_ref.formats.printable import MOST, brief, listed


def suggestion(rows, row, names, prefix):
    """Returns "; one is under ..." or "; `...` fits" if that holds for the file, else "".

    Args:
      rows: all formats.
      row: the format that does not fit.
      names: the names in the file.
      prefix: the requested prefix, or None if none was.
    """
    own, best, share = prefixes(row, names)
    if prefix is None and own:
        return ""
    own = [there for there in own if there != prefix and _fits(row, names, there)]
    if own:
        return f"; one is under {listed(own, brief)}"
    others = [
        (other.name, there)
        for other in rows
        if other is not row
        for there in prefixes(other, names)[0]
        if _fits(other, names, there)
    ]
    # a layer inside a head may fit another format: suggest only heads that are not part of another one
    around = {there for _, there in others} | ({best} if share > 0.5 else set())
    whole = [(name, there) for name, there in others if not _is_within(there, around)]
    more = f"; and {len(whole) - MOST} more" if len(whole) > MOST else ""
    return "".join(f"; `{name}` fits{f' under {brief(there)}' if there else ''}" for name, there in whole[:MOST]) + more


def _fits(row, names, prefix):
    if row.refused and any(key.startswith(tuple(row.refused)) for key in names.under(prefix)):
        return False
    return not match(row, names, prefix, {}).problems


def _is_within(prefix, around):
    """Returns whether the prefix starts with a shorter one of ``around`` that ends with a separator or is empty."""
    return any(prefix[:end] in around for end in range(len(prefix)) if not end or prefix[end - 1] in "./")
