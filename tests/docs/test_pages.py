"""The README and the pages: each Python block prints what it says, commands work, links and names lead somewhere."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import pytest
from command import run
from documents import (
    ROOT,
    assert_prints_what_it_says,
    assert_shown_is_printed,
    blocks_of,
    broken_links,
    own_files,
    python_blocks,
    shell_lines,
)
from flax import nnx

import attnpool_flax
from attnpool_flax.modules.sentences import SentencePool
from attnpool_ref import formats
from attnpool_ref.formats.sentences import Stage

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
FOR_CONTRIBUTORS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        *("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CHANGELOG.md", ".github/pull_request_template.md"),
        *("attnpool_ref/README.md", "attnpool_flax/README.md", "attnpool_ref/table/names.md"),
    )
}
ELSEWHERE = {
    "docs/judging.md",  # tests/peers
}
ONE_PACKAGE = {
    *("README.md", "docs/index.md", "docs/options.md", "docs/embedding.md", "docs/questions.md"),
    *("docs/scale.md", "docs/heads.md", "docs/deploying.md", "docs/training.md"),
    *(name for name in PAGES if name.startswith("docs/notebooks/")),
}
"""Pages whose blocks run as they are written; those of the others run with JAX too, if they import the oracle."""


ONE_PROGRAM = {"docs/options.md", "docs/mistakes-of-the-notebooks.md", "docs/public-code.md"}
"""Pages whose blocks run one after another, as those of guides and notebooks."""


def programs(name):
    """Returns the programs of a page: each block, in recipes behind the first one, or all blocks in one.

    Blocks that import PyTorch or TensorFlow run in tests/peers.
    """
    texts = [
        text
        for text in python_blocks(PAGES[name])
        if not re.search(r"^(import (torch|tensorflow)|from my_\w+ import)", text, re.M)
    ]
    if name == "docs/recipes.md":
        first, *texts = texts
        return [first + text for text in texts]
    whole = "/guides/" in name or "/notebooks/" in name or name in ONE_PROGRAM
    return ["\n".join(texts)] if whole else texts


def runs():
    """Yields (page, package) of each run; `make thorough` runs the guides, and pages in JAX."""
    for name in PAGES.keys() - ELSEWHERE:
        texts = programs(name)
        if texts:
            own = [pytest.mark.thorough] if "/guides/" in name else []
            yield pytest.param(name, "attnpool_ref", marks=own, id=name)
            if name not in ONE_PACKAGE and all("from attnpool_ref import" in text for text in texts):
                yield pytest.param(name, "attnpool_flax", marks=[*own, pytest.mark.thorough], id=f"{name}, JAX")


def write_heads(page):
    """Writes files of trained heads under the names that a page loads."""
    if page == "README.md":
        head = attnpool_flax.MAPHead(in_features=24, num_heads=12, hidden_features=48, rngs=nnx.Rngs(0))
        attnpool_flax.save(head, "siglip2.safetensors", "siglip")
        Path("models").mkdir()
        pool = SentencePool((Stage("pooling", modes=("mean",), width=24), Stage("normalize")), rngs=nnx.Rngs(0))
        attnpool_flax.save(pool, "models/all-MiniLM-L6-v2", "sentence_transformers")
    elif page == "docs/index.md":
        head = attnpool_flax.MAPHead(in_features=768, num_heads=12, hidden_features=8, rngs=nnx.Rngs(0))
        attnpool_flax.save(head, "siglip.safetensors", "siglip", prefix="vision_model.head.")


@pytest.mark.parametrize(("name", "package"), sorted(runs(), key=lambda run: run.id))
def test_the_blocks_of_a_page_print_what_they_say(name, package, current_folder, capsys):
    write_heads(name)
    if ".serialize(" in PAGES[name]:
        pytest.importorskip("flatbuffers", reason="`flatbuffers`, of the extra `dev`, is not installed")
    for text in programs(name):
        with jax.numpy_rank_promotion("allow"):  # the reader's own arithmetic, which no test configures
            assert_prints_what_it_says(text.replace("from attnpool_ref import", f"from {package} import"), capsys)


@pytest.mark.thorough
def test_the_guide_of_sentence_embeddings_needs_only_the_extra_cli(tmp_path):
    text = PAGES["docs/guides/sentence-embeddings.md"]
    assert "pip install -e '.[cli]'" in text
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules.update(jax=None, flax=None, matplotlib=None)\n")
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", "\n".join(python_blocks(text))]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr


def test_the_checker_prints_what_the_readme_shows_without_jax(tmp_path):
    (check,) = (line for line in shell_lines(PAGES["README.md"]) if line.startswith("attnpool check"))
    (shown,) = blocks_of(PAGES["README.md"], "text")
    for name, text in own_files(PAGES["README.md"]).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules.update(jax=None, flax=None, torch=None)\n")
    command = [sys.executable, "-m", "attnpool_ref", *shlex.split(check)[1:]]
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 1, result.stderr
    assert_shown_is_printed(shown, result.stdout)


def test_other_commands_of_the_first_pages_work(current_folder):
    write_heads("docs/index.md")
    lines = [line for name in ("README.md", "docs/index.md", "docs/install.md") for line in shell_lines(PAGES[name])]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("attnpool ") and " check " not in line]
    results = {command[0]: run(*command) for command in commands}
    assert {name: result.exit_code for name, result in results.items()} == {"inspect": 0, "list": 0, "show": 0}
    assert 'load("siglip.safetensors", "siglip", num_heads=...' in results["inspect"].output


def test_the_extras_and_targets_that_pages_name_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for name, text in (PAGES | FOR_CONTRIBUTORS).items():
        assert set(re.findall(r"\w+", " ".join(re.findall(r"'\.\[([\w,]+)\]'", text)))) <= extras.keys(), name
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(targets), name


def test_the_functions_and_modules_that_pages_recommend_exist():
    own = re.compile(r"`(\w+_(?:pooling|score|score_all_pairs|attention|softmax|state)|\w+Pool(?:er|2d)?)[`(]")
    pages = [
        name for name in PAGES if "/guides/" in name or name in ("README.md", "docs/choosing.md", "docs/recipes.md")
    ]
    for page in pages:
        assert {name for name in own.findall(PAGES[page]) if not hasattr(attnpool_flax, name)} == set(), page


def test_every_link_leads_somewhere_and_every_path_that_is_named_exists():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("build", "dist", ".git")}
    placeholder = re.compile(r"FAMILY|\b[A-Z]{4,}\b|[*<{]|\.\.\.")
    for name, text in (PAGES | FOR_CONTRIBUTORS).items():
        assert list(broken_links(ROOT / name)) == [], name
        paths = [path for path in re.findall(r"`([\w.-]+/[\w./-]+)`", text) if path.partition("/")[0] in folders]
        assert [path for path in paths if not placeholder.search(path) and not (ROOT / path).exists()] == [], name


def test_the_page_of_heads_lists_each_format_with_its_module():
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| `(\w+)` \|", PAGES["docs/heads.md"], re.MULTILINE)
    assert rows == [(row.name, row.module) for row in formats.FORMATS.values()]
