"""Picture of a terminal with the README's command and most of its output, from a real run."""

import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from rich.text import Text

from pictures.svg import DARK, MONO, WIDTH, Picture

ROOT = Path(__file__).resolve().parents[3]
COLUMNS, LINE = 88, 18
"""Columns of the terminal, and pixels of a line."""

CUT = "[...]"


def example():
    """Returns (the file that README.md judges, its command)."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (file,) = re.findall(r"^```python\n(# my_pooling\.py\n.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^attnpool check .*$", readme, re.MULTILINE)
    return file, command


def output():
    """Returns the lines that the command prints in a terminal of this width, with their colors."""
    file, command = example()
    environment = os.environ | {
        "FORCE_COLOR": "1",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "my_pooling.py").write_text(file, encoding="utf-8")
        arguments = [sys.executable, "-m", "attnpool_ref", *command.split()[1:]]
        ran = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 1:
        raise RuntimeError(f"{command} found nothing to say: {ran.stderr}")
    return [part for line in Text.from_ansi(ran.stdout).split("\n") for part in _folded(line)]


def _folded(line):
    """Returns a line as the terminal wraps it."""
    return line.divide(range(COLUMNS, len(line.plain.rstrip()), COLUMNS))


def shown():
    """Returns the lines of the picture: command, causes, broken guarantees, smallest case, table, and the last line."""
    lines = output()
    plain = [line.plain.rstrip() for line in lines]
    counts = next(i for i, line in enumerate(plain) if line.startswith("1 function: "))
    last = max(i for i, line in enumerate(plain) if line)
    return [Text(f"$ {example()[1]}", "bold"), *lines[: counts + 1], Text(CUT, "dim"), lines[last]]


def draw():
    """Returns the picture."""
    lines = shown()
    height = 44 + LINE * len(lines) + 16
    picture = Picture(height, "attnpool check names the bugs of a masked mean", "\n".join(line.plain for line in lines))
    picture.parts.append(SCREEN)
    picture.rect(0, 0, WIDTH, height, "screen edge", 6)
    for index in range(3):
        picture.parts.append(f'<circle class="on-screen dim" cx="{22 + 18 * index}" cy="20" r="5"/>')
    for index, line in enumerate(lines):
        picture.parts.append(_line(line, 52 + LINE * index))
    return picture.svg()


SCREEN = f"""<style>
.screen{{fill:#161b22}} .on-screen{{fill:{DARK["ink"]};font:12.5px {MONO}}}
.dim{{fill:{DARK["muted"]}}} .red{{fill:{DARK["leak"]}}} .green{{fill:#56b870}}
</style>"""
"""Colors of the terminal, which is dark in both modes."""

KINDS = {"bold": "bold", "dim": "dim", "color(1)": "red", "color(2)": "green"}


def _line(line, bottom):
    """Returns a line of the screen: a tspan for each piece of one style."""
    pieces = []
    for piece in line.divide(sorted({at for span in line.spans for at in (span.start, span.end)})):
        kinds = [KINDS[word] for span in piece.spans for word in str(span.style).split()]
        if line.style:
            kinds += [KINDS[word] for word in str(line.style).split()]
        text = escape(piece.plain, quote=False)
        pieces.append(f'<tspan class="{" ".join(kinds)}">{text}</tspan>' if kinds and text.strip() else text)
    return f'<text class="on-screen" xml:space="preserve" x="18" y="{bottom}">{"".join(pieces).rstrip()}</text>'
