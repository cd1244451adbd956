"""Generator of the tables of options in ``docs/options.md``, from the declarations of the options of the judge."""

import re
from pathlib import Path

from attnpool_ref.conformance import Candidate, Scope
from attnpool_ref.conformance.option import options_of

PATH = Path(__file__).resolve().parents[2] / "docs" / "options.md"
TABLE = re.compile(r"^\| Python \| command \| meaning \|\n(?:\|.*\n)+", re.MULTILINE)


def table(kind):
    """Returns the table of a dataclass's options: the name in Python, the flag of the command, the help."""
    rows = []
    for name, option in options_of(kind).items():
        command = f"`{option.flag} {option.metavar}`" if option.metavar else f"`{option.flag}`" if option.flag else ""
        rows.append(f"| `{name}` | {command} | {option.says.replace('``', '`')} |")
    return "\n".join(["| Python | command | meaning |", "| --- | --- | --- |", *rows]) + "\n"


def page():
    """Returns the text of the page with its two tables written anew: of the calling convention, and of the scope."""
    tables = iter((table(Candidate), table(Scope)))
    return TABLE.sub(lambda _: next(tables), PATH.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
