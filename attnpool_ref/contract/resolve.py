"""Resolution of a call: sizes, broadcast shapes and the result's dtype from the shapes and dtypes of arguments."""

import functools
from dataclasses import dataclass, field

import numpy as np

from attnpool_ref.contract import masks
from attnpool_ref.contract.dtypes import check_dtype, common_dtype, kind_of, refuse_non_numeric
from attnpool_ref.contract.shapes import (
    alternative,
    batch_of,
    check_broadcast,
    check_counts,
    check_lengths,
    full_shape,
    normalize_axis,
    own_axes,
    shape_text,
    sizes_of,
)
from attnpool_ref.table.language import Argument, Excludes, Needs, WithoutAxis, arguments_of


@dataclass(frozen=True, eq=False)
class Call:
    """Sizes, shapes and dtype of a call, resolved from the shapes and dtypes of its arguments; hashable by identity.

    Attributes:
      batch: the sizes of the batch axes.
      sizes: the size of each named axis.
      dtype: the dtype of the result, or None if no argument that decides it has a floating dtype; callers then use the
        default floating dtype.
      targets: shapes after broadcasting, by argument: data and index arrays with batch axes, masks, lengths (and the
        mask that they replace), and other arguments that broadcast.
      limits: the largest allowed length, for each argument that holds lengths.
      arguments: the function's arguments, with the shapes that they may have in this call.
    """

    batch: tuple[int, ...]
    sizes: dict[str, int]
    dtype: np.dtype | None
    targets: dict[str, tuple[int, ...]]
    limits: dict[str, int]
    arguments: dict[str, Argument] = field(default_factory=dict)


def resolve(row, values):
    """Returns the :class:`Call` of arguments, after a check of their shapes and dtypes against ``row``.

    Args:
      row: the :class:`~attnpool_ref.table.Variant`.
      values: every argument by name, as :func:`bind` returns them; arrays have ``shape`` and ``dtype``.

    Raises:
      TypeError: if an argument is not an array of numbers, or is None although it is required.
      ValueError: if a shape, a dtype or a combination of arguments disagrees with the row. If the call is valid after a
        likely substitution, such as of lengths passed as a mask, the message suggests it.
    """
    try:
        return _resolve(row, values)
    except ValueError as error:
        for substituted, suggestion, argument in _substitutions(row, values, str(error)):
            if _agree(row, values | substituted):
                reason = str(error).partition("; did you mean")[0]
                if argument:
                    reason = f"{row.name}: {shape_text(argument.name, values[argument.name])}, needs {argument}"
                raise ValueError(f"{reason}; did you mean {suggestion}?") from None
        raise


def _resolve(row, values):
    name, arguments, given = row.name, arguments_of(row, values), {}
    for key, argument in arguments.items():
        value = values[key]
        if value is None and argument.optional:
            continue
        if value is None:
            reasons = [f": {reason}" for option, unlike, reason in row.refused if (option, unlike) == (key, None)]
            raise TypeError(f"{name}: `{key}` is None, needs an array{''.join(reasons)}")
        refuse_non_numeric(name, key, value)
        if argument.kind in ("mask", "bool") and kind_of(value.dtype) in ("f", "c"):
            masks.refuse_dtype(row, argument, values, functools.partial(_agree, row))
        check_dtype(name, key, value, argument.kind)
        given[key] = value
    for key, allowed in row.options.items():
        if allowed == "axis":
            first = next(iter(given.values()))
            if first.ndim == 0:
                raise ValueError(f"{name}: `{next(iter(given))}` has shape (), needs at least one axis")
            normalize_axis(name, values[key], first.ndim)
    check_combinations(row.name, row, values)
    batch = batch_of(name, arguments, given)
    sizes = sizes_of(row, arguments, given, values, batch)
    targets, limits = {}, {}
    rows = {rule.argument for rule in row.relations if isinstance(rule, WithoutAxis)}
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind in ("data", "index") and argument.batched:
            rank = len(own_axes(alternative(name, argument, value, batch)))
            targets[key] = batch + tuple(value.shape[value.ndim - rank :] if value.ndim else ())
        elif argument.kind in ("mask", "stretch"):
            axes = np.delete(batch, values["axis"]).tolist() if key in rows else batch
            targets[key] = check_broadcast(name, argument, value, tuple(axes), sizes)
        elif argument.kind == "int":
            limits[key] = check_lengths(name, key, value, values, given)
        elif argument.kind == "lengths":
            mask = arguments[argument.mask].shapes[0]
            targets[argument.mask] = full_shape(mask, batch, sizes)
            targets[key] = check_counts(name, argument, value, batch, sizes)
            limits[key] = sizes[mask[-1]]
    dtype, wanted = _result_dtype(arguments, given), values.get("result_dtype")
    if wanted is not None and dtype is not None and wanted.itemsize < dtype.itemsize:
        raise ValueError(f"{name}: `result_dtype` is {wanted}, narrower than the arguments, needs None or {dtype}")
    return Call(batch, sizes, dtype, targets, limits, arguments)


def _agree(row, values):
    """Returns whether a call with these arguments would pass."""
    try:
        _resolve(row, values)
    except (TypeError, ValueError):
        return False
    return True


