"""Guarantees that need not hold: by name, with a reason, and only those."""

import unittest

import numpy as np
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli.application import application

FEW = {"only": ("mean_pooling",), "dtypes": ("float32",), "shapes": ("no batch",), "long": False}
POISONS = ("NaN in padding", "inf in padding", "-inf in padding")


def by_product(x, mask=None):
    """Multiplies padding by 0."""
    real = np.ones(x.shape[:-1], bool) if mask is None else np.broadcast_to(mask, x.shape[:-1])
    with np.errstate(all="ignore"):
        poisoned = np.isnan(np.sum(np.where(real[..., None], 0, x) * np.zeros((), x.dtype), -2))
    result = ref.mean_pooling(x, mask)
    return np.where(poisoned, np.nan, result).astype(x.dtype)


def row_of(waive, **options):
    return conformance.judge(by_product, waive=waive, **(FEW | options)).rows[0]


def test_a_waived_guarantee_does_not_fail_and_is_shown():
    waive = dict.fromkeys(POISONS, "inputs are finite")
    report = conformance.judge(by_product, waive=waive, **FEW)
    (row,) = report.rows
    assert (report.verdict, row.status, report.idle_waivers) == ("pass", "pass", {})
    assert [(kept.guarantee, kept.status, kept.waived) for kept in row.broken] == [
        (name, "broken", "inputs are finite") for name in POISONS
    ]
    assert report.as_dict()["waivers"] == waive and report.smallest_failure is None
    conformance.check(by_product, "mean_pooling", waive=waive, **{k: v for k, v in FEW.items() if k != "only"})


def test_a_waiver_excuses_nothing_that_it_does_not_name():
    assert [kept.guarantee for kept in row_of({}).accused] == ["NaN in padding"]
    row = row_of({"NaN in padding": "never NaN"})
    assert row.status == "fail"
    assert [kept.guarantee for kept in row.accused] == ["inf in padding", "-inf in padding"]


def test_a_waiver_may_be_of_one_row():
    waive = {f"mean_pooling/{name}": "inputs are finite" for name in POISONS}
    both = {"mean_pooling": by_product, "first_pooling": ref.first_pooling}
    options = FEW | {"only": tuple(both)}
    assert conformance.judge(both, waive=waive, **options).passed
    other = {name.replace("mean", "first"): reason for name, reason in waive.items()}
    report = conformance.judge(both, waive=other, **options)
    assert report.verdict == "fail" and set(report.idle_waivers.values()) == {"it holds"}
    assert [row.status for row in report.rows] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("waive", "why"),
    [
        ({"permuting": "order matters"}, {"permuting": "it holds"}),
        ({"gradient": "none"}, {"gradient": "it was not judged"}),
        ({"max_pooling/values": "not here"}, {"max_pooling/values": "max_pooling was not judged"}),
    ],
)
def test_a_waiver_that_waives_nothing_fails(waive, why):
    report = conformance.judge(ref.mean_pooling, waive=waive, **FEW)
    assert report.rows[0].status == "pass" and report.verdict == "fail" and report.idle_waivers == why
    with pytest.raises(AssertionError, match="mean_pooling: a waiver waives nothing: "):
        conformance.check(
            ref.mean_pooling, "mean_pooling", waive=waive, **{k: v for k, v in FEW.items() if k != "only"}
        )


@pytest.mark.parametrize(
    ("waive", "message"),
    [
        ({"NaN in paddings": "x"}, "no guarantee is called 'NaN in paddings'; did you mean NaN in padding"),
        ({"mean_poling/values": "x"}, "no function is called 'mean_poling'; did you mean mean_pooling"),
        ({"values": " "}, "the waiver of 'values' needs a reason"),
    ],
)
def test_a_waiver_of_nothing_that_there_is_is_refused(waive, message):
    with pytest.raises(ValueError, match=message):
        conformance.judge(ref.mean_pooling, waive=waive, **FEW)


def test_a_row_that_is_partial_stays_so():
    def pool(x, mask=None, keepdims=False):
        return by_product(x, mask)

    report = conformance.judge(pool, waive=dict.fromkeys(POISONS, "finite"), **FEW)
    assert report.verdict == "partial"


def test_the_command_line_says_the_same(current_folder):
    (current_folder / "waivers_of_a_test.py").write_text(
        "import numpy as np\nfrom attnpool_ref import mean_pooling as right\n"
        "def mean_pooling(x, mask=None):\n"
        "    poisoned = mask is not None and not np.all(np.isfinite(x))\n"
        "    return right(x, mask) * x.dtype.type(np.nan if poisoned else 1)\n"
    )

    def run(*waivers):
        words = ["check", "waivers_of_a_test:mean_pooling", "--quick", "--dtype", "float32", "--jobs", "0"]
        waived = [word for waiver in waivers for word in ("--waive", waiver)]
        return CliRunner().invoke(application, [*words, *waived], env={"COLUMNS": "200"})

    reasons = [f"{name}=inputs are finite = always" for name in POISONS]
    assert run().exit_code == 1
    passed = run(*reasons)
    assert passed.exit_code == 0, passed.output
    assert "Waived: NaN in padding (inputs are finite = always)\n" in passed.output
    idle = run(*reasons, "mean_pooling/values under masks=x")
    assert idle.exit_code == 1
    assert "The waiver of mean_pooling/values under masks waives nothing: it holds\n" in idle.output
    for wrong in ("NaN in padding", "NaN in padding=", "a guarantee=reason"):
        result = run(wrong)
        assert result.exit_code == 2 and "--waive" in result.output


def test_a_test_of_a_waived_guarantee_is_skipped_with_the_reason():
    waive = dict.fromkeys(POISONS, "inputs are finite")
    options = {key: value for key, value in FEW.items() if key != "only"}
    claims = conformance.each_guarantee(by_product, "mean_pooling", waive=waive, **options)
    for claim in claims:
        if claim.guarantee in POISONS:
            with pytest.raises(unittest.SkipTest, match="waived: inputs are finite"):
                claim.check()
    claims[-1].check()  # nothing was left out


def test_a_waived_guarantee_has_no_cause():
    def pool(x, mask=None):
        real = np.ones(x.shape[:-1], bool) if mask is None else np.broadcast_to(mask, x.shape[:-1])
        total = np.sum(x * real[..., None], -2, dtype=np.float64)
        return (total / np.maximum(real.sum(-1), 1)[..., None]).astype(x.dtype)

    names = ("NaN in padding", "inf in padding", "-inf in padding")
    few = FEW | {"shapes": ()}
    assert conformance.judge(pool, **few).rows[0].causes
    row = conformance.judge(pool, waive=dict.fromkeys(names, "inputs are finite"), **few).rows[0]
    assert row.status == "pass" and not row.causes
