"""Matching of a file's tensors to a head: prefixes, tensors that do not fit, and suggestions of other prefixes or formats."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from attnpool_ref.contract.text import MOST, bracketed, brief, listed, printable
from attnpool_ref.formats.row import Form, Format


class Names:
    """Names of the tensors in a file, indexed by beginning and end, because a file may have hundreds of thousands.

    Attributes:
      tensors: the tensors by name; each has a ``shape``.
      spelled: the names as in the file, by the names with dots in place of slashes.
    """

    def __init__(self, tensors):
        self.tensors = tensors
        self.spelled = {_plain(name): name for name in tensors}
        self._ending = {}

    def __contains__(self, plain):
        return plain in self.spelled

    def under(self, prefix):
        """Returns the names under a prefix, as a dict from the rest of each name, with dots, to the name.

        Raises:
          ValueError: if two names differ only in their separators.
        """
        under, plain = {}, _plain(prefix)
        for place in range(bisect_left(self._sorted, (plain,)), len(self._sorted)):
            whole, name = self._sorted[place]
            if not whole.startswith(plain):
                break
            key = whole[len(plain) :]
            if key in under:
                raise ValueError(f"{brief(under[key])} and {brief(name)} are one name, written with '.' and with '/'")
            under[key] = name
        return under

    def prefixes_of(self, key):
        """Returns the prefixes of all names that end with ``key``, with dots."""
        pieces = key.count(".") + 1
        if pieces not in self._ending:
            self._ending[pieces] = found = {}
            for name in self.spelled:
                rest, *end = name.rsplit(".", pieces)
                if len(end) == pieces:
                    found.setdefault(".".join(end), []).append(f"{rest}.")
                elif len(end) == pieces - 1:  # the prefix is empty
                    found.setdefault(name, []).append("")
        return self._ending[pieces].get(key, [])

    @cached_property
    def _sorted(self):
        return sorted((_plain(name), name) for name in self.tensors)


@dataclass(frozen=True)
class Match:
    """Comparison of the tensors under one prefix with one form of a format.

    Attributes:
      form: the form.
      prefix: the prefix as the file spells it.
      names: the file's names, by the keys of the form.
      sizes: the sizes of axes, by the letters in the shapes of the form.
      missing: required keys that the file lacks.
      unexpected: names under the prefix that the form does not have.
      misshapen: (name, its shape, the required shape) of each tensor of another shape.
    """

    form: Form
    prefix: str
    names: dict[str, str]
    sizes: dict[str, int]
    missing: list[str]
    unexpected: list[str]
    misshapen: list[tuple[str, tuple, tuple]]

    @property
    def problems(self):
        """Number of tensors that are missing, unexpected or of another shape."""
        return len(self.missing) + len(self.unexpected) + len(self.misshapen)


def prefixes(row: Format, names: Names, bare=False):
    """Finds the prefixes under which a file has all required keys of some form.

    Args:
      row: the format.
      names: the names in the file.
      bare: whether to try the forms that are ``bare`` instead of the others.

    Returns:
      (the prefixes, sorted, as the file spells them; the prefix with the largest share of required keys, or None; that
      share, from 0 to 1).
    """
    full, best = {}, (0.0, None)
    for form in (form for form in row.forms if form.bare == bare):
        required = [_plain(tensor.key) for tensor in form.tensors if not tensor.optional]
        keys = {}
        for key in required:
            for prefix in names.prefixes_of(key):
                keys.setdefault(prefix, key)
        for prefix, key in keys.items():
            there = sum(prefix + other in names for other in required)
            spelled = names.spelled[prefix + key][: len(prefix)]
            if there == len(required):
                full[prefix] = spelled
            best = max(best, (there / len(required), spelled), key=lambda pair: pair[0])
    return sorted(full.values()), best[1], best[0]


def bare_prefixes(row: Format, names: Names):
    """Returns the prefixes under which a ``bare`` form fits, and nothing else is there."""
    return [prefix for prefix in prefixes(row, names, bare=True)[0] if not match(row, names, prefix, {}).problems]


def ask_for_prefix(row: Format, bare, of):
    """Returns the message about the result of :func:`bare_prefixes`."""
    said = listed(bare, lambda prefix: f"`prefix={brief(prefix)}`")
    return f"{row.name}: {of} may have such a head, with names that many layers have; if so, say {said}"


def match(row: Format, names: Names, prefix, sizes):
    """Returns the :class:`Match` of the form that fits best under a prefix; ``sizes`` has known sizes of axes."""
    under = names.under(prefix)
    matches = (_matched(row, form, names.tensors, prefix, dict(under), sizes) for form in row.forms)
    return min(matches, key=lambda found: found.problems)


def find(row: Format, names: Names, prefix, of, sizes=None):
    """Finds the tensors of a head.

    Args:
      row: the format.
      names: the names in the file.
      prefix: the prefix of the head, or None to find it.
      of: the name of the file in messages.
      sizes: known sizes of axes, by their letters.

    Returns:
      A :class:`Match` without problems.

    Raises:
      ValueError: if no prefix fits or several do, if the head has features that attnpool does not have, or if tensors
        are missing, unexpected or of another shape; the message names all of these.
    """
    if prefix is None:
        prefix = _only_prefix(row, names, of)
    _refuse_features(row, names, prefix)
    found = match(row, names, prefix, sizes or {})
    if not found.names and found.missing:
        raise ValueError(f"{row.name}: {of} has none of {_keys(found.missing)} under {brief(prefix)}")
    if found.problems:
        under = f" under {brief(prefix)}" if prefix else ""
        raise ValueError(f"{row.name}: the keys of {of}{under} do not fit: {'; '.join(_reasons(row, found))}")
    return found


def check_prefix(row: Format, prefix):
    """Raises a ValueError for a prefix that is not empty and does not end with "." or "/"."""
    if not isinstance(prefix, str) or not _plain(f".{prefix}").endswith("."):
        wanted = f"{prefix}{row.separator}" if isinstance(prefix, str) else f"head{row.separator}"
        raise ValueError(
            f"{row.name}: `prefix` is {brief(prefix)}, needs '.' or '/' at its end; did you mean {wanted!r}?"
        )


def _matched(row, form, tensors, prefix, under, known):
    """Returns the :class:`Match` of a form; removes its names from ``under``, the names under the prefix.

    ``known`` has the known sizes of axes, by their letters.
    """
    names, sizes, missing, misshapen = {}, dict(known), [], []
    for tensor in form.tensors:
        name = under.pop(_plain(tensor.key), None)
        if name is not None:
            names[tensor.key] = name
            if not tensor.fits(tuple(tensors[name].shape), sizes):
                misshapen.append((name, tensor))
        elif not tensor.optional:
            missing.append(tensor.key)
    wrong = [(name, tuple(tensors[name].shape), tensor.filled(sizes)) for name, tensor in misshapen]
    unexpected = [name for key, name in under.items() if not key.startswith(row.beside)]
    return Match(form, prefix, names, sizes, missing, unexpected, wrong)


def _only_prefix(row, names, of):
    full, best, _ = prefixes(row, names)
    if len(full) == 1:
        return full[0]
    if full:
        raise ValueError(f"{row.name}: {of} has {len(full)} such heads; say which `prefix`: {listed(full, brief)}")
    if not names.spelled:
        raise ValueError(f"{row.name}: {of} holds no arrays, of NumPy, JAX or PyTorch")
    if bare := bare_prefixes(row, names):
        raise ValueError(ask_for_prefix(row, bare, of))
    if best is None:
        keys = _keys(tensor.key for tensor in row.forms[0].tensors if not tensor.optional)
        raise ValueError(f"{row.name}: {of} has no such head: no key ends with one of {keys}")
    return best


def _refuse_features(row, names, prefix):
    there = names.under(prefix) if row.refused else {}
    for beginning, feature in row.refused.items():
        keys = sorted(name for key, name in there.items() if key.startswith(beginning))
        if keys:
            raise ValueError(
                f"{row.name}: no module of attnpool has {feature}, which `{printable(keys[0])}` belongs to"
            )


def _reasons(row, found):
    if found.missing:
        yield f"missing {_keys(found.missing)}"
    if found.problems == len(found.missing) == 1 and found.missing[0] in row.absent:
        yield f"no module of attnpool has {row.absent[found.missing[0]]}, which a head without it may have"
    if found.unexpected:
        yield f"unexpected {listed(map(printable, _most_similar(found)))}"
    for name, actual, needed in found.misshapen:
        yield f"`{printable(name)}` is {bracketed(actual)}, needs {bracketed(needed)}"


def _most_similar(found):
    """Returns the unexpected names; if there are many, those first that share the longest beginning with a key."""
    if len(found.unexpected) <= MOST:
        return sorted(found.unexpected)
    keys = [_plain(tensor.key) for tensor in found.form.tensors]
    beginnings = {key[:length] for key in keys for length in range(1, len(key) + 1)}

    def distance(name):
        key, length = _plain(name)[len(found.prefix) :], 0
        while length < len(key) and key[: length + 1] in beginnings:
            length += 1
        return -length, name

    return sorted(found.unexpected, key=distance)


def _keys(keys):
    return ", ".join(f"`{key}`" for key in keys)


def _plain(name):
    """Replaces a file's separators in a name by dots."""
    return name.replace("/", ".")


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
