"""Picture of three common lines that padding breaks, with the results of attnpool beside them."""

import numpy as np

import attnpool_ref
from pictures.svg import Picture

PADDED = np.array([[np.nan], [1.0], [3.0]]), np.array([False, True, True])
MASKED = np.array([[1.0], [3.0]]), np.array([False, False])
Q = np.ones(1)


def _softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


ROWS = (
    (
        "left padding",
        PADDED,
        ("x[mask.sum() - 1]", lambda x, mask: x[mask.sum() - 1], "not the last token"),
        ("last_pooling(x, mask)", attnpool_ref.last_pooling),
    ),
    (
        "NaN in padding",
        PADDED,
        ("(x * mask).sum() / mask.sum()", lambda x, mask: x.T @ mask / mask.sum(), "0 × NaN is NaN"),
        ("mean_pooling(x, mask)", attnpool_ref.mean_pooling),
    ),
    (
        "all masked",
        MASKED,
        (
            "softmax(where(mask, x @ q, -1e9)) @ x",
            lambda x, mask: _softmax(np.where(mask, x @ Q, -1e9)) @ x,
            "the mean of masked tokens",
        ),
        ("attention_pooling(x, mask, q)", lambda x, mask: attnpool_ref.attention_pooling(x, mask, Q)),
    ),
)
"""Rows: what is padded, (x, mask), common code with the reason of its result, and the call of attnpool."""

CELL, ROW, CODE, CALL = 38, 60, 176, 464


def results():
    """Returns (result of the common code, result of attnpool) of each row."""
    return [(common(*given)[0], call(*given)[0]) for _, given, (_, common, _), (_, call) in ROWS]


def draw():
    """Returns the picture."""
    picture = Picture(
        226,
        "Three common lines that padding breaks",
        "Two tokens, 1 and 3, padded on the left with NaN, and two masked tokens: common code and attnpool.",
    )
    for left, heading in ((24, "Tokens x"), (CODE, "Common code"), (CALL, "attnpool")):
        picture.text(left, 30, heading, "ink bold")
    for row, (wrong, right) in enumerate(results()):
        (title, (x, mask), (code, _, reason), (call, _)), top = ROWS[row], 40 + row * ROW
        picture.text(24, top + 52, title, "muted small")
        for place, real in enumerate(mask):
            left = 24 + place * (CELL + 4)
            if real:
                picture.rect(left, top + 6, CELL, 30, "cell edge")
            else:
                picture.padding(left, top + 6, CELL, 30)
                picture.rect(left + 4, top + 12, CELL - 8, 18, "paper")
            picture.text(left + CELL / 2, top + 26, _said(x[place, 0]), "ink mid")
        for left, shown, result, kind in ((CODE, code, wrong, "leak bold"), (CALL, call, right, "real bold")):
            picture.text(left, top + 18, shown, "ink code")
            picture.text(left, top + 38, f"\N{RIGHTWARDS ARROW} {_said(result)}", kind)
        picture.text(CODE + 60, top + 38, reason, "muted small")
    return picture.svg()


def _said(value):
    return "NaN" if np.isnan(value) else f"{value:g}"
