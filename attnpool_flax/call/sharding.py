"""Calls over several devices: checks of ``axis_name``, and arrays that are sharded over Explicit mesh axes."""

import contextlib
from typing import Any

import jax
from jax import lax
from jax.sharding import PartitionSpec

from attnpool_flax.numerics.platforms import varying_axes
from attnpool_flax.tokens.mesh import axis_names
from attnpool_ref.table.language import present

_SPLIT = ("L", "T")
"""Axes of tokens, by their names in the table."""


def check_axis_name(name, axis_name):
    """Raises a ValueError that begins with ``name`` unless ``axis_name`` is None, a string or a tuple of strings.

    The strings must differ. Whether the mesh has axes of these names is not checked here.
    """
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    if axis_name is None or (names and all(isinstance(own, str) for own in names) and len(set(names)) == len(names)):
        return
    raise ValueError(
        f"{name}: `axis_name` is {axis_name!r}, needs None, a name or a tuple of different names of mesh axes"
    )


def device_key(name, key, axis_name):
    """Returns a key that differs on each device along the mesh axes ``axis_name``; ``key`` itself if that is None.

    Raises a ValueError that begins with ``name`` if an axis is not bound.
    """
    if axis_name is None:
        return key
    _check_bound(name, axis_name)
    return jax.random.fold_in(key, lax.axis_index(axis_name))


def _check_bound(name, axis_name):
    for own in axis_names(axis_name):
        try:
            lax.axis_size(own)
        except NameError:
            raise ValueError(
                f"{name}: `axis_name` has {own!r}, which is not bound here, needs a mesh axis of the `jax.shard_map` "
                "that is around the call"
            ) from None


def check_split(row, values):
    """Raises an error if a call cannot be split over the mesh axes that ``axis_name`` names.

    Raises:
      ValueError: a name is not a string, or not an axis of the surrounding ``shard_map``, or tokens are not split over
        it; lengths are given; or the reduction or the normalizer needs all tokens at once.
    """
    axis_name = values["axis_name"]
    if axis_name is None:
        return
    check_axis_name(row.name, axis_name)
    _check_bound(row.name, axis_name)
    for argument in row.arguments.values():
        if argument.kind == "mask" and values.get(argument.lengths) is not None:
            raise ValueError(
                f"{row.name}: `{argument.lengths}` and `axis_name` are both given, needs `{argument.name}`, of which each "
                "device has its own part"
            )
    if values.get("reduction") == "max":
        raise ValueError(
            f"{row.name}: `reduction` is 'max', needs 'sum' or 'mean' with `axis_name`: the largest product of a token "
            "takes all tokens of the other side"
        )
    if values.get("normalizer") not in (None, "softmax", "sigmoid"):
        raise ValueError(
            f"{row.name}: `normalizer` is {values['normalizer']!r}, needs 'softmax' or 'sigmoid' with `axis_name`: others "
            "compare the scores of all tokens with each other"
        )
    for key, argument in row.arguments.items():
        value: Any = values[key]
        if argument.kind == "data" and argument.own[:1] and argument.own[0] in _SPLIT and hasattr(value, "shape"):
            replicated = [own for own in axis_names(axis_name) if own not in varying_axes(value)]
            if replicated:
                raise ValueError(
                    f"{row.name}: `{key}` is the same on all devices along {replicated[0]!r}, needs to be split over it by "
                    "`in_specs` of `jax.shard_map`, with `check_vma=True`"
                )


def explicit_mesh(given):
    """Returns the mesh with Explicit axes on which arrays by name are; None if there is none."""
    meshes = (jax.typeof(array).sharding.mesh for array in given.values())
    return next((mesh for mesh in meshes if mesh.explicit_axes), None)


def over_explicit_axes(body, given, mesh, row, call, both):
    """Computes ``body(given)``. Explicit mesh axes are Auto inside, and the results are sharded like the arguments.

    Args:
      body: from arrays by name to a result, or with ``both`` to (a result, the weights).
      given: the arrays.
      mesh: their :func:`explicit_mesh`.
      row: the function's row of the table, which has the axes of arguments and results.
      call: the resolved signature.
      both: whether the weights are returned with the result.
    """
    places = _places(given, call.arguments, len(call.batch))
    batch = range(len(call.batch))
    # the leaves of a state have their batch axes in common, and nothing else
    specs = _spec(batch, places) if row.state else _specs(present(row.results, call.sizes), places, len(call.batch))
    if both:
        specs = specs, _specs(present(row.weight_results, call.sizes), places, len(call.batch))
    entered = jax.sharding.get_abstract_mesh() != mesh
    with jax.sharding.use_abstract_mesh(mesh) if entered else contextlib.nullcontext():
        return jax.sharding.auto_axes(body, axes=mesh.explicit_axes, out_sharding=specs)(given)


def _places(given, arguments, rank):
    """Returns a dictionary: the mesh axes over which an axis is sharded, by its name, or number for a batch axis.

    If arrays differ, the first one that shards the axis decides. ``rank`` is the number of batch axes.
    """
    places = {}
    for key, array in given.items():
        argument = arguments[key]
        if argument.kind not in ("data", "parameter", "mask", "stretch") or not array.ndim:
            continue
        axes = next((own for own in argument.shapes if len(own) - ("..." in own) <= array.ndim), ())
        own = [axis for axis in axes if axis != "..."]
        spec = (*jax.typeof(array).sharding.spec, *(None,) * array.ndim)[: array.ndim]
        first = rank - (array.ndim - len(own))
        names = [*range(first, rank), *own][-array.ndim :]
        for axis, place, size in zip(names, spec, array.shape, strict=True):
            if place is not None and size > 1:
                places.setdefault(axis, place)
    return places


def _specs(results, places, rank):
    """Returns the ``PartitionSpec`` of each result from the names of its axes, or one for a single result.

    No spec uses a mesh axis twice. ``rank`` is the number of batch axes.
    """
    found = tuple(_spec([*range(rank), *axes[1:]] if axes[:1] == ("...",) else axes, places) for axes in results)
    return found[0] if len(found) == 1 else found


def _spec(axes, places):
    used, spec = set(), []
    for axis in axes:
        place = places.get(axis)
        names = {place} if isinstance(place, str) else set(place or ())
        spec.append(None if names & used else place)
        used |= names
    return PartitionSpec(*spec)
