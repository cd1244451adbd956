"""What a user installs: a light import, a wheel that is whole without any extra, a message where an extra is missing."""

import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from imports import imports_of

import attnpool_ref

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_MODULES = 35
"""Of the standard library, which importing the oracle brings: about 30. Each of asyncio, unittest and http brings more."""


def run_python(*arguments, python=sys.executable, check=True, cwd=ROOT):
    """Runs a Python of its own, in which nothing but ``cwd`` and the installed packages can be imported."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_", "PYTEST"))}
    return subprocess.run(
        [str(python), *map(str, arguments)], capture_output=True, text=True, check=check, cwd=cwd, env=environment
    )


def imported_beside_numpys():
    """The modules that importing the oracle brings beside NumPy's."""
    code = "import sys, numpy; before = set(sys.modules); import attnpool_ref; print(*set(sys.modules) - before)"
    return run_python("-c", code).stdout.split()


def test_importing_the_oracle_imports_numpy_and_little_of_the_standard_library():
    imported = imported_beside_numpys()
    assert "attnpool_ref" in imported
    packages = {name.partition(".")[0] for name in imported}
    assert packages - sys.stdlib_module_names - {"attnpool_ref", "numpy"} == set()
    others = sorted({name for name in imported if not name.startswith("attnpool_ref")})
    assert len(others) <= MOST_MODULES, others


def test_pytest_waits_for_nothing_of_the_kit_and_judging_for_no_jax():
    code = "import sys, pytest; before = set(sys.modules); import pytest_attnpool; print(*set(sys.modules) - before)"
    assert run_python("-c", code).stdout.split() == ["pytest_attnpool"]
    code = "import sys, attnpool_ref.cli.pytest_plugin; print('jax' in sys.modules)"
    assert run_python("-c", code).stdout.split() == ["False"]


OFFERED = {"contract", "table", "formats", "__version__"}
"""What attnpool_flax takes of the oracle's package: the rules of arguments, the rows and the files of heads, no arithmetic."""


def test_neither_package_computes_with_the_other():
    """The adapters import JAX when they are called, and a command's module is imported when the command is."""
    of_oracle = [path for path in (ROOT / "attnpool_ref").rglob("*.py") if path.parent.name != "cli"]
    assert [path for path in of_oracle for name in imports_of(path) if name.startswith("attnpool_flax")] == []
    taken = {name for path in (ROOT / "attnpool_flax").rglob("*.py") for name in imports_of(path)}
    assert "attnpool_ref" not in taken
    assert {name.split(".")[1] for name in taken if name.startswith("attnpool_ref.")} == OFFERED
    at_top = re.compile(r"^(?:import|from) (?:jax|flax|chex)\b", re.MULTILINE)
    assert [path for path in of_oracle if at_top.search(path.read_text(encoding="utf-8"))] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run_python("-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    """The Python of a new environment with the wheel and NumPy, nothing else. NumPy is lent, not downloaded."""
    home = tmp_path_factory.mktemp("alone")
    venv.create(home / "env", symlinks=True)
    python = home / "env" / "bin" / "python"
    site = Path(
        run_python("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=python).stdout.strip()
    )
    package = Path(np.__file__).parent
    for lent in (package, package.parent / "numpy.libs"):
        if lent.exists():
            (site / lent.name).symlink_to(lent)
    run_python("-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel)
    return python


def test_the_wheel_is_small_and_holds_types_and_licence_and_nothing_else(wheel):
    names, info = zipfile.ZipFile(wheel).namelist(), f"attnpool-{attnpool_ref.__version__}.dist-info"
    typed = {
        f"{package}/{name}" for package in ("attnpool_ref", "attnpool_flax") for name in ("py.typed", "__init__.pyi")
    }
    assert {*typed, f"{info}/licenses/LICENSE"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"attnpool_ref", "attnpool_flax", "pytest_attnpool.py", info}
    assert [name for name in names if name.endswith((".pyc", ".stamp"))] == []
    assert wheel.stat().st_size < 1e6


def test_the_wheel_alone_pools(alone, tmp_path):
    code = "import attnpool_ref as a; print(a.__file__); print(a.__version__, a.mean_pooling([[1.0], [3.0]]))"
    file, result = run_python("-c", code, python=alone, cwd=tmp_path).stdout.splitlines()
    assert "site-packages" in file
    assert result == f"{attnpool_ref.__version__} [2.]"


def test_the_command_of_the_wheel_without_its_extra_names_it_in_one_line(alone, tmp_path):
    for arguments in (("-m", "attnpool_ref"), ("-m", "attnpool_ref", "list"), (alone.with_name("attnpool"),)):
        result = run_python(*arguments, python=alone, check=False, cwd=tmp_path)
        (line,) = (result.stdout + result.stderr).splitlines()
        assert "pip install -e '.[cli]'" in line
        assert result.returncode != 0


@pytest.mark.parametrize("absent", ["jax", "flax"])
def test_importing_the_implementation_without_its_extra_names_it(absent):
    code = f"import sys; sys.modules[{absent!r}] = None; import attnpool_flax.linen"
    result = run_python("-c", code, check=False)  # in this environment, of which one package is hidden
    words = f"ModuleNotFoundError: attnpool_flax: {absent} is not installed; in a clone: pip install -e '.[flax]'"
    assert result.stderr.splitlines()[-1] == words


@pytest.mark.thorough  # Python compiles all of JAX anew
def test_modules_are_there_where_python_strips_docstrings():
    code = "from attnpool_flax import AttentionPool, linen; print(AttentionPool.__call__.__doc__ or linen.PMA.__name__)"
    assert run_python("-OO", "-c", code).stdout == "PMA\n"


def test_extras_hold_what_they_say():
    extras = PROJECT["optional-dependencies"]
    names = {extra: [re.match(r"[\w\[\],-]+", one)[0] for one in extras[extra]] for extra in ("flax", "all", "test")}
    assert names == {"flax": ["jax", "flax"], "all": ["attnpool[flax,cli,plot]"], "test": ["attnpool[cli]", "pytest"]}
    assert [re.match(r"\w+", requirement)[0] for requirement in PROJECT["dependencies"]] == ["numpy"]


VERSIONED = {
    "attnpool_flax/numerics/platforms.py: _BEFORE_0_10 = jax.__version_info__ < (0, 10)",
    "attnpool_ref/conformance/candidates/adapters/jax_arrays.py: if jax.__version_info__ < (0, 11):",
}
"""Every line of the packages that depends on the version of another package: names of JAX, and speed of the judge."""


def test_the_lines_that_depend_on_a_version_are_these():
    compared = re.compile(r"version(_info)?(__)? *[<>=]=?[^=]*\(\d|hexversion")
    files = [file for package in ("attnpool_flax", "attnpool_ref") for file in (ROOT / package).rglob("*.py")]
    lines = {(file, line.strip()) for file in files for line in file.read_text(encoding="utf-8").splitlines()}
    found = {f"{file.relative_to(ROOT).as_posix()}: {line}" for file, line in lines if compared.search(line)}
    assert found == VERSIONED


def test_the_oldest_versions_that_ci_installs_are_the_lower_bounds_of_the_package():
    text = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8")
    oldest = dict(re.findall(r"^(\w+)==([\d.]+)$", text, re.MULTILINE))
    assert PROJECT["optional-dependencies"]["flax"] == [f"{name}>={oldest[name]}" for name in ("jax", "flax")]
    assert oldest["jaxlib"] == oldest["jax"]


def test_the_files_of_the_project_agree_on_version_and_licence():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {attnpool_ref.__version__}\n" in citation
    assert f"license: {PROJECT['license']}\n" in citation
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
