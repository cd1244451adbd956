"""Text of ``docs/verdicts.md``."""

import inspect
import platform
import re

import attnpool_ref
from attnpool_ref.conformance.report import guarantees
from verdicts import judging
from verdicts.judging import BROKE, DIFFERS, FOLLOWS, GROUPS, KEPT, UNASKED

INTRODUCTION = """
<!-- Written by tools/studies/make_verdicts.py from tools/studies/verdicts/ (`make verdicts`), not by hand. -->

# Verdicts on real implementations

Results of `attnpool check` for the attention and pooling functions of other libraries and of five notebooks
([notebooks/README.md](notebooks/README.md)), and for two common formulas: which of attnpool's
[guarantees](guarantees.md) each function gives, and the smallest failing input for each broken guarantee. Most of these
guarantees are only attnpool's, so a library that does not give one of them is not at fault. If a broken guarantee
matters to you, "What to do" in the section of the function says what helps before or after the call, what to call
instead, or that nothing is needed or helps.

Made on {date} by `make verdicts` with attnpool {version}, Python {python}, NumPy {numpy}, on the CPU of {machine}:
{count} implementations, two at a time; their times add up to {minutes} minutes.

**How it is judged.** Each implementation is called as its documentation says: with its masks, options, ranks and
dtypes; the notebooks' functions, which have no documentation, with the arguments that they have. Keras computes with
PyTorch. Features that an implementation does not offer are not checked, nor is the guarantee *integers
alone*. The first dtype that a section names is checked in all calls; the others only
in those with the fewest and with the most arguments, with another value of an option or another form of an argument,
and in one without masks, and not for the groups *gradients* and *order and batch* and the guarantees *shapes*, *ties
and edges*, *arguments that broadcast*, *padding amount*, *padding side*, *deleting is masking*, *poison in shared
arrays*, *long sums*, *jit and vmap* and *one program*. Two results must be equal up to the rounding of arithmetic in
float32 or wider, also in bfloat16, as in attnpool's own functions; `attnpool check` allows for intermediate results in
bfloat16. [judging.md](judging.md) says how to judge your own functions, and `tools/studies/verdicts/` has the calls of
these implementations.

**How to read the counts.** *22/24* means that 22 of the 24 guarantees that were checked hold. *+5* means that five more
fail, but only as a consequence of a broken guarantee; the 24 do not include them. A section also leaves out each dtype
in which a broken guarantee fails only as a consequence of another. The last column counts the dtypes in which none of
*an answer*, *shape*, *dtype*, *values*, *values under masks* and *one argument alone* fails, of the dtypes in which the
implementation was judged. Other guarantees, such as those on NaN in padding, may be broken in them.

**Defined differently.** If a library documents another result than attnpool's, or none, this is not a defect. It is not
counted, and marked *†* in the section of the function. Most of these cases are fully masked rows, that is, a query
whose mask lets it see no key, or an example without tokens. There attnpool returns 0 (before the output projection of a
multi-head attention), and the documentation of the library defines no result; it may be an average, NaN, -inf or a
padded token. The other guarantees are then judged without such rows.

**If values are wrong in bfloat16, but not in float32**, the library rounds intermediate results to bfloat16, and
attnpool computes in float32. Convert parameters and arrays to float32, call the function, and convert the result to
bfloat16.
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


MARKS = {"+n": "n more fail as a consequence", "†": "defined differently"}
"""Marks of a cell, with their meanings."""

CALLS = {
    "smallest": "calls with the required arguments and the masks",
    "fullest": "calls with all arguments that the implementation takes, except lengths",
    "without masks": "calls with the required arguments only",
    "everything but masks": "calls with all arguments that the implementation takes, except masks and lengths",
}
"""Configurations of a call (:mod:`~attnpool_ref.conformance.cases.ways`), in words."""

SHAPES = {
    "no batch": "no batch axes",
    "rank 1": "arrays with one axis",
    "length 0": "sequences of length 0",
    "long, batch (2, 3)": "long sequences, batch axes (2, 3)",
    "many tokens": "4,198 tokens",
    "many examples": "300 examples",
    "widths of 1, batch (2, 3, 2)": "all widths 1, batch axes (2, 3, 2)",
}
"""Shapes of a call's arguments (:mod:`~attnpool_ref.conformance.cases.table`), in words."""

NO_ARGUMENT = "it has no such argument"

