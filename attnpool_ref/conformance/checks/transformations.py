"""Checks for functions of JAX arrays only: one compilation for all values; results under jit, vmap and shard_map.

A sequence that is split over devices needs several; ``XLA_FLAGS=--xla_force_host_platform_device_count=4`` makes four of
one CPU.
"""

import contextlib
import inspect
import threading
from dataclasses import replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import has_parameter
from attnpool_ref.conformance.candidates.adapters.jax_arrays import untraceable_errors
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks import padding
from attnpool_ref.conformance.checks.agreement import Finding, agreement, compare, failed
from attnpool_ref.conformance.checks.gradients import gradient
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.report import promises
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

    places = [names if axis in TOKENS else None for axis in axes if axis != "..."]
    return PartitionSpec(*[None] * (rank - len(places)), *places)


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
        places = [place_of(axes, len(axes) - 1 + len(self.case.batch)) for axes in present(results, self.case.sizes)]
        return places[0] if len(places) == 1 else tuple(places)


def traced(subject, case, situation):
    """Checks that results under jit (for a batch, under vmap within jit) are those of the oracle, up to rounding."""
    import jax

    check, return_weights = "jit and vmap", situation.weights
    if subject.candidate.mask_form == "segments":
        return None  # packed examples have no batch axis to map over
    passed, numbers = subject.passed(case, return_weights), case.given("number")
    seen = [k for k, v in passed.items() if isinstance(v, np.ndarray) or k in numbers]
    program = subject.program(passed, seen)
    axes = {k: 0 if "..." in case.axes.get(k, ()) else None for k in seen}
    mapped = bool(case.batch) and case.row.batched and 0 in axes.values()
    mapped = mapped and not subject.candidate.batched  # it takes no examples without their batch axis
    transformed = jax.vmap(program, (axes,)) if mapped else program
    floats = subject.floats(case)
    with subject.adapter.context(subject.dtype):
        arrays = {k: subject.traced(case, k, passed[k]) if k in floats else subject.convert(passed[k]) for k in seen}
        try:
            answer = subject.watch.call(jax.jit(transformed), arrays)
        except untraceable_errors() as error:
            return failed(check, case, f"JAX cannot trace it: {said(error).partition(chr(10))[0]}")
        got = [subject.adapter.read(part) for part in answer]
    return compare(subject, case, check, got, subject.exact(case, return_weights), return_weights)


def compiles_once(subject, case, _situation=None):
    """Checks that a call with other data and other numbers, such as ``scale``, compiles nothing."""
    check = "one program"
    numbers = {k: case.values[k] * 1.125 for k in case.given("number")}
    data = {k: v * 0.875 for k, v in subject.floats(case, ("data",)).items()}
    subject.outputs(case)
    other = case.with_values("other values", **(data | numbers))
    with _heard() as events:
        subject.outputs(other)
    if events:
        return failed(check, other, f"other values of the same shapes compile {len(events)} programs more")
    return Finding(check, case)


def over_devices(subject, case, situation):
    """Checks results, gradients and NaN in padding under ``jax.shard_map``, with tokens sharded over all devices.

    Raises:
      NotApplicable: the implementation does not take ``axis_name``.
    """
    if "mesh" not in case.row.layouts:
        return None
    if not has_parameter(subject.function, "axis_name"):  # the mesh axis over which its sequences are sharded
        raise NotApplicable("it takes no `axis_name`")
    case = divisible(case)
    split = Subject(case.row, OverMesh(subject.function, case), subject.adapter, subject.dtype, watch=subject.watch)
    with_weights = situation.gradients_with_weights if situation.gradients else None
    found = [
        agreement(split, case, situation.weights),
        padding.empty_rows(split, case, situation),
        None if with_weights is None else gradient(split, case, with_weights),
        padding.poison_in_padding(split, case, "NaN", situation.weights, with_weights),
    ]
    return [replace(finding, check=promises.SPLIT) for finding in found if finding is not None]


@contextlib.contextmanager
def _heard():
    """Context that yields a list of JAX's compilations in this thread."""
    import jax

    events, thread = [], threading.get_ident()

    def listener(event: str, duration_secs: float, **_: str | int):
        if "backend_compile" in event and threading.get_ident() == thread:
            events.append((event, duration_secs))

    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        yield events
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
