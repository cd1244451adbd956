"""Command ``python3 -m bench.accelerator``: judges and times attnpool_flax on a GPU or TPU in at most eight minutes.

It installs nothing: it needs NumPy, JAX and Flax, and also times PyTorch if it is installed and sees the device. First
it judges one row for each reduction within the tolerances of the contract, in at most three minutes. Then it times
the cases. A child process uses the device, and is killed if a step takes too long. The JSON file gets all
results, and docs/performance.md the table. The exit status is 1 if a row fails or a timed function of ours is wrong, and 2 if JAX is missing or sees no accelerator. ``--tiny`` tries all of it with tiny sizes on any device,
including a CPU. ``--formulas`` times every dense and packed function beside its plain formula instead, and needs no
longer on a machine with 16 cores.
"""

import argparse
import datetime
import json
import math
import sys
import time
from pathlib import Path

from attnpool_ref import cli
from bench import accelerator_page, page
from bench.accelerator_formulas import Measurement
from bench.child import Child

BUDGET = 8 * 60
"""Seconds for the whole command."""

JUDGING = 3 / 8
"""The part of these seconds for the judge."""

STEP = 75
"""Seconds for one step: judging a row, compiling and verifying a program, or the rounds of a race."""

LAST = 3
"""Seconds before the end after which no new step begins."""

ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # PyTorch needs memory, too
REHEARSAL = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}

OURS = "attnpool"
NO_TIME = "no time left"


def main(arguments=None):
    """Runs everything if there is an accelerator, and returns the exit status."""
    missing = cli.missing("flax")
    if missing:
        print(missing)
        return 2
    parser = argparse.ArgumentParser(prog="python3 -m bench.accelerator", description=__doc__.split("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, on any device")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for everything (default: %(default)s)")
    parser.add_argument("--only", default="", help="time only cases whose name holds this")
    parser.add_argument("--formulas", action="store_true", help="time every function beside its formula instead")
    parser.add_argument("--output", type=Path, help="a folder for everything that is written")
    given = parser.parse_args(arguments)
    command = [sys.executable, "-m", "bench.accelerator_child", *(["--tiny"] if given.tiny else [])]
    environment = ENVIRONMENT | (REHEARSAL if given.tiny else {})
    folder = given.output or (page.ROOT / "build" / "bench" if given.tiny else None)
    session = Run(Child(command, STEP, environment), given.budget, given.tiny)
    return (beside_formulas if given.formulas else run)(session, folder, given.only)


def beside_formulas(session, folder, only=""):
    """Times functions beside their formulas, writes and prints; returns the exit status."""
    try:
        found = session.describe()
    finally:
        session.child.stop()
    if found is None:
        return 2
    results, document = page.paths(folder)
    file = results.with_name(page.FORMULAS)
    own = Measurement(session.child.environment, session.end, session.tiny, only)
    for said in own.steps():
        found |= {"pairs": own.results, "bandwidth": own.bandwidth, "processes": len(own.children)}
        save(found, file)
        session.say(said)
    page.write(results, document, redraw=False)
    print(f"wrote {file}, {document} and {document.with_name('accelerator.md')}")
    return 0


def run(session, folder, only=""):
    """Judges, measures, writes and prints; returns the exit status."""
    try:
        found = session.describe()
        if found is None:
            return 2
        results, document = page.paths(folder)
        results = results.with_name("accelerator.json")
        for _ in session.steps(only):
            save(found, results)  # after each step, so that an interrupted run keeps its results
    finally:
        session.child.stop()
    page.write(results.with_name("results.json"), document, redraw=False)  # matplotlib may not be there
    print(accelerator_page.section(found))
    print(f"wrote {results} and {document}")
    return 1 if accelerator_page.failed(found) else 0


def save(found, path):
    """Writes the JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


class Run:
    """A run within its time limit: questions for the child process, and results."""

    def __init__(self, child, budget=BUDGET, tiny=False):
        self.child, self.tiny, self.begun = child, tiny, time.monotonic()
        self.end = self.begun + budget
        self.judged_until = self.begun + JUDGING * budget

    def describe(self):
        """Returns the description of the device; None if there is no accelerator."""
        asked = self.child.ask({"ask": "describe"}, self.judged_until)
        if "error" in asked:
            print(f"JAX finds no device: {asked['error']}")
            return None
        if asked["platform"] == "cpu" and not self.tiny:
            print("no accelerator: JAX sees only the CPU. Nothing was measured (--tiny rehearses all of it here).")
            return None
        self.rows, self.races = asked.pop("rows"), asked.pop("races")
        self.found = {
            "date": datetime.date.today().isoformat(),
            "scale": "tiny" if self.tiny else "full",
            **asked,
            "judged": {},
            "cases": [],
            "wrong": [],
            "not reached": [],
        }
        return self.found

    def steps(self, only):
        """Judges the rows, then times the cases; yields after each."""
        for name in self.rows:
            self.judge(name)
            yield
        for label, index, direction in self.races:
            if only in label:
                self.race(label, {"index": index, "direction": direction})
                yield

    def judge(self, name):
        """Judges a row if there is time left; a row whose process ends has failed."""
        if self.judged_until - time.monotonic() < LAST:
            self.found["not reached"].append(f"{name}: {NO_TIME}")
            return
        verdict = self.child.ask({"ask": "judge", "name": name}, self.judged_until)
        if "error" in verdict and verdict["error"].startswith("not in"):
            self.found["not reached"].append(f"{name}: {verdict['error']}")
        elif "error" in verdict:
            verdict = {"status": "fail", "failures": [verdict["error"]]}
        if "status" in verdict:
            self.found["judged"][name] = verdict
        self.say(f"judged {name}: {verdict.get('status', 'not reached')}")

    def race(self, label, which):
        """Times a case in one direction; lists ways that fail, are wrong or take too long, and continues without them."""
        left_out = set()
        while (again := self._race(label, which, left_out)) is not None:
            left_out.add(again)
        self.say(f"timed {label}")

    def _race(self, label, which, left_out):
        """Returns the way whose process ended, so that the race can begin again without it; None if the race is over."""
        opened = self.ask({"ask": "open"} | which)
        if "error" in opened:
            self.found["not reached"].append(f"{label}: {opened['error']}")
            return None
        for way in opened["ways"]:
            if way in left_out:
                continue
            added = self.ask({"ask": "add", "way": way})
            if "error" not in added:
                continue
            if added["error"] == NO_TIME:
                self.found["not reached"].append(f"{label}: {NO_TIME}")
                return None
            wrong = added.get("wrong") and way.startswith(OURS)
            self.found["wrong" if wrong else "not reached"].append(f"{label}, {way}: {added['error']}")
            if self.child.process is None:
                return way
        timed = self.ask({"ask": "time"})
        if "error" in timed:
            self.found["not reached"].append(f"{label}, the rounds: {timed['error']}")
        else:
            self.found["cases"].append(timed)
        return None

    def ask(self, question):
        """Returns the answer to a question of a race."""
        if self.end - time.monotonic() < LAST:
            return {"error": NO_TIME}
        return self.child.ask(question, self.end)

    def say(self, line):
        """Prints a line with the remaining time."""
        print(f"{line} ({max(0, math.floor(self.end - time.monotonic()))} s left)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
