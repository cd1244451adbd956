"""Calls of the functions of the table with large arrays, and of their plain formulas with the same arguments.

Shapes, optional arguments and options follow from the function's row, so a new function has its calls at once.
"""

import inspect
from dataclasses import dataclass, field
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
import attnpool_ref
from attnpool_ref import contract, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.calling import arrange
from bench import plain, plain_packed, sizes
from bench.plain_packed import Segments
from bench.programs import OURS, PLAIN, STEP

VECTORS = ("data", "parameter")
DENSE, UNSORTED, SORTED, STATE = "dense", "packed, unsorted", "packed, sorted", "state"


@dataclass(frozen=True)
class Call:
    """A call of a function.

    Attributes:
      row: the row of the function in the table.
      layout: DENSE, UNSORTED, SORTED, or STATE: a state of chunks of the whole sequence, which is then finalized.
      extra: options that differ from their defaults.
      given: optional arrays that are passed in addition to masks and those of :data:`sizes.ARGUMENTS`.
      arguments: names of all optional arrays, in place of these; None for them.
      own: sizes by letter, in place of those of :mod:`bench.sizes`.
      real: the fewest and the most real tokens of a sequence, as parts of its length.
    """

    row: table.Variant = field(repr=False)
    layout: str = DENSE
    extra: dict = field(default_factory=dict)
    given: tuple = ()
    arguments: tuple | None = None
    own: dict | None = None
    real: tuple = (0.5, 1.0)

    @property
    def label(self):
        """Name of the function, of the options that are not defaults, of the optional arrays, and the layout."""
        return ", ".join(
            [self.row.name, *(f"{key}={value}" for key, value in self.extra.items()), *self.given, self.layout]
        )

    @property
    def dense(self):
        """Name of the dense function that the call computes."""
        return self.row.state or self.row.name.removeprefix("segment_")

    @cached_property
    def sizes(self):
        """Sizes by letter."""
        found = sizes.Sizes(self.own or sizes.of(self.row.family, self.dense, self.extra))
        if self.row.packed and self.own is None:
            found |= {packed: found["B"] * found[own] for packed, own in (("N", "L"), ("M", "T")) if own in found}
            found["num_segments"] = found["B"]
        return found

    @cached_property
    def options(self):
        """Static arguments of the call."""
        (_, _, options), *_ = cases.configurations(self.row)
        counts = {key: sizes.OPTIONS[key] for key in options if key in sizes.OPTIONS}
        counts |= {key: self.sizes[key] for key in ("num_segments", "max_length") if key in options}
        ordered = {"indices_are_sorted": self.layout == SORTED} if self.row.packed else {}
        return options | counts | ordered | self.extra

    @cached_property
    def _small(self):
        """The same call as a case of the judge, which has the same arguments and axes."""
        (_, masks, options), *_ = cases.configurations(self.row)
        names = (
            [*masks, *sizes.ARGUMENTS.get(self.dense, ()), *self.given] if self.arguments is None else self.arguments
        )
        names = [name for name in names if name.split("#")[0] in self.row.arguments]
        shared = ("query",) if "x" in self.row.arguments else ()  # learned queries of poolings
        return cases.draw(self.row, "sizes", names, options | self.extra, (2,), shared=shared)

    @property
    def axes(self):
        """Axes of each array by name; "..." is the batch axis."""
        return {key: axes for key, axes in self._small.axes.items() if np.shape(self._small.values[key]) != ()}

    @property
    def numbers(self):
        """Arguments that are Python numbers: the function's defaults, or the judge's values if there is none."""
        known = contract.signature_of(getattr(attnpool_ref, self.row.name)).parameters
        drawn = {key: self._small.values[key].item() for key in self._small.axes if key not in self.axes}
        return drawn | {key: known[key].default for key in self.row.arguments if is_number(known[key].default)}

    def shapes(self, dtype):
        """Returns descriptions of all arrays; floating arrays have the dtype."""
        found = {}
        for key, axes in self.axes.items():
            own = self._small.values[key].dtype
            kind = jnp.dtype(dtype) if own.kind == "f" else jnp.dtype("int32") if own.kind in "iu" else own
            shape = tuple(self.sizes["B"] if axis == "..." else contract.size_of(axis, self.sizes) for axis in axes)
            found[key] = jax.ShapeDtypeStruct(shape, kind)
        return found

    def tokens(self):
        """Names of the arrays of tokens: vectors of examples, candidates or packed tokens."""
        kinds = {key: self.row.arguments[key].kind for key in self.axes}
        return [
            key for key, axes in self.axes.items() if kinds[key] in VECTORS and axes[0] in ("...", "B", "C", "N", "M")
        ]

    def arrays(self, dtype):
        """Returns random arrays: each sequence and segment has a real token, and scores are moderate."""
        with jax.numpy_rank_promotion("allow"):
            return jax.jit(partial(self._drawn, self.shapes(dtype)))(jax.random.key(0))

    def _drawn(self, shapes, key):
        keys = jax.random.split(key, len(shapes))
        return {name: self._values(name, shapes[name], own) for name, own in zip(shapes, keys, strict=True)}

    def _values(self, name, array, key):
        argument, shape = self.row.arguments[name], array.shape
        if argument.kind == "segments":
            count = self.options["num_segments"]
            others = jax.random.randint(key, (shape[0] - count,), 0, count)
            ids = jnp.concatenate([jnp.arange(count), others]).astype(array.dtype)
            return jnp.sort(ids) if self.layout == SORTED else jax.random.permutation(key, ids)
        if array.dtype == bool and self.row.packed:
            return jax.random.bernoulli(key, 0.75, shape)
        if array.dtype == bool:
            fewest, most = (max(1, int(part * shape[-1])) for part in self.real)
            examples = (shape[0], *(1 for _ in shape[1:])) if len(shape) > 1 else ()
            lengths = jax.random.randint(key, examples, fewest, most + 1)
            return jnp.broadcast_to(jnp.arange(shape[-1]) < lengths, shape)
        if not is_float(array):
            return jax.random.randint(key, shape, 0, self.options.get("max_length", 2)).astype(array.dtype)
        if self.row.unit and argument.kind == "data":
            return jax.random.uniform(key, shape, array.dtype)  # probabilities
        values = jax.random.normal(key, shape, array.dtype)
        if argument.kind == "parameter" and len(shape) > 1:
            return values * shape[0] ** -0.5
        if self.row.family == "pairs" and name in self.tokens():
            return values * (shape[-1] * shape[-2]) ** -0.25  # scores are summed over the other sequence
        return jnp.abs(values) if name == "weights" or argument.kind == "stretch" else values

    def forward(self, arrays):
        """Computes the results, a flat list."""
        function = getattr(attnpool_flax, self.row.name)
        args, kwargs = arrange(function, arrays | self.numbers | self.options)
        result = function(*args, **kwargs)
        return jax.tree.leaves(attnpool_flax.finalize_state(result) if self.layout == STATE else result)

    @property
    def has_formula(self):
        """Whether there is a plain formula of the function."""
        return hasattr(plain_packed if self.row.packed else plain, self.dense)

    def formula(self, arrays):
        """Computes the results by the plain formula."""
        given = arrays | self.numbers | self.options
        if self.row.packed:
            options = {key: given.pop(key) for key in ("num_segments", "indices_are_sorted")}
            for side in ("", "x_", "y_"):
                if f"{side}segment_ids" in given:
                    own = Segments(given.pop(f"{side}segment_ids"), given.pop(f"{side}mask", None), options)
                    given[f"{side.removeprefix('x_')}segments"] = own
        formula = getattr(plain_packed if self.row.packed else plain, self.dense)
        known = inspect.signature(formula).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
            given = {key: value for key, value in given.items() if key in known or key in arrays}  # all arrays
        wide = any(array.dtype == jnp.float32 for array in arrays.values())
        precision = jax.default_matmul_precision("highest" if wide else None)  # as accurate as our products
        with precision, jax.numpy_rank_promotion("allow"):
            return jax.tree.leaves(formula(**given))

    def program(self, way, direction):
        """Returns OURS or PLAIN as a function from arrays to results, or to results and gradients."""
        forward = {OURS: self.forward, PLAIN: self.formula}[way]
        return step_of(forward) if direction == STEP else forward

    def has_gradient(self):
        """Returns whether there is a step: some arguments and all results are floating."""
        arrays = self.shapes("float32")
        return any(map(is_float, arrays.values())) and all(map(is_float, jax.eval_shape(self.forward, arrays)))


def step_of(forward):
    """Returns a function from arrays to (results, gradients of the sum of their squares by all floating arrays).

    The cotangents depend on the results. With a plain sum, a compiler could skip half of the work.
    """

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


def is_number(value):
    """Returns whether a value is a Python number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def calls():
    """Returns all calls: each function in its layouts, then with optional arrays; packed tokens are then sorted."""
    found = []
    for row in (*table.VARIANTS, *table.STATES):
        layouts = (UNSORTED, SORTED) if row.packed else (STATE,) if row in table.STATES else (DENSE,)
        found += [Call(row, layout, extra) for extra in ({}, *sizes.EXTRA.get(row.name, ())) for layout in layouts]
        if row not in table.STATES:
            for given in sizes.OPTIONAL.get(Call(row).dense, ()):
                extra = {"normalize_query": True} if "query_norm_scale" in given else {}
                found.append(Call(row, layouts[-1], extra, given))
    return found
