"""Test cases of a function, each with its kind, and cases of many tokens.

In cases of many tokens sums may drift, overflow or lose their count; others also have many examples.
"""

import inspect
from dataclasses import replace

import numpy as np

import attnpool_ref
from attnpool_ref import contract
from attnpool_ref.conformance.cases import values
from attnpool_ref.conformance.cases.case import (
    ANY_RANK,
    BATCH,
    FEATURE_AXES,
    RANK_1,
    SEQUENCES,
    SIZES,
    places_of,
    scaled,
)
from attnpool_ref.conformance.cases.drawing import draw
from attnpool_ref.conformance.cases.ways import defaults_of, fullest_way, ordering, single_ways, ways_of
from attnpool_ref.table.language import At, MayBeEmpty, NotZero

LONG = 1_000_003
"""Number of tokens of long sums, a prime: no number of equal parts divides it."""

LONG_BY_DEFAULT = 70_000
"""Number of tokens without the option ``contract``: too large for 16-bit integers, small enough for a Python loop."""

LONG_NARROW = 4100
"""Number of tokens in narrow dtypes: a count stops growing at 2048 in float16, and at 256 in bfloat16."""

MANY_TOKENS, MANY_EXAMPLES, MANY_AXES = "many tokens", "many examples", "long, batch (2, 3)"
"""Names of the shapes that are larger than blocks, position limits and 8-bit counters."""

MANY = 4198
"""Size of one token axis in :data:`MANY_TOKENS`: even, and no multiple of a power of 2."""

EXAMPLES, QUERIES, FEW = 300, 613, 3
"""Sizes of the batch, or the number of segments; of queries without masks; and of most other axes."""


def sides(row):
    """Returns tuples of token axes that are long together: each axis by itself, but the axes of packed tokens."""
    token_axes = [a for argument in row.arguments.values() for axes in argument.shapes for a in axes if a in SEQUENCES]
    if row.arguments[next(iter(row.arguments))].shapes == (("...",),):
        return [ANY_RANK[-1:]]
    packed = tuple(axis for axis in ("N", "M") if axis in token_axes and "num_segments" in row.options)
    return [packed] if packed else [(axis,) for axis in dict.fromkeys(token_axes)] or [()]


def _large(row, way, names, options, shape):
    """Yields the cases of :data:`MANY_TOKENS` or :data:`MANY_EXAMPLES`, in which most other sizes are 3.

    One axis of tokens or keys in turn has 4,198 random tokens, in a batch of five; or the batch has 300 examples. In
    functions of packed tokens the 300 segments have these tokens, one of them half of them.
    """
    few, longest = dict.fromkeys(SIZES, FEW), [side for side in sides(row) if side != ("n",)] or sides(row)
    options = options | {k: n for k, n in {"max_length": MANY, "num_segments": EXAMPLES}.items() if k in options}
    if shape == MANY_TOKENS:
        for side in longest[:1] if way == "with lengths" else longest:
            sizes = few | {axis: MANY + i for i, axis in enumerate(side)}
            yield _filled(row, way, names, options, BATCH, sizes, shape, side)
    elif "num_segments" not in options:
        sizes = few | {"B": EXAMPLES, "C": EXAMPLES - 1}
        yield _filled(row, way, names, options, (EXAMPLES,), sizes, shape)


def _filled(row, way, names, options, batch, sizes, shape, side=()):
    title = f"{' and '.join(side)}: {shape}" if side else shape
    case, values = draw(row, way, names, options, batch, sizes, shape=shape, title=title), {}
    for key in case.given("int", "lengths"):  # the first row is full, the last one empty
        value, mask = case.values[key], row.arguments.get(row.arguments[key].mask)
        limit = case.sizes[(mask.own or ANY_RANK)[-1]] if mask else MANY
        place = np.arange(value.size).reshape(value.shape)
        values[key] = (limit - 7 * place) % (limit + 1) * (place < max(value.size - 1, 1))
    for key in case.given("segments"):
        value = np.where(np.arange(case.values[key].size) % 2, case.values[key], case.values[key][0])
        values[key] = np.sort(value) if options["indices_are_sorted"] else value
    for key in case.given("data"):
        for place in (place for axis in side for place in places_of(axis, case.axes[key], case.values[key].ndim)):
            value = np.moveaxis(case.values[key].copy(), place, 0)
            last = value[-1:]  # a maximum and a minimum show that it is lost
            signs = 1 if row.unit else np.where(np.arange(last.size).reshape(last.shape) % 2, -1, 1)
            value[-1:] = np.float32(signs * (4 + np.abs(last)))
            value = value * (2.0**-8 if row.unit else 1)  # the product of many numbers below 1 is 0
            values[key] = np.moveaxis(value, 0, place)
    return case.with_values("", **values)


