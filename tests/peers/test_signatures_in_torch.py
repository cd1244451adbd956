"""Signatures of PyTorch code: one query for all examples, weights of nn.Linear, a constant for no tokens, integer masks."""

import pytest
import torch

from attnpool_ref import conformance
from attnpool_ref.conformance.candidates.adapters.torch_arrays import TorchArrays

ONE = {"dtypes": ("float32",), "shapes": ("no batch", "length 0", "broadcasting"), "long": False}


def row_of(candidate, name, **options):
    return conformance.judge(candidate, only=(name,), **(ONE | options)).rows[0]


def softmax(scores, mask):
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


def pool(x, mask, query):
    mask = mask.bool().expand(x.shape[:-1])
    x = torch.where(mask[..., None], x, torch.zeros_like(x))
    scores = torch.nn.functional.linear(x, query[None]).squeeze(-1) / x.shape[-1] ** 0.5
    return torch.einsum("...l,...ld->...d", softmax(scores, mask), x)


def test_one_query_for_all_examples_is_proposed_and_judged():
    (cause,) = row_of(pool, "attention_pooling").causes
    assert "run again with `--shared query` (shared=('query',))" in cause
    row = row_of(pool, "attention_pooling", shared=("query",))
    assert row.status == "pass", row.failures


class Bag(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.V, self.w = torch.nn.Linear(6, 5), torch.nn.Linear(5, 1)

    def forward(self, x, mask):
        mask = mask.bool().expand(x.shape[:-1])
        x = torch.where(mask[..., None], x, torch.zeros_like(x))
        return torch.einsum("...l,...ld->...d", softmax(self.w(torch.tanh(self.V(x))).squeeze(-1), mask), x)


def test_weights_of_linear_layers_are_named_by_the_command_and_proposed():
    torch.manual_seed(0)
    bag, name = Bag(), "additive_attention_pooling"
    (why,) = [unasked.why for unasked in row_of(bag, name).unasked if "holds" in unasked.why]
    assert all(f"`{name}` [" in why for name in ("V.weight.T", "V.bias", "w.weight[0]")) and "could be `kernel`" in why
    named = {"kernel": "V.weight.T", "bias": "V.bias", "out_kernel": "w.weight[0]", "out_bias": "w.bias[0]"}
    row = row_of(bag, name, parameters=named)
    assert row.status == "pass", row.failures
    for argument, path in (("kernel", "V.weight"), ("out_kernel", "w.weight")):
        with pytest.raises(ValueError) as error:
            row_of(bag, name, parameters=named | {argument: path})
        assert f"write `{named[argument]}` (--parameter {argument}={named[argument]}, " in str(error.value)


class Frozen(Bag):
    """One weight gets twice its gradient, or none."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, mask):
        weight = self.V.weight
        bent = weight.detach() + self.factor * (weight - weight.detach())
        return torch.func.functional_call(Bag(), dict(self.named_parameters()) | {"V.weight": bent}, (x, mask))


def with_biases(m):
    return {"kernel": m.V.weight.T, "bias": m.V.bias, "out_kernel": m.w.weight[0], "out_bias": m.w.bias.reshape(())}


@pytest.mark.parametrize("factor", [0, 1, 2])
def test_gradients_of_weights_that_a_module_holds_are_judged(factor):
    torch.manual_seed(0)
    row = row_of(Frozen(factor), "additive_attention_pooling", parameters=with_biases)
    assert [kept.guarantee for kept in row.accused] == ([] if factor == 1 else ["gradient"])
    if factor != 1:
        assert "the gradient of `kernel` along a direction is" in row.guarantees["gradient"].failures[0].message


def test_padding_that_reaches_the_gradient_of_a_weight_is_found():
    class After(Bag):
        def forward(self, x, mask):  # the mask comes after the product with the weight
            mask = mask.bool().expand(x.shape[:-1])
            hidden = self.V(x).masked_fill(~mask[..., None], 0)
            x = torch.where(mask[..., None], x, torch.zeros_like(x))
            return torch.einsum("...l,...ld->...d", softmax(self.w(torch.tanh(hidden)).squeeze(-1), mask), x)

    torch.manual_seed(0)
    row = row_of(After(), "additive_attention_pooling", parameters=with_biases)
    assert "the gradient of `kernel` changes from" in row.guarantees["NaN in padding"].failures[0].message


def test_the_gradient_of_what_is_frozen_or_computed_is_said_to_be_without_verdict():
    torch.manual_seed(0)
    frozen = Bag()
    frozen.V.weight.requires_grad_(False)
    row = row_of(frozen, "additive_attention_pooling", parameters=with_biases)
    found = [unasked.what for unasked in row.unasked if unasked.why == "not judged (held by the module)"]
    assert row.status == "pass" and found == ["the gradient of `kernel`"]
    one = torch.ones((2, 3), requires_grad=True)
    some = {"turned": one.T, "doubled": 2 * one, "repeated": torch.ones(1, requires_grad=True).expand(3)}
    assert list(TorchArrays().differentiable(some)) == []
    assert list(TorchArrays().differentiable({"turned": one.T, "index": torch.arange(2)})) == ["turned"]


def mean(x, mask, always=False):
    if always or x.shape[-2] == 0:
        return torch.zeros(x.shape[:-2] + x.shape[-1:], dtype=x.dtype)
    mask = mask.bool().expand(x.shape[:-1])
    total = torch.where(mask[..., None], x, torch.zeros_like(x)).double().sum(-2)
    return (total / mask.sum(-1).clamp(min=1)[..., None]).to(x.dtype)


def test_a_constant_for_no_tokens_leaves_the_gradients_judged():
    row = row_of(mean, "mean_pooling", leave=("always",), dtypes=("float32", "float64"))
    assert row.status == "pass" and all(cell.gradient.passed for cell in row.cells.values()), row.partial


def test_a_mask_of_integers_that_is_not_taken_proposes_booleans_in_the_note():
    def pooled(x, mask):
        return x.masked_fill(~mask[..., None].expand(x.shape), 0).sum(-2)

    notes = row_of(pooled, "sum_pooling").notes
    assert any("its mask was of integers" in note for note in notes), notes
