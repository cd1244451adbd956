"""A maximum that is subtracted from the scores of all examples is found; so are mistakes with arrays of other strides."""

import numpy as np
import pytest

from attnpool_ref import conformance


def softmax(scores, largest):
    with np.errstate(all="ignore"):
        weights = np.exp(scores - largest)
        return weights / np.maximum(weights.sum(-1, keepdims=True), np.float32(1e-38))


class Pool:
    """Attention with a query of its own."""

    def __init__(self, axis):
        self.query, self.axis = np.linspace(-1, 1, 8, dtype=np.float32), axis

    def __call__(self, x, mask=None):
        mask = np.broadcast_to(np.True_ if mask is None else mask, x.shape[:-1])
        x = np.where(mask[..., None], x, 0)
        scores = np.where(mask, x @ self.query / np.float32(np.sqrt(x.shape[-1])), np.float32(-np.inf))
        largest = np.max(scores, self.axis, keepdims=True, initial=np.float32(-3e38))
        return (softmax(scores, largest)[..., None] * x).sum(-2)


def verdict(axis):
    options = {"dtypes": ("float32",), "parameters": {"query": "query"}}
    return conformance.judge(Pool(axis), only=("attention_pooling",), **options)


def test_a_maximum_of_the_whole_batch_is_found():
    assert verdict(-1).verdict == "pass"
    (row,) = verdict(None).rows
    assert "extreme scores" in [kept.guarantee for kept in row.broken if not kept.follows_from]


def mean_of_memory(x, mask=None):
    """Reads tokens in the order of memory."""
    mask = np.ones(x.shape[:-1], bool) if mask is None else mask
    x = np.where(mask[..., None], x.ravel("K").reshape(x.shape), 0)
    return x.sum(-2) / np.maximum(mask.sum(-1), 1).astype(x.dtype)[..., None]


def mean_of_contiguous_arrays(x, mask=None):
    """Refuses others, as ``torch.Tensor.view`` does."""
    if not x.flags.c_contiguous:
        raise RuntimeError("view size is not compatible with input tensor's size and stride")
    return mean_of_memory(x, mask)


@pytest.mark.parametrize("contract", [False, True])
def test_arrays_that_are_not_contiguous_are_passed_and_may_be_refused(contract):
    def judged(pool):
        return conformance.judge(pool, only=("mean_pooling",), dtypes=("float32",), long=False, whole_contract=contract)

    assert judged(mean_of_memory).verdict == "fail"
    (row,) = judged(mean_of_contiguous_arrays).rows
    broken = [f.message for f in row.failures if "not contiguous in memory" in f.message]
    noted = [note for note in row.notes if "not contiguous in memory" in note]
    assert (bool(broken), bool(noted)) == (contract, not contract)
