"""The text of ``docs/verdicts.md``."""

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

The conformance kit, pointed at attention and pooling as they are installed and used: which promises of attnpool's
[conventions](conventions.md) each one keeps, and on which smallest input it does not. Most of these promises are nobody's but
attnpool's. A library that breaks one is not at fault for that: its page says what to do before or after the call, if the
promise matters to you.

Made on {date} by `make verdicts` with attnpool {version}, Python {python}, NumPy {numpy}, on the CPU of {machine}:
{count} implementations, {minutes} minutes of judging, two at a time.

**How it is judged.** Each implementation is asked for what its documentation offers, and called as it says: its masks, options,
ranks and dtypes. What it does not offer is not asked. [judging.md](judging.md) says how to do the same with yours, and
`tools/studies/verdicts/` holds the description of each of these, one file per library.

**How to read the table.** A cell is *kept / asked*. "+2" are two more that are broken because another one is, and not counted;
"-" is not asked at all; "†" is defined otherwise: what a query gets that may look nowhere, or an example without a token, is
0 in attnpool, and a uniform average, NaN or nothing documented elsewhere. That is no defect, and everything else is then
judged on rows with something real. "dtypes" counts those in which every value is right.
""".strip()

TABLE_HEAD = ("implementation", *GROUPS, "dtypes", "all")


def page(pairs, date):
    """The page.

    Args:
      pairs: (entry, verdict) in the order of the page.
      date: when it was judged.
    """
    import numpy

    facts = {"version": attnpool_ref.__version__, "python": platform.python_version(), "numpy": numpy.__version__}
    facts |= {"machine": f"{platform.system()} {platform.machine()}", "count": len(pairs)}
    minutes = round(sum(verdict.seconds for _, verdict in pairs) / 60)
    parts = [INTRODUCTION.format(date=date, minutes=minutes, **facts), table(pairs), promises_in_words()]
    parts += ["## The code", CODE, *(section(entry, verdict) for entry, verdict in pairs)]
    return "\n\n".join(parts) + "\n"


CODE = """
The smallest cases run as they stand in a checkout, with `PYTHONPATH=tools/studies` and the library installed. `candidate_of` gives the
function that stands above the case, `parameters_of` what a module holds itself, which the oracle needs as well.
""".strip()


def table(pairs):
    """The table of all implementations."""
    lines = [f"| {' | '.join(TABLE_HEAD)} |", "| --- " * len(TABLE_HEAD) + "|"]
    return "\n".join([*lines, *(line(entry, verdict) for entry, verdict in pairs)])


def line(entry, verdict):
    """One line of the table."""
    states = judging.states(entry, verdict)
    cells = [_cell([states[promise] for promise in group]) for group in GROUPS.values()]
    right, judged_in = judging.right_dtypes(verdict)
    link = f"[{entry.name}](#{_anchor(entry.name)})"
    return f"| {' | '.join([link, *cells, f'{len(right)}/{len(judged_in)}', _cell(list(states.values()), False)])} |"


def _cell(states, mark=True):
    kept, broken, follow = states.count(KEPT), states.count(BROKE), states.count(FOLLOWS)
    parts = [f"{kept}/{kept + broken}"] if kept + broken else []
    parts += [f"+{follow}"] if follow else []
    parts += ["†"] if mark and DIFFERS in states else []
    return " ".join(parts) or "-"


def _anchor(name):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")


def promises_in_words():
    """What the columns hold."""
    lines = ["What the columns hold:", ""]
    for group, names in GROUPS.items():
        said = " ".join(promises.BY_NAME[name].says for name in names)
        lines.append(f"* **{group}** ({', '.join(names)}): {said}")
    return "\n".join(lines)


def section(entry, verdict):
    """What came of one implementation."""
    states = judging.states(entry, verdict)
    kept, broken = list(states.values()).count(KEPT), [name for name, state in states.items() if state == BROKE]
    versions = ", ".join(f"{package} {version}" for package, version in verdict.versions.items())
    follow = list(states.values()).count(FOLLOWS)
    counts = f"keeps {kept} of {kept + len(broken)} promises" + (
        f", and {follow} more follow from these" if follow else ""
    )
    parts = [f"### {entry.name}", f"`{entry.row}`; {versions}; {counts}.", f"Asked: {entry.offers}"]
    causes = list(dict.fromkeys(cause for report in verdict.reports.values() for cause in report.causes))
    if causes:
        parts.append("What explains it: " + "; ".join(causes) + ".")
    if broken:
        parts.append("Breaks:\n\n" + "\n".join(_broken(verdict, name, states) for name in broken))
    parts += [*_differences(entry, verdict, states), *_not_asked(verdict)]
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
    follows = f" From it follows: {', '.join(following)}." if following else ""
    return f"* **{name}** ({dtypes}): {_short(failures[0].message)}.{follows}"


def _short(message):
    text = " ".join(message.split()).rstrip(".")
    return text if len(text) < 240 else text[:237] + "..."


def _differences(entry, verdict, states):
    lines = []
    if entry.nothing_real:
        found = verdict.elsewhere
        gives = _short(found.message) if found else "it is 0 nevertheless"
        lines.append(f"* **{promises.EMPTY}**: {entry.nothing_real}. Here {gives}.")
    for name, reason in entry.differs.items():
        if states[name] == DIFFERS:
            lines.append(f"* **{name}**: {reason}. Here {_short(judging.own_failures(verdict, name)[0].message)}.")
    if lines:
        yield "Defined otherwise:\n\n" + "\n".join(lines)


def _not_asked(verdict):
    reasons = {}
    for dtype, report in verdict.reports.items():
        for unasked in report.unasked:
            what = f"{dtype} at all" if unasked.what == "the row" else unasked.what
            reasons.setdefault(unasked.why, {})[what] = None
    if reasons:
        said = (f"{', '.join(what)} ({_short(why)})" for why, what in reasons.items())
        yield "Not asked: " + "; ".join(said) + "."


def _code(entry, verdict, states):
    """How it is called, and the smallest case of everything that it breaks or defines otherwise."""
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
    """The code of a failure, with the candidate from the table of entries."""
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
