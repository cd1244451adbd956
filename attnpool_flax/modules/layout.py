"""Choice of the function that a module calls: for padded sequences with masks, or packed tokens with segment ids."""


def in_layout(module, dense, packed, num_segments, lengths, **numbers):
    """Returns (function, its layout arguments as a dict): ``packed`` if segment ids are given, else ``dense``.

    Args:
      module: the module.
      dense: the function of padded sequences.
      packed: the function of packed tokens.
      num_segments: the number of segments, or None.
      lengths: the lengths (or None) by the names of the dense function's arguments; packed tokens have none.
      **numbers: the segment ids (or None) by the names of the packed function's arguments.

    Raises:
      ValueError: only some of the segment arguments are given, or lengths or mesh axes are given with them.
    """
    axis_name = module._mesh_axes()
    for value in (num_segments, *numbers.values()):
        if value is not None:
            break
    else:
        return dense, {**lengths, "axis_name": axis_name}
    given = {key: value for key, value in (numbers | {"num_segments": num_segments}).items() if value is not None}
    for key in (*numbers, "num_segments"):
        if key not in given:
            raise ValueError(f"{module._pooling}: `{next(iter(given))}` is given without `{key}`")
    for key, value in {**lengths, "axis_name": axis_name}.items():
        if value is not None:
            raise ValueError(
                f"{module._pooling}: `{key}` and `{next(iter(numbers))}` are both given, needs at most one of them"
            )
    return packed, given
