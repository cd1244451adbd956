"""Prints measures of the size and the structure of the packages: ``python tests/repo/measures.py``.

Each line has a measure, its value, and the goal. The calls of ``attention_pooling`` are traced in this process.
"""

import ast
import os
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("attnpool_flax", "attnpool_ref")
FLAX = ROOT / "attnpool_flax"
ENGINE = ("call", "tokens", "numerics")
JUDGE = ("conformance", "contract", "table")
PLATFORM = re.compile(r"platform_dependent\(|default_backend\(|platform=|\bcpu=")
RULE = re.compile(r"jax\.custom_[jv][vj]p\b|\bPrimitive\(")


def files(folder):
    """Returns the Python files below a folder, without type stubs."""
    return sorted(folder.rglob("*.py"))


def lines(paths):
    """Returns the number of lines of all these files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def largest_room():
    """Returns (share in percent, name) of the largest folder of ``attnpool_flax``; files outside of folders are one."""
    rooms = Counter()
    for path in files(FLAX):
        rooms[path.relative_to(FLAX).parts[0] if path.parent != FLAX else "families"] += lines([path])
    name, count = rooms.most_common(1)[0]
    return 100 * count / rooms.total(), name


def fullest_folder():
    """Returns (number of Python files, path) of the folder of the packages with the most, and ``modules/`` apart."""
    counts = Counter(path.parent.relative_to(ROOT) for package in PACKAGES for path in files(ROOT / package))
    modules = counts.pop(Path("attnpool_flax/modules"))
    path, count = counts.most_common(1)[0]
    return f"{count} in {path}, {modules} in modules"


def repeated_classes():
    """Returns the names of classes that stand in more than one file of ``attnpool_flax``, outside of modules."""
    names = Counter()
    for path in files(FLAX):
        if path.relative_to(FLAX).parts[0] not in ("modules", "linen"):
            names.update({node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)})
    return sorted(name for name, count in names.items() if count > 1)


def tree(path):
    """Returns the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def occurrences(text, folder):
    """Returns the number of lines of the files below a folder that have a text."""
    return sum(text in line for path in files(folder) for line in path.read_text(encoding="utf-8").splitlines())


def matching(pattern, paths):
    """Returns the files that have a line with a pattern, each once for each such line."""
    return [path for path in paths for line in path.read_text(encoding="utf-8").splitlines() if pattern.search(line)]


def constants(paths):
    """Returns the names of numbers at the top of modules, by which loops and series are tuned."""
    found = []
    for path in paths:
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in names_of(node)):
                numbers = all(is_number(value) for value in values_of(node))
                found += [f"{path.stem}.{target.id}" for target in names_of(node) if numbers]
    return found


def names_of(node):
    """Returns the targets of an assignment, those of a tuple one by one."""
    (target,) = node.targets
    return target.elts if isinstance(target, ast.Tuple) else [target]


def values_of(node):
    """Returns the values of an assignment, those of a tuple one by one."""
    return node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]


def is_number(node):
    """Returns whether an expression has numbers and operators only."""
    parts = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(
        isinstance(n, parts)
        or (isinstance(n, ast.Constant) and isinstance(n.value, (int, float)) and n.value is not True)
        for n in ast.walk(node)
    )


def lists_of_functions():
    """Returns the lists, tuples, sets and dicts in ``conformance/`` with the names of at least two functions."""
    from attnpool_ref import table

    found = []
    for path in files(ROOT / "attnpool_ref" / "conformance"):
        for node in ast.walk(tree(path)):
            parts = getattr(node, "keys" if isinstance(node, ast.Dict) else "elts", ())
            names = [part for part in parts if isinstance(part, ast.Constant) and part.value in table.BY_NAME]
            found += [f"{path.name}:{node.lineno}"] if len(names) > 1 else []
    return found


