"""Signatures of PyTorch code: one query for all examples, weights of nn.Linear, a constant for no tokens, integer masks."""

import pytest
import torch

from attnpool_ref import conformance

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
    (failure,) = row_of(pool, "attention_pooling").promises["an answer"].failures
    assert "shared=('query',), --shared query" in failure.message
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
    assert "`V.weight.T`, `V.bias`, `w.weight[0]`, `w.bias`" in why
    named = {"kernel": "V.weight.T", "bias": "V.bias", "out_kernel": "w.weight[0]", "out_bias": "w.bias[0]"}
    row = row_of(bag, name, parameters=named)
    assert row.status == "pass", row.failures
    for argument, path in (("kernel", "V.weight"), ("out_kernel", "w.weight")):
        with pytest.raises(ValueError) as error:
            row_of(bag, name, parameters=named | {argument: path})
        assert f"write `{named[argument]}` (--parameter {argument}={named[argument]}, " in str(error.value)


def mean(x, mask, always=False):
    if always or x.shape[-2] == 0:
        return torch.zeros(x.shape[:-2] + x.shape[-1:], dtype=x.dtype)
    mask = mask.bool().expand(x.shape[:-1])
    total = torch.where(mask[..., None], x, torch.zeros_like(x)).double().sum(-2)
    return (total / mask.sum(-1).clamp(min=1)[..., None]).to(x.dtype)


def test_a_constant_for_no_tokens_leaves_the_gradients_judged():
    row = row_of(mean, "mean_pooling", leave=("always",), dtypes=("float32", "float64"))
    assert row.status == "pass" and all(cell.gradient.passed for cell in row.cells.values()), row.partial


def test_a_function_whose_results_never_remember_their_inputs_stays_partial():
    row = row_of(lambda x, mask: mean(x.detach(), mask), "mean_pooling")
    assert row.status == "partial" and "its gradient was never judged" in row.partial[0]


def test_a_mask_of_integers_that_is_not_taken_proposes_booleans_in_the_note():
    def pooled(x, mask):
        return x.masked_fill(~mask[..., None].expand(x.shape), 0).sum(-2)

    notes = row_of(pooled, "sum_pooling").notes
    assert any("its mask was of integers" in note for note in notes), notes
