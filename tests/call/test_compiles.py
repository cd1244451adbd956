"""One program serves all values: what a second call traces and compiles is nothing, and what it transfers."""

import inspect
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import arguments_of
from constants import compiling_anew

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_ref import table
from attnpool_ref.conformance import cases


@pytest.fixture(scope="module", params=table.VARIANTS, ids=lambda row: row.name)
def example(request):
    """(row, arrays on the last device, a call that takes them) of a row, called once; what others compiled is put aside.

    Every argument is given but numbers that have a default.
    """
    row = request.param
    arrays, call = arguments_of(fullest(row), getattr(attnpool_flax, row.name))
    numbers = numbers_of(row)
    arrays = {key: jax.device_put(value, jax.devices()[-1]) for key, value in arrays.items() if key not in numbers}
    arrays |= {key: 0.75 for key, default in numbers.items() if default is None}
    with compiling_anew(FUNCTIONS[row.name]):
        call(arrays)
        yield row, arrays, call


def fullest(row):
    """A case with as many arguments as go together."""
    ways = {title: (names, options) for title, names, options in cases.configurations(row)}
    return cases.draw(row, "compiles", *ways.get("fullest", ways["smallest"]), (2,))


def events(function):
    """What JAX traced and compiled meanwhile."""
    heard = []

    def listener(name, *_, **__):
        heard.append(name)

    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        function()
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    return [name for name in heard if "trace" in name or "compile" in name]


def numbers_of(row):
    """The numbers that a row always has: their defaults, or None where the caller must give one."""
    parameters = inspect.signature(getattr(attnpool_flax, row.name)).parameters
    numbers = {key: parameters[key].default for key, argument in row.arguments.items() if argument.kind == "number"}
    return {
        key: None if default is inspect.Parameter.empty else default
        for key, default in numbers.items()
        if default is not None
    }


@pytest.mark.thorough
def test_other_values_compile_nothing(example):
    row, arrays, call = example
    floats = {k: v for k, v in arrays.items() if k not in numbers_of(row) and v.dtype == np.float32}
    moved = arrays | {k: jax.device_put(np.asarray(v) + 1, v.device) for k, v in floats.items()}
    assert events(lambda: call(moved)) == []


@pytest.mark.thorough
def test_a_number_in_any_form_is_the_program_of_its_default(example):
    row, arrays, call = example
    numbers = numbers_of(row)
    for number in (2, 0.5, np.float32(1.5), np.asarray(2.5)):
        assert events(lambda number=number: call(arrays | dict.fromkeys(numbers, number))) == [], number
    explicit = {key: default for key, default in numbers.items() if default is not None}
    assert events(lambda: call(arrays | explicit)) == []
    assert events(lambda: call(arrays)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("place", [pytest.param(1, marks=pytest.mark.mesh), None])
def test_device_arrays_with_default_numbers_transfer_nothing(example, place):
    row, arrays, call = example
    if place is None and not any(default is not None for default in numbers_of(row).values()):
        return  # what lies on the default device goes the same way as on another
    device = None if place is None else jax.devices()[place]
    arrays = {key: jax.device_put(np.asarray(value), device) for key, value in arrays.items()}
    options = {"return_weights": True} if row.weights else {}
    with jax.transfer_guard("disallow"):
        results = call(arrays | options)
    devices = {device for array in arrays.values() for device in array.devices()}
    for out in results:
        assert out.devices() == devices
        assert out.committed == (place is not None), "a default commits nothing to a device"


def test_another_shape_would_be_heard():
    x = np.ones((2, 3, 5), np.float32)
    attnpool_flax.mean_pooling(x)
    assert events(lambda: attnpool_flax.mean_pooling(x[:1]))


def test_a_second_call_is_few_python_calls():
    x, mask = jnp.ones((2, 3, 4)), jnp.ones((2, 3), bool)
    attnpool_flax.mean_pooling(x, mask)
    inside, called = str(Path(attnpool_flax.__file__).parent), []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(inside):
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        attnpool_flax.mean_pooling(x, mask)
    finally:
        sys.setprofile(None)
    assert len([name for name in called if not name.startswith("<")]) <= 4
