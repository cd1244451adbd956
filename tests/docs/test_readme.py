"""The README: every block runs and prints what it says, every command works, and it is short."""

import re
import subprocess
import sys
from pathlib import Path

import chex
import jax.numpy as jnp
import numpy as np
import pytest
from documents import (
    ROOT,
    assert_prints_what_it_says,
    assert_shown_is_printed,
    block_id,
    blocks,
    blocks_of,
    broken_links,
    own_files,
    python_blocks,
    shell_lines,
)
from flax import nnx

import attnpool_flax
from attnpool_flax.modules.sentences import SentencePool
from attnpool_ref.formats.sentences import Stage
from attnpool_ref.table import BY_NAME

PATH = ROOT / "README.md"
README = PATH.read_text(encoding="utf-8")
(CHECK,) = [line for line in shell_lines(README) if line.startswith("attnpool check")]
(OUTPUT,) = blocks_of(README, "text")


@pytest.fixture
def folder(current_folder):
    """A current directory with the README's own file and with trained heads under the names that it loads."""
    for name, text in own_files(README).items():
        (current_folder / name).write_text(text)
    head = attnpool_flax.MAPHead(in_features=24, num_heads=12, hidden_features=48, rngs=nnx.Rngs(0))
    attnpool_flax.save(head, "siglip2.safetensors", "siglip")
    Path("models").mkdir()
    pool = SentencePool((Stage("pooling", modes=("mean",), width=24), Stage("normalize")), rngs=nnx.Rngs(0))
    attnpool_flax.save(pool, "models/all-MiniLM-L6-v2", "sentence_transformers")
    return current_folder


def without_jax(*command, folder):
    """Runs Python as in an installation of only '.[cli]'."""
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules.update(jax=None, flax=None, torch=None)\n")
    environment = {"PYTHONPATH": f"{folder}:{ROOT}", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, *command]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


def test_it_has_at_most_120_lines_and_blocks_of_languages_that_are_tested():
    assert len(README.splitlines()) <= 120
    assert {language for language, _ in blocks(README)} == {"python", "sh", "text"}
    assert README.count("\n```") == 2 * len(blocks(README))


@pytest.mark.parametrize("text", python_blocks(README), ids=block_id)
def test_a_block_runs_and_prints_what_it_says(text, folder, capsys):
    assert_prints_what_it_says(text, capsys)


def test_the_first_block_runs_without_jax(folder):
    first = python_blocks(README)[0]
    result = without_jax("-c", first, folder=folder)
    assert result.stdout.splitlines() == re.findall(r"  # (.*)$", first, re.MULTILINE), result.stderr


def test_the_loaded_heads_pool(folder):
    loading = next(text for text in python_blocks(README) if "attnpool_flax.load" in text)
    names = {}
    exec(loading, names)
    x = np.ones((2, 3, 24), np.float32)
    chex.assert_shape(names["head"](x), (2, 1, 24))
    np.testing.assert_allclose(jnp.linalg.norm(names["pool"](x), axis=-1), 1, rtol=1e-6)


def test_the_checker_prints_what_the_readme_shows_without_jax(folder):
    result = without_jax("-m", "attnpool_ref", *CHECK.split()[1:], folder=folder)
    assert result.returncode == 1
    assert_shown_is_printed(OUTPUT, result.stdout)


def test_the_shown_reproduction_runs(folder, capsys):
    sys.path.insert(0, str(folder))
    snippet = OUTPUT[OUTPUT.index("import numpy") :].removesuffix("[...]\n")
    with np.errstate(invalid="ignore"):
        exec(snippet, {})
    sys.modules.pop("my_pooling")
    assert capsys.readouterr().out.split() == ["candidate:", "[nan]", "oracle:", "[0.]"]


def test_the_commands_of_the_installation_are_ones_that_exist():
    assert [line for line in shell_lines(README) if line != CHECK] == ["pip install -e '.[all]'"]
    for target in ("demo", "test"):
        assert f"`make {target}`" in README
        subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=True)


def test_every_function_and_module_in_the_table_exists():
    table = README.split("## What is in it")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    named = {name for row in rows for name in row.split("|")[2].split("`")[1::2]}
    assert len(named) > 20
    assert {name for name in named if not hasattr(attnpool_flax, name)} == set()
    assert len(BY_NAME) > 100  # as its first paragraph says


def test_the_links_lead_somewhere():
    assert list(broken_links(PATH)) == []
