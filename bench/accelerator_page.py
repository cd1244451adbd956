"""The table of an accelerator, from its JSON."""

import statistics

HEAD = "## On an accelerator\n"
UNMEASURED = "Not measured: no GPU and no TPU was at hand. `make accelerator` fills this table where there is one.\n"


def section(found):
    """The text of the section."""
    if found is None:
        return HEAD + "\n" + UNMEASURED
    check = found["check"]
    judged = f"{len(check['passed'])} functions passed"
    for what in ("failed", "not judged"):
        if check[what]:
            judged += f"; {what}: {', '.join(check[what])}"
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [HEAD]
    if found["scale"] != "full":
        lines += ["**A tiny run: that it runs, not how fast it is.**\n"]
    lines += [
        f"* {found['date']}, {found['device']}",
        f"* {versions}; missing: {', '.join(found['missing']) or 'none'}",
        f"* the judge (float32, bfloat16): {judged}\n",
        "GB/s are the bytes that no way can do without (tokens read, in a step an array like them written) by the median time;",
        "the share is of the bandwidth of a copy in the same rounds. Below 1× attnpool is slower.\n",
        "| case | way | GB/s (share of a copy) | attnpool is faster by |",
        "| --- | --- | --- | --- |",
        *rows(found["cases"]),
    ]
    refused = [f"* {line}" for line in found["not measured"]]
    return "\n".join([*lines, "", "Not measured:\n", *(refused or ["* nothing"])]) + "\n"


def rows(cases):
    """A line for each way of each case."""
    for case in cases:
        seconds = case["seconds"]
        for name, times in seconds.items():
            moved = case["copy_bytes"] if name == "copy" else case["bytes"]
            speed = moved / statistics.median(times) / 1e9
            pairs = list(zip(times, seconds["copy"], strict=True))
            share = statistics.median(moved / t / (case["copy_bytes"] / c) for t, c in pairs)
            over = statistics.median(t / o for t, o in zip(times, seconds["attnpool"], strict=True))
            about = f"{case['function']}, {case['title']}, {case['direction']}" if name == "copy" else ""
            faster = "-" if name in ("copy", "attnpool") else f"{over:.2f}×"
            yield f"| {about} | {name} | {speed:.3g} ({share:.0%}) | {faster} |"
