"""Functions of packed tokens, derived from functions of one sequence: a loop over the segments."""

import inspect
import re

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract.definition import definition
from attnpool_ref.table.language import arguments_of, present

_NEW = [
    inspect.Parameter("segment_ids", inspect.Parameter.POSITIONAL_OR_KEYWORD),
    inspect.Parameter("num_segments", inspect.Parameter.POSITIONAL_OR_KEYWORD),
]
_SORTED = inspect.Parameter("indices_are_sorted", inspect.Parameter.KEYWORD_ONLY, default=False)

_NEW_ARGS = (
    "  segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.\n"
    "  num_segments: the number of segments, an integer.\n"
)


def each_segment(dense, example):
    """Returns the definition for packed tokens that applies a dense definition to each segment.

    Args:
      dense: the definition, a public function whose first argument is x [..., L, d].
      example: the example of the docstring.
    """
    row = table.get(f"segment_{dense.__name__}")
    body = dense.__wrapped__  # the packed arguments are checked before; their parts then fit
    absent = {"lengths": None} if "lengths" in inspect.signature(dense).parameters else {}

    def pooled(*, segment_ids, num_segments, indices_are_sorted, **values):
        del indices_are_sorted  # no faster algorithm here
        none = np.zeros(len(segment_ids), bool)
        places = [None] * len(row.results)
        if values.get("return_weights"):
            places += [axes.index("N") for axes in present(row.weight_results, _optional_axes(row, values))]
        results = []
        for like, place in zip(_arrays(body(**_of(row, values, none, 0), **absent)), places, strict=True):
            shape = list(like.shape)
            if place is None:
                shape.insert(0, num_segments)
            else:
                shape[place] = len(segment_ids)
            results.append(np.zeros(shape))
        for s in range(num_segments):
            own = segment_ids == s
            for result, part, place in zip(
                results, _arrays(body(**_of(row, values, own, s), **absent)), places, strict=True
            ):
                result[s if place is None else (slice(None),) * place + (own,)] = part
        return results[0] if len(results) == 1 else tuple(results)

    pooled.__name__ = pooled.__qualname__ = row.name
    pooled.__module__ = "attnpool_ref.segments"
    pooled.__doc__ = _docstring(dense, example)
    pooled.__signature__ = _signature(dense)
    return definition(pooled)


def _of(row, values, own, s):
    """Returns the arguments for one segment; ``own`` marks its tokens."""
    values, arguments = dict(values), arguments_of(row, values)
    for key, value in values.items():
        if value is None or key not in arguments:
            continue
        axes = next(shape for shape in arguments[key].shapes if len(shape) == value.ndim)
        if "N" in axes:
            values[key] = np.compress(own, value, axes.index("N"))
        elif "num_segments" in axes:
            values[key] = value[s] if len(value) else np.zeros(value.shape[1:])
    return values


def _optional_axes(row, values):
    """Returns the optional axes that this call has."""
    given = [(a, values[key]) for key, a in row.arguments.items() if a.lacks and values[key] is not None]
    return {a.lacks for a, value in given if value.ndim == len(a.shapes[0])}


def _arrays(result):
    return result if isinstance(result, tuple) else (result,)


def _signature(dense):
    x, *others = inspect.signature(dense).parameters.values()
    others = [p for p in others if p.name != "lengths"]
    by_place = [p for p in others if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = [p for p in others if p.kind is p.KEYWORD_ONLY]
    before = next((i for i, p in enumerate(by_name) if p.name == "return_weights"), len(by_name))
    return inspect.Signature([x, *_NEW, *by_place, *by_name[:before], _SORTED, *by_name[before:]])


def _docstring(dense, example):
    """Returns the dense function's docstring with the shapes of packed tokens."""
    text, _, _ = (inspect.getdoc(dense) or "").partition(">>> ")
    summary, _, rest = text.rstrip().partition("\n\n")
    rest = re.sub(r"\n  lengths: .*(\n    .*)*", "", rest)
    rest = re.sub(r"\n  normalizer: .*(\n    .*)*", '\n  normalizer: "softmax" or "sigmoid".', rest)
    rest = re.sub(r", a\n? *function whose weights have another shape than its scores", "", rest)
    rest = re.sub(r"\[\.\.\., ([^\]]*)\]", _packed_shape, rest)
    rest = re.sub(r"(?<=\n)  x: \[N, d\] (\w+)(.*)\n", rf"  x: [N, d] \1 of all segments\2\n{_NEW_ARGS}", rest)
    last = "\n  return_weights:" if "\n  return_weights:" in rest else "\n\nReturns:"
    rest = rest.replace(
        last, f"\n  indices_are_sorted: the caller guarantees that the numbers never decrease.{last}", 1
    )
    rest = rest.replace("[L] for all examples or ", "")
    rest = rest.replace("example", "segment")
    rest = re.sub(
        r"(ValueError: .*(\n    .*)*)\.(?=\n)", r"\1,\n    segment numbers that are no integers or out of range.", rest
    )
    return (
        f"{summary}\n\n"
        f"For each segment of packed tokens, returns the result of :func:`{dense.__name__}` for its tokens.\n"
        f"A segment without real tokens is a fully masked row.\n\n{rest}\n\n{inspect.cleandoc(example)}\n"
    )


def _packed_shape(match):
    axes = match[1].split(", ")
    if "L" in axes:
        return f"[{', '.join('N' if axis == 'L' else axis for axis in axes)}]"
    return f"[num_segments, {match[1]}]"