class Trace:
    """The calls of functions of ``attnpool_flax`` and ``attnpool_ref`` in a ``with`` block.

    Attributes:
      calls: their number.
      paths: the files in which they are.
      depth: the number of their frames where JAX is first asked for a matrix product; None if it is not.
    """

    def __init__(self):
        self.calls, self.paths, self.depth = 0, set(), None

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, *exception):
        sys.setprofile(None)

    def _look(self, frame, event, _argument):
        if event != "call":
            return
        if ours(frame):
            self.calls += 1
            self.paths.add(frame.f_code.co_filename)
        elif self.depth is None and frame.f_code.co_name in ("dot_general", "einsum", "matmul", "dot"):
            self.depth = 0
            while frame is not None:
                self.depth += ours(frame)
                frame = frame.f_back


def ours(frame):
    """Returns whether a frame belongs to one of the packages."""
    return any(f"{os.sep}{package}{os.sep}" in frame.f_code.co_filename for package in PACKAGES)


def traced():
    """Returns the traces of the first and of the second call of ``attention_pooling`` with [2, 5, 8]."""
    import jax.numpy as jnp

    import attnpool_flax

    x, mask = jnp.ones((2, 5, 8)), jnp.ones((2, 5), bool)
    with Trace() as first:
        attnpool_flax.attention_pooling(x, mask)
    with Trace() as second:
        attnpool_flax.attention_pooling(x, mask)
    return first, second


def pages():
    """Returns the pages of ``docs/``: without notebooks, decisions, and the names that ``attnpool find`` knows."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    others = ("notebooks", "decisions", "project", "reference")  # the last two are written by `make site`
    paths = [path.relative_to(ROOT / "docs") for path in found]
    return [ROOT / "docs" / path for path in paths if path.parts[0] not in others and path.name != "which.md"]


def words(paths):
    """Returns the number of words of all these files, as ``wc -w`` counts them."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def outside_of_packages():
    """Yields (measure, value, goal) of pages, tools, benchmarks and tests."""
    yield "words of docs/", words(pages()), "40,000"
    yield "pages of docs/", len(pages()), "36"
    decisions = [path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md"]
    yield "decisions", len(decisions), "12"
    yield "words of CONTRIBUTING.md", words([ROOT / "CONTRIBUTING.md"]), "1,200"
    yield "lines in tools/", lines(files(ROOT / "tools")), "3,500"
    yield "lines in bench/", lines(files(ROOT / "bench")), "3,500"
    yield "lines in tests/", lines(files(ROOT / "tests")), "28,000"


def measures():
    """Yields (measure, value, goal)."""
    yield from outside_of_packages()
    engine = [path for name in ENGINE for path in files(FLAX / name)]
    share, name = largest_room()
    first, second = traced()
    rules = [path.relative_to(FLAX).parts[0] for path in matching(RULE, files(FLAX))]
    yield "lines in attnpool_flax", lines(files(FLAX)), "13,000"
    yield "lines in its engine: call/, tokens/, numerics/", lines(engine), "4,300"
    yield "lines in attnpool_ref", lines(files(ROOT / "attnpool_ref")), "20,000"
    judge = [path for name in JUDGE for path in files(ROOT / "attnpool_ref" / name)]
    yield "lines in its judge: conformance/, contract/, table/", lines(judge), "11,300"
    yield "lists of names of functions in conformance/", len(lists_of_functions()), "0"
    yield "gradient rules by hand, in call/ and tokens/", f"{len(rules)}, {sum(map(rules.count, ENGINE[:2]))}", "18, 8"
    yield "files that know a platform", len(set(matching(PLATFORM, files(FLAX)))), "1"
    tuned = constants(engine)
    yield "tuning constants of the engine", f"{len(tuned)}: {', '.join(tuned)}", "12"
    yield "largest room of attnpool_flax", f"{share:.0f} % ({name})", "26 %"
    yield "classes of one name", ", ".join(repeated_classes()) or 0, "0"
    yield "most files in one folder", fullest_folder(), "16, 20 in modules"
    yield "first call: calls of ours, files", f"{first.calls}, {len(first.paths)}", "200, 16"
    yield "frames of ours at the first matrix product", first.depth, "12"
    yield "second call: calls of ours, files", f"{second.calls}, {len(second.paths)}", "7, 2"
    yield "lines of tests with monkeypatch", occurrences("monkeypatch", ROOT / "tests"), "100"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for measure, value, goal in measures():
        print(f"{measure:<45} {value!s:<45} {goal and f'goal {goal}'}".rstrip())
