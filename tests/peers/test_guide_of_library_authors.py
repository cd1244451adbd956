"""docs/judging.md, docs/embedding.md and the first page's check of a function: every output is what the pages show."""

import re
import shlex
import subprocess
import sys
import tomllib

import pytest
from documents import ROOT, assert_shown_is_printed, blocks, blocks_of, own_files

FIRST, GUIDE, IN_TESTS = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("index", "judging", "embedding")
)
FIRST = FIRST.split("{tab-item} Check your own code\n")[1].split("{tab-item}")[0]
BLOCKS = blocks(FIRST) + blocks(GUIDE)
FOLLOWED = [  # the one command of a block, and the output that the next block shows, if it is one
    (text.strip().replace("\\\n", ""), shown if kind == "text" else "")
    for (language, text), (kind, shown) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True)
    if language == "sh" and text.startswith("attnpool check")
]


@pytest.fixture
def folder(tmp_path):
    for name, text in own_files(FIRST + GUIDE + IN_TESTS).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder, *arguments):
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(("command", "shown"), FOLLOWED, ids=["first page", "as written", "mended", "linear", "waived"])
def test_the_checker_prints_what_the_pages_show(command, shown, folder):
    result = run(folder, "attnpool_ref", *shlex.split(command)[1:])
    assert result.returncode == (0 if "passed" in shown else 1), result.stderr
    assert shown
    assert_shown_is_printed(shown, result.stdout)


def test_the_tests_of_the_guide_pass(folder):
    result = run(folder, "pytest", "-q", "test_pooling.py")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^\d\d passed", result.stdout.splitlines()[-1])


def test_the_settings_of_the_guide_make_these_tests_too(folder):
    (settings,) = blocks_of(IN_TESTS, "toml")
    assert tomllib.loads(settings)
    (folder / "pyproject.toml").write_text(settings)
    result = run(folder, "pytest", "-q", "--attnpool", "-m", "attnpool")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^\d\d passed", result.stdout.splitlines()[-1])


def test_the_searches_of_the_guide_find(folder):
    for line in ('find "learned query"', "show attention_pooling"):
        assert f"attnpool {line}" in GUIDE
        result = run(folder, "attnpool_ref", *shlex.split(line))
        assert result.returncode == 0
        assert "attention_pooling" in result.stdout
