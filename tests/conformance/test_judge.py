"""The judge itself: what it reports, what it calls n/a, and that gradients are judged too."""

import functools
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnpool_flax
import attnpool_ref
from attnpool_ref import conformance, contract, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import tolerances

FEW = {"shapes": ("no batch",)}
FEWEST = {"shapes": (), "laws": False, "partial": False, "dtypes": ("float32",)}


left_as_found = pytest.mark.usefixtures("as_found")


def my_mean(tokens, keep=None):
    """A right function with names of its own."""
    keep = np.ones(tokens.shape[:-1], bool) if keep is None else np.broadcast_to(keep, tokens.shape[:-1])
    total = np.sum(np.where(keep[..., None], tokens, 0), -2, dtype=np.float64)
    return (total / np.maximum(keep.sum(-1), 1)[..., None]).astype(tokens.dtype)


@jax.jit
def my_jax_mean(x, mask=None):
    """A right function of JAX arrays."""
    mask = jnp.ones(x.shape[:-1], bool) if mask is None else jnp.broadcast_to(mask, x.shape[:-1])
    kept = jnp.where(mask[..., None], x, 0).astype(jnp.promote_types(x.dtype, jnp.float32))
    return (kept.sum(-2) / jnp.maximum(mask.sum(-1), 1)[..., None].astype(kept.dtype)).astype(x.dtype)


def test_a_function_of_ones_own_needs_neither_the_name_nor_the_arguments_names():
    conformance.check(my_mean, "mean_pooling", dtypes=conformance.DTYPES)
    conformance.check(my_jax_mean, "mean_pooling", dtypes=conformance.DTYPES, **FEW)


def test_numpy_functions_have_no_gradient_and_it_reads_as_not_applicable():
    report = conformance.judge(my_mean, only=("mean_pooling",), **FEW)
    assert report.passed
    assert all(cell.gradient is None and cell.forward.passed for cell in report.rows[0].cells.values())
    kept = report.rows[0].guarantees["finite gradients"]
    assert (kept.status, kept.why) == ("n/a", "numpy arrays have no gradients")


def test_arguments_that_the_candidate_lacks_are_not_judged():
    report = conformance.judge(
        lambda query, key: attnpool_ref.scaled_dot_score(query, key), only=("scaled_dot_score",), **FEW
    )
    whole = conformance.judge(attnpool_ref, only=("scaled_dot_score",), **FEW)
    assert report.passed and 0 < report.rows[0].cases < whole.rows[0].cases


def test_a_numpy_function_may_refuse_bfloat16_beside_other_dtypes():
    def score(query, key):
        if "bfloat16" in (query.dtype.name, key.dtype.name):
            raise TypeError("ufunc 'matmul' not supported for the input types")
        return attnpool_ref.dot_score(query, key)

    report = conformance.judge(types.SimpleNamespace(dot_score=score), only=("dot_score",), **FEW)
    assert report.passed and report.rows[0].guarantees["mixed dtypes"].status == "held"


def test_a_candidate_that_takes_nothing_never_passes():
    with pytest.raises(AssertionError, match="mean_pooling: n/a: it takes no `x`"):
        conformance.check(lambda: 0, "mean_pooling")


def test_a_missing_row_fails_only_when_asked_for():
    namespace = types.SimpleNamespace(mean_pooling=my_mean)
    lax = conformance.judge(namespace, dtypes=("float32",), **FEW)
    assert {row.name: row.status for row in lax.rows if row.name != "mean_pooling"} == {
        row.name: "missing" for row in table.BY_NAME.values() if row.name != "mean_pooling"
    }
    assert lax.passed
    assert not conformance.judge(namespace, dtypes=("float32",), strict=True, **FEW).passed
    assert not conformance.judge(namespace, only=("max_pooling",), **FEW).passed


def test_the_report_is_plain_json_with_a_schema_version():
    report = conformance.judge(attnpool_ref, only=("mean_pooling",), dtypes=("float32",), name="oracle", **FEW)
    plain = json.loads(json.dumps(report.as_dict()))
    assert plain["schema_version"] == 1 and plain["candidate"] == "oracle" and plain["passed"] is True
    forward = plain["rows"][0]["cells"]["float32"]["forward"]
    assert forward["passed"] is True and 0 <= forward["error"] <= forward["allowed"]


