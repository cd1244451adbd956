"""Picture of a padded batch: its mask, and its weights and vectors with and without the mask."""

import numpy as np

import attnpool_ref
from pictures.svg import Picture, percent

WORDS = (("not", "a", "good", "film"), ("great", "movie"), ())
VECTORS = {"not": (0, 2), "a": (0, 0), "good": (2, 0), "film": (0.5, 0), "great": (2, 0), "movie": (1.5, 0)}
"""Word vectors of docs/guides/primer.md: the first number is praise, the second negation."""

PADDED, LENGTH = (1, -1), 6
"""Vector at padded positions, and the length of the batch."""

QUERY = np.array([1.0, 0.0])
MOST = 0.6
"""Weight for which a bar has its full height."""

CELL, ROW, TOP, LEFT, MASK_LEFT, MASK_CELL = 56, 40, 66, 24, 410, 32


def batch():
    """Returns the batch x [3, 6, 2] and its mask [3, 6]."""
    x = np.array([[VECTORS[word] for word in words] + [PADDED] * (LENGTH - len(words)) for words in WORDS], float)
    return x, attnpool_ref.lengths_to_mask([len(words) for words in WORDS], LENGTH)


def pooled(mask):
    """Returns (vectors [3, 2], weights [3, 6]) of attention pooling; without a mask, padding counts as tokens."""
    return attnpool_ref.attention_pooling(batch()[0], mask, QUERY, return_weights=True)


def draw():
    """Returns the picture."""
    x, mask = batch()
    description = (
        "Three sequences of 4, 2 and 0 words, padded to 6 positions. Without the mask padding takes {} of the weight."
    )
    leaks = [percent(leak) for leak in np.where(mask, 0, pooled(None)[1]).sum(-1)]
    picture = Picture(464, "A padded batch, its mask, the weights, the vectors", description.format(", ".join(leaks)))
    picture.text(LEFT, 30, "1  A padded batch: x [3, 6, 2]", "ink bold")
    picture.text(LEFT, 50, "two features: praise, negation", "muted small")
    picture.text(MASK_LEFT, 30, "2  Its mask [3, 6]", "ink bold")
    picture.text(MASK_LEFT, 50, "1 = a real token", "muted small")
    for row, words in enumerate(WORDS):
        for place in range(LENGTH):
            _token(picture, row, place, words, x[row, place])
            _mask(picture, row, place, mask[row, place])
    half = 342
    _lane(picture, LEFT, "3  Weights without the mask", "attention_pooling(x, None, query)", *pooled(None), mask)
    _lane(picture, LEFT + half, "4  Weights with the mask", "attention_pooling(x, mask, query)", *pooled(mask), mask)
    picture.text(LEFT, 449, f"Bars: the weight of each position, 0 to {MOST}.", "muted small")
    for left, kind, says in ((300, "hatch edge", "padding"), (390, "real", "real token"), (492, "leaking", "leak")):
        picture.rect(left, 439, 14, 11, kind)
        picture.text(left + 20, 449, says, "muted small")
    return picture.svg()


def _token(picture, row, place, words, vector):
    left, top = LEFT + place * (CELL + 4), TOP + row * (ROW + 4)
    numbers = ", ".join(f"{value:g}" for value in vector).replace("-", "\N{MINUS SIGN}")
    if place < len(words):
        picture.rect(left, top, CELL, ROW, "cell edge")
        picture.text(left + CELL / 2, top + 17, words[place], "ink mid")
        picture.text(left + CELL / 2, top + 33, numbers, "muted mid tiny")
    else:
        picture.padding(left, top, CELL, ROW)
        picture.rect(left + 10, top + 22, CELL - 20, 14, "paper")
        picture.text(left + CELL / 2, top + 33, numbers, "muted mid tiny")


def _mask(picture, row, place, real):
    left, top = MASK_LEFT + place * (MASK_CELL + 4), TOP + row * (ROW + 4)
    if real:
        picture.rect(left, top, MASK_CELL, ROW, "cell edge")
    else:
        picture.padding(left, top, MASK_CELL, ROW)
        picture.rect(left + 9, top + 11, 14, 18, "paper")
    picture.text(left + MASK_CELL / 2, top + 25, int(real), "ink mid")


def _lane(picture, left, title, call, vectors, weights, mask):
    bar, height, top, strip = 26, 40, 270, 7
    picture.text(left, top - 38, title, "ink bold")
    picture.text(left, top - 18, call, "muted code")
    for row in range(len(weights)):
        base = top + row * (height + strip + 6) + height
        for place in range(LENGTH):
            real, tall = mask[row, place], height * weights[row, place] / MOST
            at = left + place * (bar + 2)
            if not real:
                picture.rect(at, base + 1, bar, strip, "hatch", 0)
            if tall:
                picture.rect(at, base - tall, bar, tall, "real" if real else "leaking", 0)
        picture.path(f"M{left} {base}h{LENGTH * (bar + 2) - 2}")
        vector = ", ".join(f"{value:.2f}".rstrip("0").rstrip(".") for value in vectors[row] + 0.0)
        picture.text(left + 178, base - 20, f"\N{RIGHTWARDS ARROW} ({vector})".replace("-", "\N{MINUS SIGN}"), "ink")
        leak = weights[row][~mask[row]].sum()
        picture.text(left + 178, base - 3, f"{percent(leak)} on padding", "leak bold small" if leak else "muted small")
