"""Waivers: guarantees that need not hold, each by name and with a reason.

A waiver names a guarantee, ``"1e30 in padding"``, or that of one function, ``"mean_pooling/1e30 in padding"``. It
waives no other guarantee: one that is broken because of the waived one is still a failure.
"""

from attnpool_ref import table
from attnpool_ref.conformance.report import BROKEN, FAIL, promises
from attnpool_ref.table import did_you_mean


def check_names(waive):
    """Raises a ValueError if a waiver names an unknown guarantee or function, or has no reason."""
    for name, reason in waive.items():
        row, promise = _parts(name)
        if row:
            table.get(row)
        if promise not in promises.BY_NAME:
            raise ValueError(f"no guarantee is called {promise!r}{did_you_mean(promise, promises.BY_NAME)}")
        if not str(reason).strip():
            raise ValueError(f"the waiver of {name!r} needs a reason")


def apply(rows, waive):
    """Applies waivers to the reports of functions, and returns those that waived nothing, each with the reason why.

    ``waive`` maps names to reasons, as validated by :func:`check_names`.
    """
    idle = {}
    for name, reason in waive.items():
        row_name, promise = _parts(name)
        meant = [row for row in rows if not row_name or row.name == row_name]
        broken = [row for row in meant if row.promises[promise].status == BROKEN]
        for row in broken:
            row.promises[promise].waived = str(reason)
        if not meant:
            idle[name] = f"{row_name} was not judged"
        elif not broken:
            statuses = {row.promises[promise].status for row in meant}
            idle[name] = "it holds" if "held" in statuses else "it was not judged"
    for row in rows:
        _excuse(row)
    return idle


def _parts(name):
    """Splits the name of a waiver into (function or "", guarantee)."""
    row, _, promise = name.rpartition("/")
    return row, promise


def _excuse(row):
    """Updates which guarantees explain others, so that no waived one does, and the verdict of the function."""
    if not any(kept.waived for kept in row.promises.values()):
        return
    dtypes = {kept.promise: {failure.dtype for failure in kept.failures} for kept in row.broken}
    explaining = {name: found for name, found in dtypes.items() if not row.promises[name].waived}
    for kept in row.broken:
        explains = explaining | {kept.promise: dtypes[kept.promise]}
        kept.follows_from = "" if kept.waived else promises.explained_by(kept.promise, explains)
    if row.status == FAIL:
        row.set_status()
