"""The section "A new function" of CONTRIBUTING.md: it names each edit, and following it gives a function that passes its tests."""

import sys
from pathlib import Path

import checklist
import pytest


def test_a_new_function_needs_at_most_six_edits_and_the_section_names_each():
    section = checklist.text().split("\n## A new function\n")[1].split("\n## ")[0]
    paths = [path.replace(checklist.FAMILY, "FAMILY") for path in checklist.PATHS]
    assert len(paths) <= 6
    assert [path for path in paths if f"`{path}`" not in section] == []


@pytest.mark.thorough
def test_following_the_section_gives_a_function_that_passes_its_tests(tmp_path):
    checklist.copy(tmp_path)
    assert checklist.follow(tmp_path, Path(sys.executable).parent) == ""


@pytest.mark.thorough
def test_a_forgotten_edit_is_named(tmp_path):
    checklist.copy(tmp_path)
    checklist.edit(tmp_path, without=["mutants"])
    commands = ["python tools/generate/bibliography.py", "pytest tests/conformance/test_mutants.py -k two_mistakes"]
    failure = checklist.run(commands, tmp_path, Path(sys.executable).parent)
    assert "write two wrong versions of it in the file of its family" in failure
