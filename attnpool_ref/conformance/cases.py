"""The cases: arguments drawn from a row's shapes, so that a new row has its cases at once.

Sizes are pairwise different, so that a transposition shows. Every batch holds a full, a prefix, a suffix, a scattered
and an empty mask. A case is plain data; what the hazards do to it (poison, permute, delete, append) changes the data
along axes that have a name.
"""

import zlib
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.language import Equal, Needs, terms
from attnpool_ref.variants import Variant

BATCH = (5,)
SIZES = {"n": 3, "m": 7, "L": 7, "T": 6, "J": 7, "M": 7, "k": 6, "B": 3, "C": 2, "H": 2}
SIZES |= {"d": 8, "e": 9, "q": 8, "v": 11, "c": 4, "c'": 10, "h": 12, "o": 13, "f": 8, "max_length": 6}
SEQUENCES = frozenset({"n", "m", "L", "T", "J", "M", "k"})
"""Axes along which tokens stand: they may be masked, permuted, empty."""

SHAPES = ("no batch", "batch (2, 3)", "batch of 1", "empty batch", "length 1", "length 0", "shared")
"""Shapes beside the mixed batch; "shared" leaves the batch axes away from one argument after another."""

EMPTY = {"empty batch", "length 0"}
"""Shapes in which there is nothing to pool, which an absent mask must survive as well."""

SEED: ContextVar[str] = ContextVar("SEED", default="")
"""What else the drawing derives from, beside the case's name: nothing, so that cases are the same on every machine."""

ANY_RANK = ("...", "n", "m")
"""The axes of an array that may have any rank, drawn as rows of rows."""

NUMBER = 0.75
"""What a number is, where nothing else is asked of it."""

NUMBERS = {"epsilon": 0.125, "bandwidth": 4.0, "atol": 2.5}
"""A bandwidth and a tolerance that about half of the vectors that are drawn lie within."""


@dataclass(frozen=True)
class Case:
    """Arguments of one call.

    Attributes:
      row: the row.
      title: what makes the case what it is.
      values: every argument of the row by name: float64, boolean or integer arrays, or None.
      options: static arguments.
      axes: for each array that is not None its axes by name, batch axes as "...".
      batch: the batch axes.
      sizes: the size of each named axis.
      exact: the arguments that no rounding touches: what an exact comparison decides stays decided.
    """

    row: Variant
    title: str
    values: dict
    options: dict
    axes: dict
    batch: tuple
    sizes: dict
    exact: frozenset[str] = frozenset()

    def arguments(self):
        """The argument descriptions of the row."""
        return self.row.arguments

    def given(self, *kinds):
        """Names of the arguments of these kinds that are not None."""
        return [k for k, a in self.arguments().items() if self.values[k] is not None and a.kind in kinds]

    def with_values(self, title, **values):
        """The same case with some arguments replaced."""
        return replace(self, title=f"{self.title}, {title}" if title else self.title, values=self.values | values)

    def rng(self, salt=""):
        """A generator whose seed is the case's name."""
        return _generator(f"{self.row.name}: {self.title}{salt}")

    def terms(self):
        """How many terms the longest chain of sums has: all named axes, one after another."""
        return 8 + sum(self.sizes.values())


def _generator(name):
    return np.random.default_rng(zlib.crc32((name + SEED.get()).encode()))


def narrow(values):
    """Values rounded to 8 significant bits, which every dtype holds exactly."""
    rounded = {}
    for key, value in values.items():
        if value is not None and value.dtype.kind == "f":
            mantissa, exponent = np.frexp(value)
            value = np.ldexp(np.round(mantissa * 256) / 256, exponent)
        rounded[key] = value
    return rounded


# --------------------------------------------------------------------------------------------------------------
# Which cases a row has


