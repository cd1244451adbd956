"""Formats of a report: JSON for programs, JUnit XML for continuous integration, an HTML page for people.

>>> from attnpool_ref import conformance, mean_pooling
>>> from attnpool_ref.conformance import formats
>>> few = {"dtypes": ("float32",), "shapes": (), "long": False}
>>> report = conformance.judge(mean_pooling, only=("mean_pooling",), **few)
>>> formats.as_junit(report).splitlines()[0]
"<?xml version='1.0' encoding='utf-8'?>"
"""

from attnpool_ref.conformance.printing.json_text import as_json
from attnpool_ref.conformance.printing.junit import as_junit
from attnpool_ref.conformance.printing.page import as_html

__all__ = ["FORMATS", "as_html", "as_json", "as_junit"]

FORMATS = {"json": as_json, "junit": as_junit, "html": as_html}
"""Functions from a report to text, by the names of the command's options ``--json``, ``--junit`` and ``--html``."""
