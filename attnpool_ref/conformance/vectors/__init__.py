"""Vectors: files of inputs and expected results, with which a port in any language is tested without attnpool.

A file has the cases of one function in groups, one for each of :data:`~attnpool_ref.conformance.vectors.hazards.HAZARDS`.
``vectors.schema.json`` describes it. Results are those of the definitions, and tolerances those of the judge.
"""

import contextlib
import inspect
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance.candidates import Candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays, numpy_dtype
from attnpool_ref.conformance.candidates.adapters.program_arrays import numbers
from attnpool_ref.conformance.causes.mistakes import mistakes_of, of_empty_rows
from attnpool_ref.conformance.causes.wrong_answers import Call
from attnpool_ref.conformance.checks.agreement import allowed_errors, compare
from attnpool_ref.conformance.checks.padding import always_zero
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.checks.tolerances import EPSILON
from attnpool_ref.conformance.vectors.hazards import HAZARDS, plain_case
from attnpool_ref.formats.sources import safetensors

SCHEMA_VERSION = 1  # grows when a key changes its meaning or is removed
SCHEMA = Path(__file__).with_name("vectors.schema.json")
FAMILIES = ("pooling", "means", "statistics", "additive", "scores", "normalizers")  # whose functions have vectors


def known_names():
    """Returns the names of the functions that have vectors."""
    return [row.name for row in table.VARIANTS if row.family in FAMILIES and not row.packed]


def vectors_of(name):
    """Returns the content of the file of a function, as dicts and lists that JSON can hold."""
    row, function, exact = table.get(name), getattr(attnpool_ref, name), {}
    subjects = [Subject(row, Candidate(function), NumpyArrays(), dtype, exact) for dtype in EPSILON]
    known, main, groups = [*mistakes_of(row, function), *of_empty_rows(row)], plain_case(row), []
    for hazard in HAZARDS:
        wrong = [(each.words, each.answer) for each in known if each.words.startswith(hazard.known)]
        group = {"name": hazard.name, "says": hazard.says, "mistakes": [], "cases": []}
        for case in hazard.cases(main):
            able = [subject for subject in subjects if _holds(subject, case)]
            found = rejected((*wrong, *hazard.others), able, case) if able else []
            group["mistakes"] += [words for words in found if words not in group["mistakes"]]
            group["cases"] += [_case_as_json(able, case)] if found else []
        groups += [group] if group["cases"] else []
    return {
        "schema_version": SCHEMA_VERSION,
        "attnpool": attnpool_ref.__version__,
        "function": name,
        "sentence": re.sub(r":\w+:`~?([^`]*)`|`", r"\1", (inspect.getdoc(function) or "").partition("\n")[0]),
        "equation": row.equation,
        "source": f"{table.SOURCES[row.source]} ({row.source})",
        "axes": row.shapes,
        "groups": groups,
    }


def _holds(subject, case):
    """Returns whether the dtype holds the numbers of a case exactly, and its results without overflow."""
    dtype = numpy_dtype(subject.dtype)
    given = [value for value in case.values.values() if value is not None and value.dtype.kind == "f"]
    with np.errstate(over="ignore"):
        same = all(np.array_equal(each.astype(dtype).astype(float), each, equal_nan=True) for each in given)
        return same and all(
            np.array_equal(np.isinf(each.astype(dtype).astype(float)), np.isinf(each)) for each in subject.exact(case)
        )


def rejected(mistakes, subjects, case):
    """Returns the descriptions of the mistakes whose results are wrong in the dtype of each subject.

    ``mistakes`` has pairs of a description and a function from a call to results.
    """
    call: Any = Call(subjects[0], case, False)
    call.got = [np.full(each.shape, 1e300) for each in call.exact]  # of a range of results, a mistake gives the first
    found = []
    for words, wrong in mistakes:
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):  # the changed call may not be legal
            results = None if words in found else wrong(call)
            if results is not None and all(_is_wrong(subject, case, results) for subject in subjects):
                found.append(words)
    return found


