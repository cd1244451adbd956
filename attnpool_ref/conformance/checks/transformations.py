"""Checks for functions of JAX arrays only: results under jit and vmap, and one compilation for all values."""

import contextlib
import threading

import numpy as np

from attnpool_ref.conformance.candidates.adapters.jax_arrays import untraceable_errors
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks.agreement import Finding, compare, failed


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
