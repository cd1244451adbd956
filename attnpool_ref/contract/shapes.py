"""Checks of shapes: batch axes, the size of each named axis, broadcasting.

The functions have these arguments in common: ``name`` is the name of the checked function, ``arguments`` its arguments
by name (:class:`~attnpool_ref.table.language.Argument`), ``given`` their values that are not None, ``batch`` the sizes
of the batch axes, and ``sizes`` those of named axes.
"""

import math
from dataclasses import replace

from attnpool_ref.contract.dtypes import kind_of, refuse_non_numeric
from attnpool_ref.table.language import AtMost, Equal, MayBeEmpty, terms

FEATURES = frozenset({"d", "e", "v", "c", "c'", "h", "f", "o", "q", "H", "K", "r", "R", "b", "p"})
"""Axes whose size must not be 0, unless a rule such as "d may be 0" allows it.

A vector of width 0 is a mistake; a sequence of length 0 is a fully masked row.
"""

FOR_QUERIES = {
    "attention_pooling": "`multi_head_attention_pooling`, or without kernels "
    "`dot_product_attention(query, x, x, mask[..., None, :])`",
}
"""For functions with one query for each example: what to write for several."""

COUNTS = ("num_segments",)
"""Options whose value is the size of an axis of the arguments."""


def is_symbol(size):
    """Returns whether a size is a symbol of ``jax.export``, which stands for any size from 1 on; needs no JAX."""
    return hasattr(type(size), "dimension_as_value") and not hasattr(type(size), "dtype")  # tracers have a dtype


def exceeds(value, size):
    """Returns whether a value on the host is larger than a size; False for a symbol, whose size is unknown."""
    return not is_symbol(size) and value > size


def axes_text(shape):
    """Formats a shape like a tuple of Python."""
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def shape_text(key, value):
    """Returns the beginning of a message about the shape of an argument."""
    return f"`{key}` has shape {axes_text(value.shape)}"


def with_all_axes(shape, whole):
    """Appends axes of size 1 to ``shape``, which is () or the first axes of ``whole``, up to the rank of ``whole``."""
    return tuple(shape) + (1,) * (len(whole) - len(shape))


def full_shape(axes, batch, sizes):
    """Returns the shape of ``axes`` in a call; "..." stands for the batch axes."""
    return tuple(size for axis in axes for size in (batch if axis == "..." else (sizes[axis],)))


def size_of(axis, sizes):
    """Returns the size of an axis that may be a sum of multiples, such as d+e or 3d, or a product such as R*2^b*p."""
    if "*" in axis:
        factors = [(part.removeprefix("2^"), part.startswith("2^")) for part in axis.split("*")]
        return math.prod(2 ** sizes[name] if is_power else sizes[name] for name, is_power in factors)
    return sum(number * sizes[symbol] for number, symbol in terms(axis))


def equal_axes(row, values):
    """Returns a dict from each axis that a rule makes equal to another in this call to the axis that replaces it."""
    same = {}

    def find(axis):
        while axis in same:
            axis = same[axis]
        return axis

    for rule in row.relations:
        if isinstance(rule, Equal):
            present = any(values[name] is not None for name in rule.names)
            if present == rule.present and find(rule.first) != find(rule.second):
                same[find(rule.first)] = find(rule.second)
    return {axis: find(axis) for axis in same}


def batch_of(name, arguments, given):
    """Returns the sizes of the batch axes of the data arguments; raises a ValueError if they disagree."""
    batch, first_key = (), None
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind not in ("data", "index") or not argument.batched:
            continue
        rank = len(argument.own)
        if len(argument.shapes) > 1:  # earlier data decide the number of batch axes
            rank = len(own_axes(alternative(name, argument, value, batch)))
        if value.ndim < max(rank, 1):
            raise ValueError(f"{name}: {shape_text(key, value)}, needs {argument}")
        own = tuple(value.shape[: value.ndim - rank])
        if not own:
            continue
        if first_key is None:
            batch, first_key = own, key
        elif own != batch:
            repair = ""
            for other, axes in ((key, own), (first_key, batch)):
                if set(axes) == {1}:
                    repair = f"; did you mean `{other}[{', '.join('0' * len(axes))}]`, to share it, or `broadcast_to`?"
            if not repair and name in FOR_QUERIES and key == "query" and own[:-1] in ((), batch):
                repair = f"; did you mean {FOR_QUERIES[name]}, for {own[-1]} queries?"
            raise ValueError(
                f"{name}: `{key}` has batch axes {axes_text(own)} but `{first_key}` has {axes_text(batch)}; batch axes are equal "
                f"or absent, none is stretched{repair}"
            )
    return batch