def long_rows(row, size=LONG):
    """Yields (case, axis) for each masked axis that the result does not have, with ``size`` tokens along it.

    All are equal but the last sixteenth, which are multiples of the others by factors from 0.5 to 2, or to 1
    for numbers between 0 and 1.
    """
    for axis in _summed(row):
        case = _equal_tokens(row, f"{size} tokens", axis, size)
        size = case.sizes[axis]
        others = [key for key in case.given("data", "parameter") if key != "scale"]
        if case.values.get("scale") is not None and len(others) > 1:  # it would magnify the rounding of a million terms
            case = case.with_values("", scale=np.float64(2.0**-20))
        tail = np.arange(size) >= size - size // 16
        factors = np.where(tail, case.rng(" tail").uniform(0.5, 1 if row.unit else 2, size), 1)
        yield scaled(case, "", axis, factors, [] if row.norms else case.given("data")), axis  # one angle


def long_narrow_rows(row, overflows=True):
    """Yields cases with more tokens than narrow dtypes count; with ``overflows`` also with sums that float16 cannot hold."""
    for axis in _summed(row):
        case = _equal_tokens(row, f"{LONG_NARROW} equal tokens", axis, LONG_NARROW)
        yield case
        if overflows and not row.unit:
            yield case.with_values("64 times as large", **{k: 64 * case.values[k] for k in case.given("data")})


def _summed(row):
    """Returns the masked axes that the result does not have, and whose size the implementation does not fix."""
    arguments = row.arguments
    kept = {axis for axes in row.results for axis in axes}
    masked = {
        a for argument in arguments.values() if argument.kind == "mask" for shape in argument.shapes for a in shape
    }
    return sorted((masked & SEQUENCES) - kept - row.sizes.keys())


def _equal_tokens(row, title, axis, size):
    case = draw(row, f"{title} along {axis}", (), defaults_of(row), (), dict.fromkeys(SIZES, 2) | {axis: size})
    words = title.partition(" ")[2]  # the size may be smaller than was asked for
    case, values = replace(case, title=f"{case.sizes[axis]} {words} along {axis}"), {}
    for key in case.given("data", "parameter"):
        value = case.values[key]
        for place in places_of(axis, case.axes[key], value.ndim):
            value = np.broadcast_to(np.take(value, [0], place), value.shape)
        values[key] = value
    return case.with_values("", **values)


SHAPES = (
    "no batch",
    "rank 1",
    MANY_TOKENS,
    MANY_EXAMPLES,
    MANY_AXES,
    "batch of 1",
    "empty batch",
    "length 1",
    "length 0",
    "equal sizes",
    "widths of 1, batch (2, 3, 2)",
    "axes of 0",
    "shared",
    "broadcasting",
    "alone",
)
"""Names of the shapes besides the mixed batch (five examples with different masks).

JAX compiles a program for each shape, so fewer shapes take less time.

* "many tokens", "many examples": one axis is large, most others are 3, see :func:`_large`.
* "rank 1": arrays that may have any rank are vectors.
* "axes of 0": axes that may have size 0 have it.
* "shared": one data argument after another has no batch axes.
* "broadcasting": masks and biases have a lower rank or axes of 1.
* "alone": one optional argument after another is given by itself; further cases omit numbers and options that have
  defaults, have other values of options, or lengths of 8-bit integers.
"""

WITHOUT_TOKENS = "length 0"
"""The shape without tokens to pool."""

EMPTY_SHAPES = ("empty batch", WITHOUT_TOKENS)
"""Shapes without examples, or without tokens to pool, which are also drawn without masks."""

