"""Picture of the time of a training step with multi-head pooling, from ``bench/results.json``."""

import json
from pathlib import Path

from bench.page import SHOWN
from bench.timing import ratio
from pictures.svg import Picture

RESULTS = Path(__file__).resolve().parents[3] / "bench" / "results.json"
FUNCTION, TITLE = SHOWN

LEFT, RIGHT, TOP, BAR = 110, 660, 92, 26


def race():
    """Returns (hardware and versions, the ways of the case by name: those of attnpool and of other libraries)."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    (case,) = [
        case
        for case in found["races"]
        if (case["function"], case["title"], case["direction"]) == (FUNCTION, TITLE, "step")
    ]
    ways = {name: way["seconds"] for name, way in case["ways"].items() if name == "attnpool" or way["kind"] == "peer"}
    return found["machine"], ways


def ratios():
    """Returns the time of each library's layer divided by attnpool's: (median, lowest, highest), the smallest first."""
    ways = race()[1]
    ours = ways.pop("attnpool")
    found = {name: ratio(seconds, ours) for name, seconds in ways.items()}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def span():
    """Returns the range of the ratios as pages write it: "10–14×", or "10×" if all round to 10."""
    medians = [f"{median:.0f}" for median, *_ in ratios().values()]  # the smallest first
    return "\N{EN DASH}".join(dict.fromkeys([medians[0], medians[-1]])) + "\N{MULTIPLICATION SIGN}"


def draw():
    """Returns the picture."""
    machine, found = race()[0], ratios()
    hardware = f"{machine['cores']} cores of an {machine['cpu']}, float32, {machine['date'][:4]}"
    title = f"A training step of multi-head pooling: {span()} faster"
    rows = {"attnpool": (1.0, 1.0, 1.0)} | found
    height = TOP + len(rows) * (BAR + 8) + 56
    picture = Picture(height, title, "; ".join(f"{name} {median:.1f}" for name, (median, *_) in rows.items()))
    sizes = dict(part.split("=") for part in TITLE.split())
    picture.text(24, 32, title, "ink bold")
    said = f"{sizes['B']} sequences of {sizes['L']} tokens, width {sizes['d']}, {sizes['H']} heads, one learned query"
    picture.text(24, 52, said, "muted small")
    picture.text(24, 70, hardware, "muted small")
    ticks = range(0, int(max(highest for *_, highest in rows.values())) + 5, 4)
    at = [LEFT + (RIGHT - LEFT) * tick / ticks[-1] for tick in ticks]
    bottom = TOP + len(rows) * (BAR + 8)
    for tick, x in zip(ticks, at, strict=True):
        picture.path(f"M{x:g} {TOP - 4}V{bottom}")
        picture.text(x, bottom + 16, tick, "muted mid small")
    wide = (RIGHT - LEFT) / ticks[-1]
    for row, (name, (median, low, high)) in enumerate(rows.items()):
        top = TOP + row * (BAR + 8)
        ours = name == "attnpool"
        picture.text(LEFT - 10, top + 18, name, "ink end bold" if ours else "ink end")
        picture.rect(LEFT, top, median * wide, BAR, "real" if ours else "peer", 0)
        if not ours:
            picture.path(f"M{LEFT + low * wide:.1f} {top + BAR / 2:g}H{LEFT + high * wide:.1f}", "of-ink")
        says = "1" if ours else f"{median:.0f}\N{MULTIPLICATION SIGN}"
        picture.text(LEFT + high * wide + 8, top + 18, says, "ink bold")
    picture.text(
        LEFT,
        bottom + 38,
        "time of a step, attnpool = 1; bars: median over rounds, lines: lowest to highest",
        "muted small",
    )
    return picture.svg()
