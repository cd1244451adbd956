"""Right implementations in PyTorch, by its own operations, are accepted in every dtype, gradients included."""

import pytest
import torch
from imported import pyg
from routes_in_torch import ROUTES

from attnpool_ref import conformance


def mean_pooling(x, mask=None):
    """Every term is divided by a power of two, so that no sum overflows."""
    keep = torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask.bool().expand(x.shape[:-1])
    count = keep.sum(-1, keepdim=True).clamp(min=1)
    part = 2.0 ** count.log2().ceil()
    kept = torch.where(keep[..., None], wide(x), 0)
    return ((kept / part[..., None]).sum(-2) / (count / part)).to(x.dtype)


def attend(scores, value, mask=None, return_weights=False):
    """Exponentials below the largest score; sums of products, as a product of matrices drifts over long rows."""
    dtype, batch = (
        torch.promote_types(scores.dtype, value.dtype),
        torch.broadcast_shapes(scores.shape[:-2], value.shape[:-2]),
    )
    scores, value = (wide(array).expand(*batch, *array.shape[-2:]) for array in (scores, value))
    keep = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.bool().expand(scores.shape)
    scores = torch.where(keep, scores, -torch.inf)
    nothing = scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    top = torch.cat([scores, nothing], -1).amax(-1, keepdim=True).detach()
    heights = torch.exp(scores - torch.where(top == -torch.inf, 0, top))
    total = heights.sum(-1, keepdim=True)
    weights = heights / torch.where(total == 0, 1, total)
    value = torch.where(keep.any(-2)[..., None], value, 0)
    result = (weights[..., None] * value[..., None, :, :]).sum(-2).to(dtype)
    return (result, weights.to(dtype)) if return_weights else result


def wide(array):
    return array.to(torch.promote_types(array.dtype, torch.float32))


@pytest.mark.parametrize("function", [mean_pooling, attend], ids=lambda function: function.__name__)
def test_a_right_implementation_in_torch_is_accepted(function):
    (row,) = conformance.judge(function, only=(function.__name__,), whole_contract=True).rows
    assert row.status == "pass"
    assert set(row.guarantees["gradient"].dtypes) == set(conformance.DTYPES)


@pytest.mark.parametrize("route", ROUTES)
def test_a_function_as_its_author_would_write_it_is_accepted(route):
    chosen = ROUTES[route]
    dtypes = tuple(dtype for dtype in ("float32", "bfloat16") if dtype in chosen.dtypes)
    report = conformance.judge(chosen.function, only=(chosen.row,), dtypes=dtypes, **chosen.calls)
    assert report.verdict == "pass", report.smallest_failure or report.rows[0].partial


def test_segment_ids_are_int64_as_in_torch_and_in_the_code_of_a_failing_case():
    """Of int32 ids, ``scatter_add_`` gives a wrong gradient silently."""
    seen = set()

    def pooling(pool):
        def judged(x, segment_ids, *, num_segments):
            seen.add(segment_ids.dtype)
            return pool(x, segment_ids, num_segments)

        return judged

    pools = {"segment_mean_pooling": pyg.global_mean_pool, "segment_sum_pooling": pyg.global_add_pool}
    for row, pool in pools.items():
        conformance.check(pooling(pool), row, leave=("x_mask", "mask"))
    assert seen == {torch.int64}
    (row,) = conformance.judge(pooling(pyg.global_max_pool), only=("segment_mean_pooling",), dtypes=("float32",)).rows
    assert "segment_ids = np.array([" in row.failures[0].snippet and ", int)" in row.failures[0].snippet


def test_a_keras_layer_without_weights_is_judged_in_the_dtype_of_its_policy():
    import keras

    class Mean(keras.layers.Layer):
        def call(self, x, mask=None):
            mask = keras.ops.ones(x.shape[:-1], "bool") if mask is None else keras.ops.cast(mask, "bool")
            x = keras.ops.where(mask[..., None], x, keras.ops.zeros_like(x))
            return (
                keras.ops.sum(x, -2) / keras.ops.maximum(keras.ops.sum(keras.ops.cast(mask, x.dtype), -1), 1)[..., None]
            )

    (row,) = conformance.judge(Mean(), only=("mean_pooling",)).rows
    assert row.status == "pass" and {u.why for u in row.unasked if "float" in u.what} == {"it computes in float32"}