def test_progress_counts_up_to_its_total():
    seen = []
    conformance.judge(
        attnpool_ref,
        only=("mean_pooling", "dot_score"),
        dtypes=("float32", "float64"),
        progress=lambda *step: seen.append(step),
        **FEW,
    )
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1][:2] == (4, 4) and any("mean_pooling" in label for _, _, label in seen)


def test_a_failure_is_small_and_its_code_shows_it(capsys):
    def forgets_the_mask(x, mask=None):
        return attnpool_ref.mean_pooling(x)

    report = conformance.judge(types.SimpleNamespace(mean_pooling=forgets_the_mask), only=("mean_pooling",))
    failure = next(f for f in report.rows[0].failures if f.check == "values under masks")
    assert failure.size <= 4  # two tokens of width 1 and their mask
    exec(failure.snippet, {"candidate": forgets_the_mask})
    printed = capsys.readouterr().out
    assert "candidate:" in printed and "oracle:" in printed
    got, want = (line.split(":")[1].strip() for line in printed.strip().splitlines())
    assert got != want


def _wrong_gradient(change):
    @jax.custom_vjp
    def mean(x, mask):
        return my_jax_mean(x, mask)

    def backward(kept, g):
        mask, shape = kept
        real = jnp.broadcast_to(mask, shape[:-1])
        share = jnp.where(real, 1.0, 0.0) / jnp.maximum(real.sum(-1, keepdims=True), 1)
        return change(share[..., None] * g[..., None, :].astype(share.dtype), real[..., None]).astype(g.dtype), None

    mean.defvjp(lambda x, mask: (my_jax_mean(x, mask), (mask, x.shape)), backward)
    return lambda x, mask=None: mean(x, jnp.ones(x.shape[:-1], bool) if mask is None else mask)


GRADIENT_MISTAKES = {
    "twice the gradient": lambda g, real: 2 * g,
    "a gradient at padding": lambda g, real: g + jnp.where(real, 0, 1e-3).astype(g.dtype),
    "NaN at padding": lambda g, real: jnp.where(real, g, jnp.nan),
    "no gradient": lambda g, real: 0 * g,
    "off by a thousandth": lambda g, real: 1.001 * g,
}


def test_a_right_gradient_of_ones_own_passes():
    conformance.check(_wrong_gradient(lambda g, real: g), "mean_pooling", dtypes=("float32", "float64"), **FEW)


@left_as_found
@pytest.mark.parametrize("mistake", GRADIENT_MISTAKES)
def test_a_wrong_gradient_is_rejected(mistake):
    with pytest.raises(AssertionError, match="gradient"):
        conformance.check(_wrong_gradient(GRADIENT_MISTAKES[mistake]), "mean_pooling", **FEWEST)


@left_as_found
def test_poison_that_reaches_only_a_gradient_is_rejected():
    def selects_too_late(x, mask=None):
        mask = jnp.ones(x.shape[:-1], bool) if mask is None else jnp.broadcast_to(mask, x.shape[:-1])
        scores = jnp.where(mask, jnp.sum(x * x, -1), -jnp.inf)  # 0 · NaN in the backward pass
        top = jnp.max(scores, -1, keepdims=True, initial=-1e30)
        weights = jnp.where(mask, jnp.exp(scores - top), 0)
        weights = weights / jnp.maximum(weights.sum(-1, keepdims=True), 1e-30)
        return jnp.where(mask[..., None], x, 0).mT @ weights[..., None]

    @jax.jit
    def pool(x, mask=None):
        return attnpool_flax.mean_pooling(x, mask) + 0 * selects_too_late(x, mask)[..., 0]

    with pytest.raises(AssertionError, match=r"NaN in padding .*gradient of `x` changes"):
        conformance.check(pool, "mean_pooling", **FEWEST)


def broken_by(function, row, **options):
    """(guarantee, message of its first failure) of what is broken and follows from nothing else."""
    options = FEWEST | {"long": False} | options
    report = conformance.judge(types.SimpleNamespace(**{row: function}), only=(row,), **options)
    return {kept.guarantee: kept.failures[0].message for kept in report.rows[0].broken if not kept.follows_from}


