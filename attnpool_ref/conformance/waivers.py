"""Promises that need not hold, by name and with a reason: an agreement between who writes and who judges.

A waiver names a promise, ``"1e30 in padding"``, or that of one row, ``"mean_pooling/1e30 in padding"``. What follows
from a waived promise is excused with it. Poisons are no such thing: that padding is never NaN says nothing of 1e30.
"""

from attnpool_ref import variants
from attnpool_ref.conformance import promises
from attnpool_ref.conformance.candidates import nearest
from attnpool_ref.conformance.hazards import POISONS
from attnpool_ref.conformance.report import BROKEN, FAIL

_POISONS = frozenset(f"{name} in padding" for name in POISONS)


def check_names(waive):
    """Raises ValueError where a waiver names no promise or no row, or gives no reason."""
    for name, reason in waive.items():
        row, promise = _parts(name)
        if row:
            variants.get(row)
        if promise not in promises.BY_NAME:
            raise ValueError(f"no promise is called {promise!r}{nearest(promise, promises.BY_NAME)}")
        if not str(reason).strip():
            raise ValueError(f"the waiver of {name!r} needs a reason")


def apply(rows, waive):
    """Waives in the rows' reports, and says of each waiver that waived nothing why.

    Args:
      rows: the reports of rows that are judged.
      waive: from names to reasons; :func:`check_names` has passed them.
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
    """(row or "", promise)."""
    row, _, promise = name.rpartition("/")
    return row, promise


def _excuse(row):
    """Works out anew what follows from what, and the row's verdict."""
    waived = [kept for kept in row.promises.values() if kept.waived]
    if not waived:
        return
    silent = {kept.promise for kept in waived if kept.promise in _POISONS}
    broken = {kept.promise: {f.dtype for f in kept.failures} for kept in row.broken if kept.promise not in silent}
    for kept in row.broken:
        own = broken | {kept.promise: {failure.dtype for failure in kept.failures}}
        kept.follows_from = promises.explained_by(kept.promise, own)
    if row.status == FAIL:
        row.set_status()
