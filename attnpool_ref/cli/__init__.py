"""Commands of ``attnpool``, which are imported only when the command runs; all but ``find`` need the extra ``cli``.

Here is only the message about extras that are not installed, which needs none.
"""

from importlib.util import find_spec

NOTHING_FOUND = 1
"""Exit status of a search without a result, as of grep."""

EXTRAS = {"cli": ("click", "rich"), "flax": ("jax", "flax"), "plot": ("matplotlib",)}
"""The packages that :func:`missing` looks for, by the extra's name in ``pip install -e '.[NAME]'``."""


def missing(*extras):
    """Returns one line that says what to install for these extras, or "" if all their packages are installed.

    >>> missing()
    ''
    """
    absent = {extra: [name for name in EXTRAS[extra] if find_spec(name) is None] for extra in extras}
    absent = {extra: names for extra, names in absent.items() if names}
    if not absent:
        return ""
    names = [name for group in absent.values() for name in group]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    verb = "is" if len(names) == 1 else "are"
    return f"attnpool: {listed} {verb} not installed; in a clone: pip install -e '.[{','.join(absent)}]'"
