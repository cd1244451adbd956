"""A report on a terminal: the causes, the broken guarantees, the table, notes, and what was not judged."""

import math

from rich.table import Table
from rich.text import Text

from attnpool_ref.conformance.formats import words
from attnpool_ref.conformance.report import MISSING, NOT_APPLICABLE

STATUS_STYLES = {"pass": "green", "fail": "bold red", "partial": "yellow", "missing": "yellow", "n/a": "dim"}


def render(report, out, everything=False, command=""):
    """Prints the causes, the broken guarantees with the smallest failing case, the table, and notes.

    ``command`` is the command line, which is printed again with the options that the judge proposes. What held and what was not judged is listed with ``everything``, and counted without. ``out`` is a console of rich.
    """
    if report.rows and all(row.status == MISSING for row in report.rows):
        own = report.candidate
        _write(
            [f"No function of {own} is named as in attnpool: write {own}:FUNCTION --as NAME (see attnpool find)."], out
        )
        return
    causes = [(cause == words.UNKNOWN, f"{row.name}: {cause}") for row in report.rows for cause in words.causes(row)]
    for _, cause in sorted(causes, key=lambda each: each[0]):  # known ones first
        out.print(Text(words.wrapped(words.printable(cause), out.width), "bold red"), soft_wrap=True)
    proposed = dict.fromkeys(row.proposed for row in report.rows if row.proposed)
    if command and len(proposed) == 1:
        out.file.write(f"\nRun again:\n\n  {command} {next(iter(proposed))}\n")
    _write([*([""] if causes or proposed else []), *_broken(report)], out)
    smallest = report.smallest_failure
    if smallest is not None and smallest.snippet:
        dtype = f" in {smallest.dtype}" if smallest.dtype else ""
        _write(
            [
                f"The smallest failing case is {smallest.row}{dtype}, {smallest.check}.",
                f"At a {smallest.prompt} prompt:",
                "",
            ],
            out,
        )
        out.file.write(f"{words.printable(smallest.snippet)}\n\n")  # not wrapped, so that it can be pasted
    measures = " against the oracle (3/9: the worst error is 3 eps of the dtype, 9 are allowed)"
    out.print(Text.assemble((report.candidate, "bold"), measures))
    out.print()
    _print_rows(report, out)
    out.print()
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    out.print(Text(f"{_counts(report)}. On {report.device}; {versions}."))
    if report.interrupted:
        out.print(Text("Stopped by Ctrl-C: this is what was judged until then.", "bold red"))
    _write([*_remarks(report, everything), *_waived(report)], out)
    judged = [row for row in report.rows if row.cases]
    if judged and not everything:
        _write([f"{words.counted(judged)}. --all lists them."], out)
    if not any(row.status in ("pass", "partial", "fail") for row in report.rows):
        out.print(
            Text(
                "Nothing passed: the implementation has none of the functions, or takes none of their arguments.",
                "bold red",
            )
        )


def _write(lines, out):
    """Writes lines, wrapped; not through rich, which would read [...] as markup."""
    out.file.write("".join(f"{words.wrapped(words.printable(line), out.width)}\n" for line in lines))


def _print_rows(report, out):
    """Prints the functions as a table with a column or a line for each dtype; on a narrow terminal as plain lines."""
    dtypes = list(dict.fromkeys(dtype for row in report.rows for dtype in row.cells))
    name = max([len(row.name) for row in report.rows], default=0)
    if out.width >= name + 44 + 21 * len(dtypes):
        headings = [f"{dtype}\nforward  gradient" for dtype in dtypes]
        out.print(_table(report, headings, lambda row: [_cell(row.cells.get(dtype)) for dtype in dtypes], _guarantees))
    elif out.width >= name + 54:
        names = Text("\n".join(dtypes))

        def cells(row):
            return [names, Text("\n").join(_cell(row.cells.get(dtype)) for dtype in dtypes)]

        out.print(_table(report, ["dtype", "worst error\nforward  gradient"], cells, _held))
    else:
        for row in report.rows:
            out.print(Text.assemble((row.name, "bold"), "  ", _status(row), "  ", _held(row), " guarantees"))
            for dtype in row.cells:
                out.print(Text.assemble(f"  {dtype:10}", _cell(row.cells[dtype])))


