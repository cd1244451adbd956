"""Sharded sequences: wraps a function in ``jax.shard_map``, so that it is called with whole sequences.

The result is judged like that of the function itself. To split anything, the check needs several devices;
``XLA_FLAGS=--xla_force_host_platform_device_count=4`` makes four of one CPU.
"""

import inspect

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.table.language import present

AXIS, TOKENS = "tokens", ("L", "T")


def divisible(case):
    """Returns the case with padding added until the number of devices divides the length of each masked sequence."""
    import jax

    for axis in drawing.masked_axes(case):
        more = -case.sizes[axis] % jax.device_count()
        case = drawing.append(case, axis, more) if more else case
    return case


def place_of(axes, rank, names=AXIS):
    """Returns the ``PartitionSpec`` that shards an array's token axes, L and T, over mesh axes.

    ``names`` is the name of a mesh axis, or a tuple of names. ``axes`` has the names of the array's axes, in which
    "..." stands for all axes without a name, and ``rank`` their number.
    """
    from jax.sharding import PartitionSpec

    own = [names if axis in TOKENS else None for axis in axes if axis != "..."]
    return PartitionSpec(*[None] * (rank - len(own)), *own)


class OverMesh:
    """Pooling of one case with its tokens sharded over all devices, with the signature of the function."""

    def __init__(self, function, case):
        """``function`` takes ``axis_name``; ``case`` has the axes of its arguments and results."""
        self.function, self.case = function, case
        self.__name__ = self.__qualname__ = case.row.name
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "axis_name"]
        self.__signature__ = signature.replace(parameters=own)

    def __call__(self, *args, **kwargs):
        """Returns the result for whole sequences, of which each device gets a part."""
        import jax

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
        places = [place_of(own, len(own) - 1 + len(self.case.batch)) for own in present(results, self.case.sizes)]
        return places[0] if len(places) == 1 else tuple(places)
