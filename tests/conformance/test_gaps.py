"""A maximum that is subtracted from the scores of all examples is found; so are mistakes with arrays of other strides."""

import numpy as np
import pytest

import attnpool_ref
from attnpool_ref import conformance, table
from attnpool_ref.conformance import Candidate, cases
from attnpool_ref.conformance.candidates.held_parameters import restricted


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


def test_a_gradient_that_stops_after_1024_tokens_is_found():
    jax = pytest.importorskip("jax")

    def mean(x, mask=None):
        late = jax.numpy.arange(x.shape[-2])[:, None] >= 1024
        x = jax.numpy.where(late, jax.lax.stop_gradient(x), x)
        mask = jax.numpy.ones(x.shape[:-1], bool) if mask is None else mask != 0
        total = jax.numpy.where(mask[..., None], x, 0).sum(-2)
        return total / jax.numpy.maximum(mask.sum(-1, keepdims=True), 1).astype(x.dtype)

    (row,) = conformance.judge(mean, only=("mean_pooling",), dtypes=("float32",), long=False, laws=False).rows
    assert [kept.guarantee for kept in row.broken] == ["gradient"]


def test_arrays_of_a_case_stay_below_1_gib_whatever_sizes_are_fixed():
    for name, sizes in (("dot_product_attention", {"n": "m"}), ("mean_pooling", {"d": 4096})):
        row = restricted(table.get(name), Candidate(None, sizes=sizes), {})
        drawn = [case for case, _ in (*cases.cases_of(row), *cases.long_rows(row))]
        drawn += cases.long_narrow_rows(row)
        largest = max(
            np.prod([*case.batch, *(case.sizes[a] for a in {"n", "m", "L"} & case.sizes.keys())]) for case in drawn
        )
        assert 512 <= largest <= 2**24


def weighted(x, weights=None, mask=None):
    """Divides by the sum of the weights, whatever it is."""
    weights = np.ones(x.shape[:-1]) if weights is None else weights.astype(np.float64)
    real = np.broadcast_to(True if mask is None else mask, x.shape[:-1])[..., None]
    weights = np.where(real, weights[..., None] if weights.ndim < x.ndim else weights, 0)
    with np.errstate(all="ignore"):
        total = np.broadcast_to(weights, x.shape).sum(-2)
        return ((weights * np.where(real, x, 0)).sum(-2) / total).astype(x.dtype)


def test_weights_that_sum_to_0_are_left_out_with_rows_without_a_real_token():
    options = {"only": ("weighted_pooling",), "dtypes": ("float64",), "long": False, "laws": False}
    assert conformance.judge(weighted, **options).verdict == "fail"
    report = conformance.judge(weighted, some_real=True, **options)
    assert report.verdict == "pass"
    assert "it is never called with weights that sum to 0" in [unasked.why for unasked in report.rows[0].unasked]


class Statistics:
    """Attentive statistics with the context of ECAPA, whose first kernel has three widths."""

    def __init__(self, by_channel):
        rng = np.random.default_rng(0)
        self.kernel = rng.standard_normal((12, 5))
        self.out_kernel = rng.standard_normal((5, 4) if by_channel else 5)

    def __call__(self, x, mask=None):
        return attnpool_ref.attentive_statistics_pooling(
            x, mask, kernel=self.kernel, out_kernel=self.out_kernel, global_context=True
        )


@pytest.mark.parametrize("by_channel", [False, True])
def test_of_two_shapes_of_a_parameter_the_one_that_fits_is_taken(by_channel):
    held = {"kernel": "kernel", "out_kernel": "out_kernel"}
    options = {"parameters": held, "fixed": {"global_context": True}, "dtypes": ("float64",), "long": False}
    report = conformance.judge(Statistics(by_channel), only=("attentive_statistics_pooling",), **options)
    assert report.verdict == "pass" and report.rows[0].cases > 20


def test_a_mask_that_is_skipped_for_a_batch_of_one_is_found_and_named():
    def pool(x, mask=None):
        return attnpool_ref.mean_pooling(x, None if len(x) == 1 else mask)

    (row,) = conformance.judge(pool, only=("mean_pooling",), dtypes=("float32",), batched=True, long=False).rows
    assert row.causes == ["ignores the mask of a single example"]


def largest_of_fills(x, mask=None):
    """Fills padding with the least number, and rows without a real token with 0: a row of -inf becomes that number."""
    real = np.ones(x.shape[:-1], bool) if mask is None else np.broadcast_to(mask, x.shape[:-1]) != 0
    filled = np.where(real[..., None], x, np.finfo(np.float32).min).astype(x.dtype)
    return np.where(real.any(-1)[..., None], filled.max(-2, initial=np.finfo(np.float32).min), 0).astype(x.dtype)


def largest_without_infinities(x, mask=None):
    found = largest_of_fills(x, mask)
    return np.where(np.isinf(found) | (found == np.finfo(np.float32).min), 0, found).astype(x.dtype)


@pytest.mark.parametrize(("pool", "status"), [(largest_of_fills, "pass"), (largest_without_infinities, "fail")])
def test_the_least_number_may_stand_for_minus_infinity_and_0_may_not(pool, status):
    (row,) = conformance.judge(pool, only=("max_pooling",), dtypes=("float32",), long=False).rows
    assert row.status == status, row.failures
