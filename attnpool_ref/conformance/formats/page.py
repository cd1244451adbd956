"""Report as one HTML page without links to other files, without scripts, and readable without colors.

Heat maps show expected and actual results as tables of numbers. A number that differs is bold and has a mark.
"""

import html
import math
from html import escape
from importlib import resources

import numpy as np

from attnpool_ref.conformance.formats import words
from attnpool_ref.conformance.report import BROKEN, HELD, MISSING
from attnpool_ref.conformance.report.promises import BY_NAME

SIGNS = {
    HELD: "\N{CHECK MARK}",
    BROKEN: "\N{MULTIPLICATION X}",
    words.WAIVED: "W",
    words.FOLLOWS: "\N{LEFTWARDS ARROW WITH HOOK}",
}
SIGNS |= {"n/a": "\N{EN DASH}"}
"""Signs of the results of guarantees in the table."""

MEANS = {HELD: "held", BROKEN: "broken", words.FOLLOWS: "broken, and follows from another", words.WAIVED: "waived"}
MEANS |= {"n/a": "not applicable, or skipped"}


def as_html(report):
    """Returns the report as one self-contained page."""
    style = resources.files("attnpool_ref.conformance.formats").joinpath("page.css").read_text(encoding="utf-8")
    title = f"{report.candidate}: {report.verdict}"
    rows = [row for row in report.rows if row.status != MISSING]
    body = [_head(report), _overview(rows), _missing(report), *map(_section, rows)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{_escape(title)}</title>\n<style>\n{style}</style></head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body></html>\n"
    )


def _head(report):
    """Returns the top of the page: verdict, causes, device, versions, calling convention and waivers."""
    causes = [f"{row.name}: {cause}" for row in report.rows for cause in words.causes(row)]
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    facts = [f"On {report.device}; {versions}."]
    if report.calls:
        facts.append("Called with " + ", ".join(f"{key} = {value!r}" for key, value in report.calls.items()) + ".")
    if report.seed:
        facts.append(f"Cases are drawn with the seed {report.seed}.")
    if report.interrupted:
        facts.append("Stopped by Ctrl-C: this is what was judged until then.")
    parts = [f"<h1>{_escape(report.candidate)}: {_badge(report.verdict)}</h1>"]
    parts += [_list(causes, "cause")] + [f"<p>{_escape(fact)}</p>" for fact in facts]
    if report.waivers:
        idle = {name: f" This waives nothing: {why}." for name, why in report.idle_waivers.items()}
        waived = [f"{name}: {reason}.{idle.get(name, '')}" for name, reason in report.waivers.items()]
        parts.append("<h2>Waived</h2>" + _list(waived, "waived"))
    return "\n".join(parts)


def _escape(text):
    return html.escape(words.printable(text))


def _missing(report):
    """Returns one line with the functions that the implementation does not have, or ""."""
    names = [row.name for row in report.rows if row.status == MISSING]
    return f"<p>The candidate does not have {_escape(', '.join(names))}.</p>" if names else ""


def _overview(rows):
    names = list(dict.fromkeys(name for row in rows for name in row.promises))
    heads = "".join(
        f'<th scope="col" title="{_escape(_says(name))}"><span>{_escape(name)}</span></th>' for name in names
    )
    lines = [
        f'<tr><th scope="row"><a href="#{_escape(row.name)}">{_escape(row.name)}</a></th><td>{_badge(row.status)}</td>'
        + "".join(_sign(row, row.promises.get(name)) for name in names)
        + "</tr>"
        for row in rows
    ]
    legend = ", ".join(f"{SIGNS[key]} {meaning}" for key, meaning in MEANS.items())
    return (
        f'<div class="wide"><table class="overview"><caption>{_escape(legend)}</caption><thead><tr>'
        f'<th scope="col">Row</th><th scope="col">Verdict</th>{heads}</tr></thead><tbody>{"".join(lines)}</tbody>'
        "</table></div>"
    )


def _sign(row, kept):
    if kept is None:
        return "<td></td>"
    found = words.outcome(kept)
    title = _escape(f"{MEANS[found]}: {words.reason(row, kept)}"[:300])
    kind = found.replace("/", "")
    return f'<td class="{kind}" title="{title}">{SIGNS[found]}<span class="hidden"> {found}</span></td>'


def _says(name):
    return BY_NAME[name].says if name in BY_NAME else name


def _section(row):
    """Returns the section of one function: causes, broken guarantees with their smallest cases, and all others."""
    parts = [f'<section id="{_escape(row.name)}"><h2>{_escape(row.name)}: {_badge(row.status)}</h2>']
    parts.append(_list(words.causes(row), "cause"))
    parts += [_broken(row, kept) for kept in row.broken if not kept.follows_from]
    remarks = list(words.remarks(row))
    if remarks:
        parts.append("<h3>Remarks</h3>" + _list(remarks, "remarks"))
    if notes := words.notes(row):
        parts.append(f"<h3>{words.NOTES}</h3>" + _list(notes, "remarks"))
    others = [*words.others(row), *words.more_notes(row)]
    if others:
        parts.append(f"<details><summary>{words.counted([row])}</summary>{_list(others, 'remarks')}</details>")
    return "\n".join([*parts, "</section>"])


def _broken(row, kept):
    parts = [f"<h3>{words.outcome(kept)}: {_escape(kept.promise)}</h3><p>{_escape(_says(kept.promise))}</p>"]
    if kept.waived:
        parts.append(f'<p class="waived">Waived: {_escape(kept.waived)}</p>')
    parts.append(_list([words.message(failure) for failure in kept.failures], "messages"))
    following = row.following(kept.promise)
    if following:
        parts.append(f"<p>What follows from it: {_escape(', '.join(following))}.</p>")
    if (smallest := kept.smallest) is not None:
        parts += [maps_of(compared) for compared in smallest.arrays]
        if smallest.snippet:
            parts.append(f'<p>At a Python prompt:</p><pre tabindex="0"><code>{_escape(smallest.snippet)}</code></pre>')
    return "\n".join(parts)


def _list(lines, kind):
    if not lines:
        return ""
    return f'<ul class="{kind}">' + "".join(f"<li>{_escape(line)}</li>" for line in lines) + "</ul>"


def _badge(status):
    return f'<span class="badge {status.replace("/", "")}">{status}</span>'


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
        expected = _table_of_numbers(f"{at}, expected", want[index], texts[0][index], None, largest)
        pairs.append(expected + _table_of_numbers(f"{at}, got", got[index], texts[1][index], differs[index], largest))
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


def _table_of_numbers(caption, values, texts, differs, largest):
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
