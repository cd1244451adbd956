"""The README and the pages are true: every code block runs and prints what it says, every line means what it says."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import chex
import jax
import numpy as np
import pytest
from flax import linen as nn
from packages import every_package

import attnpool_flax
import attnpool_ref
from attnpool_ref.table import BY_NAME, SOURCES

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(page):
    """The code blocks of a page, each with its language."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def python_blocks(page):
    return [text for language, text in blocks(page) if language == "python"]


BLOCKS, PYTHON = blocks(README), python_blocks(README)
GENERATED = {"variants.md", "bugs.md", "which.md", "verdicts.md"}  # their lines are run from what they are written from
OF_JAX = [
    (ROOT / "docs" / name).read_text() for name in ("scale.md", "heads.md", "deploying.md")
]  # their blocks are JAX's own
JUDGING = (ROOT / "docs" / "judging.md").read_text()  # its blocks are run one after another
PAGES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.name not in GENERATED | {"judging.md", "scale.md", "heads.md", "deploying.md"}
    and path.parent.name != "notebooks"  # test_notebooks.py
]
RECIPES = re.split(r"^## ", (ROOT / "docs" / "recipes.md").read_text(), flags=re.MULTILINE)[1:]
SHELL = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]
(OWN_FILE,) = [text for text in PYTHON if text.startswith("# my_pooling.py\n")]
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in README.split("## You wrote, write this")[1].split("\n## ")[0].splitlines()
    if line.startswith("| ") and "`" in line
]


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """A current directory with the README's ``my_pooling.py``, importable."""
    (tmp_path / "my_pooling.py").write_text(OWN_FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_pooling", None)


def block_id(text):
    return next(line for line in text.splitlines()[::-1] if line.strip())[:40]


def test_every_block_is_of_a_language_that_is_tested():
    assert {language for language, _ in BLOCKS} == {"python", "sh"}
    assert README.count("\n```") == 2 * len(BLOCKS)


def assert_prints_what_it_says(text, capsys):
    expected = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert len(expected) == len(re.findall(r"^ *print\(", text, re.MULTILINE))
    exec(compile(text, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("text", PYTHON, ids=block_id)
def test_a_block_runs_and_prints_what_it_says(text, own_file, capsys):
    assert_prints_what_it_says(text, capsys)


@pytest.mark.parametrize("package", ["attnpool_ref", "attnpool_flax"])
@pytest.mark.parametrize("text", [text for path in PAGES for text in python_blocks(path.read_text())], ids=block_id)
def test_a_block_of_a_page_prints_the_same_with_both_packages(text, package, capsys):
    assert "from attnpool_ref import" in text
    with jax.numpy_rank_promotion("allow"):  # the reader's own arithmetic, which no test configures
        assert_prints_what_it_says(text.replace("attnpool_ref", package), capsys)


@pytest.mark.parametrize("text", [text for page in OF_JAX for text in python_blocks(page)], ids=block_id)
def test_a_block_about_jax_runs_and_prints_what_it_says(text, capsys):
    if ".serialize(" in text:
        pytest.importorskip("flatbuffers", reason="`flatbuffers`, of the extra `dev`, is not installed")
    assert_prints_what_it_says(text, capsys)


def test_the_page_about_judging_runs(capsys):
    assert_prints_what_it_says("\n".join(python_blocks(JUDGING)), capsys)


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
        *("x-vector", "Attentive statistics", "MHASTP", "Sums and means"),
        *("SGPT", "AllenNLP", "Peters"),
        *("MAPHead", "timm", "CoCa", "CLIP", "PMA", "PMA", "V-JEPA", "AIM and CAPI"),
        "SimPool, without its power",
        *("ABMIL and CLAM", "HAN, Lin et al., SAP"),
        *("ColBERT, ColPali, PyLate", "NetVLAD", "NV-Embed"),
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_the_links_of_a_page_lead_somewhere(path):
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        page, _, heading = target.partition("#")
        file = path.parent / page if page else path
        assert page.startswith("https://") or file.exists(), target
        assert not heading or heading in headings(file.read_text()), target


def headings(page):
    """What a link to a heading of the page may say after #."""
    titles = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("line", SHELL)
def test_a_command_is_one_that_works(line, own_file):
    program, *arguments = line.split()
    if program == "make":
        listed = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        assert f"bin/{'pytest' if arguments == ['test'] else 'attnpool'}" in listed.stdout
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        names = [name.strip("'") for name in arguments[1:]]
        assert {extra for name in names for extra in re.findall(r"^attnpool\[(\w+)\]$", name)} <= set(extras)
        assert set(names) <= {"attnpool", *(f"attnpool[{e}]" for e in extras), "jax[cuda12]", "jax[cuda13]", "jax[tpu]"}
    else:
        assert program == "attnpool"
        command = [sys.executable, "-m", "attnpool_ref", *arguments]
        environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"}
        result = subprocess.run(command, cwd=own_file, capture_output=True, text=True, env=environment, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "mean_pooling" in result.stdout


def test_the_wrong_and_the_right_pooling_take_five_lines_each():
    for text in PYTHON[:2]:
        statements = [line for line in text.splitlines() if line and not line.startswith(("import", "from"))]
        assert len(statements) <= 5


# The table: what was written and what to write are evaluated side by side, as they stand.

MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])  # no empty row and padding on the right, where both agree
TOKENS = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
SCORES = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
LENGTHS = MASK.sum(1)


def softmax(scores):
    """As it is written without a mask."""
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def masked_softmax_d2l(scores, lengths):
    """d2l's softmax: a large negative number in place of the scores of padding."""
    return softmax(np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -1e6))


def names_in(package, **more):
    """What the cells may name."""
    functions = {name: getattr(package, name) for name in package.__all__ if name in BY_NAME}
    given = dict(
        x=TOKENS, m=MASK, pad=MASK == 0, additive=np.where(MASK, 0, -np.inf), scores=SCORES, lengths=LENGTHS, L=4
    )
    given |= dict(pooled=TOKENS[:, 0], q_mask=MASK[:, :3] > 0, k_mask=MASK > 0, np=np, nn=nn, arange=np.arange)
    return functions | given | {"range": range, "len": len} | more


def code(cell):
    return re.fullmatch(r"`(.*)`", cell)[1]


def attended(mask, package=attnpool_flax):
    """Attention under a mask over pairs, to see what it lets through."""
    return package.dot_product_attention(TOKENS[:, :3], TOKENS, TOKENS, mask)


MEANING = {  # what a row's left and right must have in common, where they are not simply the same numbers
    "Flax, mask helpers": lambda left, right: (np.asarray(left) > 0, np.asarray(right)),
    "PyTorch, `key_padding_mask`": lambda left, right: (
        np.stack([row[~padding].mean(0) for row, padding in zip(TOKENS, left, strict=True)]),
        attnpool_ref.mean_pooling(TOKENS, right),
    ),
    "PyTorch, attention": lambda left, right: (
        np.stack([attended_alone(i, ~left[i, 0]) for i in range(3)]),
        attended(right),
    ),
}


def attended_alone(i, real):
    """Attention of one example with its padded keys cut off."""
    return attnpool_ref.dot_product_attention(TOKENS[i, :3], TOKENS[i][real], TOKENS[i][real])


@every_package
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_to_write_is_what_was_meant(row, package):
    source, wrote, write, _ = row
    left = eval(code(wrote), names_in(package, softmax=softmax, masked_softmax_d2l=masked_softmax_d2l))
    right = eval(code(write), names_in(package))
    left, right = MEANING.get(source, lambda *both: both)(left, right)
    chex.assert_equal_shape([left, right])
    terms = TOKENS.size  # no sum here has more
    chex.assert_trees_all_close(np.asarray(left), np.asarray(right), rtol=terms * np.finfo(np.float32).eps)


def test_every_row_of_the_table_is_read():
    assert len(ROWS) == README.split("## You wrote, write this")[1].split("\n## ")[0].count("\n| ") - 2
    assert set(MEANING) <= {row[0] for row in ROWS}


def cell(source, column):
    return next(code(row[column]) for row in ROWS if row[0] == source)


def test_left_padding_moves_the_old_first_and_last_token_but_not_the_new():
    left = names_in(attnpool_ref, x=np.flip(TOKENS, 1), m=np.flip(MASK, 1))
    for source, position in (("Hugging Face, CLS", LENGTHS - 1), ("Hugging Face, last token", np.zeros(3, int))):
        real = TOKENS[np.arange(3), position]
        np.testing.assert_array_equal(eval(cell(source, 2), left), real)
        assert (eval(cell(source, 1), left) != real).any()


def test_nan_in_padding_reaches_the_old_mean_but_not_the_new():
    poisoned = names_in(attnpool_ref, x=np.where(MASK[..., None] > 0, TOKENS, np.nan))
    assert np.isnan(eval(cell("Hugging Face, mean pooling", 1), poisoned)).any()
    new = eval(cell("Hugging Face, mean pooling", 2), poisoned)
    np.testing.assert_array_equal(new, attnpool_ref.mean_pooling(TOKENS, MASK))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_an_empty_row_is_nan_or_uniform_there_and_zero_here():
    empty = names_in(
        attnpool_ref,
        softmax=softmax,
        masked_softmax_d2l=masked_softmax_d2l,
        additive=np.full((3, 4), -np.inf),
        lengths=np.zeros(3, int),
        pooled=np.zeros((3, 5), np.float32),
    )
    assert np.isnan(eval(cell("additive masks", 1), empty)).all()
    np.testing.assert_array_equal(eval(cell("d2l, lengths", 1), empty), np.full((3, 4), 0.25, np.float32))
    assert np.isnan(eval(cell("SimKGC, the norm", 1), empty)).all()
    for source in ("additive masks", "d2l, lengths", "SimKGC, the norm"):
        assert (eval(cell(source, 2), empty) == 0).all()


def test_what_the_old_masks_were_is_refused_with_the_repair():
    names = names_in(attnpool_flax)
    with pytest.raises(ValueError, match=r"`dtype=bool` in Flax's mask helpers"):
        attended(eval(cell("Flax, mask helpers", 1), names))
    with pytest.raises(ValueError, match="`additive == 0`"):
        attnpool_flax.masked_softmax(SCORES, names["additive"])
    with pytest.raises(ValueError, match=r"has the value 5, needs 0 to 4"):
        eval(cell("d2l, `sequence_mask`", 2), names | {"lengths": np.array([5])})


def test_flax_makes_the_mask_that_attention_takes():
    mask = eval(cell("Flax, mask helpers", 2), names_in(attnpool_flax))
    pooled = attended(mask)
    chex.assert_shape(pooled, (3, 3, 5))
    real = jax.device_get(pooled)[MASK[:, :3] == 0]
    np.testing.assert_array_equal(real, np.zeros_like(real))


def test_the_poolings_that_the_readme_recommends_exist():
    table = README.split("## Which pooling to take")[1].split("\n## ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][2:]
    named = set(re.findall(r"`(\w+_\w+|attend)`", " ".join(rows)))
    assert named <= set(BY_NAME)
    assert {row.name for row in BY_NAME.values() if row.family in ("pooling", "pairs")} <= named


def test_the_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target[1:] in headings(README) if target.startswith("#") else (ROOT / target).exists(), target
