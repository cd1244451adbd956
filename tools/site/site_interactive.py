"""The interactive page of the site, and numbers of attnpool_ref with which tests compare its JavaScript.

The right numbers are those of :func:`attnpool_ref.attend`. The wrong numbers are those of mistakes in public code: a
mask by a product or a sum, then the same normalizer without a mask, and the plain product of weights and tokens.
"""

import json
import shutil
from pathlib import Path

import numpy as np

import attnpool_ref
from attnpool_ref.table import BY_NAME

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interactive"
TOLERANCE = 1e-12
NORMALIZERS = tuple(BY_NAME["attend"].options["normalizer"])
WITHOUT_A_MASK = {
    "softmax": attnpool_ref.masked_softmax,
    "sparsemax": attnpool_ref.sparsemax,
    "entmax15": attnpool_ref.entmax15,
    "sigmoid": attnpool_ref.masked_sigmoid,
    "hardmax": attnpool_ref.hardmax,
}


def added(scores, mask, penalty):
    """Returns scores plus a penalty where the mask is False, in the dtype of the scores."""
    return scores + (1 - mask.astype(scores.dtype)) * np.array(penalty).astype(scores.dtype)


MISTAKES = {
    "none": None,
    "times 0": lambda scores, mask: scores * mask,
    "minus 1e4": lambda scores, mask: added(scores, mask, -1e4),
    "minus 1e9, float16": lambda scores, mask: added(scores.astype(np.float16), mask, -1e9),
}
"""Functions of scores and mask, one for each mistake in the mask."""

PRIMER = ([0, 0, 2.828, 0.707], [[0, 2], [0, 0], [2, 0], [0.5, 0]])
"""Scores and tokens of "not a good film", as in docs/guides/primer.md."""

PADDING = {"zeros": (0, 0, 0), "left over": (1.5, -2, -1), "NaN": (np.nan,) * 3, "infinity": (np.inf,) * 3}
"""Score and token of each padded position, by its name on the page."""


def padded(scores, x, padding, count, real=None):
    """Returns a case's arrays: tokens, then ``count`` padded positions; only the first ``real`` tokens are real."""
    score, *token = PADDING[padding]
    real = len(scores) if real is None else real
    mask = np.arange(len(scores) + count) < real
    given = [*scores[:real], *[score] * (len(mask) - real)], [*x[:real], *[token] * (len(mask) - real)]
    return *(np.array(array, float) for array in given), mask


def right(scores, x, mask, normalizer):
    """Returns weights and pooled vector of the definition."""
    pooled, weights = attnpool_ref.attend(scores[None], x, mask[None], normalizer=normalizer, return_weights=True)
    return {"weights": weights[0], "pooled": pooled[0]}


def wrong(scores, x, mask, normalizer, mistake):
    """Returns weights and pooled vector with a mistake."""
    if mistake == "none":
        return right(scores, x, mask, normalizer)
    with np.errstate(invalid="ignore", over="ignore"):
        mistaken = MISTAKES[mistake](scores, mask).astype(np.float64)
        weights = WITHOUT_A_MASK[normalizer](mistaken)
        if normalizer != "sigmoid" and (mistaken == -np.inf).all():
            weights = np.full_like(weights, np.nan)  # -inf minus -inf; attnpool's weights are 0
        return {"weights": weights, "pooled": np.einsum("l,ld->d", weights, x)}


def cases():
    """Yields (name, scores, x, mask, normalizer, mistake)."""
    random = np.random.default_rng(0)
    for normalizer in NORMALIZERS:
        for mistake in MISTAKES:
            scores, x = random.normal(size=5).round(3) * 2, random.normal(size=(5, 2)).round(3)
            yield f"{normalizer}, {mistake}", *padded(scores, x, "left over", 3), normalizer, mistake
        yield f"{normalizer}, ties", *padded([1, 1, 0.5, 1], PRIMER[1], "zeros", 2), normalizer, "times 0"
        yield f"{normalizer}, far apart", *padded([800, -800, 799.5, 0], PRIMER[1], "zeros", 2), normalizer, "times 0"
        yield f"{normalizer}, NaN in padding", *padded(*PRIMER, "NaN", 2), normalizer, "times 0"
    for mistake in MISTAKES:
        for padding in PADDING:
            yield f"fully masked, {padding}, {mistake}", *padded(*PRIMER, padding, 1, 0), "softmax", mistake
    for normalizer in NORMALIZERS[1:]:
        for mistake in ("minus 1e4", "minus 1e9, float16"):
            yield f"fully masked, {normalizer}, {mistake}", *padded(*PRIMER, "left over", 0, 0), normalizer, mistake
    for padding in ("NaN", "infinity"):
        for mistake in MISTAKES:
            yield f"{padding} in padding, {mistake}", *padded(*PRIMER, padding, 4), "softmax", mistake
    for padding in PADDING:
        yield f"the primer, {padding}", *padded(*PRIMER, padding, 4), "softmax", "times 0"
    yield "real scores of -inf", *padded([-np.inf, 0.3, -np.inf, 1], PRIMER[1], "zeros", 1), "sparsemax", "minus 1e4"
    for normalizer in NORMALIZERS:
        for what, scores in (
            ("only -inf", [-np.inf] * 4),
            ("a NaN", [0, np.nan, 1, 2]),
            ("an infinity", [0, np.inf, 1, 2]),
        ):
            yield (
                f"{normalizer}, {what} at real tokens",
                *padded(scores, PRIMER[1], "zeros", 1),
                normalizer,
                "minus 1e4",
            )
    for score in (1.95, 2.05):  # around the score at which 1.5-entmax drops the second token
        yield f"the edge of a support, {score}", *padded([score, 0], [[1, 2], [3, 4]], "zeros", 1), "entmax15", "none"
    yield (
        "scores as low as the penalty",
        *padded([-9999, -10000.5], [[1, 2], [3, 4]], "zeros", 2),
        "softmax",
        "minus 1e4",
    )
    yield "one token", *padded([-3], [[1, 2]], "zeros", 0), "softmax", "times 0"


def write(folder):
    """Copies the page of plain HTML and JavaScript, as it is, and writes the cases beside it."""
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    (folder / "cases.json").write_text(json.dumps(document()), encoding="utf-8")


def document():
    """Returns the cases, with the results of each, as JSON."""
    found = []
    for name, scores, x, mask, normalizer, mistake in cases():
        results = {"right": right(scores, x, mask, normalizer), "wrong": wrong(scores, x, mask, normalizer, mistake)}
        given = {"name": name, "normalizer": normalizer, "mistake": mistake, "scores": scores, "x": x, "mask": mask}
        found.append(_plain(given | results))
    return {"tolerance": TOLERANCE, "cases": found}


def _plain(value):
    """Returns arrays as lists, with numbers that JSON does not have as strings."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value.tolist()]
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return value
