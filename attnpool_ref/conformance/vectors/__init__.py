"""Vectors: files of inputs and expected results, with which a port in any language is tested without attnpool.

A file has the cases of one function in groups, one for each of :data:`~attnpool_ref.conformance.vectors.hazards.HAZARDS`.
``vectors.schema.json`` describes it. Inputs are the same on every machine; results are those of the definitions, and tolerances
those of the judge.
"""

import contextlib
import inspect
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import Candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.candidates.adapters.program_arrays import numbers
from attnpool_ref.conformance.causes.mistakes import mistakes_of, of_empty_rows
from attnpool_ref.conformance.causes.wrong_answers import Call
from attnpool_ref.conformance.checks.agreement import allowed_errors
from attnpool_ref.conformance.checks.padding import always_zero
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.checks.tolerances import EPSILON
from attnpool_ref.conformance.vectors.hazards import HAZARDS, plain_case
from attnpool_ref.formats.sources import safetensors

SCHEMA_VERSION = 1
"""Version of the files; it grows when a key changes its meaning or is removed."""

SCHEMA = Path(__file__).with_name("vectors.schema.json")

FAMILIES = ("pooling", "means", "statistics", "additive", "scores", "normalizers")
"""Families of the functions that have vectors."""

FORMATS = ("json", "safetensors")
LARGEST = {"float16": 65504.0, "bfloat16": 2.0**128 - 2.0**120, "float32": 2.0**128 - 2.0**104, "float64": np.inf}
"""Largest finite number of each dtype."""


def functions():
    """Returns the names of the functions that have vectors."""
    return [row.name for row in table.VARIANTS if row.family in FAMILIES]


def vectors_of(name):
    """Returns the content of the file of a function, as dicts and lists that JSON can hold."""
    row, function = table.get(name), getattr(attnpool_ref, name)
    sentence = re.sub(r":\w+:`~?([^`]*)`|`", r"\1", (inspect.getdoc(function) or "").partition("\n")[0])
    exact, main = {}, plain_case(row)
    subjects = {dtype: Subject(row, Candidate(function), NumpyArrays(), dtype, exact) for dtype in EPSILON}
    tried, groups = [*mistakes_of(row, function), *of_empty_rows(row)], []
    for hazard in HAZARDS:
        wrong = [(m.words, m.answer) for m in tried if m.words.startswith(hazard.known)] if hazard.known else []
        judged = [
            (case, expected, rejected((*wrong, *hazard.others), subjects, case, expected))
            for case, expected in _expected(hazard, subjects, main)
        ]
        mistakes = list(dict.fromkeys(words for _, _, found in judged for words in found))
        cases = [_case_as_json(case, expected) for case, expected, found in judged if found]
        if cases:
            groups.append({"name": hazard.name, "says": hazard.says, "mistakes": mistakes, "cases": cases})
    return {
        "schema_version": SCHEMA_VERSION,
        "attnpool": attnpool_ref.__version__,
        "function": name,
        "sentence": sentence,
        "equation": row.equation,
        "source": f"{table.SOURCES[row.source]} ({row.source})",
        "axes": row.shapes,
        "groups": groups,
    }


def _expected(hazard, subjects, main):
    """Yields each case of a hazard with its results: (array, tolerances by dtype)."""
    for case in hazard.cases(main):
        known = {dtype: subject for dtype, subject in subjects.items() if _holds(case, dtype, subject.exact(case))}
        if known:
            yield case, [_toleranced(known, case, index) for index in range(len(case.row.results))]


def _holds(case, dtype, exact):
    """Returns whether a dtype holds the numbers of a case exactly, and its results without overflow."""
    arrays = [value for value in case.values.values() if value is not None and value.dtype.kind == "f"]
    return all(np.array_equal(_rounded(each, dtype), each, equal_nan=True) for each in arrays) and all(
        np.all(np.abs(each) <= LARGEST[dtype], where=np.isfinite(each)) for each in exact
    )


def _rounded(values, dtype):
    if dtype == "bfloat16":  # NumPy does not know it; its range is that of float32
        return drawing.narrow({"": _rounded(values, "float32")})[""]
    with np.errstate(over="ignore"):
        return values.astype(dtype).astype(np.float64)


