"""Shapes in letters, such as ``1 1 d``, ``3d d`` and ``s+1 d``; matching tensors give the letters their sizes."""

import re

_TERM = re.compile(r"(?:(?P<times>\d+)?(?P<letter>[A-Za-z]\w*)(?:\+(?P<plus>\d+))?|(?P<number>\d+))")


def axes(shape):
    """Splits a shape in letters into its axes."""
    return tuple(shape.split())


def bind(shape, actual, sizes):
    """Matches a shape in letters with a tensor's shape, and determines the sizes of letters.

    Args:
      shape: a shape in letters.
      actual: the tensor's shape.
      sizes: the known sizes by letter; those that this shape determines are added.

    Returns:
      Whether the shape fits the known sizes. If not, ``sizes`` is unchanged.
    """
    if len(axes(shape)) != len(actual):
        return False
    found = dict(sizes)
    for axis, size in zip(axes(shape), actual, strict=True):
        term = _parsed(axis)
        if term["number"]:
            fits = size == int(term["number"])
        else:
            times, plus = int(term["times"] or 1), int(term["plus"] or 0)
            whole, rest = divmod(size - plus, times)
            fits = rest == 0 and whole >= 1 and found.setdefault(term["letter"], whole) == whole
        if not fits:
            return False
    sizes.update(found)
    return True


def filled(shape, sizes):
    """Replaces the letters of a shape whose sizes are known by these sizes."""
    return tuple(_filled(axis, sizes) for axis in axes(shape))


def written(shape):
    """Formats a shape for messages."""
    return f"[{', '.join(map(str, shape))}]"


def _filled(axis, sizes):
    term = _parsed(axis)
    if term["number"]:
        return int(term["number"])
    if term["letter"] not in sizes:
        return axis
    return int(term["times"] or 1) * sizes[term["letter"]] + int(term["plus"] or 0)


def _parsed(axis):
    term = _TERM.fullmatch(axis)
    if term is None:
        raise ValueError(f"{axis!r} is no axis of a shape")
    return term
