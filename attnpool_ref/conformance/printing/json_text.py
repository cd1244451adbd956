"""Report as JSON; ``docs/judging.md`` has the schema."""

import json
import math

import numpy as np


def as_json(report):
    """Returns the report as JSON; NaN and infinities are "nan", "inf" and "-inf", as JSON has no such numbers."""
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
