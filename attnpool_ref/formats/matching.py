"""Which tensors of a file are a head: prefixes, and what is missing, unexpected or of another shape."""

from dataclasses import dataclass

from attnpool_ref.formats import shapes
from attnpool_ref.formats.row import Form, Format


@dataclass(frozen=True)
class Match:
    """The tensors under one prefix, against one form of a format.

    Attributes:
      form: the form.
      prefix: the prefix, as the file spells it.
      names: the file's names by the form's keys.
      sizes: by the letters of the form's shapes.
      missing: required keys that are not there.
      unexpected: names under the prefix that the form does not have.
      misshapen: (name, its shape, the shape that it needs).
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
        """How many keys are wrong."""
        return len(self.missing) + len(self.unexpected) + len(self.misshapen)


def prefixes(row: Format, tensors):
    """The prefixes under which all that some form requires is there.

    Args:
      row: the format.
      tensors: names, as the file spells them.

    Returns:
      A sorted list, as the file spells them; the prefix under which most is there, or None; and how much of it, from 0
      to 1.
    """
    spelled = {_plain(name): name for name in tensors}
    full, best = {}, (0.0, None)
    for form in (form for form in row.forms if not form.bare):
        required = [_plain(tensor.key) for tensor in form.tensors if not tensor.optional]
        for key in required:
            for name in spelled:
                prefix = _before(name, key)
                if prefix is None:
                    continue
                there = sum(prefix + other in spelled for other in required)
                if there == len(required):
                    full[prefix] = spelled[name][: len(prefix)]
                best = max(best, (there / len(required), spelled[name][: len(prefix)]), key=lambda pair: pair[0])
    return sorted(full.values()), best[1], best[0]


def match(row: Format, tensors, prefix, sizes):
    """The form of a format that fits best under a prefix."""
    return min((_matched(row, form, tensors, prefix, sizes) for form in row.forms), key=lambda found: found.problems)


def find(row: Format, tensors, prefix, of, sizes=None):
    """The tensors of a head.

    Args:
      row: the format.
      tensors: what the file has: by name, each with a ``shape``.
      prefix: where they stand, or None to find that out.
      of: what the file is called in messages.
      sizes: by their letters, as far as they are known already.

    Returns:
      A :class:`Match` without problems.

    Raises:
      ValueError: no prefix or several, features that no module of ours has, or keys that are missing, unexpected or of
        another shape: all of them in one message.
    """
    if prefix is None:
        prefix = _found(row, tensors, of)
    _refuse_features(row, tensors, prefix)
    found = match(row, tensors, prefix, sizes or {})
    if not found.names and found.missing:
        raise ValueError(f"{row.name}: {of} has none of {_keys(found.missing)} under {prefix!r}")
    if found.problems:
        under = f" under {prefix!r}" if prefix else ""
        raise ValueError(f"{row.name}: the keys of {of}{under} do not fit: {'; '.join(_said(found))}")
    return found


def check_prefix(row: Format, prefix):
    """Refuses a prefix that does not end where a piece of a key does."""
    if not isinstance(prefix, str) or not _plain(f".{prefix}").endswith("."):
        wanted = f"{prefix}{row.separator}" if isinstance(prefix, str) else f"head{row.separator}"
        raise ValueError(f"{row.name}: `prefix` is {prefix!r}, needs '.' or '/' at its end; did you mean {wanted!r}?")


def _matched(row, form, tensors, prefix, known):
    under = _under(tensors, prefix)
    names, sizes, missing, misshapen = {}, dict(known), [], []
    for tensor in form.tensors:
        name = under.pop(_plain(tensor.key), None)
        if name is not None:
            names[tensor.key] = name
            if not shapes.bind(tensor.shape, tuple(tensors[name].shape), sizes):
                misshapen.append((name, tensor))
        elif not tensor.optional:
            missing.append(tensor.key)
    wrong = [(name, tuple(tensors[name].shape), shapes.filled(tensor.shape, sizes)) for name, tensor in misshapen]
    unexpected = sorted(name for key, name in under.items() if not key.startswith(row.beside))
    return Match(form, prefix, names, sizes, missing, unexpected, wrong)


def _under(tensors, prefix):
    """The names under a prefix by what follows it."""
    under = {}
    for name in (name for name in tensors if _plain(name).startswith(_plain(prefix))):
        key = _plain(name[len(prefix) :])
        if key in under:
            raise ValueError(f"{under[key]!r} and {name!r} are one name, written with '.' and with '/'")
        under[key] = name
    return under


def _found(row, tensors, of):
    full, best, _ = prefixes(row, tensors)
    if len(full) == 1:
        return full[0]
    if full:
        listed = ", ".join(repr(prefix) for prefix in full)
        raise ValueError(f"{row.name}: {of} has {len(full)} such heads; say which `prefix`: {listed}")
    if not tensors:
        raise ValueError(f"{row.name}: {of} holds no arrays, of NumPy, JAX or PyTorch")
    if best is None:
        keys = _keys(tensor.key for tensor in row.forms[0].tensors if not tensor.optional)
        raise ValueError(f"{row.name}: {of} has no such head: no key ends with one of {keys}")
    return best


def _refuse_features(row, tensors, prefix):
    there = _under(tensors, prefix)
    for beginning, feature in row.refused.items():
        keys = sorted(name for key, name in there.items() if key.startswith(beginning))
        if keys:
            raise ValueError(f"{row.name}: no module of attnpool has {feature}, which `{shown(keys[0])}` belongs to")


def _said(found):
    if found.missing:
        yield f"missing {_keys(found.missing)}"
    if found.unexpected:
        yield f"unexpected {_keys(map(shown, found.unexpected))}"
    for name, actual, needed in found.misshapen:
        yield f"`{shown(name)}` is {shapes.written(actual)}, needs {shapes.written(needed)}"


def _keys(keys):
    return ", ".join(f"`{key}`" for key in keys)


def shown(name):
    """A name as messages show it: what moves a terminal's cursor, or cannot be printed at all, is escaped."""
    return name if name.isprintable() else repr(name)[1:-1]


def _before(name, key):
    """What stands before a key at the end of a name, or None."""
    if name == key:
        return ""
    return name[: -len(key)] if name.endswith(f".{key}") else None


def _plain(name):
    """A name with dots, whichever separator a file has."""
    return name.replace("/", ".")