LONGER = 259
"""A sequence length that 8-bit integers cannot hold."""

ODD = {"n": 67, "m": 71, "L": 71, "T": 67, "J": 71, "M": 71, "N": 197, "k": 67, "d": 131, "e": 33, "q": 131, "f": 65}
ODD |= {"H": 9, "B": 2, "C": 3}
"""Sizes of "long, batch (2, 3)": most are odd and larger than 64, so that mistakes at the edges of blocks show.

The axes B and C of functions of all pairs are small, because the number of pairs is their product.
"""

KINDS = {
    "main": "the mixed batch",
    "shape": "another shape than the mixed batch",
    "way": "an argument by itself or left to its default, or another value of an option",
    "form": "masks and biases that broadcast, masks of integers",
    "extreme": "extreme scores",
    "exact": "ties and edges",
    "far": "data far from 0",
    "cancelling": "sums that cancel",
    "tied": "maxima that two tokens share, hinges at 0",
    "average": "averages of a few positive numbers",
    "precise": "numbers that no narrower dtype holds",
    "mixed": "arguments of several dtypes",
    "integers": "data of integers alone",
}
"""The kinds of cases and their descriptions; the last three are drawn by :func:`cases_in`."""


def cases_of(row, restrict=None, shapes=SHAPES, partial=True, contract=False):
    """Yields (case, kind) of a function's cases that are the same in all dtypes; the kind is a key of :data:`KINDS`.

    Args:
      row: the function's row in the table.
      restrict: that of :func:`~attnpool_ref.conformance.cases.ways.ways_of`.
      shapes: names of the other shapes in which the call with the most arguments is drawn. Some of them are also drawn
        for calls without masks, with lengths, or with the option that makes the order of the tokens matter.
      partial: whether calls that omit some arguments, and ties and edges, are drawn as well; if not, only one
        configuration omits the masks.
      contract: that of :func:`~attnpool_ref.conformance.cases.values.broadcasting`.
    """
    ways = list(ways_of(row, restrict))
    titles = [title for title, *_ in ways]
    fullest = fullest_way(row, restrict)
    bare = "everything but masks" if "everything but masks" in titles else "without masks"
    shaped = _shaped(row, fullest, bare, shapes, titles)
    for title, names, options in ways:
        if title.startswith("with") and not partial:
            if title == bare:
                yield draw(row, title, names, options, BATCH), "way"
            continue
        main = draw(row, title, names, options, BATCH)
        yield main, "main"
        if partial and not title.startswith("with"):
            if main.given("data"):
                yield values.exact(main), "exact"
            if main.values.get("weights") is not None:
                yield values.alternating(main), "exact"
            if values.of_tokens(main):
                yield values.repeated(main), "exact"
            if (case := values.tied(main)) is not None:
                yield case, "tied"
        named = (
            "scores" in row.arguments
            and "=" in title
            and not title.startswith("axis=")
            and not any(map(callable, options.values()))
        )
        if title in ("smallest", "fullest") or named:  # each normalizer gets extreme scores
            yield from ((case, "extreme") for case in values.extremes(main))
        if title == fullest and partial:
            yield from ((case, "extreme") for case in (*values.huge(main), *values.gaps(main)))
        if "=" in title:
            yield from ((case, "extreme") for case in values.at_right_angles(main))
        if title == fullest and main.given("data"):
            if not row.unit:
                yield values.cancelling(main), "cancelling"
            yield from ((case, "far") for case in values.far_from_zero(main))
        if title == "smallest" and partial and (case := values.averaging(main)) is not None:
            yield case, "average"
        if title == fullest and partial:
            yield from ((case, "exact") for case in _special(main, restrict))
        if title == fullest and "broadcasting" in shapes:
            yield from ((case, "form") for case in values.broadcasting(main, contract))
        if " as [" in title and "broadcasting" in shapes and (case := values.of_one_head(main)) is not None:
            yield case, "form"
        yield from ((case, "shape") for case in _shapes(row, title, names, options, shaped.get(title, ())))
    if "alone" in shapes:
        for title, names, options in single_ways(row):
            if restrict is not None:
                names, options = restrict(names, options)
            yield draw(row, title, names, options, BATCH), "way"
            if "equal sizes" in shapes and [row.arguments[key].kind for key in names] == ["mask"]:  # of two masks
                yield draw(row, title, names, options, (3,), dict.fromkeys(SIZES, 3), shape="equal sizes"), "shape"
        yield from ((case, "way") for case in _left_to_defaults(row, restrict))


