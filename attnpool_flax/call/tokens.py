"""Tokens objects, dense or packed, which a body gets in place of arrays."""

from attnpool_flax.numerics.products import exact_tokens
from attnpool_flax.tokens import Dense, Packed

HELD = ("axis_name", "num_segments", "indices_are_sorted")
"""Arguments that only the tokens objects hold. The body does not get them."""


def with_tokens(values, names, packed):
    """Replaces arrays of tokens by tokens objects, which have their mask and layout.

    Args:
      values: the prepared arrays and the static arguments by name.
      names: the arguments that hold tokens: "x", or "x" and "y". With two, masks and segment ids are named
        after them, such as "x_mask".
      packed: whether the tokens are packed.

    Returns:
      The arguments of the body by name.
    """
    values = dict(values)
    precision = exact_tokens(values.get("precision"))
    for name in names:
        prefix = "" if len(names) == 1 else f"{name}_"
        x, mask = values[name], values.pop(f"{prefix}mask")
        if packed:
            segments = values.pop(f"{prefix}segment_ids"), values["num_segments"]
            values[name] = Packed(x, *segments, mask, values["indices_are_sorted"], precision)
        else:
            values.pop(f"{prefix}lengths")  # the mask holds them
            values[name] = Dense(x, mask, precision, values.get("axis_name"))
    return {name: value for name, value in values.items() if name not in HELD}
