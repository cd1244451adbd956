"""Following "A new function" of CONTRIBUTING.md gives a function that passes its tests; a forgotten edit is named."""

import checklist
import pytest

pytestmark = pytest.mark.thorough


def test_the_checklist_for_a_new_function_is_complete(tmp_path):
    assert checklist.follow(tmp_path) == ""


def test_a_forgotten_number_is_named(tmp_path):
    assert "no value for the number `optimism`; add one to NUMBERS" in checklist.follow(tmp_path, ["NUMBERS"])