def cases_in(row, dtype, restrict=None, integers=False):
    """Yields (case, kind) of the cases that are drawn for one dtype only, in the call with the most arguments.

    Cases of several dtypes are drawn for float64, and with ``integers`` also cases of integers only. ``row`` and
    ``restrict`` are those of :func:`cases_of`.
    """
    fullest = fullest_way(row, restrict)
    for title, names, options in ways_of(row, restrict):
        if title == fullest:
            main = draw(row, title, names, options, BATCH)
            yield from ((case, "precise") for case in values.precise(main, dtype))
            if dtype == "float64":
                yield from ((case, "mixed") for case in values.mixed(main))
                yield from ((case, "integers") for case in (values.integers(main) if integers else ()))


def _special(main, restrict):
    """Yields the case with each special value of a number or of an option."""
    row = main.row
    with_0 = {rule.argument: rule.option for rule in row.relations if isinstance(rule, NotZero)}
    for rule in row.relations:
        for value in rule.values if isinstance(rule, At) else ():
            key, title = rule.argument, f"{main.title}, {rule.argument}={value}"
            options = main.options | {with_0[key]: True} if key in with_0 and value == 0 else main.options
            if key in row.options:
                options = options | ordering(row) | {key: value}
            elif main.values[key] is None:
                continue
            if restrict is not None and restrict([], options)[1] != options:
                continue  # the implementation does not take the option
            values = {} if key in row.options else {key: np.float64(value)}
            yield replace(main, title=title, values=main.values | values, options=options)


def _left_to_defaults(row, restrict):
    """Yields cases in which the numbers and options that have defaults are omitted."""
    defaults = contract.signature_of(getattr(attnpool_ref, row.name)).parameters
    options = {k: v for k, v in defaults_of(row).items() if defaults[k].default is inspect.Parameter.empty}
    numbers = [k for k, a in row.arguments.items() if a.kind == "number" and not a.optional]
    left = [k for k in numbers if defaults[k].default is not inspect.Parameter.empty]
    names = [k for k, a in row.arguments.items() if a.kind == "mask"]
    if left or any(k not in options for k in row.options):
        if restrict is not None:
            names, options = restrict(names, options)
        yield draw(row, "defaults left away", names, options, BATCH, left=left)
        if "atol" in left:
            yield values.nearly_equal(draw(row, "defaults left away", names, options, BATCH, left=left))
    for title, names, options in ways_of(row, restrict):  # some defaults have an effect only with a flag
        if left and title == "fullest" and any(options[key] is True for key in defaults_of(row)):
            yield draw(row, title, names, options, BATCH, left=left, title="defaults left away")


def _pooled(row):
    """Returns the token axes that are empty in the shape "length 0": pooled ones such as keys, but not queries."""
    named = {axis for argument in row.arguments.values() for axes in argument.shapes for axis in axes}
    pooled = named & (SEQUENCES - {"n"} if named & {"m", "L", "N"} else SEQUENCES)
    if all(pooled & set(axes) for axes in row.results):
        return pooled.difference(*row.results) or pooled
    return pooled


