"""What somebody may have meant whose file has no head of that format, or none there."""

from attnpool_ref.formats.matching import match, prefixes


def instead(rows, row, tensors, prefix):
    """``; one is under ...`` or ``; ... fits``, or nothing.

    Args:
      rows: all formats.
      row: the one that does not fit.
      tensors: what the file has.
      prefix: where it was looked for, None where everywhere.
    """
    own, best, share = prefixes(row, tensors)
    if prefix is None and own:
        return ""
    own = [there for there in own if there != prefix and _fits(row, tensors, there)]
    if own:
        return f"; one is under {', '.join(map(repr, own))}"
    others = [
        (other.name, there)
        for other in rows
        if other is not row
        for there in prefixes(other, tensors)[0]
        if _fits(other, tensors, there)
    ]
    # A head is made of layers that fit too: only what is part of nothing else may have been meant.
    around = [there for _, there in others] + ([best] if share > 0.5 else [])
    whole = [(name, there) for name, there in others if not any(_within(there, other) for other in around)]
    return "".join(f"; `{name}` fits{f' under {there!r}' if there else ''}" for name, there in whole)


def _fits(row, tensors, prefix):
    under = [name[len(prefix) :].replace("/", ".") for name in tensors if name.startswith(prefix)]
    if any(name.startswith(beginning.replace("/", ".")) for name in under for beginning in row.refused):
        return False
    return not match(row, tensors, prefix, {}).problems


def _within(prefix, other):
    return prefix != other and prefix.startswith(other)
