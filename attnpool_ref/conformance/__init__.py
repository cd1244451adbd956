"""Judges any namespace, or one function of one's own, against the oracle.

>>> import attnpool_ref
>>> from attnpool_ref import conformance
>>> conformance.check(attnpool_ref.mean_pooling, "mean_pooling")

``check`` is for one's own tests: it raises an AssertionError with the smallest failing case. ``judge`` gives the whole
:class:`Report`, which ``attnpool check`` shows as a table.
"""

from attnpool_ref.conformance.judge import DTYPES, check, judge
from attnpool_ref.conformance.report import Cell, Failure, Measure, Report, RowReport

__all__ = ["DTYPES", "Cell", "Failure", "Measure", "Report", "RowReport", "check", "judge"]
