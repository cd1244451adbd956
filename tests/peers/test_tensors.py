"""PyTorch's tensors: the oracle takes what NumPy takes, both packages say the way to NumPy for the rest."""

import re

import ml_dtypes
import numpy as np
import pytest
import torch
from packages import every_package

import attnpool_flax
import attnpool_ref
from attnpool_ref import conformance
from attnpool_ref.conformance.candidates.adapters import torch_arrays
from attnpool_ref.contract.text import type_of

ONES = torch.ones(5, 4)
REFUSED = {  # tensors of which NumPy makes no array, and what is said of them
    "a gradient": (ONES.clone().requires_grad_(), "; did you mean `x.detach().numpy()`?"),
    "a parameter": (torch.nn.Parameter(ONES), "; did you mean `x.detach().numpy()`?"),
    "bfloat16": (ONES.bfloat16(), "; did you mean `x.float().numpy()`?"),
    "both": (ONES.bfloat16().requires_grad_(), "; did you mean `x.detach().float().numpy()`?"),
}


def test_the_oracle_takes_tensors_that_numpy_takes():
    x = torch.arange(20.0).reshape(5, 4)
    got = attnpool_ref.mean_pooling(x, torch.tensor([True, True, False, False, False]))
    assert np.array_equal(got, [2, 3, 4, 5])
    assert got.dtype == np.float32
    assert np.array_equal(attnpool_ref.mean_pooling(x[None], lengths=torch.tensor([2])), got[None])


@every_package
@pytest.mark.parametrize("title", REFUSED)
def test_both_packages_say_how_a_tensor_becomes_an_array(package, title):
    x, repair = REFUSED[title]
    with pytest.raises(
        TypeError, match=f"mean_pooling: `x` is {type_of(x)}, needs an array of numbers" + re.escape(repair)
    ):
        package.mean_pooling(x)
    assert np.array_equal(package.mean_pooling(eval(re.search("`(.*)`", repair)[1])), np.ones(4))


def test_the_oracle_passes_on_what_torch_says_and_jax_names_the_way():
    with pytest.raises(TypeError, match=r"mean_pooling: `x` is a Tensor, needs an array of numbers: .*to_dense\(\)"):
        attnpool_ref.mean_pooling(ONES.to_sparse())
    with pytest.raises(TypeError, match=r"mean_pooling: `x` is a list, needs an array of numbers: .*detach\(\)"):
        attnpool_ref.mean_pooling([ONES[0].clone().requires_grad_()])
    with pytest.raises(TypeError, match=r"mean_pooling: `mask` is a Tensor, .* did you mean `mask.numpy\(\)`\?$"):
        attnpool_flax.mean_pooling(np.ones((5, 4), np.float32), torch.ones(5, dtype=torch.bool))


def test_float64_is_judged_as_float64_where_numpy_has_no_bfloat16(monkeypatch):
    """As beside PyTorch without JAX, whose dependency ``ml_dtypes`` brings it."""
    monkeypatch.setattr(torch_arrays, "bfloat16", lambda: None)
    tensors = torch_arrays.TorchArrays()
    assert tensors.array(np.ones(2), "float64").dtype == torch.float64
    with pytest.raises(TypeError, match=r"^returns bfloat16, which NumPy reads with ml_dtypes: pip install ml_dtypes$"):
        tensors.read(ONES.bfloat16())


@pytest.mark.parametrize(
    ("device", "text"), [("meta", ".to('meta')"), (torch.device("meta"), ".to('meta')"), ("cpu", "")], ids=str
)
def test_printed_code_makes_tensors_on_the_device_of_the_adapter(device, text):
    tensors = torch_arrays.TorchArrays(device)
    assert tensors.code("x", "float32") == f"torch.from_numpy(x){text}"
    for dtype in ("float32", "bfloat16"):
        scope = {
            "torch": torch,
            "ml_dtypes": ml_dtypes,
            "x": np.ones(2, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype),
        }
        made = eval(tensors.code("x", dtype), scope)
        assert made.device == torch.device(device) and made.dtype == getattr(torch, dtype)
    assert eval(tensors.code("mask", "bfloat16"), scope | {"mask": np.array([True])}).dtype == torch.bool


def mean_of(x, mask):
    mask = torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask
    return torch.where(mask[..., None], x, 0).sum(-2) / mask.sum(-1, keepdim=True).clamp(min=1)


def mean_through_a_view(x, mask=None):
    return mean_of(x.view(-1, x.shape[-1]).view(x.shape), mask)


class Doubled(torch.autograd.Function):
    """Doubles the gradient of tensors that are not contiguous."""

    @staticmethod
    def forward(ctx, x):
        ctx.factor = 1 if x.is_contiguous() else 2
        return x.clone()

    @staticmethod
    def backward(ctx, *gradients):
        return ctx.factor * gradients[0]


def mean_with_a_doubled_gradient(x, mask=None):
    return mean_of(Doubled.apply(x), mask)


@pytest.mark.parametrize("contract", [False, True])
def test_tensors_that_are_not_contiguous_may_be_refused_without_contract_but_not_be_differentiated_wrongly(contract):
    options = {"only": ("mean_pooling",), "dtypes": ("float32",), "long": False, "mask_form": "boolean"}
    (refusing,) = conformance.judge(mean_through_a_view, arrays="torch", whole_contract=contract, **options).rows
    assert refusing.status == ("fail" if contract else "pass")
    texts = [failure.message for failure in refusing.failures] if contract else refusing.notes
    assert any("view size is not compatible" in text for text in texts)
    (wrong,) = conformance.judge(mean_with_a_doubled_gradient, whole_contract=contract, arrays="torch", **options).rows
    assert [each.guarantee for each in wrong.broken] == ["the same answer twice"]
