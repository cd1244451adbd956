"""The verdict on a PyTorch function that the site's first page shows: the command prints it."""

import shlex
import subprocess
import sys

from documents import ROOT, assert_shown_is_printed, blocks_of, own_files, shell_lines

PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
TASK = PAGE.split("{tab-item} Check your own code\n")[1].split("{tab-item}")[0]


def test_the_checker_prints_what_the_first_page_shows(tmp_path):
    for name, text in own_files(TASK).items():
        (tmp_path / name).write_text(text)
    (check,) = shell_lines(TASK)
    program, *arguments = shlex.split(check)
    assert program == "attnpool"
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "attnpool_ref", *arguments]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    (shown,) = blocks_of(TASK, "text")
    assert_shown_is_printed(shown, result.stdout)
