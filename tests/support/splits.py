"""Calls whose sequences are split over a device mesh."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from agreement import arguments_of
from drawn import way
from places import place_of

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.table.language import present

NAMES = "slow", "fast"
SIZES = {"L": 24, "T": 16, "d": 5, "e": 7, "q": 5, "n": 2}


class Split:
    """A call whose sequences are split over the axes "slow" and "fast" of a mesh.

    In the first example one of eight devices has only padding, in the second all have, and the third example has ties.

    Attributes:
      case: the case of the judge that is called; its options have ``return_weights`` if the call returns weights.
      values: its arrays by name, in float32.
    """

    def __init__(self, name, title, weights=True):
        row = table.get(name)
        case = cases.draw(row, *way(row, title), (3,), SIZES)
        self.case = replace(case, options=case.options | ({"return_weights": weights} if row.weights else {}))
        self.values, _ = arguments_of(self.case, getattr(attnpool_flax, name))
        for key in set(self.values) & {"mask", "x_mask", "y_mask"}:
            mask = np.ones((3, self.case.sizes["T" if key == "y_mask" else "L"]), bool)
            part = mask.shape[-1] // 8
            mask[0, part : 2 * part + 1] = mask[0, -1] = mask[2, : part + 1] = mask[1] = False
            self.values[key] = mask
        self.values["x"][2] = np.round(self.values["x"][2])
        self.specs = {key: place_of(self.case.axes[key], value.ndim, NAMES) for key, value in self.values.items()}

    @property
    def weights(self):
        """Whether the call returns weights."""
        return self.case.options.get("return_weights", False)

    def forward(self, arrays, **options):
        """Computes the results, a flat list."""
        case = replace(self.case, options=self.case.options | options)
        return arguments_of(case, getattr(attnpool_flax, case.row.name))[1](arrays)

    def over(self, mesh):
        """Returns a function that computes the call over a mesh, each device its part."""
        row, part = self.case.row, functools.partial(self.forward, axis_name=NAMES)
        axes = present((*row.results, *(row.weight_results if self.weights else ())), self.case.sizes)
        results = [place_of(own, len(own), NAMES) for own in axes]
        return jax.shard_map(part, mesh=mesh, in_specs=(self.specs,), out_specs=results)


def objective(results):
    """Returns the sum of the squared results; a plain sum may be constant, as that of weights is."""
    return sum(jnp.sum(jnp.square(out)) for out in results)


def floats_of(arrays):
    return {key: array for key, array in arrays.items() if jnp.issubdtype(array.dtype, jnp.floating)}


def with_gradients(forward):
    """Returns a function from arrays to (results, gradients)."""

    def program(arrays):
        def loss(floats):
            results = forward(arrays | floats)
            return objective(results), results

        gradients, results = jax.grad(loss, has_aux=True)(floats_of(arrays))
        return results, gradients

    return program


def gradients_inside(call, mesh):
    """Returns a function from arrays to gradients, which each device computes inside of ``jax.shard_map``.

    A device gets the gradients of its own tokens, and those of the parameters, which are the same on all devices.
    """

    def gradients(arrays):
        def loss(floats):
            results = call.forward(arrays | floats, axis_name=NAMES)
            count = len(call.case.row.results)
            return objective(results[:count]) + jax.lax.psum(objective(results[count:]), NAMES)

        return jax.grad(loss)(floats_of(arrays))

    specs = {key: call.specs[key] for key in floats_of(call.values)}
    return jax.shard_map(gradients, mesh=mesh, in_specs=(call.specs,), out_specs=specs)
