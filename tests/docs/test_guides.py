"""The guides by field: the blocks of each run one after another, with both packages; their lists name what exists."""

import re

import jax
import pytest
from documents import ROOT, assert_prints_what_it_says, own_files, python_blocks

from attnpool_ref.table import BY_NAME

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
OF_BOTH = [path for path in GUIDES if not own_files(path.read_text(encoding="utf-8"))]
"""A guide that has its reader write files runs in tests/peers, beside the library that it is about."""


@pytest.mark.parametrize("package", ["attnpool_ref", "attnpool_flax"])
@pytest.mark.parametrize("path", OF_BOTH, ids=lambda path: path.stem)
def test_a_guide_prints_the_same_with_both_packages(path, package, capsys):
    text = "\n".join(python_blocks(path.read_text(encoding="utf-8")))
    assert "from attnpool_ref import" in text
    with jax.numpy_rank_promotion("allow"):  # the reader's own arithmetic, which no test configures
        assert_prints_what_it_says(text.replace("from attnpool_ref import", f"from {package} import"), capsys)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_the_functions_that_a_guide_calls_exist(path):
    called = re.findall(r"`(\w+_(?:pooling|score|score_all_pairs|softmax|state))[`(]", path.read_text(encoding="utf-8"))
    assert {name for name in called if name not in BY_NAME} == set()


def test_the_library_authors_guide_is_the_one_that_runs_beside_its_library():
    assert [path.stem for path in GUIDES if path not in OF_BOTH] == ["library-author"]
