"""Words for the results of guarantees, shared by all formats of reports."""

import re
import textwrap

from attnpool_ref.conformance.report import BROKEN, HELD, MISSING, NOT_APPLICABLE, guarantees

FOLLOWS, WAIVED = "follows", "waived"

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0001fffd]")
"""Characters that XML cannot hold, such as the escape character of a terminal's color codes."""


def printable(text):
    """Returns the text with U+FFFD in place of each character that XML cannot hold."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def outcome(kept):
    """Returns the result of a guarantee in one word: "held", "broken", "waived", "follows" (from another) or "n/a"."""
    if kept.status != BROKEN:
        return kept.status
    if kept.waived:
        return WAIVED
    return FOLLOWS if kept.follows_from else BROKEN


def reason(row, kept):
    """Returns the reason for the result of a guarantee, in one line."""
    found = outcome(kept)
    if found == HELD:
        return f"{kept.cases} case{'s' * (kept.cases != 1)} in {', '.join(kept.dtypes)}"
    if found == WAIVED:
        return f"waived: {kept.waived}"
    if found == FOLLOWS:
        return f"follows from {kept.follows_from}"
    if found == BROKEN:
        return "; ".join(map(message, kept.failures))
    if row.status == MISSING:
        return f"there is no `{row.name}`"
    return kept.why or "; ".join(unasked.why for unasked in row.unasked[:1]) or row.ended or "nothing was judged"


UNKNOWN = "no cause found."


def causes(row):
    """Returns the causes of a failure as sentences; :data:`UNKNOWN` if results are wrong without a cause or a hint."""
    compared = [
        kept for kept in row.accused if guarantees.BY_NAME[kept.guarantee].judged_by in ("agreement", "empty rows")
    ]
    failures = [failure for kept in compared for failure in kept.failures]
    wrong = any(not failure.message.startswith("raises ") for failure in failures)
    wrong = wrong and not any(failure.hint for failure in failures)
    return [f"{cause}." for cause in row.sentences] or [UNKNOWN] * wrong


def message(failure):
    """Returns one line with the dtype, the actual and the needed result."""
    text = " ".join(f"{failure.message}{failure.hint}".split())
    return f"{failure.dtype}: {text}" if failure.dtype else text


def evidence(kept):
    """Returns the messages of a broken guarantee, with the code of its smallest case."""
    lines = [message(failure) for failure in kept.failures]
    if (smallest := kept.smallest) is not None and smallest.snippet:
        lines += ["", f"At a {smallest.prompt} prompt:", "", smallest.snippet]
    return "\n".join(lines)


PARAMETERS, PADDING = "its parameters", "padding elsewhere than on the "
"""What was skipped and is always a remark: parameters of a module that need an option, and other padding."""


def remarks(row):
    """Yields lines about arguments that were matched by place, and what was never judged."""
    taken = [f"`{theirs}` as `{ours}`" for ours, theirs in row.by_place.items() if theirs != ours]
    if taken:
        yield f"took {', '.join(taken)}, by place"
    if {kept.guarantee for kept in row.accused} == {guarantees.EMPTY}:
        yield "all these differ only in fully masked rows: if they never occur, say so (some_real=True, --some-real)"
    if row.status == "partial":
        yield from (f"partial: {why}" for why in row.partial)
    parameters = [each for each in row.unasked if each.what == PARAMETERS and each.why not in row.causes]
    yield from (f"{unasked.what}: {unasked.why}" for unasked in parameters)
    yield from (f"{unasked.what} was not judged" for unasked in row.unasked if unasked.what.startswith(PADDING))
    others = [unasked for unasked in row.unasked if row.cases and unasked.why.startswith(f"{PARAMETERS} are ")]
    if others:
        dtypes = ", ".join(unasked.what for unasked in others)
        yield f"not judged in {dtypes}: {others[0].why}; judge a module in another dtype, such as pool.bfloat16(), by itself"
    if row.ended:
        yield f"ended early: {row.ended}"


NOTES = "Notes (they do not change the verdict)"
"""Heading of :func:`notes`."""


def notes(row):
    """Returns the notes of a function, one a guarantee."""
    more = more_notes(row)
    return [note for note in row.notes if note not in more]


def more_notes(row):
    """Returns the notes of a function that :func:`notes` leaves out."""
    return [f"{kept.guarantee}: {note}" for kept in row.guarantees.values() for note in kept.notes[1:]]


def others(row):
    """Yields a line with what held, and one for each reason for which something was not judged."""
    held = [kept.guarantee for kept in row.guarantees.values() if outcome(kept) == HELD]
    if held:
        yield f"held: {', '.join(held)}"
    reasons = {}
    for unasked in (each for each in row.unasked if each.why not in row.causes):
        reasons.setdefault(("skipped", unasked.why), []).append(unasked.what)
    for kept in row.guarantees.values():
        if outcome(kept) == NOT_APPLICABLE and row.cases:
            why = "as its note says" if kept.notes else reason(row, kept)
            reasons.setdefault(("n/a", why), []).append(kept.guarantee)
    yield from (f"{kind}, {why}: {', '.join(names)}" for (kind, why), names in reasons.items())


def counted(rows):
    """Returns the numbers of guarantees that held and were not judged, of skipped arguments and cases, and of notes."""
    found = [outcome(kept) for row in rows for kept in row.guarantees.values()]
    parts = [f"Held: {found.count(HELD)}", f"not judged: {found.count(NOT_APPLICABLE)}"]
    more = {"skipped": sum(len(row.unasked) for row in rows), "more notes": sum(len(more_notes(row)) for row in rows)}
    return "; ".join(parts + [f"{what}: {count}" for what, count in more.items() if count])


def wrapped(line, width):
    """Returns a line, wrapped between words; the lines that continue it are indented by two more columns."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
