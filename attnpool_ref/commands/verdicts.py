"""A report on a terminal: the cause, the table, the broken promises and what was not asked."""

import math

from rich.table import Table
from rich.text import Text

from attnpool_ref.conformance.formats import words
from attnpool_ref.conformance.promises import REFUSALS
from attnpool_ref.conformance.report import HELD, NOT_APPLICABLE

STATUS_STYLES = {"pass": "green", "fail": "bold red", "partial": "yellow", "missing": "yellow", "n/a": "dim"}


def render(report, out):
    """Prints the causes, the table, what was not asked, each promise, and the smallest failing case as plain text."""
    for row in report.rows:
        for cause in row.causes:
            out.print(Text(f"{row.name}: {cause}.", "bold red"))
    out.print(
        f"[bold]{_plain(report.candidate)}[/] against the oracle: worst error / allowed, in units of the dtype's eps"
    )
    out.print()
    out.print(_table(report, out))
    out.print()
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    out.print(Text(f"{_counts(report)}. On {report.device}; {versions}."))
    if report.interrupted:
        out.print(Text("Stopped by Ctrl-C: this is what was judged until then.", "bold red"))
    # not through rich, which would fold lines and read [...] as markup
    remarks = [f"{row.name}: {remark}" for row in report.rows for remark in words.not_asked(row)]
    lines = [*remarks, *_waived(report), *_promised(report), *_smallest(report)]
    out.file.write("".join(f"{words.printable(line)}\n" for line in lines))
    if not any(row.status in ("pass", "partial", "fail") for row in report.rows):
        out.print(
            Text("Nothing passed: the candidate has none of the rows, or takes none of their arguments.", "bold red")
        )


def _table(report, out):
    dtypes = list(dict.fromkeys(dtype for row in report.rows for dtype in row.cells))
    wide = out.width >= 58 + 21 * len(dtypes)  # one column for each dtype; else one line
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("Variant", no_wrap=True)
    for heading in dtypes if wide else ["dtype", "worst error"]:
        table.add_column(heading if heading == "dtype" else f"{heading}\nforward  gradient", no_wrap=True)
    table.add_column("Promises\nheld", overflow="fold")
    table.add_column("Verdict", no_wrap=True)
    for row in report.rows:
        cells = [_cell(row.cells.get(dtype)) for dtype in dtypes]
        if not wide:
            cells = [Text("\n".join(dtypes)), Text("\n").join(cells)]
        table.add_row(Text(row.name), *cells, _promises(row), Text(row.status, STATUS_STYLES[row.status]))
    return table


def _promised(report):
    """Lines about each promise: of the rows that broke one, and of a row that was judged alone."""
    for row in report.rows:
        broken = [kept for kept in row.broken if not kept.follows_from]
        if not broken and (len(report.rows) > 1 or not row.cases):
            continue
        yield ""
        yield row.name
        for kept in broken:
            yield f"  {words.outcome(kept)}: {kept.promise}" + (f" ({kept.waived})" if kept.waived else "")
            for failure in kept.failures if kept.promise == REFUSALS else kept.failures[:1]:
                yield f"      {words.message(failure)}"
            following = row.following(kept.promise)
            if following:
                yield f"      what follows from it: {', '.join(following)}"
        held = [kept.promise for kept in row.promises.values() if words.outcome(kept) == HELD]
        if held:
            yield f"  held: {', '.join(held)}"
        reasons = {}
        for kept in row.promises.values():
            if words.outcome(kept) == NOT_APPLICABLE:
                reasons.setdefault(words.reason(row, kept), []).append(kept.promise)
        yield from (f"  n/a, {reason}: {', '.join(names)}" for reason, names in reasons.items())


def _waived(report):
    """Lines about the waivers."""
    for name, reason in report.waivers.items():
        idle = report.idle_waivers.get(name)
        yield f"Waived: {name} ({reason})" if idle is None else f"The waiver of {name} waives nothing: {idle}"


def _smallest(report):
    """Lines of plain text: the smallest case of all, with its code."""
    smallest = report.smallest_failure
    if smallest is None:
        return
    yield ""
    dtype = f" in {smallest.dtype}" if smallest.dtype else ""
    yield f"The smallest failing case is {smallest.row}{dtype}, {smallest.check}: {smallest.message}"
    if smallest.snippet:
        yield from ("At a Python prompt:", "", smallest.snippet)


def _cell(cell):
    """Both errors of one dtype, each beside what is allowed."""
    if cell is None or (cell.forward is None and cell.gradient is None):
        return Text("n/a", "dim")
    return Text("  ").join(_measure(measure) for measure in (cell.forward, cell.gradient))


def _measure(measure):
    if measure is None:
        return Text("n/a", "dim")
    text = f"{_number(measure.error)}/{_number(measure.allowed)}"
    return Text(text, "green" if measure.passed else "bold red")


def _number(value):
    """A few characters: 0, 0.4, 12, 3e5, inf, nan."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    if 0.05 <= abs(value) < 9.95:
        return f"{value:.1f}"
    if 1 <= abs(value) < 9999.5:
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _promises(row):
    """How many of those that were judged held, and the names of those that did not and that no other explains."""
    statuses = [kept.status for kept in row.promises.values()]
    judged = len(statuses) - statuses.count("n/a")
    if not judged:
        return Text("n/a", "dim")
    text = Text(f"{statuses.count('held')}/{judged}", "red" if row.accused else "green")
    text.append("".join(f"\n{kept.promise}" for kept in row.accused), "red")
    return text.append("".join(f"\n{kept.promise} (waived)" for kept in row.broken if kept.waived), "yellow")


def _counts(report):
    statuses = [row.status for row in report.rows]
    words = {"pass": "passed", "fail": "failed", "partial": "partial", "missing": "missing", "n/a": "n/a"}
    return f"{len(statuses)} row{'s' * (len(statuses) != 1)}: " + ", ".join(
        f"{statuses.count(status)} {word}" for status, word in words.items() if status in statuses
    )


def _plain(text):
    return text.replace("[", "\\[")
