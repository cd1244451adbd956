"""The sections of docs/migrating.md: what was written and what to write are evaluated side by side."""

import re

import chex
import numpy as np
import pytest
from documents import ROOT
from flax import linen as nn
from packages import every_package

import attnpool_flax
import attnpool_ref
from attnpool_ref.table import BY_NAME

PAGE = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^## (.*)\n\n\* You wrote: (.*)\n\* Write this: (.*)\n\* The difference: (.*)$", PAGE, re.MULTILINE)

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
    "PyTorch, the mask for `masked_fill`": lambda left, right: (
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


def test_every_section_of_the_page_is_read():
    assert len(ROWS) == PAGE.count("\n## ") - 1 > 9
    assert set(MEANING) <= {row[0] for row in ROWS}


def cell(source, column):
    return next(code(row[column]) for row in ROWS if row[0] == source)


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
    with pytest.raises(ValueError, match="`mask == 0` for an additive mask"):
        attnpool_flax.masked_softmax(SCORES, names["additive"])
    with pytest.raises(ValueError, match=r"has the value 5, needs 0 to 4"):
        eval(cell("d2l, `sequence_mask`", 2), names | {"lengths": np.array([5])})
