"""An error of an implementation says what the call was, where that is a likely cause; arrays are found out by the function's module."""

import functools
import types

import numpy as np
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli.application import application
from attnpool_ref.conformance.candidates import adapters

FEW = {"dtypes": ("float32",), "shapes": (), "laws": False, "long": False}


def messages_of(function, name="mean_pooling", **options):
    (row,) = conformance.judge(function, only=(name,), **(FEW | options)).rows
    return {failure.message + failure.hint for failure in row.failures}


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

    hint = "; its mask was of integers: if it takes booleans only, say so (mask_form='boolean', --mask-form boolean)"
    for function in (pool, selected):  # an error and a wrong number
        (row,) = conformance.judge(function, only=("mean_pooling",), **(FEW | {"shapes": ("broadcasting",)})).rows
        assert row.status == "pass" and any(
            note.endswith(hint) for note in row.guarantees["arguments that broadcast"].notes
        )
        for form, status in (("boolean", "pass"), ("integer", "fail")):
            (row,) = conformance.judge(function, only=("mean_pooling",), mask_form=form, **FEW).rows
            assert row.status == status and not any(note.endswith(hint) for note in row.notes)


def selected(x, mask=None):
    return ref.mean_pooling(x, mask if mask is None or mask.dtype == bool else mask == 0)


FORMS = {
    "integer": lambda scores, mask: np.where(1 + -mask, -np.inf, scores),
    "additive": lambda scores, mask: scores + mask,
    "lengths": lambda scores, mask: np.where(np.arange(scores.shape[-1]) < mask[..., None], scores, -np.inf),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_first_message_has_the_form_of_masks_with_which_the_call_is_right(form):
    def softmax(scores, mask):
        scores = FORMS[form](scores, mask).astype(scores.dtype)
        weights = np.exp(scores - np.max(scores, -1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    options = FEW | {"mask_required": True, "some_real": True}
    (row,) = conformance.judge(softmax, only=("masked_softmax",), **options).rows
    assert row.status == "fail" and row.proposed == f"--mask-form {form}"
    assert row.causes[0].startswith("your function takes masks as ") and f"`--mask-form {form}`" in row.causes[0]
    (row,) = conformance.judge(softmax, only=("masked_softmax",), mask_form=form, **options).rows
    assert row.guarantees["values under masks"].status == "held" and not row.proposed, row.failures


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
    assert words in row.guarantees["an answer"].failures[0].hint
    names = {"m": "mask", "bag": "x"}
    assert conformance.judge(exchanged, only=("mean_pooling",), **FEW, mask_required=True, arguments=names).passed


def test_a_wrong_function_of_three_axes_is_told_of_batched_and_its_mistake_is_named():
    def pool(x, mask):
        assert x.ndim == 3
        return ref.mean_pooling(x, ~mask)

    (row,) = conformance.judge(pool, only=("mean_pooling",), **(FEW | {"shapes": ("no batch", "rank 1")})).rows
    assert row.proposed == "--batched" and "run again with `--batched`" in row.causes[0]
    assert row.causes[1].startswith("equals the definition with `~mask`")
    (row,) = conformance.judge(pool, only=("mean_pooling",), batched=True, **FEW).rows
    assert not row.proposed and row.causes[0].startswith("equals the definition with `~mask`")


def test_the_command_is_printed_again_with_the_options_that_are_missing(current_folder):
    (current_folder / "batched_of_a_test.py").write_text(
        "import attnpool_ref\ndef pool(x, mask):\n    assert x.ndim == 3\n    return attnpool_ref.mean_pooling(x, mask)\n"
    )
    words = "check ./batched_of_a_test.py:pool --as mean_pooling --dtype float32 --jobs 0"
    result = CliRunner().invoke(application, words.split())
    assert result.exit_code == 1 and f"\nRun again:\n\n  attnpool {words} --batched\n" in result.output
    assert CliRunner().invoke(application, [*words.split(), "--batched"]).exit_code == 0