@left_as_found
def test_a_function_that_jax_cannot_trace_breaks_one_guarantee_and_its_gradient_is_not_judged():
    def reads_its_input(x, mask=None):
        return jnp.asarray(attnpool_ref.mean_pooling(np.asarray(x), None if mask is None else np.asarray(mask)))

    options = FEWEST | {"laws": True, "long": False, "whole_contract": True}
    (row,) = conformance.judge(reads_its_input, only=("mean_pooling",), **options).rows
    (kept,) = row.broken
    assert kept.guarantee == "jit and vmap" and kept.failures[0].message.startswith("JAX cannot trace it")
    assert row.partial == ["its gradient was never judged: JAX cannot trace it: TracerArrayConversionError"]
    assert all(cell.gradient is None for cell in row.cells.values())
    (row,) = conformance.judge(reads_its_input, only=("mean_pooling",), **options | {"whole_contract": False}).rows
    assert row.status == "partial" and row.guarantees["jit and vmap"].why.startswith(
        "smallest (float32): JAX cannot trace"
    )


@left_as_found
def test_the_gradient_of_a_function_that_indexes_by_its_mask_is_not_judged():
    def selects(x, mask=None):
        mask = jnp.broadcast_to(True if mask is None else mask, x.shape[:-1]).astype(bool)
        bags = jnp.broadcast_to(jnp.arange(mask[..., 0].size).reshape(mask.shape[:-1])[..., None], mask.shape)
        total = jnp.zeros((mask[..., 0].size, x.shape[-1]), jnp.float32).at[bags[mask]].add(x[mask])
        return total.reshape(*mask.shape[:-1], -1) / jnp.maximum(mask.sum(-1), 1)[..., None]

    options = FEWEST | {"laws": True, "long": False, "arrays": "jax"}
    (row,) = conformance.judge(selects, only=("mean_pooling",), **options).rows
    assert (row.status, row.broken) == ("partial", []), row.failures
    assert row.partial == ["its gradient was never judged: JAX cannot trace it: NonConcreteBooleanIndexError"]


def scaled(scale_of):
    """A score whose scale is what a function makes of it."""

    def score(query, key, *, scale=None):
        scale = query.shape[-1] ** -0.5 if scale is None else scale_of(scale)
        return attnpool_flax.dot_score(query * jnp.asarray(scale, query.dtype), key)

    return score


@left_as_found
def test_a_number_that_is_no_tracer_does_not_end_the_judging_of_other_gradients():
    def stopped(query, key, *, scale=None):
        return scaled(float)(jax.lax.stop_gradient(query), key, scale=scale)

    found = broken_by(scaled(float), "scaled_dot_score", laws=True, whole_contract=True)
    assert set(found) == {"jit and vmap"}
    found = broken_by(stopped, "scaled_dot_score", laws=True, whole_contract=True)
    assert set(found) == {"jit and vmap", "gradient"} and "the gradient of `query`" in found["gradient"]


@pytest.mark.thorough
@left_as_found
def test_of_two_numbers_only_the_one_that_is_no_tracer_is_left_out():
    def pool(x, mask=None, *, ddof=0.0, epsilon=0.0):
        return attnpool_flax.statistics_pooling(x, mask, ddof=ddof, epsilon=float(epsilon))

    def stopped(x, mask=None, *, ddof=0.0, epsilon=0.0):
        return pool(x, mask, ddof=jax.lax.stop_gradient(ddof), epsilon=epsilon)

    options = FEWEST | {"dtypes": ("float64",), "long": False}
    (row,) = conformance.judge(pool, only=("statistics_pooling",), **options).rows
    assert not row.broken
    assert [one.what for one in row.unasked if "the gradient" in one.what] == ["the gradient of `epsilon`"]
    assert "the gradient of `ddof`" in broken_by(stopped, "statistics_pooling", **options)["gradient"]


@left_as_found
def test_a_program_for_every_value_of_a_number_is_rejected():
    program = jax.jit(
        lambda query, key, scale: attnpool_flax.scaled_dot_score(query, key, scale=scale), static_argnums=2
    )
    found = broken_by(
        lambda query, key, *, scale=None: program(query, key, scale),
        "scaled_dot_score",
        laws=True,
        gradients=False,
        whole_contract=True,
    )
    assert "one program" in found


@left_as_found
def test_what_is_wrong_under_jit_alone_is_rejected():
    def mean(x, mask=None):
        wrong = 1.01 if isinstance(x, jax.core.Tracer) else 1
        return my_jax_mean(x * jnp.asarray(wrong, x.dtype), mask)

    found = broken_by(mean, "mean_pooling", laws=True, gradients=False)
    assert set(found) == {"jit and vmap"}


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def with_slope(x, slope, dtype):
    """X itself, whose gradient is multiplied by a slope where it has this dtype."""
    return x


