"""Choice of the function that a module calls: for sequences with masks, or for packed sequences with segment numbers."""

import functools


def in_layout(name, dense, packed, num_segments, lengths, axis_name, **numbers):
    """Returns the function of a module's call: ``packed`` if segment numbers are given, else ``dense``.

    Args:
      name: the module's.
      dense: the function of sequences.
      packed: the function of packed ones.
      num_segments: the number of segments, or None.
      lengths: the lengths by the dense function's own names, or None: packed tokens have none.
      axis_name: the mesh axes over which sequences are split, or None: packed tokens are not.
      **numbers: the segment numbers by the function's own names, or None.

    Raises:
      ValueError: some of the numbers are given, and not all of them; lengths or a mesh axis beside them.
    """
    given = {key: value for key, value in (numbers | {"num_segments": num_segments}).items() if value is not None}
    if not given:
        return functools.partial(dense, **lengths, axis_name=axis_name)
    for key in (*numbers, "num_segments"):
        if key not in given:
            raise ValueError(f"{name}: `{next(iter(given))}` is given without `{key}`")
    for key, value in {**lengths, "axis_name": axis_name}.items():
        if value is not None:
            raise ValueError(f"{name}: `{key}` and `{next(iter(numbers))}` are both given, needs at most one of them")
    return functools.partial(packed, **given)
