"""Text of ``docs/verdicts.md``."""

import inspect
import platform
import re

import attnpool_ref
from attnpool_ref.conformance.report import promises
from verdicts import judging
from verdicts.judging import BROKE, DIFFERS, FOLLOWS, GROUPS, KEPT

INTRODUCTION = """
<!-- Written by tools/studies/make_verdicts.py from tools/studies/verdicts/ (`make verdicts`), not by hand. -->

# Verdicts on real implementations

Results of `attnpool check` for the attention and pooling functions of other libraries: which of attnpool's
[guarantees](guarantees.md) each function gives, and the smallest input that breaks each other guarantee. Most of these
guarantees are only attnpool's, so a library that does not give one of them is not at fault. If a broken guarantee matters
to you, "What to do" in the section of the function says what helps before or after the call, or that nothing does.

Made on {date} by `make verdicts` with attnpool {version}, Python {python}, NumPy {numpy}, on the CPU of {machine}:
{count} implementations, two at a time, in {minutes} minutes.

**How it is judged.** Each implementation is called as its documentation says: with its masks, options, ranks and
dtypes. Features that it does not offer are not checked. [judging.md](judging.md) says how to judge your own functions,
and `tools/studies/verdicts/` has the calls of these implementations, one file per library.

**How to read the counts.** *22/24* means that 22 of 24 guarantees hold. *+5* means that five more fail as a consequence
of another broken guarantee; they are not counted. *-* means that nothing was checked. *†* means that the library's
definition differs, which is not a defect: the section says how, under "Defined differently". Most of these concern fully
masked rows, that is, a query whose mask lets it see no key, or an example without tokens. There attnpool returns 0 (before the
output projection of a multi-head attention), and the library returns an average or NaN, or does not document the result.
The other guarantees are then judged without such rows. The last column counts the dtypes in which all values are right.

**How to read "Not checked".** A reason in parentheses applies to all entries since the previous reason. An entry is an
argument that was never given, a dtype, or a call. *smallest* is a call with the required arguments and the masks,
*fullest* is a call with all arguments except lengths, and *without masks* is a call with the required arguments only. What
follows was changed in that call: the batch axes, the sizes, or one argument. For example, in "smallest, `mask` as
[..., 1]" the last axis of the mask has size 1. `1...` are batch axes of size 1, and a *shared* argument has no batch axes.

**If values are wrong in bfloat16, but not in float32**, the library rounds intermediate results to bfloat16, and attnpool computes in
float32. Convert parameters and arrays to float32, call the function, and convert the result to bfloat16.
""".strip()

TABLE_HEAD = ("implementation", "guarantees", "dtypes")


def page(pairs, date):
    """Returns the text of the page.

    Args:
      pairs: (entry, verdict) in the order of the page.
      date: when it was judged.
    """
    import numpy

    facts = {"version": attnpool_ref.__version__, "python": platform.python_version(), "numpy": numpy.__version__}
    facts |= {"machine": f"{platform.system()} {platform.machine()}", "count": len(pairs)}
    minutes = round(sum(verdict.seconds for _, verdict in pairs) / 60)
    parts = [INTRODUCTION.format(date=date, minutes=minutes, **facts), table(pairs), guarantees_by_group()]
    parts += ["## The code", CODE, *(section(entry, verdict) for entry, verdict in pairs)]
    return "\n\n".join(parts) + "\n"


CODE = """
Each section has code that shows its broken guarantees. The code runs in a checkout of attnpool, with
`PYTHONPATH=.:tools/studies:tools/generate` and the library installed. It prints two results: that of the library
(`candidate`) and the right one, of `attnpool_ref` (`oracle`). `candidate_of` returns the function that is printed under
"How it is called". `parameters_of` returns the parameters of a module, which `oracle` needs, too.
""".strip()


def table(pairs):
    """Returns the table of all implementations."""
    lines = [f"| {' | '.join(TABLE_HEAD)} |", "| --- " * len(TABLE_HEAD) + "|"]
    return "\n".join([*lines, *(line(entry, verdict) for entry, verdict in pairs)])


def line(entry, verdict):
    """Returns one line of the table."""
    states = judging.states(entry, verdict)
    right, judged_in = judging.right_dtypes(verdict)
    link = f"[{entry.name}](#{_anchor(entry.name)})"
    return f"| {link} | {_cell(list(states.values()), False)} | {len(right)}/{len(judged_in)} |"


def groups(entry, verdict):
    """Returns the counts of an implementation by group of guarantees."""
    states = judging.states(entry, verdict)
    cells = ((group, _cell([states[promise] for promise in names])) for group, names in GROUPS.items())
    return "By group: " + "; ".join(f"{group} {cell}" for group, cell in cells) + "."


def _cell(states, mark=True):
    kept, broken, follow = states.count(KEPT), states.count(BROKE), states.count(FOLLOWS)
    parts = [f"{kept}/{kept + broken}"] if kept + broken else []
    parts += [f"+{follow}"] if follow else []
    parts += ["†"] if mark and DIFFERS in states else []
    return " ".join(parts) or "-"