def _is_wrong(subject, case, results):
    results = [each.astype(numpy_dtype(subject.dtype)) for each in results]
    return bool(compare(subject, case, "", results, subject.exact(case), False).message)


def _case_as_json(subjects, case):
    arguments = {key: _array_as_json(value) for key, value in case.values.items() if value is not None}
    options = {key: value for key, value in case.options.items() if not callable(value)}
    results = [_array_as_json(each) | {"tolerance": {}} for each in subjects[0].exact(case)]
    for subject in subjects:
        for result, limits in zip(results, _tolerances(subject, case), strict=True):
            result["tolerance"][subject.dtype] = [float(f"{1.005 * each:.2e}") for each in limits.reshape(-1)]
    name = case.title.removeprefix("plain, ")
    return {"name": name, "arguments": arguments, "options": options} | _lengths(case) | {"results": results}


def _tolerances(subject, case):
    """Yields the largest allowed error of each element of each result; 0 where it is always 0, or not finite."""
    exact, zeros = subject.exact(case), always_zero(subject, case, False)
    sizes = [np.where(np.isfinite(each), np.abs(each), 0) for each in exact]
    overall = max(float(np.max(size, initial=0)) for size in sizes)
    for want, size, zero, moved in zip(exact, sizes, zeros, subject.sensitivities(case, False), strict=True):
        allowed = allowed_errors(subject, case, size, moved, overall, subject.dtype)
        yield np.where(zero | ~np.isfinite(want), 0, allowed)


def _lengths(case):
    """Returns a dict with the lengths that say the same as the only mask of a case; {} if none do."""
    masks = [case.values[key] for key in case.given("mask") if len(case.arguments()[key].own) == 1]
    found = [{"lengths": np.sum(m, -1).tolist()} for m in masks if np.array_equal(m, -np.sort(-m.astype(int)))]
    return found[0] if len(masks) == len(found) == 1 else {}


def _array_as_json(array):
    kind = {"f": "float", "b": "bool"}.get(array.dtype.kind, "int")
    return {"shape": list(array.shape), "dtype": kind, "data": numbers(array)}


def text_of(vectors):
    """Returns the text of a JSON file, with a line for each group and each case."""
    return json.dumps(vectors, separators=(",", ":")).replace('{"name":', '\n{"name":') + "\n"


def write(names, folder, format="json"):
    """Writes the files of functions (all if there are no names), beside the schema of JSON files; returns their paths.

    Raises:
      ValueError: a function has no vectors.
    """
    for name in names:
        if name not in known_names():
            raise ValueError(f"{name} has no vectors{table.did_you_mean(name, known_names())}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    if format == "json":
        shutil.copyfile(SCHEMA, Path(folder, SCHEMA.name))
    files = [Path(folder, f"{name}.{format}") for name in names or known_names()]
    for file in files:
        vectors = vectors_of(file.stem)
        file.write_bytes(text_of(vectors).encode() if format == "json" else _as_safetensors(vectors))
    return files


def _as_safetensors(vectors):
    """Returns the bytes of a safetensors file: arrays by group and case, and all else as JSON in its metadata."""
    tensors, types = {}, {"float": np.float64, "bool": np.bool_, "int": np.int64}
    for group in vectors["groups"]:
        for case in group["cases"]:
            named = {f"results/{index}": part for index, part in enumerate(case["results"])}
            named |= {f"arguments/{key}": part for key, part in case["arguments"].items()}
            for key, part in named.items():
                shape, name = part["shape"], f"{group['name']}/{case['name']}/{key}"
                tensors[name] = np.array(part.pop("data"), float).astype(types[part["dtype"]]).reshape(shape)
                for dtype, limits in part.pop("tolerance", {}).items():
                    tensors[f"{name}/tolerance/{dtype}"] = np.array(limits, float).reshape(shape)
    file = io.BytesIO()
    safetensors.write(file, tensors, metadata={"vectors": json.dumps(vectors)})
    return file.getvalue()