def sizes_of(row, arguments, given, values, batch):
    """Returns the size of each named axis in data and parameters; raises a ValueError if they disagree."""
    sizes, given_by = {key: values[key] for key in COUNTS if key in row.options} | row.sizes, {}
    same = equal_axes(row, values)
    may_be_0 = {rule.axis for rule in row.relations if isinstance(rule, MayBeEmpty)}

    def root(axis):
        return same.get(axis, axis)

    def set_size(key, argument, value, axis, size):
        axis_name = root(axis)
        if axis_name not in sizes:
            sizes[axis_name], given_by[axis_name] = size, key
        elif sizes[axis_name] != size:
            other = given_by.get(axis_name)
            if other and is_symbol(size) != is_symbol(sizes[axis_name]):
                fixed = (key, other) if is_symbol(sizes[axis_name]) else (other, key)
                raise ValueError(_fixed(row.name, axis, *fixed, arguments, given, {size, sizes[axis_name]}))
            theirs, others = f"`{axis}` is {sizes[axis_name]}", [axis]
            if other:
                theirs = f"`{other}` has {axes_text(given[other].shape)}"
                others = [own for shape in arguments[other].shapes for own in shape if root(own) == axis_name]
            raise ValueError(
                f"{row.name}: {shape_text(key, value)} but {theirs}: "
                f"`{key}` needs {argument} with {axis} = {sizes[axis_name]}{_apart(row, values, axis, others)}"
            )

    pending, having = [], {}
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind not in ("data", "parameter", "bool", "number", "position", "segments", "index", "constant"):
            continue
        own = own_axes(alternative(row.name, argument, value, batch))
        if argument.lacks:
            other, theirs = having.setdefault(argument.lacks, (key, argument.lacks in own))
            if theirs != (argument.lacks in own):
                needs = ", ".join(argument.shapes[0 if theirs else 1])
                shape = axes_text(given[other].shape)
                raise ValueError(
                    f"{row.name}: {shape_text(key, value)} but `{other}` has {shape}: `{key}` needs [{needs}]"
                )
        for axis, size in zip(own, value.shape[value.ndim - len(own) :], strict=True):
            if terms(axis) == [(1, axis)]:
                set_size(key, argument, value, axis, size)
            else:
                pending.append((key, argument, value, axis, size))
    for key, argument, value, axis, size in pending:
        unknown = [symbol for _, symbol in terms(axis) if root(symbol) not in sizes]
        if len(unknown) == 1:  # the remainder of the sum
            rest = size - size_of(axis, {symbol: sizes.get(root(symbol), 0) for _, symbol in terms(axis)})
            set_size(key, argument, value, unknown[0], max(rest, 0))
        total = size_of(axis, {symbol: sizes[root(symbol)] for _, symbol in terms(axis)})
        if total != size:
            raise ValueError(f"{row.name}: {shape_text(key, value)}, needs {argument} with {axis} = {total}")
    for axis, rooted in same.items():
        if rooted in sizes:
            sizes[axis], given_by[axis] = sizes[rooted], given_by[rooted]
    for axis, size in sizes.items():
        if axis in FEATURES and axis not in may_be_0 and size == 0:
            key = given_by[axis]
            needs = f"needs {arguments[key]} with {axis} at least 1"
            raise ValueError(f"{row.name}: {shape_text(key, given[key])}, {needs}")
    for rule in row.relations:
        if isinstance(rule, AtMost) and sizes[rule.axis] > rule.size:
            key = given_by[rule.axis]
            needs = f"needs {arguments[key]} with {rule.axis} at most {rule.size}"
            raise ValueError(f"{row.name}: {shape_text(key, given[key])}, {needs}")
    return sizes


def _apart(row, values, axis, others):
    """Returns " unless `y_kernel` is given", with all absent arguments of which each would free ``axis`` of ``others``."""
    names = [name for rule in row.relations if isinstance(rule, Equal) for name in rule.names if values[name] is None]
    found = []
    for name in dict.fromkeys(names):
        same = equal_axes(row, values | {name: name})
        if same.get(axis, axis) not in {same.get(other, other) for other in others}:
            found.append(f"`{name}`")
    return f" unless {' or '.join(found)} is given" if found else ""


def _fixed(name, axis, fixed, symbolic, arguments, given, sizes):
    """Returns the message about a symbol for an axis whose size another argument fixes.

    ``symbolic`` and ``fixed`` are the names of the two arguments; ``sizes`` holds the symbol and the fixed size.
    """
    symbol, size = sorted(sizes, key=is_symbol, reverse=True)
    return (
        f"{name}: {shape_text(symbolic, given[symbolic])} but `{fixed}` has "
        f"{axes_text(given[fixed].shape)}: `{symbolic}` needs {arguments[symbolic]} with {axis} = {size}, no symbol"
        f"{symbol_suggestion(symbol, size)}"
    )


def symbol_suggestion(symbol, size):
    """Returns the end of a message about a size that must be a number: a suggestion for a symbol, else ""."""
    return f"; did you mean to export it with {size} in place of {symbol}?" if is_symbol(symbol) else ""


def own_axes(axes):
    """Returns the axes without the batch axes."""
    return [axis for axis in axes if axis != "..."]