def cases_of(row, restrict=None, shapes=SHAPES, partial=True):
    """The cases of a row.

    Args:
      row: the row.
      restrict: from (names, options) to those that the candidate takes; None takes everything.
      shapes: names of the other shapes in which the fullest call is drawn, and the empty ones without masks.
      partial: also the calls that leave some arguments away, and ties and edges.

    Yields:
      (case, kind): kind is "main" for the mixed batch, "shape" for another shape of it, "extreme" for extreme scores,
      "exact" for ties and edges.
    """
    ways = [
        (title, *((names, options) if restrict is None else restrict(names, options)))
        for title, names, options in configurations(row)
    ]
    titles = [title for title, *_ in ways]
    shaped = {
        "fullest" if "fullest" in titles else "smallest": shapes,
        "without masks": [s for s in shapes if s in EMPTY],
    }
    for title, names, options in ways:
        if title.startswith("with") and not partial:
            continue
        main = draw(row, title, names, options, BATCH)
        yield main, "main"
        if partial and not title.startswith("with"):
            if main.given("data"):
                yield _exact(main), "exact"
            if _of_tokens(main):
                yield _repeated(main), "exact"
        if title in ("smallest", "fullest"):
            yield from ((case, "extreme") for case in _extremes(main))
        yield from ((case, "shape") for case in _shapes(row, title, names, options, shaped.get(title, ())))


def configurations(row):
    """(title, names of the optional arguments given, options) of each way to call the row that is worth a case."""
    arguments = row.arguments
    masks = [k for k, a in arguments.items() if a.kind == "mask"]
    optional = [k for k, a in arguments.items() if a.optional and a.kind != "mask"]
    defaults = {k: _default(v) for k, v in row.options.items() if k not in ("axis", "normalize")}
    lengths = [k for k in optional if arguments[k].kind == "int"]
    full = [k for k in optional if k not in lengths]
    needing = {rule.argument: rule.option for rule in row.relations if isinstance(rule, Needs)}
    flags = {flag: True for key, flag in needing.items() if key in full}
    yield "smallest", masks, defaults
    if full:
        yield "fullest", masks + full, defaults | flags
    numbers = [k for k in full if arguments[k].kind == "number"]
    if numbers and len(full) > len(numbers):
        yield "without numbers", [k for k in masks + full if k not in numbers], defaults | flags
    if masks:
        yield "without masks", [], defaults
    for key in lengths:
        yield f"with {key}", [key], defaults
    for key, allowed in row.options.items():
        if isinstance(allowed, tuple):
            for value in allowed[1:]:
                yield f"{key}={value}", masks + full, defaults | flags | {key: value}
        elif allowed == "axis":
            yield "axis=-2", masks, defaults | {key: -2}
        elif allowed == "flag" and key not in flags:
            yield f"{key}=False", masks + full, defaults | {key: False}
    for key in full:
        if any(isinstance(rule, Equal) and key in rule.names for rule in row.relations):
            yield f"with {key}", [*masks, key], defaults
    for key, argument in arguments.items():
        for i in range(1, len(argument.shapes)):
            yield f"{key} as {_text(argument.shapes[i])}", [*masks, *full, f"{key}#{i}"], defaults | flags


def _text(axes):
    return f"[{', '.join(axes)}]"


def _default(allowed):
    return allowed[0] if isinstance(allowed, tuple) else {"flag": False, "size": 6, "count": 2}[allowed]


def _shapes(row, title, names, options, shapes):
    drawn = {
        "no batch": ((), {}),
        "batch (2, 3)": ((2, 3), {}),
        "batch of 1": ((1,), {}),
        "empty batch": ((0,), {}),
        "length 1": ((3,), {s: 1 for s in SEQUENCES}),
        "length 0": ((3,), {s: 0 for s in SEQUENCES}),
    }
    for shape in shapes:
        if shape in drawn:
            batch, sizes = drawn[shape]
            yield draw(row, f"{title}, {shape}", names, options, batch, sizes)
    arguments = row.arguments
    data = [k for k, a in arguments.items() if a.kind == "data" and (not a.optional or k in names)]
    if "shared" in shapes and len(data) > 1:
        for key in data:
            yield draw(row, f"{title}, `{key}` shared", names, options, BATCH, shared=(key,))


