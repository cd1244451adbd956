"""The interactive page computes what attnpool_ref computes: its JavaScript runs in node."""

import copy
import json
import shutil
import subprocess

import numpy as np
import pytest
import site_interactive

COMPUTED = site_interactive.document()


def floats(numbers):
    return np.array(numbers, float)  # "NaN", "inf" and "-inf" as well


def test_a_mistake_moves_the_point_and_attnpool_does_not():
    (primer,) = (case for case in COMPUTED["cases"] if case["name"] == "the primer, zeros")
    weights, mask = floats(primer["wrong"]["weights"]), np.array(primer["mask"])
    assert f"{weights[~mask].sum():.2f}" == "0.16"  # as docs/guides/primer.md prints
    assert floats(primer["right"]["pooled"]).round(2).tolist() == [1.66, 0.1]
    right = [case["right"] for case in COMPUTED["cases"] if case["name"].startswith("the primer, ")]
    assert len(right) == 4
    assert all(found == right[0] for found in right)
    empty = [case["right"] for case in COMPUTED["cases"] if not any(case["mask"])]
    assert empty and not any(np.any(floats(found["weights"] + found["pooled"])) for found in empty)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: it runs the page's JavaScript")
def test_the_javascript_computes_the_numbers_and_finds_one_that_differs():
    script = "const given = JSON.parse(require('fs').readFileSync(0)); const check = require('./pooling.js').check;"
    command = ["node", "-e", f"{script} process.stdout.write(JSON.stringify(given.map(check)))"]
    changed = copy.deepcopy(COMPUTED)
    changed["cases"][0]["right"]["pooled"][0] += 1e-11
    given = json.dumps([COMPUTED, changed])
    ran = subprocess.run(command, cwd=site_interactive.PAGE, input=given, capture_output=True, text=True, check=True)
    found, different = json.loads(ran.stdout)
    assert found["failures"] == []
    assert found["count"] == len(COMPUTED["cases"])
    assert found["numbers"] > 1000
    assert found["worst"] <= 1e-12
    (failure,) = different["failures"]
    assert failure.startswith(f"{COMPUTED['cases'][0]['name']}: right, pooled: ")
