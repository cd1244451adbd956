"""The judge: checks an implementation of any attnpool function against the oracle, the definitions in ``attnpool_ref``.

>>> import attnpool_ref
>>> from attnpool_ref import conformance
>>> conformance.check(attnpool_ref.mean_pooling, "mean_pooling")

``check`` is for your own tests: if a guarantee is broken, it raises an AssertionError with the smallest failing case.
``judge(candidate, only=("mean_pooling",))`` returns the whole :class:`Report`, which ``attnpool check`` prints as a table and
:mod:`attnpool_ref.conformance.formats` writes as JSON and JUnit XML. Both functions take the options of a
:class:`Scope` as keywords (``check`` all but ``only`` and ``strict``; it judges float32 and float64 by
default, ``judge`` all four dtypes), and keywords that say how the implementation is called
(:class:`Candidate`), here a mask that is True at padding:

>>> def with_padding_mask(tokens, is_padding):
...     return attnpool_ref.mean_pooling(tokens, ~is_padding)
>>> conformance.check(with_padding_mask, "mean_pooling", padding_true=True)

===============  ====================================================================
scope, option    what is judged: the options of a ``Scope``; how options are declared
cases            arguments of test calls, drawn from the shapes in :mod:`attnpool_ref.table`
candidates       implementations under test: calling conventions, array families
checks           all checks, listed in its ``__init__``, and the tolerances
causes           known mistakes that explain wrong results
report           guarantees, their results, waivers
running          runs the checks of each function on its cases, in this process or in others
formats          reports as JSON and JUnit XML
vectors          files of inputs and expected results, for tests of ports without attnpool
===============  ====================================================================
"""

from attnpool_ref.conformance.candidates import Calls, Candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.report import Cell, Compared, Failure, Kept, Measure, Report, RowReport, Unasked
from attnpool_ref.conformance.report.guarantees import GUARANTEES, Guarantee
from attnpool_ref.conformance.running.claims import Claim, each_guarantee
from attnpool_ref.conformance.running.judge import check, judge
from attnpool_ref.conformance.scope import DTYPES, QUICK, Scope

__all__ = [
    "DTYPES",
    "GUARANTEES",
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
    "Guarantee",
    "Report",
    "RowReport",
    "Scope",
    "Unasked",
    "check",
    "each_guarantee",
    "judge",
]
