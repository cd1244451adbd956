"""Configurations of a call: which optional arguments are given, and the values of options."""

import attnpool_ref
from attnpool_ref import contract
from attnpool_ref.table.language import Equal, Needs, OrFunction, Shaped


def softened_count(scores, mask):
    """Returns (1/2 + 1 / (1 + score²)) / (1 + number of real tokens), weights [..., m] of scores [..., m].

    It is a normalizer function for test cases. Its weights of padding are not 0: the function under test has to replace
    them by 0.
    """
    real = mask.astype(scores.dtype) if hasattr(mask, "astype") else mask.to(scores.dtype)
    return (0.5 + 1 / (1 + scores * scores)) / (1 + real.sum(-1)[..., None])


def values_of(allowed):
    """Returns the values of an option: its names, and a function if the option takes one."""
    return (*allowed, softened_count) if isinstance(allowed, OrFunction) else allowed


def text_of(value):
    """Returns an option's value as text for the title of a case."""
    return value.__name__ if callable(value) else value


def configurations(row):
    """Yields (title, names of optional arguments, options) for each configuration that is drawn as a mixed batch."""
    arguments = row.arguments
    masks, full, lengths = _optional(row)
    defaults = defaults_of(row)
    flags = _flags(row, full)
    yield "smallest", masks, defaults
    if full:
        yield "fullest", masks + full, defaults | flags
    numbers = [k for k in full if arguments[k].kind == "number"]
    if numbers and len(full) > len(numbers):
        yield "without numbers", [k for k in masks + full if k not in numbers], defaults | flags
    if masks:
        yield "without masks", [], defaults
    if masks and full:
        yield "everything but masks", full, defaults | flags
    if lengths:
        yield "with lengths", full + lengths, defaults | flags
    for key, allowed in row.options.items():
        if isinstance(allowed, tuple):
            for value in values_of(allowed)[1:]:
                chosen = defaults | flags | {key: value}
                yield f"{key}={text_of(value)}", legal(row, masks + full, chosen), chosen
        elif allowed == "axis":
            yield "axis=-2", masks, defaults | {key: -2}
        elif allowed == "flag" and key not in flags and row.takes(key, True):
            value = not contract.signature_of(getattr(attnpool_ref, row.name)).parameters[key].default
            yield f"{key}={value}", masks + full, defaults | flags | {key: value}
        elif allowed == "flag" and key not in defaults:  # on by default, as the arguments that need the flag require
            yield (
                f"{key}=False",
                masks + [k for k in full if key not in _needed(row, k)],
                defaults | flags | {key: False},
            )
    for key in full:
        if any(_turns_on(rule, key) for rule in row.relations):
            yield f"with {key}", [*masks, *_needed(row, key, arguments), key], defaults
    chosen = {rule.argument for rule in row.relations if isinstance(rule, Shaped)}
    for key, argument in arguments.items():
        if key in chosen or (argument.lacks and argument.optional):
            continue  # a rule, or another argument, determines which of its shapes it has
        for i in range(1, len(argument.shapes)):
            yield f"{key} as [{', '.join(argument.shapes[i])}]", [*masks, *full, f"{key}#{i}"], defaults | flags


def ways_of(row, restrict=None):
    """Yields the :func:`configurations`, reduced by ``restrict`` to what the implementation takes, without duplicates.

    ``restrict`` is a function from (names of optional arguments, options) to those that the implementation takes; None
    is for an implementation that takes everything.
    """
    seen = []
    for title, names, options in configurations(row):
        if restrict is not None:
            names, options = restrict(names, options)
        if (set(names), options) not in seen:
            seen.append((set(names), options))
            yield title, names, options


def fullest_way(row, restrict=None):
    """Returns the title of the configuration with the most arguments that the implementation takes."""
    return "fullest" if "fullest" in [title for title, *_ in ways_of(row, restrict)] else "smallest"


def single_ways(row):
    """Yields further configurations: one optional argument by itself, no masks, other axes, and other counts."""
    masks, full, lengths = _optional(row)
    defaults = defaults_of(row)
    for kind in (masks, lengths):
        if len(kind) > 1:
            for key in kind:
                yield f"`{key}` alone", [key], defaults
    if len(full) > 1:
        for key in full:
            needed = [rule.option for rule in row.relations if isinstance(rule, Needs) and rule.argument == key]
            others = [name for name in needed if name in row.arguments]
            yield f"`{key}` alone", [*others, key], defaults | _flags(row, [key])
    for key, allowed in row.options.items():
        if isinstance(allowed, tuple) and masks:
            for value in values_of(allowed)[1:]:
                chosen = defaults | _flags(row, full) | {key: value}
                yield f"{key}={text_of(value)} without masks", legal(row, full, chosen), chosen
        elif allowed == "axis":
            along = {"normalize": True} if "normalize" in row.options else {}  # without it the axis has no effect
            for axis in (1, -3, 0):
                yield f"axis={axis}", masks, defaults | along | {key: axis}
        elif allowed in ("count", "positive"):
            for count in (0, 3) if allowed == "count" else (3,):
                chosen = defaults | _flags(row, full) | ordering(row) | {key: count}
                yield f"{key}={count}", legal(row, masks + full, chosen), chosen


def ordering(row):
    """Returns a dict with the option that makes the order of the tokens matter; {} if there is none."""
    key, _, value = row.ordered.partition("=")
    return {key: value} if value else {}


def defaults_of(row):
    """Returns the options of a plain call, without ``axis``, ``normalize``, ``mean`` and ``result_dtype``, which have defaults."""
    left = ("axis", "normalize", "mean", "result_dtype")
    return {k: _default(v) for k, v in row.options.items() if k not in left}


def _optional(row):
    """Returns (masks, other optional arguments, lengths), by name."""
    arguments = row.arguments
    masks = [k for k, a in arguments.items() if a.kind == "mask"]
    optional = [k for k, a in arguments.items() if a.optional and a.kind != "mask"]
    lengths = [k for k in optional if arguments[k].kind in ("int", "lengths")]
    return masks, [k for k in optional if k not in lengths], lengths


def _flags(row, full):
    """Returns the flags that the arguments named in ``full`` require, each as True."""
    rules = [rule for rule in row.relations if isinstance(rule, Needs) and rule.argument in full]
    return {rule.option: True for rule in rules if row.options.get(rule.option) == "flag"}


def legal(row, names, options):
    """Returns the names without those of arguments whose required option or argument is missing."""
    rules = [rule for rule in row.relations if isinstance(rule, Needs)]
    while True:
        given = dict.fromkeys((name.split("#")[0] for name in names), True) | options
        orphans = {rule.argument for rule in rules if rule.argument in given and not rule.met(given)}
        if not orphans:
            return names
        names = [name for name in names if name.split("#")[0] not in orphans]


def _needed(row, key, among=None):
    """Returns the options and arguments that an argument requires, or only those that are in ``among``."""
    needed = [rule.option for rule in row.relations if isinstance(rule, Needs) and rule.argument == key]
    return [name for name in needed if among is None or name in among]


def _turns_on(rule, key):
    """Returns whether a rule of the function makes shapes depend on the argument ``key``."""
    return (isinstance(rule, Equal) and key in rule.names) or (isinstance(rule, Shaped) and key == rule.name)


def _default(allowed):
    return allowed[0] if isinstance(allowed, tuple) else {"flag": False, "size": 6, "count": 2, "positive": 2}[allowed]
