"""Pictures of time against length, one for each swept function."""

from itertools import groupby

from attnpool_ref.plot import REAL

COLOURS = {"attnpool": REAL, "plain": "#444444", "PyTorch": "#8a5a00", "Keras": "#e08a1e", "Equinox": "#7b4fa3"}
COLOURS |= {"Flax Linen": "#1b7f5c", "Flax NNX": "#5bb894", "jax.nn": "#111111"}
"""Colors of the ways; red is reserved for weight on padding, in all pictures of the project."""

MARKERS = dict(zip(COLOURS, "osD^vPX*", strict=True))
"""Markers that distinguish the lines also in gray."""

OF_FLOORS = {"color": "#888888", "linestyle": "--"}


def draw(races, folder):
    """Writes a picture for each function and returns their paths."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    # the same figures give the same file; text stays text
    with matplotlib.rc_context({"svg.hashsalt": "attnpool", "svg.fonttype": "none"}):
        return [
            _drawn(name, list(points), folder) for name, points in groupby(races, key=lambda race: race["function"])
        ]


def _drawn(name, points, folder):
    """Writes the picture of one function and returns its path."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2))
    for way in points[0]["ways"]:
        there = [point for point in points if way in point["ways"]]
        times = [1e3 * min(point["ways"][way]["seconds"]) for point in there]
        style = {"color": COLOURS.get(way), "linewidth": 2.5 if way == "attnpool" else 1.2}
        style |= {"marker": MARKERS.get(way, "o"), "ms": 4}
        style |= OF_FLOORS if points[0]["ways"][way]["kind"] == "floor" else {}
        axes.loglog([point["length"] for point in there], times, label=way, **style)
    fixed = " ".join(part for part in points[0]["title"].split() if part[0] not in points[0]["letters"])
    axes.set(
        title=f"{name}, {fixed}",
        xlabel=" = ".join(points[0]["letters"]) + ", tokens",
        ylabel="milliseconds of a forward pass, best round",
    )
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path = folder / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return path
