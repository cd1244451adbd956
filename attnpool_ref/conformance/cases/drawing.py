"""Drawing of one case from the shapes of a function."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance.cases.case import ANY_RANK, FEATURE_AXES, SEQUENCES, SIZES, Case, generator
from attnpool_ref.table import language
from attnpool_ref.table.language import terms
from attnpool_ref.table.row import NUMBER, NUMBERS

MOST = 2**24
"""Largest number of elements of an array that a definition forms: the few of them, in float64, stay below 1 GiB."""

LEAST = 512
"""Size above which axes are halved where arrays would be larger."""


def draw(row, way, names, options, batch, sizes=None, shared=(), left=(), any_rank=ANY_RANK, shape="", title=""):
    """Draws one case of a function.

    Args:
      row: the function's row in the table.
      way: the configuration's title.
      names: the optional arguments that are given; "key#1" gives ``key`` in the second of its alternative shapes.
      options: static arguments.
      batch: the sizes of the batch axes.
      sizes: sizes of named axes, in addition to :data:`SIZES` or instead of them; large ones are halved until no array
        that the definition forms has more than :data:`MOST` elements.
      shared: the data arguments that are drawn without batch axes.
      left: the numeric arguments that are omitted.
      any_rank: the axes of an array that may have any rank, :data:`ANY_RANK` or ``case.RANK_1``.
      shape: the name of the shape, "" for the mixed batch.
      title: what distinguishes the case from others of this configuration; by default ``shape``.
    """
    full = f"{way}, {title or shape}" if title or shape else way
    chosen = {name.split("#")[0]: int(name.split("#")[1]) for name in names if "#" in name}
    arguments = row.arguments
    present = {k: k not in left and (not a.optional or k in names or k in chosen) for k, a in arguments.items()}
    arguments = language.arguments_of(row, {k: True if p else None for k, p in present.items()} | options)
    lacked = {arguments[name].lacks for name in chosen} - {""}
    chosen |= {name: 1 for name, argument in arguments.items() if argument.lacks in lacked}
    arrays = [a for a in arguments.values() if a.kind != "lengths"]
    keys = any({"m", "L", "N"} & set(shape_axes) or shape_axes == ("...",) for a in arrays for shape_axes in a.shapes)
    known = SIZES | ({} if keys else {"n": 7}) | (sizes or {})  # without an axis of keys, axis n has the tokens
    same = contract.equal_axes(row, {k: True if p else None for k, p in present.items()} | options)
    known |= {key: options[key] for key in ("max_length",) if key in options}
    known |= row.sizes | {key: options[key] for key in contract.COUNTS if key in options}
    known |= {root: row.sizes[axis] for axis, root in same.items() if axis in row.sizes}
    known = known | {axis: known[root] for axis, root in same.items()}
    large = {axis for axis, size in (sizes or {}).items() if size > LEAST}
    if large and _formed(row, [a for k, a in arguments.items() if present[k]], known, batch) > MOST:
        halved = (sizes or {}) | {axis: known[axis] // 2 for axis in large}
        return draw(row, way, names, options, batch, halved, shared, left, any_rank, shape, title)
    rng = generator(f"{row.name}: {full}")
    values, axes, masks = {}, {}, 0
    for index, (key, argument) in enumerate(arguments.items()):
        values[key] = None
        if not present[key]:
            continue
        shape_axes = argument.shapes[chosen.get(key, 0)]
        if shape_axes == ("...",):  # an array of any rank: a batch of rows
            shape_axes = _of_any_rank(row, argument, options, any_rank)
        axes[key] = tuple(a for a in shape_axes if a != "..." or key not in shared)
        own = tuple(s for a in axes[key] for s in (batch if a == "..." else (contract.size_of(a, known),)))
        masked = arguments[argument.mask].shapes[0] if argument.kind == "lengths" else ()
        turn = index, masks
        values[key] = _values(key, argument, masked, axes[key], own, rng, turn, known, len(batch), row.unit)
        masks += argument.kind == "mask"
        if argument.kind == "segments" and options.get("indices_are_sorted"):
            values[key] = np.sort(values[key])
        if row.norms and argument.kind == "data":
            values[key] = np.float32(values[key] + 1).astype(np.float64)  # shifted, so that no sum of cosines cancels
    if "lengths" in arguments and present["lengths"] and "max_length" in options:
        values["lengths"] = np.asarray(values["lengths"] % (options["max_length"] + 1))
    used = {symbol for shape_axes in axes.values() for axis in shape_axes for _, symbol in terms(axis)}
    return Case(row, full, way, shape, values, dict(options), axes, tuple(batch), {a: known[a] for a in sorted(used)})


def _of_any_rank(row, argument, options, any_rank):
    """Returns the axes of an argument with the axes [...]; ``any_rank`` are those of arrays that may have any rank."""
    if argument.kind in ("int", "lengths") or row.arguments[next(iter(row.arguments))].shapes != (("...",),):
        return ("...",)
    rule = language.WithoutAxis(argument.name)
    axis = options.get("axis", -1) % len(any_rank) if rule in row.relations else None
    return tuple(name for i, name in enumerate(any_rank) if i != axis)


def _formed(row, arguments, known, batch):
    """Returns a bound of the number of elements of an array that the definition forms, such as scores of all pairs."""
    named = {symbol for a in arguments for own in a.shapes for axis in own for _, symbol in terms(axis)}
    tokens = [
        known[axis] for axis in (*sorted(named & {*SEQUENCES, "B", "C"}), *([row.squares] if row.squares else []))
    ]
    return float(
        np.prod([*batch, *tokens, max([known[axis] for axis in named & FEATURE_AXES], default=1)], dtype=float)
    )


def _values(key, argument, masked, axes, shape, rng, turn, known, batch_rank, unit):
    """Returns the values of an argument.

    ``masked`` has the axes of the mask that lengths replace. ``turn`` is (the argument's position in the row, the
    number of masks before it). ``known`` has the sizes of axes, and ``batch_rank`` is the number of batch axes.
    ``unit`` draws data between 0 and 1.
    """
    if argument.kind == "mask":
        return _mask(axes, shape, rng, turn, batch_rank)
    if argument.kind == "bool":
        return rng.random(shape) < 0.5
    if argument.kind == "int":
        return _lengths(shape, known["m"])
    if argument.kind == "lengths":
        return _lengths(shape, known[masked[-1]])
    if argument.kind == "index":
        return rng.integers(0, max(known["max_length"], 1), shape)
    if argument.kind == "position":
        return np.asarray(5)
    if argument.kind == "segments":
        return _segments(shape, rng, turn[0], known["num_segments"])
    if argument.numeric and shape == ():
        return np.float64(NUMBERS.get(key, NUMBER))
    draws = rng.uniform(size=shape) if unit and argument.kind == "data" else rng.standard_normal(shape)
    if key.endswith("dropout_multiplier"):
        draws = (rng.random(shape) < 0.75) / 0.75
    elif key == "weights":
        draws = 1 + 0.25 * draws
        of_tokens = draws if axes[-1] in SEQUENCES else np.swapaxes(draws, -1, -2)
        of_tokens[..., 1::4] = -0.375
    elif key.endswith("norm_scale"):
        draws = 1 + 0.25 * draws
    elif argument.kind == "parameter" and len(shape) > 1:
        draws = draws / np.sqrt(shape[0])
    return draws.astype(np.float32).astype(np.float64)


def _lengths(shape, limit):
    """Returns lengths from 0 to ``limit`` in a fixed pattern that begins with 0; of shape () 2, at most ``limit``."""
    return np.arange(int(np.prod(shape))).reshape(shape) * 3 % (limit + 1) if shape else np.asarray(min(2, limit))


def _segments(shape, rng, index, count):
    """Returns random, unsorted segment numbers below ``count``; segment ``index`` modulo ``count`` is empty.

    If ``count`` is below 2, all numbers are 0.
    """
    if count < 2:
        return np.zeros(shape, np.int32)
    numbers = rng.integers(0, count - 1, shape, dtype=np.int32)
    return numbers + (numbers >= index % count).astype(np.int32)


def _mask(axes, shape, rng, turn, batch_rank):
    """Returns a mask with another pattern for each of five examples, in an order that depends on the argument.

    The patterns are full, prefix, scattered, empty and suffix; a single example gets a scattered one. The scattered
    patterns of two masks differ, even if both masks have the same order of patterns or only one example. ``turn`` and
    ``batch_rank`` are those of :func:`_values`.
    """
    index, masks = turn
    single = shape[batch_rank:] if "..." in axes else shape[len(axes) > 1 :]
    lead = shape[: len(shape) - len(single)]
    mask = np.empty((int(np.prod(lead)), *single), bool)
    kinds = ("full", "prefix", "scattered", "empty", "suffix")
    if "..." not in axes:
        index = 3  # "empty", "full", "scattered" come first: the named batch axis B has only three examples
    for i in range(len(mask)):
        kind = kinds[(i * 2 + index) % 5] if len(mask) > 1 else "scattered"
        mask[i] = _pattern(kind, single, rng, 2 * masks)
    return mask.reshape(shape)


def _pattern(kind, shape, rng, shift):
    length = shape[-1]
    position = np.arange(length)
    cut = length // 3 if length > 256 else max(length - 3, 1)  # long rows have long paddings
    line = {
        "full": position >= 0,
        "prefix": position < cut,
        "suffix": position >= length - cut,
        "empty": position < 0,
        "scattered": (position + shift) % 3 != 1,
    }[kind]
    mask = np.broadcast_to(line, shape).copy()
    if len(shape) > 1 and kind in ("scattered", "suffix") and shape[-2] > 1:
        mask &= rng.random(shape) < 0.8  # queries see different keys ...
        mask[..., 1, :] = False  # ... and one query sees no key
    return mask
