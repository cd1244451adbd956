"""What a user installs: a light import, a wheel that is whole without any extra, one line where an extra is missing."""

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

import attnpool_ref

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_MODULES = 35
"""Of the standard library, which importing the oracle brings: about 30. Each of asyncio, unittest and http brings more."""
MOST_OF_NUMPYS = 1.5
"""How many times as long as NumPy the rest may take: it takes about two thirds as long."""


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


def test_importing_the_oracle_imports_numpy_and_the_standard_library_alone():
    imported = {name.partition(".")[0] for name in imported_beside_numpys()}
    assert "attnpool_ref" in imported
    assert imported - sys.stdlib_module_names - {"attnpool_ref", "numpy"} == set()


def test_importing_the_oracle_imports_few_modules_beside_numpys():
    imported = {name for name in imported_beside_numpys() if not name.startswith("attnpool_ref")}
    assert len(imported) <= MOST_MODULES, sorted(imported)


def test_importing_the_oracle_takes_about_as_long_as_importing_numpy():
    """Processor time of one process, and the least of some: a busy machine slows both alike."""
    code = "import time; a = time.process_time(); import numpy; b = time.process_time(); import attnpool_ref; print(b - a, time.process_time() - b)"
    runs = [map(float, run_python("-c", code).stdout.split()) for _ in range(5)]
    numpys, ours = map(min, zip(*runs, strict=True))
    assert ours < MOST_OF_NUMPYS * numpys, (ours, numpys)


def test_pytest_waits_for_nothing_of_the_kit_at_its_start():
    code = "import sys, pytest; before = set(sys.modules); import pytest_attnpool; print(*set(sys.modules) - before)"
    assert run_python("-c", code).stdout.split() == ["pytest_attnpool"]


def test_the_tests_of_a_candidate_import_without_jax():
    code = "import sys, attnpool_ref.cli.pytest_plugin; print('jax' in sys.modules)"
    assert run_python("-c", code).stdout.split() == ["False"]


def test_no_file_of_the_oracle_but_a_command_imports_jax_at_its_top():
    """The adapters import it when they are called, and a command's module is imported when the command is."""
    lines = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in (ROOT / "attnpool_ref").rglob("*.py")
        if path.parent.name != "cli"
        for line in path.read_text().splitlines()
        if re.match(r"(import|from) (jax|flax|chex|attnpool_flax)\b", line)
    ]
    assert lines == []


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


def test_the_wheel_holds_types_and_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "attnpool_ref/py.typed",
        "attnpool_ref/__init__.pyi",
        "attnpool_flax/py.typed",
        "attnpool_flax/__init__.pyi",
        f"attnpool-{attnpool_ref.__version__}.dist-info/licenses/LICENSE",
    ):
        assert needed in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {
        "attnpool_ref",
        "attnpool_flax",
        "pytest_attnpool.py",
        f"attnpool-{attnpool_ref.__version__}.dist-info",
    }
    assert [name for name in names if name.endswith((".pyc", ".stamp"))] == []


def test_the_wheel_is_small(wheel):
    assert wheel.stat().st_size < 1e6


def test_the_wheel_alone_pools(alone, tmp_path):
    code = "import attnpool_ref as a; print(a.__file__); print(a.__version__, a.mean_pooling([[1.0], [3.0]]))"
    file, result = run_python("-c", code, python=alone, cwd=tmp_path).stdout.splitlines()
    assert "site-packages" in file
    assert result == f"{attnpool_ref.__version__} [2.]"


@pytest.mark.parametrize("arguments", [("-m", "attnpool_ref"), ("-m", "attnpool_ref", "list")], ids=" ".join)
def test_the_command_without_its_extra_names_it_in_one_line(alone, tmp_path, arguments):
    result = run_python(*arguments, python=alone, check=False, cwd=tmp_path)
    (line,) = (result.stdout + result.stderr).splitlines()
    assert "pip install -e '.[cli]'" in line
    assert result.returncode != 0


def test_the_wheel_alone_installs_the_command(alone, tmp_path):
    result = run_python(alone.with_name("attnpool"), python=alone, check=False, cwd=tmp_path)
    assert "pip install -e '.[cli]'" in result.stderr + result.stdout


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


def test_what_tests_alone_import_is_in_no_extra_of_users():
    extras = PROJECT["optional-dependencies"]
    names = {extra: [re.match(r"[\w-]+", one)[0] for one in extras[extra]] for extra in ("flax", "dev")}
    assert names["flax"] == ["jax", "flax"]
    assert "chex" in names["dev"]


def test_numpy_is_the_only_requirement():
    assert [re.match(r"\w+", requirement)[0] for requirement in PROJECT["dependencies"]] == ["numpy"]


def test_one_extra_holds_what_the_commands_need():
    assert PROJECT["optional-dependencies"]["all"] == ["attnpool[flax,cli,plot]"]


def test_the_extra_for_judging_brings_no_jax():
    names = [re.match(r"[\w\[\]]+", requirement)[0] for requirement in PROJECT["optional-dependencies"]["test"]]
    assert names == ["attnpool[cli]", "pytest"]


def test_the_files_of_the_project_agree_on_version_and_licence():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {attnpool_ref.__version__}\n" in citation
    assert f"license: {PROJECT['license']}\n" in citation
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_every_target_of_the_makefile_is_listed_by_help():
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()
    assert re.findall(r"^([\w-]+): .*## ", text, re.MULTILINE) == phony
    assert phony[1:] == [
        "env",
        "demo",
        "check",
        "test",
        "thorough",
        "peers",
        "examples",
        "lint",
        "docs",
        "site",
        "site-test",
        "verdicts",
        "bench",
        "accelerator",
        "aot",
        "dist",
    ]