def _extremes(main):
    """Scores of ±1e30, far below every finite stand-in for -inf, or -inf; vectors of any size under a norm."""
    values = main.values
    if main.row.norms:
        data = main.given("data", "parameter")
        for size in (1e-30, 1e30):
            yield main.with_values(f"vectors of {size:g}", **{k: size * values[k] for k in data})
        for key in data:
            some = values[key].copy()
            some[..., ::2, :] = 0
            yield main.with_values(f"zero vectors in `{key}`", **{key: some})
    if "scores" in values:
        scores = values["scores"]
        yield main.with_values("scores of ±1e30", scores=scores * 1e30)
        yield main.with_values("scores below -1e9", scores=-1e10 * (1 + np.abs(scores)))
        some = np.where(main.rng(" -inf").random(scores.shape) < 0.4, -np.inf, scores)
        some[tuple(0 for _ in scores.shape[:-1])] = -np.inf
        yield main.with_values("scores of -inf", scores=some)
    elif values.get("scale") is not None:
        low = {k: None if values[k] is None else np.abs(values[k]) for k in main.given("data", "parameter")}
        yield main.with_values("scores below -1e9", **low, scale=np.float64(-1e10))
    elif main.given("parameter") and main.given("mask"):
        low = {k: np.abs(values[k]) for k in main.given("data")}
        yield main.with_values("negative parameters", **low, **{k: -np.abs(values[k]) for k in main.given("parameter")})
    if not main.row.norms and "scores" not in values and main.given("data"):
        yield main.with_values("data 64 times as large", **{k: 64 * values[k] for k in main.given("data")})


def _exact(main):
    """Small integers, at most one in a vector, and numbers of 1: ties, zeros and edges are met exactly.

    A sum of products has a single term, whatever its order, and is what it is in every dtype.
    """
    rng, values = main.rng(" exact"), {}
    for key in main.given("data"):
        shape = main.values[key].shape
        place, number = rng.integers(0, shape[-1], shape[:-1]), rng.choice([-1.0, 0.0, 1.0, 2.0], shape[:-1])
        values[key] = np.where(np.arange(shape[-1]) == place[..., None], number[..., None], 0)
    values |= {key: np.float64(1) for key in main.given("number")}
    return replace(main.with_values("small integers", **values), exact=frozenset(values))


def _of_tokens(main):
    """The vectors that stand along a sequence: (argument, place of the sequence) of each."""
    return [
        (key, place)
        for key in main.given("data", "parameter")
        if len([a for a in main.axes[key] if a != "..."]) > 1
        for axis in sorted(SEQUENCES)
        for place in places_of(axis, main.axes[key], main.values[key].ndim)
    ]


def _repeated(main):
    """Every token is the first one, and the last far from it: equal products that rounding may tell apart, residuals of 0.

    What rounding decides is not moved by small changes of the data: they are taken as exact.
    """
    values = {}
    for key, place in _of_tokens(main):
        value = values.get(key, main.values[key])
        first, last = np.take(value, [0], place), np.take(value, [-1], place)
        values[key] = np.concatenate(
            [first] * (value.shape[place] - 1) + [np.float32(last - 2 * first).astype(np.float64)], place
        )
    return replace(main.with_values("repeated tokens", **values), exact=frozenset(values))


LONG = 10**6


