"""Picture of weights of attention pooling over the tiles of a slide; training has only labels of whole slides."""

import numpy as np

import attnpool_ref
from pictures.svg import Picture, number, percent

SIDE, WIDTH, LESION, SLIDES = 12, 16, 3, 200
SHOWN = 101
"""A slide with a lesion that was not used for fitting the query."""

PEN = slice(7, 12)
"""Rows of a pen mark on the glass, in the first column; the encoder's features of it are those of a lesion."""

CELL, TOP, LEFT, PANEL = 17, 78, 36, 222


def slides():
    """Returns tiles [200, 144, 16], mask of tissue [144], labels [200], and corners of lesions (every second slide)."""
    random = np.random.default_rng(0)
    x = 0.6 * random.normal(size=(SLIDES, SIDE, SIDE, WIDTH))
    labels, corners = np.arange(SLIDES) % 2, random.integers(2, SIDE - LESION - 1, (SLIDES, 2))
    for slide, (row, column), label in zip(x, corners, labels, strict=True):
        slide[row : row + LESION, column : column + LESION, 0] += 4 * label
    rows, columns = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    tissue = (rows / 6.3) ** 2 + (columns / 5.2) ** 2 < 1
    x[:, PEN, 0, 0] += 4
    return x.reshape(SLIDES, -1, WIDTH), tissue.reshape(-1), labels, corners


def fitted(x, mask, labels):
    """Returns the query: a linear classifier of mean vectors, by least squares."""
    means = attnpool_ref.mean_pooling(x, np.broadcast_to(mask, x.shape[:2]))
    return np.linalg.lstsq(means - means.mean(0), labels - labels.mean(), rcond=None)[0]


def maps():
    """Returns grids [12, 12] of a slide: feature 0, weights without and with the mask, the mask, the lesion."""
    x, mask, labels, corners = slides()
    query = fitted(x[:100], mask, labels[:100])
    without, weights = (
        attnpool_ref.attention_pooling(x[SHOWN], seen, query, return_weights=True)[1] for seen in (None, mask)
    )
    lesion = np.zeros((SIDE, SIDE), bool)
    row, column = corners[SHOWN]
    lesion[row : row + LESION, column : column + LESION] = True
    return *(grid.reshape(SIDE, SIDE) for grid in (x[SHOWN, :, 0], without, weights, mask)), lesion


def draw():
    """Returns the picture."""
    feature, without, weights, mask, lesion = maps()
    leak, found = without[~mask].sum(), weights[lesion].sum()
    description = (
        f"Weights over the {SIDE} x {SIDE} tiles of a slide. Without the mask {percent(leak)} of the weight is on the glass, "
        f"most of it on a pen mark. With the mask {percent(found)} is on the lesion of {LESION} x {LESION} tiles."
    )
    picture = Picture(352, "Where attention pooling looks on a slide", description)
    largest = max(without.max(), weights.max())
    scores = (feature - feature.min()) / (feature.max() - feature.min())
    _panel(picture, 0, "Feature 0 of each tile", "box: lesion, hatched: glass", scores, mask, lesion, "real")
    _panel(
        picture, 1, "Weights without the mask", f"{percent(leak)} on the glass", without / largest, mask, lesion, "leak"
    )
    _panel(
        picture, 2, "Weights with the mask", f"{percent(found)} on the lesion", weights / largest, mask, lesion, None
    )
    for panel, highest in ((0, f"{feature.min():.1f} to {feature.max():.1f}"), (1, f"0 to {percent(largest)}")):
        left = LEFT + panel * PANEL
        for step in range(10):
            picture.parts.append(_tiles([(left + step * 8, TOP + SIDE * CELL + 36)], 8, "real", (step + 1) / 10))
        picture.text(
            left + 90,
            TOP + SIDE * CELL + 45,
            (highest + " of all weight" * panel).replace("-", "\N{MINUS SIGN}"),
            "muted small",
        )
    picture.parts.append(
        f'<text class="muted tiny mid" transform="translate({LEFT - 8} {TOP + SIDE * CELL / 2:g}) rotate(-90)">row of tiles</text>'
    )
    return picture.svg()


def _panel(picture, index, title, says, shades, mask, lesion, glass):
    left = LEFT + index * PANEL
    picture.text(left, 32, title, "ink bold")
    picture.text(left, 52, says, "leak bold small" if glass == "leak" else "muted small")
    tiles = {}
    for (row, column), shade in np.ndenumerate(shades):
        at = left + column * CELL, TOP + row * CELL
        kind = "real" if mask[row, column] else glass
        tiles.setdefault((kind, round(shade, 2)), []).append(at)
    for (kind, shade), places in tiles.items():
        if kind and shade:
            picture.parts.append(_tiles(places, CELL - 1, kind, shade))
    glassy = [(left + column * CELL, TOP + row * CELL) for row, column in np.argwhere(~mask)]
    picture.parts.append(_tiles(glassy, CELL - 1, "hatch", 1))
    (row, column), size = np.argwhere(lesion)[0], LESION * CELL + 1
    picture.path(f"M{left + column * CELL - 1} {TOP + row * CELL - 1}h{size}v{size}h-{size}z", "of-ink")
    picture.text(left + SIDE * CELL / 2, TOP + SIDE * CELL + 16, "column of tiles", "muted tiny mid")


def _tiles(places, size, kind, shade):
    """Draws squares whose opacity shows numbers between 0 and 1."""
    squares = "".join(f"M{left} {top}h{size}v{size}h-{size}z" for left, top in places)
    opacity = "" if shade == 1 else f' fill-opacity="{number(100 * shade)}%"'
    return f'<path class="{kind}"{opacity} d="{squares}"/>'
