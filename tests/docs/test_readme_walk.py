"""The README from an empty folder to a verdict, as ``tools/studies/readme_walk.py`` walks it, without the installation."""

import pytest
import readme_walk


@pytest.mark.thorough
def test_every_step_of_the_readme_ends_as_it_should_and_is_timed(capsys):
    assert readme_walk.main(["--here"]) == 0
    *steps, last = capsys.readouterr().out.splitlines()
    assert len(steps) == 4
    assert all("FAILED" not in step for step in steps)
    assert last.endswith("from an empty folder to the last verdict")
    assert float(last.split()[0]) < 300
