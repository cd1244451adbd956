"""The pages are true: every code block runs and prints what it says, every link leads somewhere, every page is listed."""

import re
import shlex
import subprocess
import sys
import tomllib

import jax
import pytest
from documents import ROOT, assert_prints_what_it_says, block_id, broken_links, python_blocks, shell_lines
from marks import thorough

from attnpool_ref.table import BY_NAME, SOURCES

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
GENERATED = {
    "variants.md",
    "bugs.md",
    "traps.md",
    "which.md",
    "verdicts.md",
}  # their lines are run from what they are written from
OF_JAX = ("scale.md", "heads.md", "deploying.md", "training.md", "questions.md")  # their blocks are JAX's own
ELSEWHERE = ("guides", "notebooks")  # test_guides.py, test_notebooks.py
IN_OTHER_TESTS = {"guarantees.md", "index.md"}  # test_contract_page.py, test_first_page.py
OF_BOTH = [
    path
    for path in PAGES
    if path.name not in {*GENERATED, *OF_JAX, *IN_OTHER_TESTS, "judging.md"} and path.parent.name not in ELSEWHERE
]
RECIPES = re.split(r"^## ", (DOCS / "recipes.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def python_of(paths):
    return [text for path in paths for text in python_blocks(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("package", ["attnpool_ref", *thorough(["attnpool_flax"])])
@pytest.mark.parametrize("text", python_of(OF_BOTH), ids=block_id)
def test_a_block_of_a_page_prints_the_same_with_both_packages(text, package, capsys):
    assert "from attnpool_ref import" in text
    with jax.numpy_rank_promotion("allow"):  # the reader's own arithmetic, which no test configures
        assert_prints_what_it_says(text.replace("attnpool_ref", package), capsys)


@pytest.mark.parametrize("text", python_of(DOCS / name for name in OF_JAX), ids=block_id)
def test_a_block_about_jax_runs_and_prints_what_it_says(text, capsys):
    if ".serialize(" in text:
        pytest.importorskip("flatbuffers", reason="`flatbuffers`, of the extra `dev`, is not installed")
    assert_prints_what_it_says(text, capsys)


def test_the_page_about_judging_runs(capsys):
    texts = [
        text for text in python_of([DOCS / "judging.md"]) if "import tensorflow" not in text
    ]  # that is run by tests/peers
    assert_prints_what_it_says("\n".join(texts), capsys)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_the_links_of_a_page_lead_somewhere(path):
    assert list(broken_links(path)) == []


def test_the_list_of_pages_has_every_page_once():
    lists = [DOCS / "README.md", DOCS / "notebooks" / "README.md", DOCS / "decisions" / "README.md"]
    listed = [
        (path.parent / target).resolve()
        for path in lists
        for target in re.findall(r"^ *\* \[.*?\]\(([^)#]*)\)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(listed) == len(set(listed))
    assert set(PAGES) - {DOCS / "README.md", DOCS / "index.md"} <= set(listed)


EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
INSTALLING = [line for line in shell_lines((DOCS / "install.md").read_text(encoding="utf-8"))]


@pytest.mark.parametrize("line", INSTALLING)
def test_a_command_of_the_installation_is_one_that_works(line):
    program, *arguments = shlex.split(line)
    if program == "attnpool":
        subprocess.run([sys.executable, "-m", "attnpool_ref", *arguments], check=True, capture_output=True, cwd=ROOT)
        return
    assert [program, *arguments[:2]] == ["pip", "install", "-e"]
    assert re.fullmatch(r"\.(\[(\w+)\])?", arguments[2])
    assert arguments[2] == "." or arguments[2][2:-1] in EXTRAS
    assert set(arguments[3:]) <= {"jax[cuda12]", "jax[cuda13]", "jax[tpu]"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_no_table_has_more_columns_than_fit_a_page(path):
    rows = [line for line in path.read_text(encoding="utf-8").splitlines() if re.match(r"\|.*\|$", line)]
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) > 5] == []


def test_every_extra_of_users_is_explained():
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    assert (
        set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == {"flax", "cli", "plot", "all", "test"} <= set(EXTRAS)
    )


def test_the_poolings_that_are_recommended_exist_and_every_pooling_is_recommended():
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ")][2:]
    named = set(re.findall(r"`(\w+_\w+|attend)`", " ".join(rows)))
    assert named <= set(BY_NAME)
    assert {row.name for row in BY_NAME.values() if row.family in ("pooling", "pairs")} <= named


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.splitlines()[0])
def test_a_recipe_stands_beside_its_source_and_calls_what_it_imports(recipe):
    (text,) = python_blocks(recipe)
    imported = set(re.findall(r"\w+", re.search(r"from attnpool_ref import (.*)", text)[1]))
    assert imported <= set(BY_NAME)
    assert all(text.count(name) > 1 for name in imported)
    assert re.search(r"^Source: ", recipe, re.MULTILINE)
    assert set(re.findall(r"\(`(\w+\d*)`\)", recipe)) <= set(SOURCES)
    assert re.search(r"\(`\w+`\)", recipe)


def test_every_recipe_has_its_section():
    first_words = [re.split(":|\n", recipe)[0] for recipe in RECIPES]
    assert first_words == [
        *("DVQA", "CTM", "MIAN", "MIAN", "NeurJudge"),
        *("Wang", "LEMM-like", "SimKGC", "The Transformer", "d2l"),
        *("Entropy", "x-vector", "Attentive statistics", "MHASTP", "Sums and means"),
        *("SGPT", "AllenNLP", "Peters"),
        *("MAPHead", "timm", "CoCa", "CLIP", "PMA", "PMA", "V-JEPA", "AIM and CAPI"),
        "SimPool, without its power",
        *("ABMIL and CLAM", "HAN, Lin et al., SAP"),
        *("ColBERT, ColPali, PyLate", "NetVLAD", "NV-Embed"),
    ]
