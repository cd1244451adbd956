"""The guides by field: the blocks of each run one after another, with both packages; their lists name what exists."""

import re

import jax
import pytest
from documents import ROOT, assert_prints_what_it_says, own_files, python_blocks

from attnpool_ref.table import BY_NAME

GUIDES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "guides").glob("*.md"))}
BESIDE_A_LIBRARY = [name for name, text in GUIDES.items() if own_files(text)]
"""Guides that have their reader write files: they run in tests/peers, beside the library that they are about."""
RUNNING = [name for name in GUIDES if name not in BESIDE_A_LIBRARY]
FOR_BOTH = [name for name in RUNNING if "from attnpool_ref import" in GUIDES[name]]
RUNS = [
    *((name, "attnpool_ref" if name in FOR_BOTH else "attnpool_flax") for name in RUNNING),
    *(pytest.param(name, "attnpool_flax", marks=pytest.mark.thorough) for name in FOR_BOTH),
]


@pytest.mark.compiles
@pytest.mark.parametrize(("name", "package"), RUNS)
def test_a_guide_prints_what_it_says_with_every_package_that_it_can_import(name, package, capsys):
    text = "\n".join(python_blocks(GUIDES[name]))
    with jax.numpy_rank_promotion("allow"):  # the reader's own arithmetic, which no test configures
        assert_prints_what_it_says(text.replace("from attnpool_ref import", f"from {package} import"), capsys)


@pytest.mark.parametrize("name", GUIDES)
def test_the_functions_that_a_guide_calls_exist(name):
    called = re.findall(r"`(\w+_(?:pooling|score|score_all_pairs|softmax|state))[`(]", GUIDES[name])
    assert {name for name in called if name not in BY_NAME} == set()


def test_the_library_authors_guide_is_the_one_that_runs_beside_its_library():
    assert BESIDE_A_LIBRARY == ["library-author"]
