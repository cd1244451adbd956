"""The table of allowed warnings is kept honest: by these tests, and by every full run."""

from pathlib import Path

import pytest
from marks import thorough

CONFTEST = """
    from warnings_allowed import Allowed, AllowedWarnings

    def pytest_configure(config):
        rows = (Allowed("old.*name", "DeprecationWarning", "a library's own"),)
        config.pluginmanager.register(AllowedWarnings(rows))
"""
INI = f"""
    [pytest]
    pythonpath = {Path(__file__).parent}
    testpaths = here
    filterwarnings = error
"""


@pytest.fixture
def run(pytester):
    """Runs one test that warns, in a project of its own; gives the outcome."""
    pytester.makeconftest(CONFTEST)
    pytester.makeini(INI)

    def run_warning(statement, *options):
        pytester.mkdir("here").joinpath("test_it.py").write_text(
            f"import warnings\n\ndef test_it():\n    {statement}\n"
        )
        without = ("-p", "no:cacheprovider", "-p", "no:doctest", "-p", "no:hypothesispytest")  # it is imported anew
        return pytester.runpytest(*without, *options)

    return run_warning


@pytest.mark.parametrize("options", [(), *thorough([("-n", "1")])], ids=["one process", "xdist"])
def test_a_warning_with_a_row_passes(run, options):
    result = run("warnings.warn('old option name', DeprecationWarning)", *options)
    result.assert_outcomes(passed=1, warnings=1)
    assert result.ret == 0


def test_a_warning_without_a_row_fails(run):
    run("warnings.warn('something else', DeprecationWarning)").assert_outcomes(failed=1)


def test_a_row_of_another_category_does_not_match(run):
    run("warnings.warn('old option name', FutureWarning)").assert_outcomes(failed=1)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["one process", "xdist"])
def test_a_row_that_matches_nothing_fails_a_full_run(run, options):
    result = run("pass", *options)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*that no warning matched*", "DeprecationWarning: 'old.*name' (a library's own)"])


def test_a_run_of_selected_tests_does_not_judge_the_rows(run):
    assert run("pass", "-k", "it").ret == 0
