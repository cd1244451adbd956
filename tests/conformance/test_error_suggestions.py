"""An error of an implementation says what the call was, where that is a likely cause; arrays are found out by the function's module."""

import functools
import types

import numpy as np
import pytest

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.conformance.candidates import adapters

FEW = {"dtypes": ("float32",), "shapes": (), "laws": False, "long": False}


def messages_of(function, name="mean_pooling", **options):
    (row,) = conformance.judge(function, only=(name,), **(FEW | options)).rows
    return {failure.message for failure in row.failures}


def test_an_array_of_numpy_where_a_tensor_was_needed_is_told():
    def pool(x, mask=None):
        return x.unsqueeze(0)

    def other(x, mask=None):
        raise TypeError("sum(): argument 'input' must be Tensor, not numpy.ndarray")

    said = "; it was called with NumPy arrays: if it takes tensors, say so (arrays='torch', --arrays torch)"
    for function in (pool, other):
        found = messages_of(function)
        assert found and all(message.endswith(said) for message in found)


def test_a_mask_of_integers_that_is_not_taken_is_told():
    def pool(x, mask=None):
        if mask is not None and mask.dtype != bool:
            raise TypeError("~ needs booleans")
        return ref.mean_pooling(x, mask)

    (message,) = messages_of(pool, shapes=("broadcasting",), broadcasting=True)
    assert message.endswith(
        "; its mask was of integers: if it takes booleans only, say so (mask_form='boolean', --mask-form boolean)"
    )
    assert not messages_of(pool, shapes=("broadcasting",), broadcasting=True, mask_form="boolean")


def test_a_call_without_an_argument_that_defaults_to_none_is_told():
    def pool(x, mask=None, query=None):
        return ref.attention_pooling(x, mask, query[:])

    def always(x, mask, query):
        return ref.attention_pooling(x, mask, query[:])

    found = messages_of(pool, "attention_pooling")
    assert any("without `query`, as its signature allows: without a default it is always given" in m for m in found)
    assert not messages_of(always, "attention_pooling")


SOURCE = """
import numpy
from functools import partial
def helps(x): return helper(x)
def calls_numpy(x): return numpy.sum(x)
def within(x): return [numpy.sum(row) for row in x]
class Called:
    def __call__(self, x): return helper(x)
"""


@pytest.mark.parametrize("library", ["torch", "torch.nn.functional", "json"])
def test_a_module_that_holds_torch_makes_tensors_the_first_guess_unless_the_body_uses_numpy(library):
    held = {"library": types.ModuleType(library), "helper": lambda x: x}
    exec(SOURCE, held)
    of_torch = library != "json"
    for function in (held["helps"], functools.partial(held["helps"]), held["Called"](), held["Called"]().__call__):
        assert adapters._is_of_torch(function) == of_torch
    assert not any(adapters._is_of_torch(held[name]) for name in ("calls_numpy", "within"))
    assert not adapters._is_of_torch(len) and not adapters._is_of_torch(np.sum)


def test_arguments_that_were_exchanged_by_place_are_named_below_the_error():
    def exchanged(m, bag):
        return ref.mean_pooling(bag, m)

    (row,) = conformance.judge(exchanged, only=("mean_pooling",), **FEW, mask_required=True).rows
    words = "`x` was passed as `m` and `mask` was passed as `bag`, by place: if that is wrong, say so (--arg m=mask --arg bag=x)"
    assert words in row.guarantees["an answer"].failures[0].message
    names = {"m": "mask", "bag": "x"}
    assert conformance.judge(exchanged, only=("mean_pooling",), **FEW, mask_required=True, arguments=names).passed
