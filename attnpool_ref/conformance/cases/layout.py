"""Positions of named axes and of padding in a case, and selection or addition of positions along them."""

from dataclasses import replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance.cases.case import SEQUENCES

ONE = "1"
"""An axis of size 1, in an array that broadcasts."""

ONE_BATCH = "1..."
"""Batch axes of size 1, in an array that broadcasts."""


def full_mask(case, name):
    """Returns (mask, names of its axes): a mask, or the lengths in its place as a mask, in its full shape."""
    argument = case.row.arguments[name]
    if case.values[name] is None:
        axes, lengths = argument.shapes[0], case.values[argument.lengths]
        lengths = np.reshape(lengths, contract.with_all_axes(lengths.shape, axes[-1 - lengths.ndim : -1]))
        mask = np.arange(case.sizes[axes[-1]]) < lengths[..., None]
    else:
        axes = case.spread.get(name, case.axes[name])
        mask = case.values[name].astype(bool)
    return np.broadcast_to(mask, contract.full_shape(axes, case.batch, case.sizes)), axes


def padding(case, key, example=None):
    """Returns a boolean array of the argument's shape that marks its padding, or None if no mask applies to it.

    With a mask over [..., L], these are the masked tokens of that axis; with a mask over pairs, queries that see no
    key, keys that no query sees, and in an array with both axes the masked pairs; with several masks, what any of them
    hides. An array that all examples share is padding where it is padding for all of them; with ``example``, where it
    is padding for this one.
    """
    own = [a for a in case.axes[key] if a != "..."]
    value, found = case.values[key], None
    for name in case.given_masks():
        mask, axes = full_mask(case, name)
        batched, axes = "..." in axes, [a for a in axes if a != "..."]
        if not set(own) & set(axes):
            continue
        drop = tuple(i - len(axes) for i, a in enumerate(axes) if a not in own)
        real = np.any(mask, drop) if drop else mask
        kept = [a for a in axes if a in own]
        if batched and "..." not in case.axes[key]:
            lead = tuple(range(real.ndim - len(kept)))
            real = np.any(real, lead) if example is None else real[example]
        lead = real.ndim - len(kept)
        spread = np.expand_dims(~real, tuple(lead + i for i, a in enumerate(own) if a not in kept))
        here = np.broadcast_to(spread, value.shape)
        found = here if found is None else found | here
    return found


def places_of(axis, axes, rank):
    """Returns the indices of a named axis in an array of this rank; "..." among ``axes`` stands for the batch axes."""
    shift = rank - len(axes) if "..." in axes else 0
    return [shift + i for i, a in enumerate(axes) if a == axis]


def scaled(case, title, axis, factors, keys):
    """Returns the case with some arguments multiplied by a factor for each position of a named axis, as float32."""
    values = {}
    for key in keys:
        values[key] = value = case.values[key]
        for place in places_of(axis, case.axes[key], value.ndim):
            product = value * factors.reshape(-1, *(1,) * (value.ndim - 1 - place))
            values[key] = np.float32(product).astype(np.float64)
    return case.with_values(title, **values)


def take(case, title, axis, positions):
    """Returns the case with positions selected along a named axis, in every argument that has it."""
    values = {}
    for key, own in case.axes.items():
        value = case.values[key]
        for place in places_of(axis, own, value.ndim):
            value = np.take(value, positions, place)
        values[key] = value
    sizes = case.sizes | {axis: len(positions)}
    return replace(case, title=f"{case.title}, {title}", values=case.values | values, sizes=sizes)


def example_of(case, index):
    """Returns one example of a batch, without batch axes; ``index`` has an integer for each batch axis."""
    values, axes = {}, {}
    for key, own in case.axes.items():
        value = case.values[key]
        if "..." in own:
            value = value[index]
        elif ONE_BATCH in own:
            value = value[(0,) * len(case.batch)]
        values[key], axes[key] = value, tuple(a for a in own if a not in ("...", ONE_BATCH))
    spread = {key: tuple(a for a in own if a != "...") for key, own in case.spread.items()}
    title = f"{case.title}, example {index}"
    return replace(case, title=title, values=case.values | values, axes=axes, batch=(), spread=spread)


def append(case, axis, count):
    """Returns the case with ``count`` padded positions at the end of a masked axis, filled with other numbers."""
    rng, values = case.rng(f" append {axis}"), {}
    for key, own in case.axes.items():
        value = case.values[key]
        for place in places_of(axis, own, value.ndim):
            more = 10 * rng.standard_normal((*value.shape[:place], count, *value.shape[place + 1 :])).astype(np.float32)
            if case.arguments()[key].kind == "mask":
                more = np.zeros(more.shape)
            elif case.arguments()[key].kind == "segments":  # a legal number, with which sorted numbers stay sorted
                more = np.full(more.shape, case.options["num_segments"] - 1)
            value = np.concatenate([value, more.astype(value.dtype)], place)
        values[key] = value
    title = f"{case.title}, {count} padded positions more along {axis}"
    sizes = case.sizes | {axis: case.sizes[axis] + count}
    return replace(case, title=title, values=case.values | values, sizes=sizes)


def masked_axes(case):
    """Returns the token axes of the given masks: L of a mask [..., L], n and m of a mask [..., n, m]."""
    found = []
    for name in case.given("mask"):
        own = [a for a in case.axes[name] if a != "..."]
        found += [a for a in own if a in SEQUENCES and a not in found]
    return found
