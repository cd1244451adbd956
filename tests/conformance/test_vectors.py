"""Vectors: they follow their schema, every dtype holds their numbers, and each group rejects the mistakes that it names."""

import functools
import itertools
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from command import run

import attnpool_ref
from attnpool_ref.conformance import vectors
from attnpool_ref.conformance.candidates.adapters import numpy_dtype
from attnpool_ref.conformance.vectors.hazards import HAZARDS
from attnpool_ref.formats.sources import safetensors

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "ports" / "vectors"
MOST_BYTES = 200_000
ODD = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


@functools.cache
def file_of(name):
    """The text of a function's file, and what it holds."""
    text = vectors.text_of(vectors.vectors_of(name))
    return text, json.loads(text)


def array_of(part, dtype="float64"):
    flat = np.array([ODD.get(each, each) for each in part["data"]], np.float64)
    kinds = {"float": numpy_dtype(dtype), "bool": np.bool_, "int": np.int64}
    return flat.astype(kinds[part["dtype"]]).reshape(part["shape"])


def cases_of(held, group=None):
    return [case for each in held["groups"] if group in (None, each["name"]) for case in each["cases"]]


def is_right(got, result, dtype):
    """Whether a result is the expected one, as the guide says."""
    want, limits = array_of(result), np.reshape(result["tolerance"][dtype], result["shape"])
    got = np.asarray(got).astype(np.float64)
    if got.shape != want.shape:
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.abs(got - want) <= limits) | (got == want) | (np.isnan(got) & np.isnan(want))))


@pytest.mark.parametrize("name", vectors.known_names())
def test_a_file_follows_its_schema_and_is_small(name):
    text, held = file_of(name)
    assert len(text.encode()) <= MOST_BYTES
    jsonschema.validate(held, json.loads(vectors.SCHEMA.read_text()))
    assert held["function"] == name and held["schema_version"] == vectors.SCHEMA_VERSION
    names = [(group["name"], case["name"]) for group in held["groups"] for case in group["cases"]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", vectors.known_names())
def test_every_dtype_holds_the_numbers_and_the_definition_keeps_the_tolerances(name):
    for case in cases_of(file_of(name)[1]):
        for dtype in case["results"][0]["tolerance"]:
            arguments = {key: array_of(part, dtype) for key, part in case["arguments"].items()}
            for key, part in case["arguments"].items():
                assert np.array_equal(
                    arguments[key].astype(np.float64), array_of(part).astype(np.float64), equal_nan=True
                )
            with np.errstate(all="ignore"):
                results = getattr(attnpool_ref, name)(**arguments, **case["options"])
            results = results if isinstance(results, tuple) else (results,)
            for got, result in zip(results, case["results"], strict=True):
                assert got.dtype == numpy_dtype(dtype) and is_right(got, result, dtype), (case["name"], dtype)


def test_every_hazard_and_every_mistake_is_in_a_file():
    """A case, a group or a mistake that no function needs does not stay."""
    named = {}
    for name in vectors.known_names():
        for group in file_of(name)[1]["groups"]:
            named.setdefault(group["name"], set()).update(group["mistakes"])
    for hazard in HAZARDS:
        for words in (*hazard.known, *(words for words, _ in hazard.others)):
            assert any(each.startswith(words) for each in named[hazard.name]), (hazard.name, words)


# Wrong means, written by hand: each must be rejected by the cases of the group that names its mistake.


def mean(x, mask):
    real = np.ones(x.shape[:-1], bool) if mask is None else mask
    count = np.maximum(real.sum(-1), 1)[..., None]
    return np.where(real[..., None], x, 0).sum(-2) / count


def with_mask(change):
    return lambda x, mask: mean(x, None if mask is None else change(mask))


def by_product(x, mask):
    real = np.ones(x.shape[:-1]) if mask is None else mask
    return (x * real[..., None]).sum(-2) / np.maximum(real.sum(-1), 1)[..., None]


def without_floor(x, mask):
    real = np.ones(x.shape[:-1], bool) if mask is None else mask
    return np.where(real[..., None], x, 0).sum(-2) / real.sum(-1)[..., None]


def from_first_to_last(mask):
    found = np.zeros_like(mask)
    for row, line in enumerate(mask):
        places = np.flatnonzero(line)
        found[row, places.min(initial=line.size) : places.max(initial=-1) + 1] = True
    return found


def first_512(mask):
    return mask & (np.arange(mask.shape[-1]) < 512)


def of_whole_batch(x, mask):
    real = np.ones(x.shape[:-1], bool) if mask is None else mask
    return np.where(real[..., None], x, 0).sum(-2) / max(real.sum(), 1)


WRONG = {
    "plain": lambda x, mask: mean(x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]).swapaxes(-1, -2), mask),
    "lengths": lambda x, mask: np.where(
        np.ones(x.shape[:-1], bool)[..., None] if mask is None else mask[..., None], x, 0
    ).mean(-2),
    "padding on the left": with_mask(lambda mask: np.arange(mask.shape[-1]) < mask.sum(-1, keepdims=True)),
    "holes": with_mask(from_first_to_last),
    "one token": lambda x, mask: mean(x, mask).squeeze(),
    "a fully masked row": without_floor,
    "NaN under the mask": by_product,
    "large numbers under the mask": by_product,
    "a long row": with_mask(first_512),
    "batch mates": of_whole_batch,
}


