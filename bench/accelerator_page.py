"""Tables of an accelerator from its JSON files: of cases, and of functions beside their formulas."""

import statistics

HEAD = "## On an accelerator\n"
UNMEASURED = "Nothing was timed on a GPU or a TPU yet. On a machine with one, `make accelerator` times the functions and writes a table here.\n"

OURS, COPY = "attnpool", "copy"

ROUNDS = 5
"""Rounds of a race."""

SLOWER = 1.1
"""The smallest ratio to the formula's time that the section lists; docs/accelerator.md has all."""

COMPLETE = """# On an accelerator: all functions beside their formulas

`make accelerator ARGS=--formulas` timed every dense and packed function in {dtype}, at the sizes of `bench/aot/sizes.py`, beside its
plain formula (`bench/aot/plain.py`, `bench/aot/plain_packed.py`), which selects padding by `where` and sums in float32. **forward**
computes the result, **step** the result and the gradients of all floating arrays.

* **time**: attnpool's time divided by the formula's, the median of {rounds} rounds of random order.
* **of a copy**: the bytes that no implementation can avoid (arguments read once, results and gradients written once), divided by
  attnpool's time, as a share of the bandwidth of a copy ({bandwidth:.0f} GB/s).
* **temporaries**: the memory that the program needs besides arguments and results: attnpool's and the formula's.
* **compiled**: the seconds that each took to compile, while {processes} processes compiled at once.
"""


def failed(found):
    """Returns the failures: rows that failed, and ways of ours with wrong results."""
    rows = [f"{name}: {verdict['status']}" for name, verdict in found["judged"].items() if verdict["status"] != "pass"]
    return rows + found["wrong"]


def section(found, formulas=None):
    """Returns the text of the section."""
    if found is None and formulas is None:
        return HEAD + "\n" + UNMEASURED
    parts = [HEAD, *([of_cases(found)] if found else []), *([beside_formulas(formulas)] if formulas else [])]
    return "\n".join(parts)


def of_cases(found):
    """Returns the text on the cases."""
    passed = [name for name, verdict in found["judged"].items() if verdict["status"] == "pass"]
    lines = [
        *machine(found),
        f"* missing: {', '.join(found['missing']) or 'none'}",
        f"* judged in float32 and bfloat16, forward and gradient: {', '.join(passed) or 'no row'} passed\n",
        *listed("Wrong:", failed(found)),
        "GB/s are the bytes that no implementation can avoid (tokens are read, in a step an array like them is written) divided",
        "by the median time. In parentheses is their share of the bandwidth of a copy in the same rounds. The last column is the",
        "time of another library divided by attnpool's: below 1× attnpool is slower.\n",
        "| case | way | GB/s (share of a copy) | attnpool is faster by |",
        "| --- | --- | --- | --- |",
        *rows(found["cases"]),
        "",
        *listed("Not reached:", found["not reached"]),
    ]
    return "\n".join(lines)


def machine(found):
    """Returns lines on the device and the versions."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return [
        *([] if found["scale"] == "full" else ["**A tiny run: its times mean nothing.**\n"]),
        f"* {found['date']}, {found['device']} ({found['devices']}), {found['host']['system']}, commit {found['commit']}",
        f"* {versions}",
    ]


def timed(found):
    """Returns (key, time ÷ the formula's time, result) of the pairs that were timed, the slowest first."""
    each = []
    for key, result in found["pairs"].items():
        if "seconds" in result:
            ours, formula = result["seconds"].values()
            each.append((key, ratio(ours, formula), result))
    return sorted(each, key=lambda pair: -pair[1])


def beside_formulas(found):
    """Returns the text on functions beside their formulas."""
    pairs = timed(found)
    ratios = [ratio for _, ratio, _ in pairs]
    middle = f"{statistics.median(ratios):.2f}" if ratios else "-"
    return "\n".join(
        [
            "### Functions beside their formulas\n",
            *machine(found),
            "",
            f"Each of {len(pairs)} programs takes so many times the time of its plain formula in bfloat16: median {middle}. "
            f"{sum(r < 1 for r in ratios)} are faster than their formula. [accelerator.md](accelerator.md) has all; "
            f"these take more than {SLOWER} times as long:\n",
            *table_of([pair for pair in pairs if pair[1] > SLOWER], found),
            "",
        ]
    )


def complete(found):
    """Returns the text of docs/accelerator.md."""
    text = COMPLETE.format(
        dtype="bfloat16", rounds=ROUNDS, bandwidth=found["bandwidth"] / 1e9, processes=found["processes"]
    )
    errors = [f"{key}: {result['error']}" for key, result in found["pairs"].items() if "error" in result]
    lines = [text, *machine(found), "", *table_of(sorted(timed(found)), found), ""]
    return "\n".join([*lines, *listed("Not timed:", errors)])


def table_of(pairs, found):
    """Returns the lines of a table of pairs."""
    lines = ["| program | time | of a copy | temporaries, compiled |", "| --- | --- | --- | --- |"]
    for key, over, result in pairs:
        ours = statistics.median(next(iter(result["seconds"].values())))
        share = result["bytes"] / ours / found["bandwidth"]
        memory = " and ".join(f"{n / 1e6:.0f} MB" for n in result["temporaries"].values())
        seconds = " and ".join(f"{n:.1f} s" for n in result["compile_seconds"].values())
        lines.append(f"| {key.replace(' | ', ', ')} | {over:.2f} | {share:.0%} | {memory}, {seconds} |")
    return lines


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
