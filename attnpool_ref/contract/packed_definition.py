"""Derivation of packed functions from dense ones: signature, docstring, and in NumPy the function itself."""

import inspect

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract import docstrings
from attnpool_ref.contract.definition import definition
from attnpool_ref.contract.text import bracketed
from attnpool_ref.primitives import members
from attnpool_ref.table.language import arguments_of, present

SEGMENT_ERRORS = (
    "also if a segment number is not an integer, or is out of range (the functions in JAX take such a token of a "
    "JAX array for padding)"
)
LAST = ("return_weights", "precision")
"""Arguments that come after the options of packed tokens in a signature."""

SORTED = (
    "True if the segment numbers never decrease, those of padding included: faster in JAX, but not checked; if they do "
    "decrease, the result in JAX may be wrong."
)


def each_segment(dense):
    """Returns the definition for packed tokens that applies a dense definition to each segment.

    Args:
      dense: the definition, a public function whose first argument is x [..., L, d]. The section ``Packed`` of its
        docstring has the example, and an entry for each argument whose description differs.
    """
    row = table.get(f"segment_{dense.__name__}")
    body = dense.body  # without checks: parts of the checked packed arguments fit
    absent = {"lengths": None} if "lengths" in inspect.signature(dense).parameters else {}

    def pooled(*, segment_ids, num_segments, indices_are_sorted, **values):
        del indices_are_sorted  # NumPy uses one algorithm for both
        none = np.zeros(0, np.int64)
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
            own = members(segment_ids, s)
            for result, part, place in zip(
                results, _arrays(body(**_of(row, values, own, s), **absent)), places, strict=True
            ):
                result[s if place is None else (slice(None),) * place + (own,)] = part
        return results[0] if len(results) == 1 else tuple(results)

    pooled.__name__ = pooled.__qualname__ = row.name
    pooled.__module__ = "attnpool_ref.segments"
    pooled.__doc__ = str(packed_docstring(docstrings.of(body), dense.__name__))
    pooled.__signature__ = packed_signature(inspect.signature(dense))
    return definition(pooled)


def _of(row, values, own, s):
    """Returns the arguments for segment ``s``; ``own`` has the indices of its tokens."""
    values, arguments = dict(values), arguments_of(row, values)
    for key, value in values.items():
        if value is None or key not in arguments:
            continue
        axes = next(shape for shape in arguments[key].shapes if len(shape) == value.ndim)
        if "N" in axes:
            part = np.take(value, own, axes.index("N"))
            values[key] = part if arguments[key].kind == "mask" else part.astype(np.float64)
        elif "num_segments" in axes:
            values[key] = value[s] if len(value) else np.zeros(value.shape[1:])
    return values


def _optional_axes(row, values):
    """Returns the optional axes, such as that of hops, that the arguments of this call have."""
    given = [(a, values[key]) for key, a in row.arguments.items() if a.lacks and values[key] is not None]
    return {a.lacks for a, value in given if value.ndim == len(a.shapes[0])}


def _arrays(result):
    return result if isinstance(result, tuple) else (result,)


def packed_signature(dense, tokens=("x",), without=()):
    """Derives the signature of a packed function from that of the dense one.

    Args:
      dense: the signature.
      tokens: the arguments that hold tokens; each is followed by its segment numbers, the last one also by
        ``num_segments``.
      without: arguments that the packed function lacks, in addition to the lengths and ``axis_name``.
    """
    taken = [p for p in dense.parameters.values() if p.name not in ("axis_name", *without)]
    taken = [p for p in taken if not p.name.endswith("lengths")]
    first = []
    for parameter in taken:
        if parameter.name not in LAST:
            first.append(parameter)
        if parameter.name in tokens:
            numbers = "segment_ids" if len(tokens) == 1 else f"{parameter.name}_segment_ids"
            names = [numbers, "num_segments"] if parameter.name == tokens[-1] else [numbers]
            first += [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    is_sorted = inspect.Parameter("indices_are_sorted", inspect.Parameter.KEYWORD_ONLY, default=False)
    return inspect.Signature([*first, is_sorted, *(p for p in taken if p.name in LAST)])


def packed_docstring(dense, name):
    """Derives the docstring of a packed function from that of the dense one.

    Shapes are replaced by those of packed tokens. Each entry in the section ``Packed`` of the dense docstring replaces
    the entry of that argument or error.

    Args:
      dense: the :class:`~attnpool_ref.contract.docstrings.Docstring` of the dense function, with its section
        ``Packed``.
      name: the name of the dense function.
    """
    if not dense.paragraphs:  # Python strips docstrings (``-OO``)
        return dense
    row, packed = table.get(name), table.get(f"segment_{name}")
    own = dense.entries("Packed")
    shapes = _shapes(row)
    entries = {}
    for key, text in dense.entries("Args").items():
        if key in packed.arguments or key in packed.options or key == "return_weights":
            entries[key] = own.get(key) or _restricted(row, packed, key) or _replaced(text, shapes)
        if key == "x":
            shape, noun, rest = _head(entries[key])
            entries[key] = f"{shape} {noun} of all segments{rest}"
            entries["segment_ids"] = "int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order."
            entries["num_segments"] = "the number of segments, an integer."
    entries["indices_are_sorted"] = SORTED
    if "return_weights" in entries:
        entries["return_weights"] = entries.pop("return_weights")  # comes last
    errors = dict(dense.entries("Raises"))
    errors["ValueError"] = f"{own.get('ValueError', errors['ValueError']).rstrip('.')}; {SEGMENT_ERRORS}."
    summary, *others = dense.paragraphs
    lead = (
        "The tokens of all sequences are packed into one array; a segment is the tokens of one sequence.\n"
        "In shapes, N is the number of tokens of all segments; the formula is for one segment.\n"
        f"The result for each segment is that of :func:`{name}` for its tokens.\n"
        "A segment without real tokens is a fully masked row."
    )
    paragraphs = (summary, lead, *(_replaced(text, shapes) for text in others))
    sections = {"Returns": _replaced(dense.sections["Returns"], shapes), "Source": dense.sections["Source"]}
    found = docstrings.Docstring(paragraphs, sections, dense.packed_example)
    return found.with_entries("Args", entries).with_entries("Raises", errors)


def _shapes(row):
    """Returns a dict from each shape of a row with batch axes, as text, to the shape for packed tokens."""
    every = [axes for argument in row.arguments.values() for axes in argument.shapes]
    for results in (row.results, row.weight_results, *(row.weights_of_rank(rank) for rank in range(4) if row.weights)):
        for axes in results:
            every += [tuple(axis.rstrip("?") for axis in axes), tuple(axis for axis in axes if not axis.endswith("?"))]
    return {bracketed(axes): bracketed(_packed_axes(axes)) for axes in every if "..." in axes}


def _packed_axes(axes):
    own = [axis for axis in axes if axis != "..."]
    return ["N" if axis == "L" else axis for axis in own] if "L" in own else ["num_segments", *own]


def _replaced(text, shapes):
    for dense, packed in shapes.items():
        text = text.replace(dense, packed)
    return text


def _restricted(row, packed, key):
    """Describes an option of which the packed function takes only some values; "" for other arguments."""
    allowed = packed.options.get(key)
    if allowed is None or allowed == row.options.get(key):
        return ""
    return " or ".join(f'"{value}"' for value in allowed) + "."


def _head(text):
    """Splits the description of tokens into their shape, a noun and the rest."""
    shape, _, rest = text.partition("] ")
    letters = next((i for i, letter in enumerate(rest) if not letter.isalpha()), len(rest))
    return f"{shape}]", rest[:letters], rest[letters:]
