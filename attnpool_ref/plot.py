"""Pictures of attention weights. Needs matplotlib: in a clone ``pip install -e '.[plot]'``.

Figures are made without pyplot, so that no global state changes, no window opens, and no display is needed. Save a
figure with ``figure.savefig("weights.png")``.
"""

import numpy as np

REAL, PADDING = "#2a6fb0", "#c23b22"
"""Colors of weights on real tokens and on padding."""


def show_heatmaps(matrices, xlabel, ylabel, titles=None, figsize=None, cmap="Reds"):
    """Draws a grid of matrices on one color scale.

    Args:
      matrices: [rows, cols, n, m]: a matrix for each row and column of the grid, with n queries downward and m keys to
        the right. NaN is gray.
      xlabel: label of the keys, below the bottom row.
      ylabel: label of the queries, left of the first column.
      titles: one title for each column, or None.
      figsize: width and height in inches; None gives each panel 2.5 by 2.5.
      cmap: the name of a color map of matplotlib.

    Returns:
      The matplotlib figure.

    Raises:
      ValueError: if ``matrices`` does not have four axes, if one of them has size 0, or if the number of titles is not
        that of columns.
      ModuleNotFoundError: if matplotlib is not installed.

    Source:
      d2l, chapter Attention Mechanisms, but with one scale for all panels instead of that of the last panel.
    """
    matrices = np.asarray(matrices).astype(np.float64)
    if matrices.ndim != 4 or 0 in matrices.shape:
        raise ValueError(
            f"show_heatmaps: `matrices` has shape {matrices.shape}, needs [rows, cols, n, m], none of them 0"
        )
    rows, cols = matrices.shape[:2]
    if titles is not None and len(titles) != cols:
        raise ValueError(f"show_heatmaps: {len(titles)} `titles` for {cols} columns")
    figure = new_figure(figsize or (2.5 * cols + 1, 2.5 * rows))
    panels = figure.subplots(rows, cols, sharex=True, sharey=True, squeeze=False)
    finite = matrices[np.isfinite(matrices)]
    limits = {"vmin": finite.min(), "vmax": finite.max()} if finite.size else {}
    for (row, col), panel in np.ndenumerate(panels):
        panel.imshow(matrices[row, col], cmap=cmap, **limits)
        panel.set_facecolor("lightgrey")
        for axis in (panel.xaxis, panel.yaxis):
            axis.get_major_locator().set_params(integer=True)  # ticks only at whole keys
        if row == rows - 1:
            panel.set_xlabel(xlabel)
        if col == 0:
            panel.set_ylabel(ylabel)
        if row == 0 and titles is not None:
            panel.set_title(titles[col])
    figure.colorbar(panels[0, 0].images[0], ax=panels, shrink=0.6)
    return figure


def show_weights(tokens, weights, mask=None, titles=None, figsize=None):
    """Draws the weight of each token as a bar; for several rows of weights, panels next to each other on one scale.

    The total weight of the padding is one bar at the bottom, in another color.

    Args:
      tokens: n words or word pieces.
      weights: [n], or [rows, n] for several weightings of the same tokens.
      mask: bool [n]: True at real tokens, False at padding; None if all are real.
      titles: one title for each row of weights, or None.
      figsize: width and height in inches; None fits the number of tokens.

    Returns:
      The matplotlib figure.

    Raises:
      ValueError: if tokens, weights, mask and titles do not agree in number.
      ModuleNotFoundError: if matplotlib is not installed.
    """
    weights = np.atleast_2d(np.asarray(weights).astype(np.float64))
    mask = np.ones(len(tokens), bool) if mask is None else np.asarray(mask, bool)
    if weights.ndim != 2 or weights.shape[1] != len(tokens) or mask.shape != (len(tokens),):
        raise ValueError(
            f"show_weights: {len(tokens)} `tokens`, but `weights` has shape {weights.shape} and `mask` {mask.shape}; "
            "they need [n] or [rows, n], and [n]"
        )
    if titles is not None and len(titles) != len(weights):
        raise ValueError(f"show_weights: {len(titles)} `titles` for {len(weights)} rows of weights")
    figure = new_figure(figsize or (3 * len(weights) + 1, 0.26 * (np.sum(mask) + 2) + 0.8))
    panels = figure.subplots(1, len(weights), sharex=True, sharey=True, squeeze=False)[0]
    for index, (panel, row) in enumerate(zip(panels, weights, strict=True)):
        draw_weights(panel, tokens, row, mask)
        if titles is not None:
            panel.set_title(titles[index])
    return figure


def draw_weights(panel, tokens, weights, mask):
    """Draws weights [n] into a panel (matplotlib's Axes): a bar for each real token, one for the sum over padding."""
    labels = [str(token) for token, real in zip(tokens, mask, strict=True) if real]
    heights = [float(weight) for weight, real in zip(weights, mask, strict=True) if real]
    colours = [REAL] * len(heights)
    padded = len(mask) - len(heights)
    if padded:
        labels.append(f"{padded} x padding")
        heights.append(float(np.sum(np.asarray(weights)[~np.asarray(mask)])))
        colours.append(PADDING)
    places = range(len(heights))
    panel.barh(places, heights, color=colours)
    panel.set_yticks(places, labels)
    panel.set_ylim(len(heights) - 0.4, -0.6)  # the first token on top
    for place, height, colour in zip(places, heights, colours, strict=True):
        panel.annotate(
            f"{height:.0%}",
            (height, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
            fontweight="bold" if colour == PADDING else "normal",
        )
    panel.spines["left"].set_bounds(-0.5, len(heights) - 0.5)
    panel.spines[["top", "right", "bottom"]].set_visible(False)
    panel.xaxis.set_visible(False)  # the bars have their numbers
    panel.tick_params(axis="y", length=0, labelsize=8)
    panel.margins(x=0.15)


def new_figure(figsize):
    """Returns a new figure of this size in inches, whose layout leaves room for every label.

    Raises:
      ModuleNotFoundError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ModuleNotFoundError:
        raise ModuleNotFoundError("pictures need matplotlib; in a clone: pip install -e '.[plot]'") from None
    return Figure(figsize=figsize, layout=ConstrainedLayoutEngine(rect=(0.01, 0.01, 0.98, 0.98)))  # no label at an edge
