"""The interactive page computes what attnpool_ref computes: its JavaScript runs in node on stored cases."""

import json
import shutil
import subprocess

import make_interactive
import numpy as np
import pytest
from documents import ROOT

FOLDER = ROOT / "docs" / "interactive"
STORED = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))


def floats(numbers):
    return np.array(numbers, float)  # "NaN", "inf" and "-inf" as well


def test_the_stored_cases_are_what_the_oracle_computes():
    computed = make_interactive.document()
    assert computed["tolerance"] == STORED["tolerance"] == 1e-12
    for now, stored in zip(computed["cases"], STORED["cases"], strict=True):
        for key in ("name", "normalizer", "mistake", "mask"):
            assert now[key] == stored[key]
        for key in ("scores", "x"):
            np.testing.assert_array_equal(floats(now[key]), floats(stored[key]))
        for way in ("right", "wrong"):
            for part in ("weights", "pooled"):
                np.testing.assert_allclose(floats(now[way][part]), floats(stored[way][part]), rtol=1e-13, atol=1e-15)


def test_a_mistake_moves_the_point_and_attnpool_does_not():
    (primer,) = (case for case in STORED["cases"] if case["name"] == "the primer, zeros")
    weights, mask = floats(primer["wrong"]["weights"]), np.array(primer["mask"])
    assert f"{weights[~mask].sum():.2f}" == "0.16"  # as docs/guides/primer.md prints
    assert floats(primer["right"]["pooled"]).round(2).tolist() == [1.66, 0.1]
    right = [case["right"] for case in STORED["cases"] if case["name"].startswith("the primer, ")]
    assert len(right) == 4
    assert all(found == right[0] for found in right)
    empty = [case["right"] for case in STORED["cases"] if not any(case["mask"])]
    assert empty and not any(np.any(floats(found["weights"] + found["pooled"])) for found in empty)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: it runs the page's JavaScript")
def test_the_javascript_computes_the_stored_numbers_and_finds_one_that_differs():
    script = "const given = JSON.parse(require('fs').readFileSync(0)); const check = require('./pooling.js').check;"
    command = ["node", "-e", f"{script} process.stdout.write(JSON.stringify(given.map(check)))"]
    changed = json.loads(json.dumps(STORED))
    changed["cases"][0]["right"]["pooled"][0] += 1e-11
    given = json.dumps([STORED, changed])
    ran = subprocess.run(command, cwd=FOLDER, input=given, capture_output=True, text=True, check=True)
    found, different = json.loads(ran.stdout)
    assert found["failures"] == []
    assert found["count"] == len(STORED["cases"])
    assert found["numbers"] > 1000
    assert found["worst"] <= 1e-12
    (failure,) = different["failures"]
    assert failure.startswith(f"{STORED['cases'][0]['name']}: right, pooled: ")
