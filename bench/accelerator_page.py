"""Table of an accelerator from its JSON, and the defaults that its times support."""

import math
import statistics

HEAD = "## On an accelerator\n"
UNMEASURED = "Nothing was timed on a GPU or a TPU yet. On a machine with one, `make accelerator` times the functions and writes a table here.\n"

OURS, COPY = "attnpool", "copy"

WORTH = 0.95
"""Largest ratio to the default's time with which another implementation becomes the default."""


def failed(found):
    """Returns the failures: rows that failed, and ways of ours with wrong results."""
    rows = [f"{name}: {verdict['status']}" for name, verdict in found["judged"].items() if verdict["status"] != "pass"]
    return rows + found["wrong"]


def section(found):
    """Returns the text of the section."""
    if found is None:
        return HEAD + "\n" + UNMEASURED
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    passed = [name for name, verdict in found["judged"].items() if verdict["status"] == "pass"]
    lines = [HEAD]
    if found["scale"] != "full":
        lines += ["**A tiny run: its times mean nothing.**\n"]
    lines += [
        f"* {found['date']}, {found['device']} ({found['devices']}), {found['host']['system']}, commit {found['commit']}",
        f"* {versions}; missing: {', '.join(found['missing']) or 'none'}",
        f"* judged in float32 and bfloat16, forward and gradient: {', '.join(passed) or 'no row'} passed\n",
        *listed("Wrong:", failed(found)),
        "GB/s are the bytes that no implementation can avoid (tokens are read, in a step an array like them is written) divided",
        "by the median time. In parentheses is their share of the bandwidth of a copy in the same rounds. The last column is the",
        "time of another implementation divided by attnpool's: below 1× attnpool is slower.\n",
        "| case | way | GB/s (share of a copy) | attnpool is faster by |",
        "| --- | --- | --- | --- |",
        *rows(found["cases"]),
        "",
        *listed("Defaults that the times support (mean of time ÷ time of the default):", defaults(found["cases"])),
        *listed("Not reached:", found["not reached"]),
    ]
    return "\n".join(lines)


def listed(head, lines):
    """Returns a list below a line, or nothing."""
    return [f"{head}\n", *(f"* {line}" for line in lines), ""] if lines else []


def rows(cases):
    """Yields a line for each way of each case."""
    for case in cases:
        seconds, about = case["seconds"], f"{case['function']}, {case['title']}, {case['direction']}"
        for name, times in seconds.items():
            moved = case["copy_bytes"] if name == COPY else case["bytes"]
            speed = moved / statistics.median(times) / 1e9
            share = faster = "-"
            if COPY in seconds:
                shares = [moved / t / (case["copy_bytes"] / c) for t, c in zip(times, seconds[COPY], strict=True)]
                share = f"{statistics.median(shares):.0%}"
            if OURS in seconds and name not in (COPY, OURS):
                faster = f"{ratio(times, seconds[OURS]):.2f}×"
            yield f"| {about} | {name} | {speed:.3g} ({share}) | {faster} |"
            about = ""


def ratio(times, others):
    """Returns the median over rounds of the ratio of two times."""
    return statistics.median(t / o for t, o in zip(times, others, strict=True))


def defaults(cases):
    """Yields a line for each function: the implementation that its times support, and the default."""
    for function in dict.fromkeys(case["function"] for case in cases):
        own = [case for case in cases if case["function"] == function]
        found = {}
        for case in own:
            seconds = case["seconds"]
            for way, times in seconds.items():
                _, comma, name = way.partition(f"{OURS}, ")
                if comma and OURS in seconds:
                    found.setdefault(name, []).append(ratio(times, seconds[OURS]))
        found = {name: over for name, over in found.items() if len(over) == len(own)}  # ran in every race
        means = {name: math.exp(statistics.fmean(map(math.log, over))) for name, over in found.items()}
        current = " or ".join(dict.fromkeys(case["default"] for case in own))
        best = min(means, key=means.__getitem__, default=None)
        chosen = best if best is not None and means[best] <= WORTH else current
        figures = ", ".join(f"{name} {mean:.2f} (worst {max(found[name]):.2f})" for name, mean in means.items())
        yield f"{function}: {chosen}; now {current}; {figures or 'no implementation ran in every race'}"
