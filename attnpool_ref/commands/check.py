"""``attnpool check``: judges a candidate and shows what came of it."""

import functools
import importlib
import inspect
import json
import math
import os
import sys
import types
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from attnpool_ref import conformance, variants
from attnpool_ref.commands import extras
from attnpool_ref.commands.listing import console

STATUS_STYLES = {"pass": "green", "fail": "bold red", "missing": "yellow", "n/a": "dim"}


def run(candidate, *, only=(), row=None, dtypes=conformance.DTYPES, json_file=None, implementation=None):
    """Judges ``candidate``, prints the report, and returns the exit status."""
    if json_file and not Path(json_file).absolute().parent.is_dir():
        raise click.ClickException(f"there is no folder for {json_file}")
    namespace, rows = find_candidate(candidate, row)
    if implementation is not None:
        namespace, rows = forced(namespace, implementation, rows)
    with _progress() as progress:
        report = conformance.judge(
            namespace,
            name=candidate if implementation is None else f"{candidate}, {implementation}",
            only=tuple(dict.fromkeys(only)) or rows,
            dtypes=dtypes,
            strict=candidate == "attnpool_flax" and implementation is None,
            progress=progress,
        )
    if json_file:
        Path(json_file).write_text(json.dumps(_finite(report.as_dict()), indent=2) + "\n", encoding="utf-8")
    render(report, console())
    return 0 if report.passed else 1


def find_candidate(candidate, row=None):
    """The namespace that a candidate names, and the rows to judge (none: all of them).

    Args:
      candidate: "my.module" or "my.module:function".
      row: the row that the function implements; needless where it has the row's name.

    Raises:
      ClickException: nothing of that name can be imported, or it is not clear which row it is.
    """
    module_name, _, attribute = candidate.partition(":")
    if row and not attribute:
        raise click.ClickException(f"--as {row} needs one function: {module_name}:function")
    module = _import(module_name)
    if not attribute:
        return module, ()
    function = module
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise click.ClickException(f"{module_name} has no function {attribute!r}")
    row = row or attribute.rpartition(".")[2]
    if row not in variants.BY_NAME:
        raise click.ClickException(
            f"{row!r} is no row of the table; say which one it is: --as NAME (see attnpool list)"
        )
    return types.SimpleNamespace(**{row: function}), (row,)


def forced(namespace, implementation, rows=()):
    """The functions of a namespace that take ``implementation``, each with this one; and the rows that they are.

    Raises:
      ClickException: no function takes it.
    """
    functions = {}
    for name in rows or variants.BY_NAME:
        function = getattr(namespace, name, None)
        if function is not None and "implementation" in inspect.signature(function).parameters:
            functions[name] = functools.partial(function, implementation=implementation)
    if not functions:
        raise click.ClickException("no function of the candidate takes `implementation`")
    return types.SimpleNamespace(**functions), tuple(functions)


def _import(name):
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # an installed command does not look there by itself
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in extras.EXTRAS["flax"]:
            raise click.ClickException(extras.missing("flax").removeprefix("attnpool: ")) from None
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise click.ClickException(f"there is no module {name!r}, here or among what is installed") from None
        raise click.ClickException(f"{name} needs {error.name!r}, which is not installed") from None
    except Exception as error:  # the candidate's own fault, whatever it is
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise click.ClickException(f"{name} cannot be imported ({reason})") from None


def _progress():
    """A bar on a terminal, plain lines elsewhere; both on stderr, so that stdout holds the report alone."""
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Bar:
    """Called as ``progress(done, total, label)``; draws a bar, which leaves nothing behind."""

    def __init__(self):
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *exception):
        self._progress.stop()

    def __call__(self, done, total, label):
        self._progress.update(self._task, completed=done, total=total, description=label)


class _Lines:
    """Called as ``progress(done, total, label)``; prints each label once, with its place."""

    def __init__(self):
        self._last = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __call__(self, done, total, label):
        if label != self._last:
            print(f"[{done}/{total}] {label}", file=sys.stderr, flush=True)
        self._last = label


def render(report, out):
    """Prints the report's table, what it ran on, and the smallest failing case as plain text."""
    dtypes = list(dict.fromkeys(dtype for row in report.rows for dtype in row.cells))
    wide = out.width >= 58 + 21 * len(dtypes)  # one column for each dtype; else one line
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("Variant", no_wrap=True)
    for heading in dtypes if wide else ["dtype", "worst error"]:
        table.add_column(heading if heading == "dtype" else f"{heading}\nforward  gradient", no_wrap=True)
    table.add_column("Hazards\nheld", overflow="fold")
    table.add_column("Verdict", no_wrap=True)
    for row in report.rows:
        cells = [_cell(row.cells.get(dtype)) for dtype in dtypes]
        if not wide:
            cells = [Text("\n".join(dtypes)), Text("\n").join(cells)]
        table.add_row(Text(row.name), *cells, _hazards(row.hazards), Text(row.status, STATUS_STYLES[row.status]))
    out.print(
        f"[bold]{_plain(report.candidate)}[/] against the oracle: worst error / allowed, in units of the dtype's eps"
    )
    out.print()
    out.print(table)
    out.print()
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    out.print(Text(f"{_counts(report)}. On {report.device}; {versions}."))
    smallest = report.smallest_failure
    if smallest is not None:
        # not through rich, which would fold lines and read [...] as markup
        out.file.write("\n" + "\n".join(_failed(report, smallest)) + "\n")
    elif not report.passed:
        out.print(
            Text("Nothing passed: the candidate has none of the rows, or takes none of their arguments.", "bold red")
        )


def _failed(report, smallest):
    """Lines of plain text: the checks that failed, row by row, and the smallest case with its code."""
    for row in report.rows:
        if row.failures:
            yield f"{row.name} fails: {', '.join(dict.fromkeys(failure.check for failure in row.failures))}"
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


def _hazards(hazards):
    """How many of those that apply held, and the names of those that did not."""
    failed = [name for name, state in hazards.items() if state == "failed"]
    judged = sum(state != "n/a" for state in hazards.values())
    if not judged:
        return Text("n/a", "dim")
    text = Text(f"{judged - len(failed)}/{judged}", "red" if failed else "green")
    return text.append("".join(f"\n{name}" for name in failed), "red")


def _counts(report):
    statuses = [row.status for row in report.rows]
    words = {"pass": "passed", "fail": "failed", "missing": "missing", "n/a": "n/a"}
    return f"{len(statuses)} row{'s' * (len(statuses) != 1)}: " + ", ".join(
        f"{statuses.count(status)} {word}" for status, word in words.items() if status in statuses
    )


def _plain(text):
    return text.replace("[", "\\[")


def _finite(value):
    """The same data with NaN and infinities as text, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