def _shaped(row, fullest, bare, shapes, others):
    """Returns a dict from titles of configurations to the names of the shapes in which each is drawn.

    ``fullest`` is the title of the one with the most arguments, and is drawn in all of ``shapes``.
    Besides :data:`EMPTY_SHAPES`, two of ``shapes`` are also drawn without masks if the function has batch axes: "no batch"
    with all other arguments (``bare``), and "long, batch (2, 3)" without optional arguments. ``others`` are the titles
    of all configurations: those with another shape of an argument are also drawn in "no batch".
    """
    ranks = [(bare, "no batch"), ("without masks", "long, batch (2, 3)")] if row.batched else []
    found = {"without masks": [*EMPTY_SHAPES], "with lengths": ["lengths of 8 bits", MANY_TOKENS]}
    found |= {f"{key}={value}": ["shared"] for key, value in ordering(row).items()}
    for title, shape in ranks:
        found[title] = [*found.get(title, ()), shape]
    asked = {*shapes, *(["lengths of 8 bits"] if "alone" in shapes else ())}
    found = {title: [shape for shape in names if shape in asked] for title, names in found.items()}
    found |= {title: ["no batch"] for title in others if " as [" in title and "no batch" in shapes}
    always = any(a.kind == "int" and not a.optional for a in row.arguments.values())
    return found | {fullest: [*shapes, *(found["with lengths"] if always else ())]}


def _shapes(row, way, names, options, shapes):
    drawn = {
        "no batch": ((), {}),
        MANY_AXES: ((2, 3), ODD),
        "batch of 1": ((1,), {}),
        "empty batch": ((0,), {}),
        "length 1": ((1,), {s: 1 for s in SEQUENCES}),
        "length 0": ((3,), dict.fromkeys(_pooled(row), 0)),
        "equal sizes": ((3,), dict.fromkeys(SIZES, 3)),
        "widths of 1, batch (2, 3, 2)": ((2, 3, 2), {s: 1 for s in FEATURE_AXES}),
    }
    if way == "without masks":
        drawn[MANY_AXES] = ((2, 3), {"d": 131, "c": 67} | dict.fromkeys(sides(row)[0], QUERIES))
    for shape in shapes:
        if shape in drawn:
            batch, sizes = drawn[shape]
            yield draw(row, way, names, options, batch, sizes, shape=shape)
    for shape in [shape for shape in (MANY_TOKENS, MANY_EXAMPLES) if shape in shapes]:
        yield from _large(row, way, names, options, shape)
    empty = [rule.axis for rule in row.relations if isinstance(rule, MayBeEmpty)]
    if empty and "axes of 0" in shapes:
        yield draw(row, way, names, options, (3,), dict.fromkeys(empty, 0), shape="axes of 0")
    if "rank 1" in shapes and ("...",) in row.arguments[next(iter(row.arguments))].shapes:
        yield draw(row, way, names, options, (), any_rank=RANK_1, shape="rank 1")
    if "lengths of 8 bits" in shapes:
        yield _counted(row, way, names, options)
    arguments = row.arguments
    data = [k for k, a in arguments.items() if a.kind == "data" and (not a.optional or k in names)]
    data = [k for k in data if k not in row.shared]
    if "shared" in shapes and len(data) > 1:
        by_rank = any(len(arguments[k].shapes) > 1 and all("..." in axes for axes in arguments[k].shapes) for k in data)
        for key in data[by_rank:]:  # the rank of the first argument tells which axes the others have
            yield draw(row, way, names, options, BATCH, shared=(key,), shape="shared", title=f"`{key}` shared")


def _counted(row, way, names, options):
    """Returns a case whose lengths are 8-bit unsigned integers, along an axis that is longer than they can count.

    Tokens after position 255 are far larger than the others, so that a result that includes one of them is clearly
    wrong.
    """
    arguments, values = row.arguments, {}
    lengths = [k for k, a in arguments.items() if a.kind in ("int", "lengths") and (not a.optional or k in names)]
    masks = [arguments[arguments[k].mask] for k in lengths if arguments[k].mask in arguments]
    sizes = {mask.own[-1] if mask.own else ANY_RANK[-1]: LONGER for mask in masks}
    options = options | {k: LONGER for k in options if k == "max_length"}
    case = draw(row, way, names, options, (2,), sizes, shape="lengths of 8 bits")
    for key in lengths:
        value = case.values[key]
        values[key] = (255 - 7 * np.arange(value.size).reshape(value.shape)).astype(np.uint8)
    beyond = np.arange(LONGER) > np.iinfo(np.uint8).max
    factors = np.where(beyond, 1, 2.0**-9) if row.unit else np.where(beyond, 8, 1)
    case = case.with_values("", **values)
    for axis in sizes:
        case = scaled(case, "", axis, factors, case.given("data"))
    return case