def _substitutions(row, values, refusal):
    """Yields (other arguments, the suggestion, an argument to blame or None) for each likely substitution.

    ``refusal`` is the message about the call.
    """
    given = {key: (argument, values[key]) for key, argument in row.arguments.items() if hasattr(values[key], "shape")}
    sink = getattr(values.get("sink"), "shape", ())
    if len(sink) == 1:
        yield {"sink": masks.with_shape(values["sink"], (*sink, 1))}, "`sink[:, None]`", None
    yield from _of_heads(given, refusal)
    yield from _of_packed_rows(row, values, given)
    for key, (argument, value) in given.items():
        shape = tuple(value.shape)
        if len(shape) > 1 and shape[-1] == 1 and refusal.startswith(f"{row.name}: `{key}` has "):
            yield {key: masks.with_shape(value, shape[:-1])}, f"`{masks.column(key, shape)}`", None
        if argument.kind == "segments":
            yield from _of_segments(key, argument, value, values["num_segments"], given)
        if argument.kind == "lengths" and values[argument.mask] is None:
            yield {key: None, argument.mask: value}, f"`{argument.mask}=`", None
            if len(shape) == 1 and masks.is_packed(row, given):
                ids = f"np.repeat(np.arange({shape[0]}), {key})"
                yield {key: None}, f"`segment_{row.name}(x, {ids}, {shape[0]})` for packed tokens", None
        if argument.kind == "mask":
            yield from _of_mask(key, argument, value, values, given, refusal)


def _of_heads(given, refusal):
    """Yields the substitution for queries, keys and values [B, L, H, c], whose heads belong before the tokens."""
    data = {
        key: value for key, (argument, value) in given.items() if argument.kind == "data" and len(argument.own) == 2
    }
    if len(data) < 2 or any(len(value.shape) < 4 for value in data.values()):
        return
    swapped = {}
    for key, value in data.items():
        *batch, length, heads, width = value.shape
        swapped[key] = masks.with_shape(value, (*batch, heads, length, width))
    first, *others = (f"`{key}.swapaxes(-2, -3)`" for key in data)
    suggestion = f"{first}, and {' and '.join(others)}, as heads are an axis before the tokens"
    yield swapped, suggestion, None
    if "batch axes" in refusal:  # the mask may be wrong, too
        yield swapped | {key: None for key, (argument, _) in given.items() if argument.kind == "mask"}, suggestion, None


def _of_packed_rows(row, values, given):
    """Yields the substitution for a batch [B, L, d] with segment numbers [B, L], of which each row is one call."""
    numbers = [key for key, (argument, _) in given.items() if argument.kind == "segments"]
    if len(numbers) != 1 or len(values[numbers[0]].shape) != 2:
        return
    packed = [key for key, (argument, _) in given.items() if given[numbers[0]][0].own[0] in argument.own]
    tokens = f"x, {numbers[0]}"
    code = f"jax.vmap(lambda {tokens}: {row.name}({tokens}, {values['num_segments']}))({tokens})"
    rows = {key: masks.with_shape(values[key], tuple(values[key].shape)[1:]) for key in packed}
    yield rows, f"`{code}`, for the segments of each row", None


def _of_segments(key, argument, value, count, given):
    """Yields substitutions for lengths or offsets of segments that were passed as the segment of each token."""
    tokens = next(theirs.shape[0] for their, theirs in given.values() if their.own[:1] == argument.own)
    for size, lengths, kind in ((count, key, "lengths"), (count + 1, f"np.diff({key})", "offsets")):
        if tuple(value.shape) == (size,):
            ids = f"`np.repeat(np.arange({count}), {lengths})` for {kind}"
            yield {key: masks.with_shape(value, (tokens,))}, ids, None


def _of_mask(key, argument, value, values, given, refusal):
    shape = tuple(value.shape)
    if kind_of(value.dtype) in ("u", "i") and values.get(argument.lengths, value) is None:
        yield {key: None, argument.lengths: value}, f"`{argument.lengths}=`", None
    for other, (their, theirs) in given.items():
        if other != key and their.kind in ("data", "mask"):
            first, second = sorted((key, other), key=list(given).index)
            yield {key: theirs, other: value}, f"to exchange `{first}` and `{second}`", None
        if their.kind != "data" or len(their.own) < 2:
            continue
        if tuple(theirs.shape) == shape:
            if len(shape) > 2 and their.own[:-1] == argument.own:
                one = f"`{key}[..., 0]`, or a mask for each feature (docs/masks.md)"
                yield {key: masks.with_shape(value, shape[:-1])}, one, None
            yield {other: masks.with_shape(theirs, (*shape, 1))}, f"`{other}[..., None]`", their
        if "did you mean" not in refusal and their.own[:-1] == argument.own:
            *batch, width, length = theirs.shape
            if shape == (*batch, length):
                yield {other: masks.with_shape(theirs, (*batch, length, width))}, f"`{other}.swapaxes(-1, -2)`", None


def check_combinations(name, row, values):
    """Raises a ValueError for two arguments that exclude each other, or for one without an argument that it needs.

    ``name`` is the function in the message. Rules about arguments that are not in ``values`` are skipped.
    """
    for rule in row.relations:
        if isinstance(rule, Excludes):
            a, b = rule.first, rule.second
            if values.get(a) is not None and values.get(b) is not None:
                raise ValueError(f"{name}: `{a}` and `{b}` are both given, needs at most one of them")
        elif isinstance(rule, Needs) and values.get(rule.argument) is not None:
            a, b = rule.argument, rule.option
            if b not in values or rule.met(values):
                continue
            if rule.value:
                raise ValueError(f"{name}: `{a}` is given with `{b}` {values[b]!r}, needs {rule.value!r}")
            repair = f"; did you mean `{b}=True`?" if b in row.options else f", needs `{b}` as well"
            raise ValueError(f"{name}: `{a}` is given without `{b}`{repair}")


def _result_dtype(arguments, given):
    """Returns the dtype of the result, from data and parameters other than arrays of shape ()."""
    deciding = [v.dtype for k, v in given.items() if arguments[k].kind in ("data", "parameter") and v.ndim]
    return common_dtype(dtype for dtype in deciding if kind_of(dtype) == "f")
