"""Formats of a report: JSON for programs, JUnit XML for continuous integration, an HTML page for people.

>>> from attnpool_ref import conformance, mean_pooling
>>> from attnpool_ref.conformance import formats
>>> few = {"dtypes": ("float32",), "shapes": (), "long": False}
>>> report = conformance.judge(mean_pooling, only=("mean_pooling",), **few)
>>> formats.as_junit(report).splitlines()[0]
"<?xml version='1.0' encoding='utf-8'?>"
"""

import json
import math

import numpy as np

from attnpool_ref.conformance.printing.junit import as_junit
from attnpool_ref.conformance.printing.page import as_html

__all__ = ["FORMATS", "as_html", "as_json", "as_junit"]


def as_json(report):
    """Returns the report as JSON, with the keys of ``docs/judging.md``.

    NaN and infinities are "nan", "inf" and "-inf", as JSON has no such numbers.
    """
    return json.dumps(_finite(report.as_dict()), indent=2) + "\n"


def _finite(value):
    """Returns the data with NaN and infinities as text, and NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


FORMATS = {"json": as_json, "junit": as_junit, "html": as_html}
"""Functions from a report to text, by the names of the command's options ``--json``, ``--junit`` and ``--html``."""
