"""The site's first page: one installation, then a mean, a verdict and a SigLIP file, each in at most four commands, which run.

The verdict is on PyTorch: its output is compared in tests/peers.
"""

import re
import shlex
import subprocess
import sys
import tomllib

import pytest
from documents import ROOT, assert_prints_what_it_says, own_files, python_blocks, section, shell_lines
from flax import nnx

import attnpool_flax

PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
TASKS = ("Take a mean", "Judge your own pooling", "Pool with SigLIP's head")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def commands(text):
    """The lines that a reader types: in the shell, and in Python but for files of the reader's own."""
    blocks = [block for block in python_blocks(text) if block not in own_files(text).values()]
    return [*shell_lines(text), *(line for block in blocks for line in block.splitlines() if line)]


@pytest.mark.parametrize("title", TASKS)
def test_a_task_has_at_most_four_commands_and_no_installation(title):
    typed = commands(section(PAGE, title))
    assert 1 <= len(typed) <= 4
    assert not any("install" in command for command in typed)


def test_the_page_begins_with_its_only_picture_and_then_the_installation():
    assert PAGE.count("![") == 1
    assert PAGE.index("](pictures/proof.svg)") < PAGE.index("pip install") < PAGE.index(f"## {TASKS[0]}")
    extra = re.fullmatch(r"pip install -e '\.\[(\w+)\]'", shell_lines(PAGE)[0])[1]
    assert extra in EXTRAS


def test_the_mean_is_what_the_page_says(capsys):
    (block,) = python_blocks(section(PAGE, "Take a mean"))
    assert_prints_what_it_says(block, capsys)


def test_a_file_of_siglip_is_inspected_and_pools(current_folder, capsys):
    text = section(PAGE, "Pool with SigLIP's head")
    head = attnpool_flax.MAPHead(in_features=768, num_heads=12, hidden_features=8, rngs=nnx.Rngs(0))
    attnpool_flax.save(head, "siglip.safetensors", "siglip", prefix="vision_model.head.")
    (inspect,) = shell_lines(text)
    program, *arguments = shlex.split(inspect)
    assert program == "attnpool"
    command = [sys.executable, "-m", "attnpool_ref", *arguments]
    shown = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True).stdout
    assert 'load("siglip.safetensors", "siglip", num_heads=...' in shown
    (block,) = python_blocks(text)
    assert_prints_what_it_says(block, capsys)
