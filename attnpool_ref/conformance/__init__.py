"""Judges any namespace, or one function or module of your own, against the oracle.

>>> import attnpool_ref
>>> from attnpool_ref import conformance
>>> conformance.check(attnpool_ref.mean_pooling, "mean_pooling")

``check`` is for your own tests: it raises an AssertionError with the smallest failing case. ``judge`` gives the whole
:class:`Report`, which ``attnpool check`` shows as a table and :mod:`attnpool_ref.conformance.formats` writes as JSON,
JUnit XML and HTML. Both take any :class:`Candidate`, and how it is called:

>>> def keep_the_padding_apart(tokens, is_padding):
...     return attnpool_ref.mean_pooling(tokens, ~is_padding)
>>> conformance.check(keep_the_padding_apart, "mean_pooling", padding_true=True)
"""

from attnpool_ref.conformance.candidates import Calls, Candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.report import Cell, Compared, Failure, Kept, Measure, Report, RowReport, Unasked
from attnpool_ref.conformance.report.promises import PROMISES, Promise
from attnpool_ref.conformance.running.claims import Claim, each_promise
from attnpool_ref.conformance.running.judge import check, judge
from attnpool_ref.conformance.scope import DTYPES, QUICK, Scope

__all__ = [
    "DTYPES",
    "PROMISES",
    "QUICK",
    "Calls",
    "Candidate",
    "Cell",
    "Claim",
    "Compared",
    "Failure",
    "Kept",
    "Measure",
    "NumpyArrays",
    "Promise",
    "Report",
    "RowReport",
    "Scope",
    "Unasked",
    "check",
    "each_promise",
    "judge",
]