def test_a_right_mean_passes():
    for case in cases_of(file_of("mean_pooling")[1]):
        arguments = {key: array_of(part) for key, part in case["arguments"].items()}
        assert is_right(mean(arguments["x"], arguments.get("mask")), case["results"][0], "float64"), case["name"]


@pytest.mark.parametrize("group", WRONG)
def test_a_wrong_mean_is_rejected_by_the_group_of_its_mistake(group):
    held = file_of("mean_pooling")[1]
    assert list(WRONG) == [each["name"] for each in held["groups"]]
    found = []
    for case, dtype in itertools.product(cases_of(held, group), ("float64", "bfloat16")):
        arguments = {key: array_of(part) for key, part in case["arguments"].items()}
        with np.errstate(all="ignore"):
            got = WRONG[group](arguments["x"], arguments.get("mask"))
        found.append(not is_right(got, case["results"][0], dtype))
    assert any(found)
    if group in ("lengths", "padding on the left", "holes", "a fully masked row", "NaN under the mask", "a long row"):
        assert all(found)


@pytest.mark.parametrize("name", ["mean_pooling", "last_pooling"])
def test_files_that_were_made_once_are_made_again(name):
    """Inputs are the same bytes on every machine; results agree within the tolerances of float64."""
    then, now = json.loads((EXAMPLES / f"{name}.json").read_text()), file_of(name)[1]
    assert [group["name"] for group in then["groups"]] == [group["name"] for group in now["groups"]]
    for before, after in zip(cases_of(then), cases_of(now), strict=True):
        bare = [{key: value for key, value in case.items() if key != "results"} for case in (before, after)]
        assert bare[0] == bare[1]
        for old, new in zip(before["results"], after["results"], strict=True):
            assert is_right(array_of(new), old, "float64")
            for dtype, limits in old["tolerance"].items():
                np.testing.assert_allclose(new["tolerance"][dtype], limits, rtol=0.02)
    assert (EXAMPLES / vectors.SCHEMA.name).read_text() == vectors.SCHEMA.read_text()


def test_the_command_writes_files(tmp_path):
    result = run("vectors", "max_pooling", "--output", str(tmp_path / "new" / "folder"))
    assert result.exit_code == 0 and result.output.startswith("1 file, ")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "max_pooling.json",
        "vectors.schema.json",
    ]
    assert (tmp_path / "new" / "folder" / "max_pooling.json").read_text() == file_of("max_pooling")[0]
    wrong = run("vectors", "maxpooling", "--output", str(tmp_path))
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "Error: maxpooling has no vectors; did you mean max_pooling, mean_pooling, softmax_pooling?\n",
    )


def test_safetensors_have_the_same_arrays(tmp_path):
    assert run("vectors", "mean_pooling", "--format", "safetensors", "--output", str(tmp_path)).exit_code == 0
    file = tmp_path / "mean_pooling.safetensors"
    tensors = {name: stored.read() for name, stored in safetensors.tensors_of(file).items()}
    raw = file.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert json.loads(header["__metadata__"]["vectors"])["function"] == "mean_pooling"
    count = 0
    for group in file_of("mean_pooling")[1]["groups"]:
        for case in group["cases"]:
            for key, part in (*case["arguments"].items(), ("0", case["results"][0])):
                kind = "results" if key == "0" else "arguments"
                stored = tensors[f"{group['name']}/{case['name']}/{kind}/{key}"]
                assert np.array_equal(stored, array_of(part), equal_nan=True) and stored.dtype == array_of(part).dtype
                count += 1 + len(part.get("tolerance", ()))
    assert count == len(tensors)
