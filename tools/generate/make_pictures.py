"""Generator of ``docs/pictures/``: each picture is computed with attnpool; the same numbers give the same bytes."""

from pathlib import Path

from pictures import batch, heat, layouts, sentences, speed

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"
PICTURES = {
    "batch": batch.draw,
    "heat": heat.draw,
    "layouts": layouts.draw,
    "sentences": sentences.draw,
    "speed": speed.draw,
}
"""Functions that draw the files."""

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
