"""Formats of a report: JSON for programs, JUnit XML for continuous integration.

>>> from attnpool_ref import conformance, mean_pooling
>>> from attnpool_ref.conformance import formats
>>> few = {"dtypes": ("float32",), "shapes": (), "long": False}
>>> report = conformance.judge(mean_pooling, only=("mean_pooling",), **few)
>>> as_junit(report).splitlines()[0]
"<?xml version='1.0' encoding='utf-8'?>"
"""

import json
import math
import xml.etree.ElementTree as ET

import numpy as np

from attnpool_ref.conformance.formats import words
from attnpool_ref.conformance.report import BROKEN, HELD, MISSING, PARTIAL

__all__ = ["FORMATS", "as_json", "as_junit"]


def as_json(report):
    """Returns the report as JSON, with the keys of ``docs/embedding.md``.

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


def as_junit(report):
    """Returns the report as an XML document."""
    root = ET.Element("testsuites", {"name": words.printable(f"attnpool check {report.candidate}")})
    for row in report.rows:
        _suite(root, report, row)
    if report.idle_waivers or report.interrupted:
        _remarks(root, report)
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{sum(row.seconds for row in report.rows):.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True).decode() + "\n"


def _suite(root, report, row):
    suite = ET.SubElement(root, "testsuite", {"name": row.name})
    properties = ET.SubElement(suite, "properties")
    facts = {"candidate": report.candidate, "device": report.device, "verdict": row.status, "seed": report.seed}
    facts |= {f"version {name}": version for name, version in report.versions.items()}
    facts |= {f"cause {i + 1}": cause for i, cause in enumerate(row.sentences)}
    for name, value in facts.items():
        ET.SubElement(properties, "property", {"name": name, "value": words.printable(value)})
    owner = f"{report.candidate}.{row.name}"
    guarantees = list(row.guarantees.values())
    for kept in guarantees[:1] if row.status == MISSING else guarantees:
        case = _case(suite, owner, kept.guarantee)
        found = words.outcome(kept)
        if found == BROKEN:
            cause = f"{row.causes[0]}: " if row.causes else ""
            first = words.message(kept.failures[0]) if kept.failures else ""
            following = row.following(kept.guarantee)
            text = words.evidence(kept) + (f"\n\nWhat follows from it: {', '.join(following)}" if following else "")
            _note(case, "failure", cause + first, text, "broken guarantee")
        elif found != HELD:
            text = words.evidence(kept) if kept.failures else ""
            _note(case, "skipped", words.reason(row, kept), text, found)
    if row.status == PARTIAL:
        _note(_case(suite, owner, "judged wholly"), "error", "; ".join(row.partial), "", PARTIAL)
    remarks = "\n".join([*words.remarks(row), *words.notes(row), *words.others(row), *words.more_notes(row)])
    if remarks:
        ET.SubElement(suite, "system-out").text = words.printable(remarks)
    _count(suite, row.seconds)


def _remarks(root, report):
    suite = ET.SubElement(root, "testsuite", {"name": "the report"})
    for name, why in report.idle_waivers.items():
        case = _case(suite, f"{report.candidate}.waivers", name)
        _note(case, "error", f"the waiver waives nothing: {why}", report.waivers[name], "waiver")
    if report.interrupted:
        _note(_case(suite, report.candidate, "judged to the end"), "error", "stopped by Ctrl-C", "", "interrupted")
    _count(suite, 0.0)


def _case(suite, owner, name):
    return ET.SubElement(suite, "testcase", {"classname": words.printable(owner), "name": words.printable(name)})


def _note(case, tag, message, text, kind):
    ET.SubElement(case, tag, {"message": words.printable(message), "type": kind}).text = words.printable(text)


def _count(suite, seconds):
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for key, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        suite.set(key, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{seconds:.3f}")


FORMATS = {"json": as_json, "junit": as_junit}
"""Functions from a report to text, by the names of the command's options ``--json`` and ``--junit``."""