def _table(report, headings, cells, guarantees):
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("Function", *headings, "Guarantees\nheld", "Verdict"):
        table.add_column(heading, no_wrap=True)
    for row in report.rows:
        table.add_row(Text(row.name), *cells(row), guarantees(row), _status(row))
    return table


def _status(row):
    return Text(row.status, STATUS_STYLES[row.status])


def _broken(report):
    for row in report.rows:
        broken = [kept for kept in row.broken if not kept.follows_from]
        if broken:
            yield row.name
        for kept in broken:
            yield f"  {words.outcome(kept)}: {kept.guarantee}" + (f" ({kept.waived})" if kept.waived else "")
            yield f"      {words.message(kept.smallest)}"
            following = row.following(kept.guarantee)
            if following:
                yield f"      what follows from it: {', '.join(following)}"
        if broken:
            yield ""


def _remarks(report, everything):
    """Yields remarks and notes on each function; with ``everything``, and if nothing was judged, also all others."""
    for row in report.rows:
        yield from (f"{row.name}: {remark}" for remark in words.remarks(row))
        if everything or row.status == NOT_APPLICABLE:
            yield from (f"{row.name}: {line}" for line in words.others(row))
    of_row = {row.name: words.notes(row) + (words.more_notes(row) if everything else []) for row in report.rows}
    if any(of_row.values()):
        yield f"{words.NOTES}:"
    yield from (f"  {name}: {note}" for name, notes in of_row.items() for note in notes)


def _waived(report):
    for name, reason in report.waivers.items():
        idle = report.idle_waivers.get(name)
        yield f"Waived: {name} ({reason})" if idle is None else f"The waiver of {name} waives nothing: {idle}"


def _cell(cell):
    """Formats the errors of result and gradient in one dtype, each with its allowed error."""
    if cell is None or (cell.forward is None and cell.gradient is None):
        return Text("n/a", "dim")
    return Text("  ").join(_measure(measure) for measure in (cell.forward, cell.gradient))


def _measure(measure):
    if measure is None:
        return Text("n/a", "dim")
    text = f"{_number(measure.error)}/{_number(measure.allowed)}"
    text = "wrong" if not math.isfinite(measure.error) else text if measure.allowed else "exact"
    return Text(text, "green" if measure.passed else "bold red")


def _number(value):
    """Formats a number in a few characters: 0, 0.4, 12, 3e5, inf, nan."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    if 0.05 <= abs(value) < 9.95:
        return f"{value:.1f}"
    if 1 <= abs(value) < 9999.5:
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _held(row):
    """Formats the number of guarantees that held and the number that were judged, such as 30/31."""
    statuses = [kept.status for kept in row.guarantees.values()]
    judged = len(statuses) - statuses.count("n/a")
    if not judged:
        return Text("n/a", "dim")
    return Text(f"{statuses.count('held')}/{judged}", "red" if row.accused else "green")


def _guarantees(row):
    """Formats the number of guarantees that held, and the names of broken ones: unexplained ones, then waived ones."""
    text = _held(row)
    text.append("".join(f"\n{kept.guarantee}" for kept in row.accused), "red")
    return text.append("".join(f"\n{kept.guarantee} (waived)" for kept in row.broken if kept.waived), "yellow")


def _counts(report):
    statuses = [row.status for row in report.rows]
    words = {"pass": "passed", "fail": "failed", "partial": "partial", "missing": "missing", "n/a": "n/a"}
    idle = len(report.idle_waivers)
    return f"{len(statuses)} function{'s' * (len(statuses) != 1)}: " + ", ".join(
        [f"{statuses.count(status)} {word}" for status, word in words.items() if status in statuses]
        + [f"but {idle} idle waiver{'s' * (idle != 1)}, so failed"] * bool(idle)
    )
