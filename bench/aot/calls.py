"""Calls of the table's rows, with the shapes of their arrays, forward and as a step."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
from attnpool_ref import contract, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.table.language import present
from bench.aot import plain, sizes
from bench.aot.formulas import FORMULAS
from bench.mesh import AXIS, place_of

DENSE, UNSORTED, SORTED, STATE, MESH = "dense", "packed, unsorted", "packed, sorted", "state", "mesh of 4"
LAYOUTS = (DENSE, UNSORTED, SORTED, STATE, MESH)
OURS = "attnpool"
FORWARD, STEP = "forward", "step"
DTYPES = ("bfloat16", "float32", "float16")
DEVICES_OF_MESH = 4

REFUSED = {(MESH, "cross_attention_pooling, reduction=max")}
"""Pairs of layout and call that attnpool refuses: a maximum over tokens of the other side takes all of them."""


@dataclass(frozen=True)
class Call:
    """A call of a row, whose arrays are only described, not made.

    Attributes:
      row: the row of the table.
      layout: one of LAYOUTS.
      way: OURS, or the name of a formula in :mod:`bench.aot.plain`.
      extra: options that differ from the row's defaults.
      given: optional arrays that are passed in addition to those of :data:`sizes.ARGUMENTS`; "key#1" in its second shape.
      large: whether the arrays do not fit into the on-chip memory; the sizes are those of :data:`sizes.LARGE`.
    """

    row: table.Variant = field(repr=False)
    layout: str = DENSE
    way: str = OURS
    extra: tuple = ()
    given: tuple = ()
    large: bool = False

    @property
    def name(self):
        """Name of the function, of the call's options and optional arrays, and whether it is large."""
        options = [f"{key}={value}" for key, value in self.extra]
        return ", ".join([self.row.name, *options, *self.given, *(["large"] if self.large else [])])

    @property
    def formula(self):
        """Key of the call's formula in :data:`formulas.FORMULAS`, which takes all options and arrays."""
        return self.way, self.row.name

    @property
    def dense(self):
        """Name of the dense row that the call computes."""
        return self.row.state or self.row.name.removeprefix("segment_")

    @cached_property
    def sizes(self):
        """Sizes by letter."""
        named = ", ".join([self.dense, *(f"{key}={value}" for key, value in self.extra)])
        default = sizes.BY_FAMILY.get(self.row.family, sizes.POOLING)
        own = sizes.SIZES.get(named) or sizes.SIZES.get(self.dense, default)
        if self.large:
            own = own | sizes.LARGE[self.dense]
        if not self.row.packed:
            return own
        tokens = {packed: own["B"] * own[letter] for packed, letter in (("N", "L"), ("M", "T")) if letter in own}
        return own | tokens | {"num_segments": own["B"]}

    @cached_property
    def options(self):
        """Static arguments of the call."""
        (_, _, options), *_ = cases.configurations(self.row)
        counts = {key: sizes.OPTIONS[key] for key in options if key in sizes.OPTIONS}
        counts |= {key: self.sizes[key] for key in ("num_segments", "max_length") if key in options}
        ordered = {"indices_are_sorted": self.layout == SORTED} if self.row.packed else {}
        return options | counts | ordered | dict(self.extra)

    @cached_property
    def _small(self):
        """The same call with small sizes, which has the same arguments and axes."""
        (_, names, options), *_ = cases.configurations(self.row)
        always = sizes.ARGUMENTS.get(self.dense, ())
        given = [*names, *(key for key in (*always, *self.given) if key.split("#")[0] in self.row.arguments)]
        pools = "x" in self.row.arguments
        shared = [key for key in sizes.SHARED if pools and key in self.row.arguments]
        return cases.draw(self.row, "sizes", given, options | dict(self.extra), (2,), shared=shared)

    @property
    def axes(self):
        """The axes of each array, by name; "..." is the batch axis."""
        return {key: axes for key, axes in self._small.axes.items() if not _is_number(self._small.values[key])}

    @property
    def numbers(self):
        """Arguments that are Python numbers."""
        values = self._small.values
        return {key: value.item() for key, value in values.items() if value is not None and _is_number(value)}

    def arrays(self, dtype):
        """Returns descriptions of all arrays; floating arrays have the dtype."""
        found = {}
        for key, axes in self.axes.items():
            own = self._small.values[key].dtype
            kind = jnp.dtype(dtype) if own.kind == "f" else jnp.dtype("int32") if own.kind in "iu" else own
            shape = tuple(self.sizes["B"] if axis == "..." else contract.size_of(axis, self.sizes) for axis in axes)
            found[key] = jax.ShapeDtypeStruct(shape, kind)
        return found

    def tokens(self, dtype):
        """Returns the call's arrays of tokens, as one device has them."""
        arrays = self.arrays(dtype)
        data = [key for key in arrays if self.row.arguments[key].kind == "data" and is_float(arrays[key])]
        data = data or [key for key in arrays if is_float(arrays[key])] or list(arrays)
        return [self._shard(key, arrays[key]) for key in data]

    def _shard(self, key, array):
        """Returns the description of an array as one device has it."""
        if self.layout != MESH:
            return array
        place = place_of(self.axes[key], len(array.shape), (AXIS,))
        shape = [n // DEVICES_OF_MESH if part else n for n, part in zip(array.shape, place, strict=True)]
        return jax.ShapeDtypeStruct(tuple(shape), array.dtype)

    def floor(self, direction, dtype):
        """Returns the least bytes on one device: operands read once, results and gradients written once."""
        arrays = self.arrays(dtype)
        results = jax.eval_shape(self.forward, arrays)
        read = [self._shard(key, array) for key, array in arrays.items()]
        gradients = [array for array in read if is_float(array)] if direction == STEP else []
        return sum(array.size * array.dtype.itemsize for array in [*read, *results, *gradients])

    def forward(self, arrays):
        """Computes the results; tokens of a mesh are on one device."""
        if self.way in plain.WAYS:
            wide = any(array.dtype == jnp.float32 for array in arrays.values())
            with jax.default_matmul_precision("highest" if wide else None):  # results as accurate as ours
                return jax.tree.leaves(FORMULAS[self.formula](**arrays, **self.numbers, **self.options))
        return self._called(arrays)

    def _called(self, arrays, **own):
        function = getattr(attnpool_flax, self.row.name)
        args, kwargs = arrange(function, arrays | self.numbers | self.options | own)
        result = function(*args, **kwargs)
        return jax.tree.leaves(attnpool_flax.finalize_state(result) if self.layout == STATE else result)

    def over(self, mesh):
        """Returns the call under ``jax.shard_map``, with tokens split over the mesh."""
        rank = 1
        places = self.places()
        results = [place_of(own, len(own) - 1 + rank, (AXIS,)) for own in present(self.row.results, self.sizes)]

        def part(arrays):
            return self._called(arrays, axis_name=AXIS)

        return jax.shard_map(part, mesh=mesh, in_specs=(places,), out_specs=results)

    def places(self):
        """Returns the shardings of the arrays on a mesh."""
        return {key: place_of(axes, len(axes), (AXIS,)) for key, axes in self.axes.items()}

    def program(self, direction, mesh=None):
        """Returns a function to results, or to results and gradients of a loss whose cotangents depend on the results."""
        forward = self.forward if self.layout != MESH or mesh is None else self.over(mesh)
        return forward if direction == FORWARD else step_of(forward)


def step_of(forward):
    """Returns a function from arrays to (results, gradients of the sum of their squares)."""

    def step(arrays):
        floats = {key: array for key, array in arrays.items() if is_float(array)}

        def loss(floats):
            results = forward(arrays | floats)
            return sum(jnp.sum(jnp.square(part.astype(jnp.float32))) for part in results), results

        gradients, results = jax.grad(loss, has_aux=True)(floats)
        return results, gradients

    return step


def is_float(array):
    """Returns whether an array, or its description, is floating."""
    return jnp.issubdtype(array.dtype, jnp.floating)


def _is_number(value):
    return np.shape(value) == ()


def calls():
    """Returns all calls: rows in their layouts, then plain formulas."""
    found = []
    for row in (*table.VARIANTS, *table.STATES):
        layouts = (UNSORTED, SORTED) if row.packed else (STATE,) if row in table.STATES else (DENSE,)
        if "mesh" in row.layouts:
            layouts = (*layouts, MESH)
        for extra in ({}, *sizes.EXTRA.get(row.name, ())):
            extra = tuple(extra.items())
            name = Call(row, extra=extra).name
            own = [Call(row, layout, OURS, extra) for layout in layouts if (layout, name) not in REFUSED]
            found += [*own, *_beside(own)]
        found += _with_arrays(row)
    return found


def _with_arrays(row):
    """Returns the calls with optional arrays, and large ones: dense, or packed and sorted."""
    dense = Call(row).dense
    own = []
    for given in () if row in table.STATES else sizes.OPTIONAL.get(dense, ()):
        extra = (("normalize_query", True),) if "query_norm_scale" in given else ()
        own.append(Call(row, SORTED if row.packed else DENSE, OURS, extra, given))
    if row.name in sizes.LARGE:
        own.append(Call(row, DENSE, large=True))
    return [*own, *_beside(own)]


def _beside(own):
    """Returns the same dense and packed calls by formulas."""
    own = [call for call in own if call.way == OURS and call.layout in (DENSE, UNSORTED, SORTED)]
    beside = [replace(call, way=way) for call in own for way in plain.WAYS]
    return [call for call in beside if call.formula in FORMULAS and (call.way == plain.PLAIN or not call.given)]


def has_gradient(call):
    """Whether there is a step: some arguments and results are floating."""
    arrays = call.arrays("float32")
    return any(map(is_float, arrays.values())) and all(map(is_float, jax.eval_shape(call.forward, arrays)))