CODE = """
At its end, a section has code for its broken and differently defined guarantees (click "How it is called, and the
smallest cases"). The code runs in a checkout of attnpool, with `PYTHONPATH=.:tools/studies:tools/generate` and the
library installed. It prints two results, unless the library raises an error: that of the library (`candidate`) and the
right one, of `attnpool_ref` (`oracle`). It computes no gradients, and returns no weights. `candidate_of(name, dtype)`
returns the implementation that the function under "How it is called" makes. `parameters_of(name, dtype)` returns the
parameters of a module as a dictionary of arrays, because `attnpool_ref` takes them as arguments.
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
    cells = [(group, _cell([states[guarantee] for guarantee in names])) for group, names in GROUPS.items()]
    return held_by_group(cells)


def held_by_group(cells):
    """Returns the line that shows (group, cell) pairs, with an explanation of the marks in it."""
    text = "; ".join(f"{group} {cell.replace('-', 'not checked')}" for group, cell in cells)
    marks = ", ".join(f"{mark}: {meaning}" for mark, meaning in MARKS.items() if mark[0] in text)
    return f"Guarantees that hold, of those checked, by group{f' ({marks})' if marks else ''}: {text}."


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
    parts = [
        f"### {entry.name}",
        compared(entry, versions, kept, kept + len(broken), follow),
        groups(entry, verdict),
        f"What it does: {entry.offers}",
    ]
    causes = list(dict.fromkeys(cause for report in verdict.reports.values() for cause in report.causes))
    if causes:
        parts.append(f"{CAUSE} {'; '.join(causes)}.")
    if broken:
        parts.append(f"{BREAKS}\n\n" + "\n".join(_broken(verdict, name, states) for name in broken))
    parts += [*_differences(entry, verdict, states), *_not_checked(verdict), *_guarantees_not_checked(verdict, states)]
    rounds = any("bfloat16" in _dtypes(judging.own_failures(verdict, name)) for name in judging.VALUES)
    parts += [todo(entry.advice, rounds), _code(entry, verdict, states)]
    return "\n\n".join(parts)


CAUSE = "The check names this cause of failures:"
BREAKS = (
    'Broken guarantees, each with the dtypes in which it fails and the result of the smallest failing case ("needs" is '
    "the exact result, not rounded to the dtype):"
)
DIFFERENT = 'Defined differently, so not counted ("needs" is attnpool\'s result, not rounded to the dtype):'
IN_BFLOAT16 = (
    "In bfloat16, convert parameters and arrays to float32, call the function, and convert the result to bfloat16."
)


def compared(entry, versions, kept, checked, follow):
    """Returns the first line of a section: the function of attnpool that defines the results, dtypes, and the counts."""
    broken = checked - kept
    counts = [f"{kept} guarantees hold", f"{broken or 'none'} {'is' if broken <= 1 else 'are'} broken"]
    counts += [f"{follow} more {'fails' if follow == 1 else 'fail'} as a consequence"] if follow else []
    said = f"{', '.join(counts[:-1])}{',' * (len(counts) > 2)} and {counts[-1]}"
    return f"Compared with attnpool's `{entry.row}` in {', '.join(entry.dtypes)}, with {versions}: {said}."


def todo(advice, rounds):
    """Returns the line that says what a user can do; ``rounds`` if values are wrong in bfloat16."""
    return f"What to do: {advice}{' ' + IN_BFLOAT16 if rounds else ''}"


def _dtypes(failures):
    return list(dict.fromkeys(failure.dtype for failure in failures))


def _broken(verdict, name, states):
    failures = judging.own_failures(verdict, name)
    dtypes = ", ".join(_dtypes(failures))
    following = [
        other
        for other in states
        if states[other] == FOLLOWS
        and any(report.guarantees[other].follows_from == name for report in verdict.reports.values())
    ]
    follows = f" Fail as a consequence: {', '.join(following)}." if following else ""
    return f"* {_linked(name)} ({dtypes}): {_short(failures[0].message, failures[0].hint)}.{follows}"


def _linked(name):
    """Returns the name of a guarantee, with a link to its demonstration."""
    return f"[**{name}**](guarantees.md#{_anchor(name)})"


def _short(message, hint=""):
    text = " ".join(message.split()).rstrip(".")
    text += " (the mask has integers 0 and 1)" if hint.startswith("; its mask was of integers") else ""
    return text if len(text) < 240 else text[:237] + ".."


def _differences(entry, verdict, states):
    lines = []
    if entry.nothing_real:
        found = verdict.elsewhere
        gives = _short(found.message, found.hint) if found else "the result is 0"
        lines.append(f"* {_linked(guarantees.EMPTY)}: {entry.nothing_real}. Here {gives}.")
    for name, reason in entry.differs.items():
        if states[name] == DIFFERS:
            lines.append(f"* {_linked(name)}: {reason}. Here {_short(judging.own_failures(verdict, name)[0].message)}.")
    if lines:
        yield f"{DIFFERENT}\n\n" + "\n".join(lines)


def _not_checked(verdict):
    reasons = {}
    for dtype, report in verdict.reports.items():
        for unasked in report.unasked:
            what = f"{dtype} at all" if unasked.what == "the function" else unasked.what
            reasons.setdefault(unasked.why, {})[what] = None
    if reasons:
        yield not_checked(reasons)


def not_checked(reasons):
    """Returns the list of what was not checked: a bullet for each reason.

    Args:
      reasons: for each reason, the arguments, dtypes and calls, each call as the judge names it.
    """
    lines, defaults = [], []
    for why, found in reasons.items():
        what = "; ".join(found).split("; ")
        if why == NO_ARGUMENT:
            defaults = [key.replace("(default ", "(") for key in what if "(default " in key]
            others = [key for key in what if "(default " not in key]
            lines += [f"* {', '.join(others)}: the implementation has no such argument."] * bool(others)
        else:
            lines.append(f"* {_calls(what)}: {_reason(why)}.")
    if defaults:
        said = "the implementation has no such argument; it is compared with attnpool's default, in parentheses"
        lines.append(f"* {', '.join(defaults)}: {said}.")
    text = "\n".join(lines)
    marks = " (`1...` are batch axes of size 1)" if "[1..." in text else ""
    return f"Not checked are the following calls, arguments and dtypes, each with the reason{marks}:\n\n{text}"


def _guarantees_not_checked(verdict, states):
    """Yields the list of the guarantees that no dtype checked: a bullet for each reason.

    The reasons are those of the dtypes that the implementation accepts.
    """
    reports = [report for report in verdict.reports.values() if report.cases] or list(verdict.reports.values())
    reasons = {}
    for name in (name for names in GROUPS.values() for name in names if states[name] == UNASKED):
        found = [report.guarantees[name].why for report in reports]
        (why, *_) = [why for why in reversed(found) if "skipped" not in why] or found
        reasons.setdefault(WHY_NOT_CHECKED.get(why) or _reason(why), []).append(name)
    if reasons:
        lines = "\n".join(f"* {', '.join(names)}: {why}." for why, names in reasons.items())
        yield f"Not checked are the following guarantees, each with the reason:\n\n{lines}\n\n{OTHERS_HOLD}"


NO_CALL = "none of the calls tests them"
OF_JAX = "they are about JAX arrays"
WHY_NOT_CHECKED = {
    "its check was not reached": NO_CALL,
    "no case of this function applies": NO_CALL,
    "judged only in float64, if gradients are": (
        "they are checked only in float64, and gradients here only in the first dtype"
    ),
    "judged only if float64 is": "they are checked only in float64",
    "skipped with long=False, --quick": "sums of a million tokens were left out, because they take long",
    "the contract states none for the row": "the contract states no such gradient for this function",
    "the function has no weights": "the function that is compared has no weights",
    "numpy arrays know neither jit nor vmap": OF_JAX,
    "torch arrays know neither jit nor vmap": OF_JAX,
    "keras arrays know neither jit nor vmap": OF_JAX,
}
"""Reasons of the judge in words; others are as :func:`_reason` writes them."""

OTHERS_HOLD = (
    "All guarantees of the groups above hold that this section names neither here nor as broken, as a consequence or as "
    "defined differently."
)


def _reason(why):
    """Returns a reason of the judge, with the implementation as its subject."""
    text = re.sub("^it ", "the implementation ", _short(why)).replace("all its data", "all data of the implementation")
    text = text.replace("with all axes", "with all axes, none of them broadcast")
    return text + (", whose result is defined differently" if text.endswith("a fully masked row") else "")


def _calls(titles):
    """Returns the titles of cases in words, those of one configuration together; other text stays as it is."""
    found = {}
    for title in titles:
        call, _, change = title.partition(", ")
        if call not in CALLS:
            found.setdefault(title, [])
            continue
        change = re.sub(r"(`\w+`) of integers as", r"integer \1 as", change).replace(" as [", " of shape [")
        if change.endswith(" shared"):
            change = f"{change.removesuffix(' shared')} without batch axes"
        change = SHAPES.get(change, change)
        if call == "without masks":
            change = change.removeprefix("long sequences, ")
        found.setdefault(CALLS[call], []).append(change)
    text = "; ".join(f"{call} ({'; '.join(changes)})" if changes else call for call, changes in found.items())
    return re.sub("^calls", "Calls", text)


def _code(entry, verdict, states):
    """Returns the source of the call, and the smallest case of each guarantee that is broken or defined differently."""
    blocks = [f"How it is called:\n\n```python\n{inspect.getsource(entry.make).rstrip()}\n```"]
    shown = [(name, judging.own_failures(verdict, name)[0]) for name in states if states[name] == BROKE]
    shown += [(name, judging.own_failures(verdict, name)[0]) for name in entry.differs if states[name] == DIFFERS]
    shown += [(guarantees.EMPTY, verdict.elsewhere)] if verdict.elsewhere else []
    for name, failure in shown:
        blocks.append(f"{_code_title(name, failure.dtype)}\n\n```python\n{runnable(entry, verdict, failure)}\n```")
    text = "\n\n".join(blocks)
    title = "How it is called, and the smallest cases" if shown else "How it is called"
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _code_title(name, dtype):
    return f"Smallest failing case of *{name}*, in {dtype}:"


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