def long_rows(row):
    """(case, axis) for each masked axis that the row sums over: a million tokens along it, all equal."""
    arguments = row.arguments
    kept = {axis for axes in row.results for axis in axes}
    masked = {a for argument in arguments.values() if argument.kind == "mask" for own in argument.shapes for a in own}
    options = {k: _default(v) for k, v in row.options.items() if k not in ("axis", "normalize")}
    for axis in sorted((masked & SEQUENCES) - kept):
        case = draw(
            row, f"a million equal tokens along {axis}", (), options, (), dict.fromkeys(SIZES, 2) | {axis: LONG}
        )
        values = {}
        for key in case.given("data", "parameter"):
            value = case.values[key]
            for place in places_of(axis, case.axes[key], value.ndim):
                value = np.broadcast_to(np.take(value, [0], place), value.shape)
            values[key] = value
        if case.values.get("scale") is not None:
            values["scale"] = np.float64(2.0**-20)  # a score that sums a million products would magnify its rounding
        yield case.with_values("", **values), axis


# --------------------------------------------------------------------------------------------------------------
# Drawing one


def draw(row, title, names, options, batch, sizes=None, shared=()):
    """One case: ``names`` are the optional arguments that are given, ``shared`` the data without batch axes."""
    chosen = {name.split("#")[0]: int(name.split("#")[1]) for name in names if "#" in name}
    arguments = row.arguments
    present = {k: (not a.optional or k in names or k in chosen) for k, a in arguments.items()}
    keys = any({"m", "L"} & set(own) or own == ("...",) for a in arguments.values() for own in a.shapes)
    known = SIZES | ({} if keys else {"n": 7}) | (sizes or {})  # without keys the n are the tokens
    same = contract.unions(row, {k: True if p else None for k, p in present.items()} | options)
    known |= row.sizes
    known |= {root: row.sizes[axis] for axis, root in same.items() if axis in row.sizes}
    known = known | {axis: known[root] for axis, root in same.items()}
    rng = _generator(f"{row.name}: {title}")
    values, axes = {}, {}
    for index, (key, argument) in enumerate(arguments.items()):
        values[key] = None
        if not present[key]:
            continue
        own = argument.shapes[chosen.get(key, 0)]
        if own == ("...",):  # an array of any rank: a batch of rows
            own = own if argument.kind == "int" else ANY_RANK
        axes[key] = tuple(a for a in own if a != "..." or key not in shared)
        shape = tuple(s for a in axes[key] for s in (batch if a == "..." else (contract.size_of(a, known),)))
        values[key] = _values(key, argument, axes[key], shape, rng, index, known, len(batch))
        if row.norms and argument.kind == "data":
            values[key] = np.float32(values[key] + 1).astype(np.float64)  # clear of cosines that cancel in a sum
    if "lengths" in arguments and present["lengths"] and "max_length" in options:
        values["lengths"] = np.asarray(values["lengths"] % (options["max_length"] + 1))
    used = {symbol for own in axes.values() for axis in own for _, symbol in terms(axis)}
    return Case(row, title, values, dict(options), axes, tuple(batch), {a: known[a] for a in sorted(used)})


def _values(key, argument, axes, shape, rng, index, known, batch_rank):
    if argument.kind == "mask":
        return _mask(axes, shape, rng, index, batch_rank)
    if argument.kind == "bool":
        return rng.random(shape) < 0.5
    if argument.kind == "int":
        count = int(np.prod(shape))
        return (np.arange(count).reshape(shape) * 3 % (known["m"] + 1)) if shape else np.asarray(min(2, known["m"]))
    if argument.kind == "number":
        return np.float64(NUMBERS.get(key, NUMBER))
    draws = rng.standard_normal(shape)
    if key == "dropout_multiplier":
        draws = (rng.random(shape) < 0.75) / 0.75
    elif key == "weights":
        draws = 1 + 0.25 * draws
        draws[..., 1::4] = -0.375
    elif key.endswith("norm_scale"):
        draws = 1 + 0.25 * draws
    elif argument.kind == "parameter" and len(shape) > 1:
        draws = draws / np.sqrt(shape[0])
    return draws.astype(np.float32).astype(np.float64)