def _toleranced(subjects, case, index):
    tolerances = {}
    for dtype, subject in subjects.items():
        exact = subject.exact(case)
        size = [np.where(np.isfinite(each), np.abs(each), 0) for each in exact]
        overall = max(float(np.max(each, initial=0)) for each in size)
        allowed = allowed_errors(subject, case, size[index], subject.sensitivities(case, False)[index], overall, dtype)
        exactly = always_zero(subject, case, False)[index] | ~np.isfinite(exact[index])
        tolerances[dtype] = np.where(exactly, 0, allowed)
    return exact[index], tolerances


def rejected(mistakes, subjects, case, expected):
    """Returns the descriptions of the mistakes whose results are not within the tolerances of any dtype.

    ``mistakes`` has pairs of a description and a function from a call to wrong results.
    """
    call, found = Call(next(iter(subjects.values())), case, False), []
    call.got = [
        np.full(each.shape, 1e300) for each in call.exact
    ]  # a mistake that has a range of results gives its first
    for words, wrong in mistakes:
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):  # the changed call may not be legal
            results = None if words in found else wrong(call)
            if results is not None and not any(_agrees(results, expected, dtype) for dtype in expected[0][1]):
                found.append(words)
    return found


def _agrees(results, expected, dtype):
    return all(
        result.shape == want.shape and np.all(is_within(result, want, tolerances[dtype]))
        for result, (want, tolerances) in zip(results, expected, strict=True)
    )


def is_within(got, want, tolerance):
    """Returns for each element whether it is within the tolerance; NaN and infinities must be the same."""
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= tolerance
    return near | (got == want) | (np.isnan(got) & np.isnan(want))


def _case_as_json(case, expected):
    arguments = {key: _array_as_json(value) for key, value in case.values.items() if value is not None}
    options = {key: value for key, value in case.options.items() if not callable(value)}
    results = []
    for array, tolerances in expected:
        limits = {
            dtype: [float(f"{1.005 * each:.2e}") for each in values.reshape(-1)] for dtype, values in tolerances.items()
        }
        results.append(_array_as_json(array) | {"tolerance": limits})
    found = {"name": case.title.removeprefix("plain, "), "arguments": arguments, "options": options}
    return found | _lengths(case) | {"results": results}


def _lengths(case):
    """Returns a dict with the lengths that say the same as the only mask of a case; {} if none do."""
    masks = [case.values[key] for key in case.given("mask") if len(case.arguments()[key].own) == 1]
    found = [
        {"lengths": np.sum(mask, -1).tolist()} for mask in masks if np.array_equal(mask, -np.sort(-mask.astype(int)))
    ]
    return found[0] if len(masks) == len(found) == 1 else {}


def _array_as_json(array):
    kind = {"f": "float", "b": "bool"}.get(array.dtype.kind, "int")
    return {"shape": list(array.shape), "dtype": kind, "data": numbers(array)}


def text_of(vectors):
    """Returns the text of a JSON file, with a line for each group and each case."""
    return json.dumps(vectors, separators=(",", ":")).replace('{"name":', '\n{"name":') + "\n"


def write(names, folder, format="json"):
    """Writes the files of functions into a folder, which is made if it is missing; returns their paths.

    JSON files are beside their schema.

    Raises:
      ValueError: a function has no vectors.
    """
    known, written = functions(), []
    for name in names:
        if name not in known:
            raise ValueError(f"{name} has no vectors{table.did_you_mean(name, known)}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if format == "json":
        shutil.copyfile(SCHEMA, folder / SCHEMA.name)
    for name in names or known:
        vectors, path = vectors_of(name), folder / f"{name}.{format}"
        path.write_bytes(text_of(vectors).encode() if format == "json" else _as_safetensors(vectors))
        written.append(path)
    return written


def _as_safetensors(vectors):
    """Returns the bytes of a safetensors file: arrays by group and case, and all else as JSON in its metadata."""
    tensors, bare = {}, json.loads(json.dumps(vectors))
    for group in bare["groups"]:
        for case in group["cases"]:
            for kind in ("arguments", "results"):
                parts = case[kind].items() if kind == "arguments" else enumerate(case[kind])
                for key, part in parts:
                    name = f"{group['name']}/{case['name']}/{kind}/{key}"
                    dtype = {"float": np.float64, "bool": np.bool_, "int": np.int64}[part["dtype"]]
                    tensors[name] = np.array(part.pop("data"), np.float64).astype(dtype).reshape(part["shape"])
                    for of, limits in part.pop("tolerance", {}).items():
                        tensors[f"{name}/tolerance/{of}"] = np.array(limits, np.float64).reshape(part["shape"])
    file = io.BytesIO()
    safetensors.write(file, tensors, metadata={"vectors": json.dumps(bare)})
    return file.getvalue()
