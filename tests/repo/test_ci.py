"""What ``.ci/run`` says and returns at its end, with stand-ins for make and for the Pythons."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent.parent.parent / ".ci" / "run"
FULL = "PASSED IN FULL: Python 3.11 with the oldest JAX, and 3.13 with the newest"
STEPS = ("peers", "bench", "examples", "site")
OPENED = "the site was not opened: no browser was found"


def ci(folder, pythons, make="true", **environment):
    """Runs it where nothing but these Pythons is found; ``make`` writes down what it is asked for."""
    for tool in ("bash", "cat", "dirname", "grep", "mktemp", "sort"):
        (folder / tool).symlink_to(shutil.which(tool))
    log = folder / "log"
    stand_ins = {f"python{version}": 'if [ -n "$2" ]; then echo "$0"; fi' for version in pythons}
    for name, body in (
        stand_ins
        | {
            "make": f'echo "$*${{PIP_CONSTRAINT:+ $PIP_CONSTRAINT}}" >> "{log}"; case $1 in site-test) echo; echo "{OPENED}";; esac; {make}'
        }
    ).items():
        (folder / name).write_text(f"#!{folder / 'bash'}\n{body}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run([RUN], env={"PATH": str(folder)} | environment, capture_output=True, text=True, check=False)
    return done, log.read_text().splitlines() if log.exists() else []


def steps(asked):
    """The steps without Pythons and environments; those that install come first, in any order."""
    return [re.sub(r" (PYTHON|VENV)=\S+", "", line) for line in asked]


@pytest.mark.parametrize("environment", [{}, {"CI": "true"}], ids=["by hand", "in CI"])
def test_both_pythons_are_run_in_full_and_the_last_line_says_so(tmp_path, environment):
    done, asked = ci(tmp_path, ["3.11", "3.13"], **environment)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == [OPENED, f"{FULL}; {OPENED}"]
    assert done.stderr == ""
    constraint = str(RUN.parent / "oldest.txt")
    lint = next(line for line in asked if line.startswith("lint"))
    libraries = next(line for line in asked if "stamp" in line)
    environments = [line for line in asked[:4] if line != lint]
    assert sorted(steps(environments)) == ["env", "env", f"env {constraint}"]
    made = [re.search(r"VENV=(\S+)", line)[1] for line in environments]
    assert sorted(made) == [".venv-ci-3.11", ".venv-ci-3.13", ".venv-ci-oldest"]
    assert asked.index(environments[made.index(".venv-ci-3.11")]) < asked.index(lint) < asked.index(libraries)
    assert steps([libraries]) == [" ".join(f".venv-ci-3.11/{step}.stamp" for step in STEPS)]
    asked.remove(libraries)  # installed beside the tests
    newest, oldest, *rest = steps(asked[4:])
    assert newest == "test"
    assert "VENV=.venv-ci-3.13" in asked[4]
    folders = re.fullmatch(rf"test ARGS=(.*) {re.escape(constraint)}", oldest)[1]
    assert all((RUN.parents[1] / part).exists() for part in folders.removesuffix(" --compiles").split())
    assert "VENV=.venv-ci-oldest" in asked[5]
    rest.remove("bench ARGS=--tiny")  # beside what follows it
    assert rest == ["peers", "examples", "site-test"]
    assert all("VENV=.venv-ci-3.11" in line for line in [lint, libraries, *asked[6:]])


VERSIONED = {
    "attnpool_flax/numerics/platforms.py: _BEFORE_0_10 = jax.__version_info__ < (0, 10)",
    "attnpool_ref/conformance/candidates/adapters/jax_arrays.py: if jax.__version_info__ < (0, 11):",
}
"""Every line of the packages that depends on the version of another package: names of JAX, and speed of the judge."""


def test_the_lines_that_depend_on_a_version_are_these():
    root = RUN.parent.parent
    files = [file for package in ("attnpool_flax", "attnpool_ref") for file in (root / package).rglob("*.py")]
    lines = [
        (file.relative_to(root).as_posix(), line.strip()) for file in files for line in file.read_text().splitlines()
    ]
    compared = {
        f"{file}: {line}"
        for file, line in lines
        if "version" in line and re.search(r"version(_info)?(__)? *[<>=]=?[^=]*\(\d|hexversion", line)
    }
    assert compared == VERSIONED


def test_the_oldest_versions_are_the_lower_bounds_of_the_package():
    oldest = dict(re.findall(r"^(\w+)==([\d.]+)$", (RUN.parent / "oldest.txt").read_text(), re.MULTILINE))
    bounds = tomllib.loads((RUN.parent.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "flax"
    ]
    assert bounds == [f"{package}>={oldest[package]}" for package in ("jax", "flax")]
    assert oldest["jaxlib"] == oldest["jax"]


@pytest.mark.parametrize(("found", "missing"), [("3.11", "3.13"), ("3.13", "3.11")])
@pytest.mark.parametrize(("environment", "status"), [({}, 0), ({"CI": "true"}, 1)], ids=["by hand", "in CI"])
def test_a_missing_python_is_the_last_word_and_fails_in_ci(tmp_path, found, missing, environment, status):
    done, asked = ci(tmp_path, [found], **environment)
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"INCOMPLETE: Python {missing} was not found")
    assert FULL not in done.stdout
    assert line.endswith(f"all else passed; {OPENED}")
    assert [step for step in steps(asked) if "bench" not in step][-1] == "site-test"
    assert asked[-1].endswith(f"VENV=.venv-ci-{found}")
    assert any("examples" in step for step in steps(asked))


def test_no_python_and_a_failing_step_fail_anywhere(tmp_path):
    (tmp_path / "none").mkdir()
    done, asked = ci(tmp_path / "none", [])
    assert (done.returncode, asked) == (1, [])
    (tmp_path / "failing").mkdir()
    done, asked = ci(tmp_path / "failing", ["3.11", "3.13"], make="exit 2")
    assert done.returncode == 2
    assert {step.removesuffix(f" {RUN.parent / 'oldest.txt'}") for step in steps(asked)} == {"env"}
    assert FULL not in done.stdout


def test_libraries_that_cannot_be_installed_fail(tmp_path):
    done, asked = ci(tmp_path, ["3.11", "3.13"], make='case "$*" in *stamp*) exit 2;; esac')
    assert done.returncode == 2
    assert not any(step.startswith("peers") for step in steps(asked))


@pytest.mark.parametrize("step", ["bench", "site-test"])
def test_a_step_that_runs_beside_another_prints_what_it_says_and_fails(tmp_path, step):
    done, asked = ci(tmp_path, ["3.11", "3.13"], make=f"case $1 in {step}) echo its words; exit 2;; esac")
    assert done.returncode == 1
    assert "its words" in done.stdout
    assert [line.split()[0] for line in asked if not line.startswith("bench")][-1] == "site-test"
    assert FULL not in done.stdout