with_slope.defvjp(
    lambda x, slope, dtype: (x, None),
    lambda slope, dtype, _, g: ((g.astype(jnp.float32) * slope).astype(g.dtype) if g.dtype == dtype else g,),
)


@left_as_found
@pytest.mark.parametrize(("dtype", "slope"), [("float32", 1.001), ("bfloat16", 1.2)])
def test_a_gradient_that_is_off_in_one_dtype_alone_is_rejected(dtype, slope):
    def score(query, key, kernel):
        return attnpool_flax.bilinear_score(query, key, with_slope(kernel, slope, dtype))

    found = broken_by(jax.jit(score), "bilinear_score", dtypes=(dtype, "float64"))
    assert set(found) == {"gradient"}


@left_as_found
def test_a_gradient_that_is_no_even_share_is_rejected():
    def largest(x, mask=None):
        kept = x if mask is None else jnp.where(jnp.broadcast_to(mask, x.shape[:-1])[..., None], x, -jnp.inf)
        pooled = attnpool_flax.max_pooling(jax.lax.stop_gradient(x), mask)
        if not x.shape[-2]:
            return pooled
        first = jnp.argmax(kept, -2, keepdims=True)
        chosen = jnp.take_along_axis(x, first, -2)[..., 0, :]
        return jnp.where(jnp.isfinite(kept.max(-2)), pooled + (chosen - jax.lax.stop_gradient(chosen)), pooled)

    found = broken_by(jax.jit(largest), "max_pooling", laws=True, partial=True, whole_contract=True)
    assert set(found) == {"gradient"}


def test_allowed_errors_grow_with_epsilon_and_vanish_with_the_result():
    by_width = ("float64", "float32", "float16", "bfloat16")
    allowed = [tolerances.allowed_error(1.0, 2.0, 30, dtype) for dtype in by_width]
    assert allowed == sorted(set(allowed))
    assert tolerances.allowed_error(0.0, 0.0, 30, "float32") == 0


def test_sizes_of_a_case_are_pairwise_different_where_axes_differ():
    for row in table.BY_NAME.values():
        case = next(iter(cases.cases_of(row)))[0]
        same = contract.equal_axes(row, case.values | case.options)
        fixed = {a: s for a, s in case.sizes.items() if a not in same}
        assert len(set(fixed.values())) == len(fixed), row.name


def test_every_batch_has_full_scattered_and_empty_masks():
    case = next(iter(cases.cases_of(table.get("mean_pooling"))))[0]
    counts = case.values["mask"].sum(-1)
    assert counts.min() == 0 and counts.max() == case.sizes["L"] and len(set(counts.tolist())) >= 3


def softmax_for_sparsemax(dtype):
    def attend(scores, value, mask=None, *, lengths=None, normalizer="softmax", dropout_multiplier=None):
        wrong = normalizer == "sparsemax" and value.dtype.name == dtype
        options = {"lengths": lengths, "dropout_multiplier": dropout_multiplier}
        return attnpool_ref.attend(scores, value, mask, normalizer="softmax" if wrong else normalizer, **options)

    return attend


def test_a_quick_check_meets_every_value_of_an_option_in_the_first_dtype_alone():
    for dtype, options, status in (
        ("float32", False, "fail"),
        ("bfloat16", False, "pass"),
        ("bfloat16", True, "fail"),
    ):
        asked = conformance.QUICK | {"options": options}
        (row,) = conformance.judge(softmax_for_sparsemax(dtype), only=("attend",), **asked).rows
        assert row.status == status


def counted_in_its_own_dtype(x, mask):
    """A mean whose count of tokens ends at 2048 in float16."""
    counts = np.add.accumulate(np.insert(mask, 0, False, -1).astype(x.dtype), -1, dtype=x.dtype)[..., -1:]
    total = np.sum(np.where(mask[..., None], x, 0), -2, dtype=np.float64)
    return (total / np.maximum(counts, 1)).astype(x.dtype)


@left_as_found
def test_an_implementation_that_requires_a_mask_gets_long_sums():
    scope = {"only": ("mean_pooling",), "dtypes": ("float16",)}
    (row,) = conformance.judge(counted_in_its_own_dtype, **scope, whole_contract=True).rows
    assert [finding.check for finding in row.failures] == ["shapes", "arguments that broadcast", "long sums"]
