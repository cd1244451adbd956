"""Command that builds the wheel and the sdist into ``dist/``, checks them, and runs them outside of the checkout.

``make dist`` runs it with the tools of the extra ``dist``. It installs the wheel with its extras into a new
environment, and runs the README's commands, ``attnpool check`` and the doctests of both packages there, in an empty folder.
It writes the vectors of all functions into ``build/attnpool-vectors-VERSION.zip``. It unpacks the sdist, and runs its
``make test``.

If a step fails, only the steps that need it are skipped. The last lines have the time of each step. The exit status is
1 if a step failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
PACKAGES = ("attnpool_ref", "attnpool_flax")


def main(arguments=None):
    """Runs the steps, and returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="leave out the doctests of the wheel and the tests of the sdist"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="attnpool-dist-") as folder:
        steps = Steps()
        if steps.run("build", [sys.executable, "-m", "build", "--outdir", emptied(DIST), ROOT]):
            (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
            check_files(steps, wheel, sdist)
            try_wheel(steps, wheel, Path(folder), options.quick)
            write_vectors(steps, wheel, Path(folder))
            if not options.quick:
                try_sdist(steps, sdist, Path(folder))
    return steps.summary()


class Steps:
    """Commands that were run: titles, seconds and results."""

    def __init__(self):
        self.done = []

    def run(self, title, command, cwd=ROOT):
        """Runs a command, shows its output, and returns whether it succeeded."""
        print(f"\n== {title}", flush=True)
        begin = time.perf_counter()
        status = subprocess.run([str(word) for word in command], cwd=cwd, env=environment(), check=False).returncode
        self.done.append((title, time.perf_counter() - begin, status))
        return status == 0

    def summary(self):
        """Prints a line for each step, and returns the exit status."""
        print()
        for title, seconds, status in self.done:
            print(f"{seconds:6.1f} s  {title}{f'  FAILED: status {status}' if status else ''}")
        return int(any(status for _, _, status in self.done))


def environment():
    """Returns the environment without paths into the checkout and without variables of the running ``make``."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MAKE", "MFLAGS"))}


def emptied(folder):
    """Removes a folder with its files, and returns its path."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def check_files(steps, wheel, sdist):
    """Runs the checkers of the built files, and of the files that package indexes and code hosts read."""
    steps.run(
        "twine: metadata and the README's rendering", [sys.executable, "-m", "twine", "check", "--strict", wheel, sdist]
    )
    steps.run("check-wheel-contents", [tool("check-wheel-contents"), wheel])
    steps.run("validate-pyproject", [tool("validate-pyproject"), ROOT / "pyproject.toml"])
    steps.run("cffconvert: CITATION.cff", [tool("cffconvert"), "--validate", "--infile", ROOT / "CITATION.cff"])


def tool(name):
    """Returns the path of a command in the folder of this Python."""
    return Path(sys.executable).with_name(name)


def try_wheel(steps, wheel, folder, quick):
    """Installs the wheel into a new environment, and runs doctests, the README and a check in an empty folder."""
    venv.create(folder / "env", with_pip=True)
    python, empty = folder / "env" / "bin" / "python", folder / "empty"
    empty.mkdir()
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[all,test]"]
    if steps.run("install the wheel", install):
        readme = [python, ROOT / "tools" / "studies" / "readme_walk.py"]
        steps.run("the README with the wheel", readme, cwd=empty)
        check = [python.with_name("attnpool"), "check", "--quick", "--only", "mean_pooling"]
        steps.run("attnpool check with the wheel", check, cwd=empty)
        if not quick:
            shutil.copy(ROOT / "conftest.py", empty / "doctest_names.py")  # the names that the examples use
            options = ["-q", "-p", "doctest_names", "-p", "no:cacheprovider", "--doctest-modules", "--pyargs"]
            steps.run("doctests of the wheel", [python, "-m", "pytest", *options, *PACKAGES], cwd=empty)


def write_vectors(steps, wheel, folder):
    """Writes the vectors of all functions with the installed wheel, and packs them into an archive in ``build/``."""
    files, version = folder / "vectors", wheel.name.split("-")[1]
    command = [folder / "env" / "bin" / "attnpool", "vectors", "--output", files]
    if steps.run("vectors of the wheel", command, cwd=folder):
        print(shutil.make_archive(str(ROOT / "build" / f"attnpool-vectors-{version}"), "zip", folder, "vectors"))


def try_sdist(steps, sdist, folder):
    """Unpacks the sdist and runs its test suite, in the environment that its makefile creates."""
    shutil.unpack_archive(sdist, folder / "sdist", filter="data")
    (unpacked,) = (folder / "sdist").iterdir()
    install = ["make", "VENV=.venv", f"PYTHON={sys.executable}", ".venv/dev.stamp"]
    if steps.run("install the sdist", install, cwd=unpacked):
        steps.run("tests of the sdist", ["make", "VENV=.venv", "test"], cwd=unpacked)


if __name__ == "__main__":
    sys.exit(main())