def alternative(name, argument, value, batch):
    """Returns the first of the argument's shapes that fits the value's rank; raises a ValueError if there is none."""
    shapes = argument.shapes
    if argument.batched and len(shapes) > 1:
        fitting = [axes for axes in shapes if value.ndim == len(own_axes(axes)) + len(batch)]
        fitting += [axes for axes in shapes[:1] if value.ndim == len(own_axes(axes))]
    else:
        fitting = [axes for axes in shapes if value.ndim == len(own_axes(axes))]
        fitting += [axes for axes in shapes if "..." in axes and value.ndim >= max(len(own_axes(axes)), 1)]
    if not fitting:
        raise ValueError(f"{name}: {shape_text(argument.name, value)}, needs {argument}")
    return fitting[0]


def check_broadcast(name, argument, value, batch, sizes):
    """Returns the full shape to which a mask (or bias, or dropout multiplier) broadcasts; else raises a ValueError."""
    if argument.lacks:
        argument = replace(argument, shapes=(argument.shapes[argument.lacks not in sizes],), lacks="")
    targets = [full_shape(axes, batch, sizes) for axes in argument.shapes]
    for target in targets:
        if value.ndim <= len(target):
            if _broadcasts(value.shape, target):
                return target
            break
    needs = f"needs a shape that broadcasts to {argument} = {axes_text(targets[0])}"
    repair = _repair(argument, value, targets) if argument.kind == "mask" else ""
    if argument.name == "sink" and value.ndim == 1:
        repair = "; `multi_head_attention` takes one for each head"
    raise ValueError(f"{name}: {shape_text(argument.name, value)}, {needs}{repair}")


def _broadcasts(shape, target):
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape[::-1], target[::-1], strict=False))


def _repair(argument, value, targets):
    """Returns the suggestion for a mask whose shape does not fit; "" if none is likely."""
    key, shape, target = argument.name, tuple(value.shape), targets[0]
    if shape and _broadcasts((*shape[:-1], 1, shape[-1]), target):
        return f"; did you mean `{key}[..., None, :]`?"
    squeezed = tuple(s for s in shape if s != 1)
    if len(shape) > len(target) and _broadcasts(squeezed, target):
        index = ", ".join("0" if s == 1 else ":" for s in shape)
        return f"; did you mean `{key}[{index}]`?"
    if len(shape) >= 2 and _broadcasts((*shape[:-2], shape[-1], shape[-2]), target):
        return f"; did you mean `{key}.swapaxes(-1, -2)`?"
    for whole in targets:  # torch's mask of several heads, [B * H, n, m]
        if len(shape) == 3 < len(whole) and shape == (math.prod(whole[:-2]), *whole[-2:]):
            return f"; did you mean `{key}.reshape({', '.join(map(str, whole))})`?"
    return ""


def check_counts(name, argument, value, batch, sizes):
    """Returns the shape to which lengths that replace a mask broadcast: the axes of the mask without the last one.

    Raises:
      ValueError: if the lengths have another shape than (), the batch axes or all of these axes.
    """
    axes = argument.shapes[0]
    whole = full_shape(axes, batch, sizes)
    legal = (), full_shape(axes[:1], batch, sizes), whole
    if tuple(value.shape) in legal:
        return whole
    needs = " or ".join(dict.fromkeys(map(axes_text, legal)))
    raise ValueError(f"{name}: {shape_text(argument.name, value)}, needs {needs}")


def normalize_axis(name, axis, ndim):
    """Returns the axis counted from 0; raises a ValueError if there is no such axis."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: `axis` is {axis}, needs {-ndim} to {ndim - 1} for an array with {ndim} axes")
    return axis % ndim


def check_lengths(name, key, value, values, given):
    """Returns the size of the axis along which lengths count.

    Raises:
      ValueError: if there is no such axis, or if the shape of the lengths is not the start of that of the other axes.
    """
    if "max_length" in values:
        return values["max_length"]
    scores = given["scores"]
    axis = normalize_axis(name, values["axis"], scores.ndim)
    rest = tuple(s for i, s in enumerate(scores.shape) if i != axis)
    if tuple(value.shape) != rest[: value.ndim]:
        raise ValueError(
            f"{name}: {shape_text(key, value)}, needs () or the first axes of {axes_text(rest)}, the axes of `scores` "
            f"without axis {values['axis']}"
        )
    return scores.shape[axis]


def check_weights(normalizer, weights, shape):
    """Checks that the caller's normalizer returned an array of numbers of the scores' shape.

    Raises:
      TypeError: if it returned anything but an array of numbers.
      ValueError: if the numbers are complex, or if the shape is another.
    """
    name = getattr(normalizer, "__name__", type(normalizer).__name__)
    refuse_non_numeric(name, "weights", weights)
    if kind_of(weights.dtype) == "c":
        raise ValueError(f"{name}: `weights` has dtype {weights.dtype}, needs real numbers")
    if tuple(weights.shape) != tuple(shape):
        raise ValueError(f"{name}: {shape_text('weights', weights)}, needs that of the scores, {axes_text(shape)}")
