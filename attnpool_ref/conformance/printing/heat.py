"""Heat maps of expected and actual results, as HTML tables whose cells show the numbers.

A number that differs is bold and has a mark, so that colors are not needed.
"""

import math
from html import escape

import numpy as np

WIDEST = 16
"""Largest number of columns, rows and maps that are drawn."""

DIGITS = (3, 6, 9, 17)
"""Numbers of digits that are tried: the first with which the expected and the actual text differ is used."""

WRONG = "\N{NOT EQUAL TO}"


def maps_of(compared):
    """Returns HTML of both arrays of a :class:`~attnpool_ref.conformance.report.Compared`, on one scale of colors.

    Arrays of different shapes, or without elements, are not drawn: only their shapes are shown.
    """
    want, got = np.asarray(compared.expected), np.asarray(compared.got)
    if want.shape != got.shape or want.size == 0:
        shapes = f"shape {want.shape} expected, {got.shape} got"
        return f'<p class="note">{escape(compared.name)}: {shapes}</p>'
    texts = _texts(want, got)
    differs = texts[0] != texts[1]
    numbers = np.abs(np.concatenate([want.astype(float).ravel(), got.astype(float).ravel()]))
    largest = float(np.max(numbers[np.isfinite(numbers)], initial=0)) or 1.0
    pairs = []
    for index in list(np.ndindex(*want.shape[:-2]))[:WIDEST]:
        at = f"{compared.name}{list(index) if index else ''}"
        expected = _table(f"{at}, expected", want[index], texts[0][index], None, largest)
        pairs.append(expected + _table(f"{at}, got", got[index], texts[1][index], differs[index], largest))
    return "".join(f'<div class="pair">{pair}</div>' for pair in pairs)


def _texts(want, got):
    """Returns both arrays as texts, with as few digits as tell them apart."""
    for digits in DIGITS:
        texts = [np.vectorize(lambda v, d=digits: _text(v, d), otypes=[object])(array) for array in (want, got)]
        if np.any(texts[0] != texts[1]):
            break
    return texts


def _text(value, digits):
    return str(bool(value)) if isinstance(value, (bool, np.bool_)) else f"{float(value):.{digits}g}"


def _table(caption, values, texts, differs, largest):
    values, texts = np.atleast_2d(values), np.atleast_2d(texts)
    differs = np.zeros(values.shape, bool) if differs is None else np.atleast_2d(differs)
    lines = [f"<table class='heat'><caption>{escape(caption)}</caption>"]
    for numbers, row, wrong in list(zip(values, texts, differs, strict=True))[:WIDEST]:
        cells = [_cell(n, t, w, largest) for n, t, w in zip(numbers, row, wrong, strict=True)]
        lines.append(f"<tr>{''.join(cells[:WIDEST])}</tr>")
    cut = max(values.shape) > WIDEST
    lines.append(f"</table>{'<p class=note>(the rest is cut off)</p>' if cut else ''}")
    return "".join(lines)


def _cell(number, text, wrong, largest):
    mark = f"{WRONG} " if wrong else ""
    kind = ' class="wrong"' if wrong else ""
    return f'<td{kind} style="{_colours(float(number), largest)}">{mark}{escape(text)}</td>'


def _colours(number, largest):
    """Returns the CSS of a cell with readable text: blue below 0, white at 0, orange above 0, gray if not finite.

    A number of the magnitude ``largest`` has the strongest color.
    """
    if not math.isfinite(number):
        return "background:#555;color:#fff"
    share = max(-1.0, min(1.0, number / largest))
    end = (214, 96, 18) if share > 0 else (33, 102, 172)
    parts = [round(255 + (part - 255) * abs(share)) for part in end]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in np.divide(parts, 255)]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    text = "#000" if luminance > 0.179 else "#fff"  # black and white text both have a contrast of 4.6 there (WCAG: 4.5)
    return f"background:rgb({','.join(map(str, parts))});color:{text}"