def _anchor(name):
    """Returns the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")


def guarantees_by_group():
    """Returns the guarantees of each group, with links to their demonstrations."""
    lines = ["The groups, with a demonstration of each guarantee:", ""]
    for group, names in GROUPS.items():
        lines.append(f"* **{group}**: {', '.join(f'[{name}](guarantees.md#{_anchor(name)})' for name in names)}")
    return "\n".join(lines)


def section(entry, verdict):
    """Returns the section of one implementation."""
    states = judging.states(entry, verdict)
    kept, broken = list(states.values()).count(KEPT), [name for name, state in states.items() if state == BROKE]
    versions = ", ".join(f"{package} {version}" for package, version in verdict.versions.items())
    follow = list(states.values()).count(FOLLOWS)
    counts = f"It gives {kept} of {kept + len(broken)} guarantees" + (
        f", and {follow} more fail as a consequence" if follow else ""
    )
    parts = [
        f"### {entry.name}",
        f"Judged as `{entry.row}`, with {versions}. {counts}.",
        groups(entry, verdict),
        f"Offers: {entry.offers}",
    ]
    causes = list(dict.fromkeys(cause for report in verdict.reports.values() for cause in report.causes))
    if causes:
        parts.append("Cause: " + "; ".join(causes) + ".")
    if broken:
        parts.append("Breaks:\n\n" + "\n".join(_broken(verdict, name, states) for name in broken))
    parts += [*_differences(entry, verdict, states), *_not_checked(verdict)]
    parts += [f"What to do: {entry.advice}", _code(entry, verdict, states)]
    return "\n\n".join(parts)


def _broken(verdict, name, states):
    failures = judging.own_failures(verdict, name)
    dtypes = ", ".join(dict.fromkeys(failure.dtype for failure in failures))
    following = [
        other
        for other in states
        if states[other] == FOLLOWS
        and any(report.promises[other].follows_from == name for report in verdict.reports.values())
    ]
    follows = f" Consequences: {', '.join(following)}." if following else ""
    return f"* **{name}** ({dtypes}): {_short(failures[0].message)}.{follows}"


def _short(message):
    text = " ".join(message.split()).rstrip(".")
    return text if len(text) < 240 else text[:237] + "..."


def _differences(entry, verdict, states):
    lines = []
    if entry.nothing_real:
        found = verdict.elsewhere
        gives = _short(found.message) if found else "the result is 0"
        lines.append(f"* **{promises.EMPTY}**: {entry.nothing_real}. Here: {gives}.")
    for name, reason in entry.differs.items():
        if states[name] == DIFFERS:
            lines.append(f"* **{name}**: {reason}. Here: {_short(judging.own_failures(verdict, name)[0].message)}.")
    if lines:
        yield "Defined differently:\n\n" + "\n".join(lines)


def _not_checked(verdict):
    reasons = {}
    for dtype, report in verdict.reports.items():
        for unasked in report.unasked:
            what = f"{dtype} at all" if unasked.what == "the row" else unasked.what
            reasons.setdefault(unasked.why, {})[what] = None
    if reasons:
        said = (f"{', '.join(what)} ({_short(why)})" for why, what in reasons.items())
        yield "Not checked: " + "; ".join(said) + "."


def _code(entry, verdict, states):
    """Returns the source of the call, and the smallest case of each guarantee that is broken or defined differently."""
    blocks = [f"How it is called:\n\n```python\n{inspect.getsource(entry.make).rstrip()}\n```"]
    shown = [(name, judging.own_failures(verdict, name)[0]) for name in states if states[name] == BROKE]
    shown += [(name, judging.own_failures(verdict, name)[0]) for name in entry.differs if states[name] == DIFFERS]
    shown += [(promises.EMPTY, verdict.elsewhere)] if verdict.elsewhere else []
    for name, failure in shown:
        blocks.append(f"{name}, in {failure.dtype}:\n\n```python\n{runnable(entry, verdict, failure)}\n```")
    text = "\n\n".join(blocks)
    title = "How it is called, and the smallest cases" if shown else "How it is called"
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def runnable(entry, verdict, failure):
    """Returns the code of a failure, with the candidate from the table of entries."""
    found = f"({entry.name!r}, {failure.dtype!r})"
    made = [
        "from verdicts import candidate_of" + (", parameters_of" if verdict.own else ""),
        f"candidate = candidate_of{found}",
    ]
    made += [f"own = parameters_of{found}"] if verdict.own else []
    for statement in re.split(r"\n(?=\S)", failure.snippet):
        name = statement.partition(" = ")[0]
        if not _finds_candidate(statement):
            made.append(f"{name} = own[{name!r}]" if name in verdict.own else statement)
    return "\n".join(made)


def _finds_candidate(text):
    return text.startswith(("# candidate = ", "candidate = ")) or re.match(r"from (verdicts|notebooks)\b", text)
