"""The interactive page computes what attnpool_ref computes: its JavaScript runs in node on stored cases."""

import json
import re
import shutil
import subprocess

import make_interactive
import numpy as np
import pytest
from documents import ROOT
from pictures import svg

FOLDER = ROOT / "docs" / "interactive"
STORED = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
PRINTS = "process.stdout.write(JSON.stringify({}))"
with_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed: it runs the page's JavaScript"
)


def node(expression, given=None):
    """The value of an expression in node; ``pooling`` is the page's code, and ``given`` what this function got."""
    script = "const pooling = require('./pooling.js'); const given = JSON.parse(require('fs').readFileSync(0));"
    command = ["node", "-e", script + PRINTS.format(expression)]
    ran = subprocess.run(command, cwd=FOLDER, input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


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


def test_the_cases_have_every_normalizer_with_every_mistake_and_all_kinds_of_padding():
    cases = STORED["cases"]
    assert len({case["name"] for case in cases}) == len(cases) >= 20
    assert {(case["normalizer"], case["mistake"]) for case in cases} == {
        (normalizer, mistake) for normalizer in make_interactive.NORMALIZERS for mistake in make_interactive.MISTAKES
    }
    padding = {score for case in cases for score, real in zip(case["scores"], case["mask"], strict=True) if not real}
    assert {0, "NaN", "inf"} <= padding
    empty = [case for case in cases if not any(case["mask"])]
    assert {case["mistake"] for case in empty} == set(make_interactive.MISTAKES)
    assert all(not np.any(floats(case["right"]["weights"] + case["right"]["pooled"])) for case in empty)


def test_a_mistake_moves_the_point_and_attnpool_does_not():
    (primer,) = (case for case in STORED["cases"] if case["name"] == "the primer, zeros")
    weights, mask = floats(primer["wrong"]["weights"]), np.array(primer["mask"])
    assert f"{weights[~mask].sum():.2f}" == "0.16"  # as docs/guides/primer.md prints
    assert floats(primer["right"]["pooled"]).round(2).tolist() == [1.66, 0.1]
    right = [case["right"] for case in STORED["cases"] if case["name"].startswith("the primer, ")]
    assert len(right) == 4
    assert all(found == right[0] for found in right)


@with_node
def test_the_javascript_computes_the_stored_numbers():
    found = node("pooling.check(given)", STORED)
    assert found["failures"] == []
    assert found["count"] == len(STORED["cases"])
    assert found["numbers"] > 1000
    assert found["worst"] <= 1e-12


@with_node
@pytest.mark.parametrize("number", ["NaN", "inf", 1e-11])
def test_the_comparison_finds_a_number_that_differs(number):
    changed = json.loads(json.dumps(STORED))
    vector = changed["cases"][0]["right"]["pooled"]
    vector[0] = vector[0] + number if isinstance(number, float) else number
    (failure,) = node("pooling.check(given)", changed)["failures"]
    assert failure.startswith(f"{STORED['cases'][0]['name']}: right, pooled: ")


@with_node
def test_the_page_offers_the_normalizers_of_the_table_and_the_mistakes_of_the_cases():
    assert node("pooling.NORMALIZERS") == list(make_interactive.NORMALIZERS)
    assert node("pooling.MISTAKES") == list(make_interactive.MISTAKES)


def test_the_page_asks_no_other_host_and_has_the_colours_of_the_pictures():
    for path in FOLDER.iterdir():
        hosts = set(re.findall(r"https?://[^\"'\s]*", path.read_text(encoding="utf-8")))
        assert hosts <= {"http://www.w3.org/2000/svg"}, path.name
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{ (.*?) \}", page)
    for declared, palette in ((light, svg.LIGHT), (dark, svg.DARK)):
        colours = dict(re.findall(r"--(\w+): (#\w{6});", declared))
        assert colours == {name: palette[name] for name in colours}
        assert {"paper", "ink", "real", "leak", "padding"} <= colours.keys()
    assert set(re.findall(r'src="([^"]*)"', page)) == {"pooling.js", "page.js"}


def test_every_control_has_a_label():
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    controls = re.findall(r"<(?:input|select)[^>]*>", page)
    assert len(controls) == 5
    assert all(any(control in label for label in re.findall(r"<label>.*?</label>", page)) for control in controls)
