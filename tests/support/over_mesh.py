"""A check of the judge's kind: sequences that are split over all devices have the results of the whole sequences."""

import inspect

import jax
from places import AXIS, place_of

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks import padding
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.gradients import gradient
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.table.language import present


def divisible(case):
    """Returns the case with padding added until the number of devices divides the length of each masked sequence."""
    for axis in drawing.masked_axes(case):
        more = -case.sizes[axis] % jax.device_count()
        case = drawing.append(case, axis, more) if more else case
    return case


class OverMesh:
    """Pooling of one case with its tokens sharded over all devices, with the signature of the function."""

    def __init__(self, function, case):
        """``function`` takes ``axis_name``; ``case`` has the axes of its arguments and results."""
        self.function, self.case = function, case
        self.__name__ = self.__qualname__ = case.row.name
        signature = inspect.signature(function)
        parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "axis_name"]
        self.__signature__ = signature.replace(parameters=parameters)

    def __call__(self, *args, **kwargs):
        """Returns the result for whole sequences, of which each device gets a part."""
        given = self.__signature__.bind(*args, **kwargs).arguments
        arrays = {key: value for key, value in given.items() if hasattr(value, "shape")}
        plain = {key: value for key, value in given.items() if key not in arrays}
        mesh = jax.make_mesh((jax.device_count(),), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,))

        def part(arrays):
            return self.function(**arrays, **plain, axis_name=AXIS)

        places = {key: place_of(self.case.axes[key], value.ndim) for key, value in arrays.items()}
        results = self._results(given.get("return_weights", False))
        return jax.jit(jax.shard_map(part, mesh=mesh, in_specs=(places,), out_specs=results))(arrays)

    def _results(self, return_weights):
        row = self.case.row
        found = [self._group(row.results)] + ([self._group(row.weight_results)] if return_weights else [])
        return tuple(found) if return_weights else found[0]

    def _group(self, results):
        places = [place_of(axes, len(axes) - 1 + len(self.case.batch)) for axes in present(results, self.case.sizes)]
        return places[0] if len(places) == 1 else tuple(places)


def over_devices(subject, case, situation):
    """Checks results, gradients and NaN in padding under ``jax.shard_map``, with tokens sharded over all devices."""
    case = divisible(case)
    split = Subject(case.row, OverMesh(subject.function, case), subject.adapter, subject.dtype, watch=subject.watch)
    with_weights = situation.gradients_with_weights if situation.gradients else None
    return [
        agreement(split, case, situation.weights),
        padding.empty_rows(split, case, situation),
        None if with_weights is None else gradient(split, case, with_weights),
        padding.poison_in_padding(split, case, "NaN", situation.weights, with_weights),
    ]