def _mask(axes, shape, rng, index, batch_rank):
    """Masks of every kind, one kind an example, in another order for each argument of a row."""
    own = shape[batch_rank:] if "..." in axes else shape[1:]
    lead = shape[: len(shape) - len(own)]
    mask = np.empty((int(np.prod(lead)), *own), bool)
    kinds = ("full", "prefix", "scattered", "empty", "suffix")
    for i in range(len(mask)):
        kind = kinds[(i * 2 + index) % 5] if len(mask) > 1 else "scattered"
        mask[i] = _pattern(kind, own, rng)
    return mask.reshape(shape)


def _pattern(kind, own, rng):
    length = own[-1]
    position = np.arange(length)
    cut = max(length - 3, 1)
    line = {
        "full": position >= 0,
        "prefix": position < cut,
        "suffix": position >= length - cut,
        "empty": position < 0,
        "scattered": position % 3 != 1,
    }[kind]
    mask = np.broadcast_to(line, own).copy()
    if len(own) > 1 and kind in ("scattered", "suffix") and own[-2] > 1:
        mask &= rng.random(own) < 0.8  # queries see different keys ...
        mask[..., 1, :] = False  # ... and one sees nothing
    return mask


# --------------------------------------------------------------------------------------------------------------
# What is padding in each argument


def padding(case, key):
    """Where the argument is padding: a boolean array of its shape, or None where no mask speaks of it.

    A mask over [..., L] says it of the tokens of that axis, a mask over pairs of what nobody sees or what sees nothing.
    """
    own = [a for a in case.axes[key] if a != "..."]
    value, found = case.values[key], None
    for name in case.given("mask"):
        axes = [a for a in case.axes[name] if a != "..."]
        mask = case.values[name]
        if not set(own) & set(axes):
            continue
        drop = tuple(i - len(axes) for i, a in enumerate(axes) if a not in own)
        real = np.any(mask, drop) if drop else mask
        kept = [a for a in axes if a in own]
        if "..." not in case.axes[key] and "..." in case.axes[name]:
            continue  # shared: padding for one example is real for another
        lead = real.ndim - len(kept)
        spread = np.expand_dims(~real, tuple(lead + i for i, a in enumerate(own) if a not in kept))
        here = np.broadcast_to(spread, value.shape)
        found = here if found is None else found | here
    return found


def places_of(axis, axes, rank):
    """Where a named axis stands in an array of this rank; "..." among its axes stands for the batch axes."""
    shift = rank - len(axes) if "..." in axes else 0
    return [shift + i for i, a in enumerate(axes) if a == axis]


def take(case, title, axis, positions):
    """The case with positions selected along a named axis, in every argument that has it."""
    values = {}
    for key, own in case.axes.items():
        value = case.values[key]
        for place in places_of(axis, own, value.ndim):
            value = np.take(value, positions, place)
        values[key] = value
    sizes = case.sizes | {axis: len(positions)}
    return replace(case, title=f"{case.title}, {title}", values=case.values | values, sizes=sizes)


def append(case, axis, count):
    """The case with ``count`` padded positions at the end of a masked axis, filled with other numbers."""
    rng, values = case.rng(f" append {axis}"), {}
    for key, own in case.axes.items():
        value = case.values[key]
        for place in places_of(axis, own, value.ndim):
            more = 10 * rng.standard_normal((*value.shape[:place], count, *value.shape[place + 1 :])).astype(np.float32)
            if case.arguments()[key].kind == "mask":
                more = np.zeros(more.shape)
            value = np.concatenate([value, more.astype(value.dtype)], place)
        values[key] = value
    title = f"{case.title}, {count} padded positions more along {axis}"
    sizes = case.sizes | {axis: case.sizes[axis] + count}
    return replace(case, title=title, values=case.values | values, sizes=sizes)


def masked_axes(case):
    """Sequence axes that a mask of the case speaks of by itself: [..., L], not the pairs [..., n, m]."""
    found = []
    for name in case.given("mask"):
        own = [a for a in case.axes[name] if a != "..."]
        found += [a for a in own if a in SEQUENCES and a not in found]
    return found
