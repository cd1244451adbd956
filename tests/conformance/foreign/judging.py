"""The judge's answer to one kind of mistake in one row."""

import types
import warnings
from unittest import mock

from attnpool_ref import conformance
from attnpool_ref.conformance.running import runner


def failures_of(kind, row, contract=True):
    """What the judge says of a kind of mistake in a row, with the option ``contract`` or by default."""
    candidate = types.SimpleNamespace(**{row: kind.candidate(row)})
    with warnings.catch_warnings(), mock.patch.object(runner, "shrink", lambda case, fails: case):  # it takes long
        warnings.simplefilter("ignore")  # a mistake may divide by 0 as it likes
        long = kind.dtypes == ("bfloat16",)
        report = conformance.judge(candidate, only=(row,), dtypes=kind.dtypes, long=long, whole_contract=contract)
    return report.rows[0].failures
