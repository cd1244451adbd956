"""The kit judges PyTorch's and Keras' arrays: right candidates pass with their gradients, wrong ones do not."""

import math

import keras
import numpy as np
import pytest
import torch
from torch.nn import functional

from attnpool_ref import conformance
from attnpool_ref.conformance.candidates import adapters
from attnpool_ref.conformance.causes import diagnosis

FEW = {"shapes": ("no batch",)}
ONE = {"only": ("mean_pooling",)} | FEW


def mean(x, mask=None):
    mask = torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask.expand(x.shape[:-1])
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    kept = torch.where(mask[..., None], x, torch.zeros((), dtype=x.dtype)).to(wide)
    return (kept.sum(-2) / mask.sum(-1).clamp(min=1)[..., None]).to(x.dtype)


def test_tensors_are_found_out_and_judged_with_gradients_in_every_dtype():
    report = conformance.judge(mean, **ONE)
    (row,) = report.rows
    assert (row.status, row.adapter) == ("pass", "torch"), row.failures
    assert all(cell.forward.passed and cell.gradient.passed for cell in row.cells.values()) and len(row.cells) == 4
    assert report.versions["torch"] == torch.__version__


def dots(query, key):
    return query @ key.swapaxes(-1, -2)


def fails(x, mask=None):
    return x @ x


@pytest.mark.parametrize(("function", "name", "status"), [(dots, "dot_score", "pass"), (fails, "mean_pooling", "fail")])
def test_a_function_that_numpy_could_run_is_given_tensors_where_its_module_uses_torch(function, name, status):
    report = conformance.judge(function, only=(name,), dtypes=("float32",), **FEW)
    assert (report.rows[0].status, report.rows[0].adapter) == (status, "torch"), report.rows[0].failures


def test_a_result_that_forgets_its_inputs_is_partial():
    row = conformance.judge(lambda x, mask=None: mean(x, mask).detach(), dtypes=("float32",), **ONE).rows[0]
    assert row.status == "partial"
    assert row.partial == [
        "its gradient was never judged: PyTorch cannot differentiate it: no result remembers the inputs"
    ]


def test_bfloat16_goes_there_and_back_by_its_bits():
    arrays = adapters.family("torch")
    value = np.array([[0.0, -1.5, np.inf, 3.140625]])
    tensor = arrays.array(value, "bfloat16")
    assert tensor.dtype == torch.bfloat16
    assert arrays.read(tensor).dtype.name == "bfloat16"
    np.testing.assert_array_equal(arrays.read(tensor).astype(np.float64), value)
    np.testing.assert_array_equal(tensor.double().numpy(), value)


class AttentionPool(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = torch.nn.Parameter(torch.linspace(-1, 1, 5))
        self.key = torch.nn.Linear(6, 5, bias=False)
        with torch.no_grad():
            self.key.weight.copy_(torch.linspace(-1, 1, 30).reshape(5, 6))

    def forward(self, hidden, attention_mask):
        weights = torch.softmax(self.key(hidden) @ self.queries / math.sqrt(5) + attention_mask, -1)
        return torch.einsum("bl,bld->bd", weights, hidden)


def held(module):
    return {"query": module.queries, "key_kernel": module.key.weight.T}


CALLS = {
    "mask_form": "additive",
    "mask_required": True,
    "batched": True,
    "arguments": {"attention_mask": "mask", "hidden": "x"},
}


def test_a_module_is_judged_with_its_held_parameters_and_its_mistakes_are_told():
    (row,) = conformance.judge(
        AttentionPool(), only=("attention_pooling",), dtypes=("float32",), parameters=held, **CALLS, **FEW
    ).rows
    assert row.guarantees["values under masks"].status == row.guarantees["gradient"].status == "held" or row.causes
    assert {"empty rows", "NaN in padding"} <= {kept.guarantee for kept in row.broken if not kept.follows_from}
    assert row.causes == ["NaN for a fully masked row", diagnosis.IN_SCORES]


def test_the_natural_signature_of_a_builtin_is_judged():
    (row,) = conformance.judge(
        functional.scaled_dot_product_attention,
        only=("dot_product_attention",),
        dtypes=("float32",),
        arrays="torch",
        arguments={"attn_mask": "mask"},
        **FEW,
    ).rows
    assert {kept.guarantee for kept in row.broken if not kept.follows_from} == {"NaN in padding"} | (
        {"long sums"} & {kept.guarantee for kept in row.broken}
    )


def test_keras_layers_are_judged_on_its_backend():
    layer = keras.layers.GlobalAveragePooling1D()
    report = conformance.judge(layer, dtypes=("float32",), arguments={"inputs": "x"}, batched=True, **ONE)
    (row,) = report.rows
    assert row.adapter == "keras" and "keras" in report.versions
    assert [kept.guarantee for kept in row.broken if not kept.follows_from] == ["empty rows"]
    assert row.guarantees["gradient"].status == "held"


class Mean(torch.nn.Module):
    """A module of tensors that multiplies padding by 0 and takes whatever broadcasts."""

    def forward(self, x, mask=None):
        if mask is None:
            return x.mean(-2)
        kept = mask.to(x.dtype)[..., None]
        return ((x * kept).sum(-2, dtype=torch.float32) / kept.sum(-2, dtype=torch.float32)).to(x.dtype)


pool = Mean()


def test_the_smallest_case_of_a_module_of_tensors_can_be_pasted(capsys):
    report = conformance.judge(pool, only=("mean_pooling",), dtypes=("float32", "bfloat16"), shapes=(), long=False)
    for kept in report.rows[0].accused:
        for failure in kept.failures:
            assert f"from {__name__} import pool\ncandidate = pool\n" in failure.snippet
            exec(failure.snippet, {})
            got, want = capsys.readouterr().out.splitlines()
            assert got.startswith("candidate: tensor([nan]") and want.startswith("oracle: [")


class Detached(torch.autograd.Function):
    """The same array, whose gradient comes back without its own."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.detach()


class Once(torch.autograd.Function):
    """The same array, which says that it is differentiated once."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g


def test_second_derivatives_of_tensors_are_judged_where_there_are_any():
    def found(rule):
        pool = mean if rule is None else lambda x, mask=None: rule.apply(mean(x, mask))
        row = conformance.judge(pool, dtypes=("float64",), **ONE).rows[0]
        kept = row.guarantees["second derivatives"]
        assert row.guarantees["gradient"].status == "held"
        assert row.guarantees["forward over reverse"].why == "forward mode of torch arrays is not judged"
        return kept.status, kept.why

    assert found(None) == ("held", "")
    assert found(Detached)[0] == "broken"
    assert found(Once) == (
        "n/a",
        "it cannot be differentiated twice (RuntimeError: trying to differentiate twice what was marked with @once_differentiable)",
    )
