"""Syntax of the table's rows, parsed once and strictly: unknown syntax raises an error.

``shapes`` of a row are its arguments, then ``->`` and its results:

* ``x[..., L, d]``: an array. ``...`` are its batch axes, which are the same for all data arguments that have them.
* ``query_kernel[d, c]``: without ``...`` the shape is exact. Axes may be sums of multiples: ``[d+e, m]``, ``[3d]``. If
  no other array gives the size of one term, it is what the other terms leave of the axis.
* ``mask?[..., L]``: ``?`` marks an argument that may be None. Arguments called ``mask`` or ``*_mask`` are masks, which
  broadcast.
* ``R*2^b*p`` in a result: the product of sizes, and of 2 to the power of one.
* ``planes:constant[R, b, d]``: a floating array of exactly this shape that has no influence on the dtype of the result.
* ``bias?~[..., n, m]``: ``~`` marks a floating array that broadcasts and has no influence on the dtype of the result.
* ``scale?[]``: a number. ``kernel[J, d+e]|[d+e]``: either shape. ``adjacency:bool[k, k]``: an exact boolean array.
* ``out_kernel[h, n?]``: an optional axis, present or absent in all arguments, results and weights together.
* ``weights?[..., L]|[..., L, d]``: the rank tells which shape it is, given the batch axes of the other data. Only an
  array of the first shape may lack batch axes.
* ``p[]|[d]``: a number, which has no influence on the dtype of the result, or an array [d], which has an influence.
* ``lengths:int[...]``: integers of any rank. With an argument ``scores``, their axes are the first axes of the scores,
  of which the one that the option ``axis`` names is left out.
* ``x_lengths?:lengths[...]``: integers that may be given instead of ``x_mask``: the number of real tokens on its last
  axis, counted from the left. Their shape is () for all examples, the batch axes, or all axes shown, as in
  ``lengths?:lengths[..., n]``.
* ``spans:index[..., S, ends]``: integers below the option ``max_length``, with batch axes as data arguments have them.
* ``start:position[]``: an integer of at least 0, which may be traced by JAX.
* ``segment_ids:segments[N]``: the segment number of each token, integers of exactly this shape, below the option
  ``num_segments``. Arrays with that axis, or with an axis ``num_segments``, are data.
* ``-> [..., d]`` or ``-> ([..., d], [..., e])``: the result.

``rules`` are constraints beyond the shapes:

* ``c=d unless x_kernel``, ``q=d if query_kernel``, ``v=d``: two axes have one size while an argument is absent, or
  present, or always.
* ``not mask with lengths``: two arguments exclude each other.
* ``epsilon needs normalize_query``: an argument needs an option, or another argument.
* ``norm_scale needs activation=tanh``: an argument needs one value of an option.
* ``query[n, H, c] unless query_kernel``, ``kernel[d, 2f] if activation=geglu``: the shape of an argument depends on
  another argument, on an option or on its value. If the condition does not hold, the argument has its other shapes.
* ``d may be 0``: a feature axis may be empty.
* ``scale is not 0 unless mean``: a number may be 0 only with an option; only values on the host are checked.
* ``b at most 12``: the size of an axis has a largest value.
* ``sink without axis``: an array that broadcasts has the axes of the first argument without the one that ``axis`` names.
* ``q at 0 and 1``: special values of a number or of an option, with which the judge also calls the function.
"""

import functools
import re
from dataclasses import dataclass, replace

_TERM = re.compile(r"(\d*)([A-Za-z]\w*'?)")
_AXIS = re.compile(rf"{_TERM.pattern}(?:\+{_TERM.pattern})*")
_PRODUCT = re.compile(rf"(?:2\^)?{_TERM.pattern}(?:\*(?:2\^)?{_TERM.pattern})+")
_LACKED = re.compile(r"[A-Za-z]\w*'?\?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ARGUMENT = re.compile(r"(\w+)(\?)?(~)?(?::(\w+))?((?:\[[^\[\]]*\])(?:\|\[[^\[\]]*\])*)")
INTEGERS = ("int", "lengths", "position", "segments", "index")
KINDS = (*INTEGERS, "bool", "constant")
"""Kinds of arguments that are written after a colon."""


@dataclass(frozen=True)
class Argument:
    """One argument of a row.

    Attributes:
      name: the name of the argument.
      optional: whether it may be None.
      kind: data, parameter, mask, stretch (marked ``~``), number, bool, constant, or one of :data:`INTEGERS`.
      shapes: its alternative shapes, each a tuple of axes; "..." stands for the batch axes.
      lacks: the optional axis, which its second shape lacks; "" if there is none.
    """

    name: str
    optional: bool
    kind: str
    shapes: tuple[tuple[str, ...], ...]
    lacks: str = ""

    def __str__(self):
        if self.kind == "number":
            return "a number"
        if self.kind == "position":
            return "an integer"
        return " or ".join(f"[{', '.join(axes)}]" for axes in self.shapes)

    @functools.cached_property
    def batched(self):
        """Whether the argument has batch axes."""
        return "..." in self.shapes[0]

    @property
    def numeric(self):
        """Whether the argument can be a number."""
        return self.kind == "number" or (self.kind == "parameter" and self.shapes[0] == ())

    @property
    def integers(self):
        """Whether the argument holds integers."""
        return self.kind in INTEGERS

    @property
    def lengths(self):
        """The name of the lengths that may be given instead of this mask."""
        return self.name.removesuffix("mask") + "lengths"

    @property
    def mask(self):
        """The name of the mask that these lengths replace."""
        return self.name.removesuffix("lengths") + "mask"

    @property
    def own(self):
        """The axes of its first shape without the batch axes."""
        return tuple(axis for axis in self.shapes[0] if axis != "...")


class OrFunction(tuple):
    """Names that an option can have, if it also takes a function."""

    __slots__ = ()


@dataclass(frozen=True)
class Equal:
    """Rule: two axes have one size if any of ``names`` is given (``present`` True), or if none is (False)."""

    first: str
    second: str
    present: bool
    names: tuple[str, ...]


@dataclass(frozen=True)
class Excludes:
    """Rule: two arguments are not given together."""

    first: str
    second: str


@dataclass(frozen=True)
class Needs:
    """Rule: an argument is given only with an option, with another argument, or with one value of an option."""

    argument: str
    option: str
    value: str = ""

    def met(self, values):
        """Returns whether the values of a call satisfy the rule."""
        found = values.get(self.option)
        return found == self.value if self.value else found is not None and found is not False


@dataclass(frozen=True)
class Shaped:
    """Rule: the shape of an argument depends on another argument or option, ``name``.

    The condition is that ``name`` is given or, if ``value`` is not None, that ``name`` has this value. If the condition
    holds, the shape is ``axes``; else the argument has its other shapes. If ``present`` is False, it is the reverse.
    """

    argument: str
    axes: tuple[str, ...]
    present: bool
    name: str
    value: str | None

    def holds(self, values):
        """Returns whether the argument has the shape in a call with these values, options included."""
        found = values.get(self.name)
        there = found is not None and found is not False if self.value is None else found == self.value
        return self.present == there


@dataclass(frozen=True)
class MayBeEmpty:
    """Rule: a feature axis may have size 0."""

    axis: str


@dataclass(frozen=True)
class NotZero:
    """Rule: a number may be 0 only with an option."""

    argument: str
    option: str


@dataclass(frozen=True)
class AtMost:
    """Rule: an axis has at most a size."""

    axis: str
    size: int


@dataclass(frozen=True)
class WithoutAxis:
    """Rule: an array broadcasts to the axes of the first argument without the one that the option ``axis`` names."""

    argument: str


@dataclass(frozen=True)
class At:
    """Rule: a number or an option has special values, with which the judge also calls the function."""

    argument: str
    values: tuple[int, ...]


def terms(axis):
    """Splits ``d+2e`` into [(1, "d"), (2, "e")]."""
    return [(int(number or 1), symbol) for number, symbol in _TERM.findall(axis)]


def parse_shapes(text):
    """Parses a row's shapes into (arguments by name, results).

    Raises:
      ValueError: a piece is not understood, an argument occurs twice, or there is no result.
    """
    before, arrow, after = text.partition("->")
    if not arrow:
        raise ValueError(f"{text!r} has no ->")
    arguments = {}
    for piece in _pieces(before):
        argument = _argument(piece)
        if argument.name in arguments:
            raise ValueError(f"{argument.name!r} occurs twice in {text!r}")
        arguments[argument.name] = argument
    results = parse_results(after)
    if not results:
        raise ValueError(f"{text!r} has no result")
    return _packed(arguments), results


def _packed(arguments):
    """Returns the arguments, of which those with an axis of packed tokens or of segments become data."""
    axes = {axis for argument in arguments.values() if argument.kind == "segments" for axis in argument.own}
    if not axes:
        return arguments
    axes.add("num_segments")
    return {
        name: replace(argument, kind="data")
        if argument.kind == "parameter" and any(axes & set(own) for own in argument.shapes)
        else argument
        for name, argument in arguments.items()
    }


def restricted(arguments, shared, without):
    """Returns the arguments, those in ``shared`` without batch axes, and all without the optional axes ``without``."""
    found = {}
    for name, argument in arguments.items():
        if argument.lacks in without and argument.lacks:
            argument = replace(argument, shapes=argument.shapes[1:], lacks="")
        if name in shared:
            shapes = tuple(tuple(axis for axis in own if axis != "...") for own in argument.shapes)
            argument = replace(argument, shapes=shapes)
        found[name] = argument
    return found


def parse_results(text):
    """Parses ``[..., d]`` or ``([..., d], [..., e])`` into a tuple of axes for each array; () for an empty text.

    Raises:
      ValueError: the text is not understood.
    """
    text = text.strip()
    if not text:
        return ()
    whole = re.fullmatch(r"\((\[[^\[\]]*\](?:, \[[^\[\]]*\])+)\)|(\[[^\[\]]*\])", text)
    if not whole:
        raise ValueError(f"the result {text!r} is not understood")
    return tuple(_axes(part) for part in re.findall(r"\[[^\[\]]*\]", text))


def present(results, sizes):
    """Returns the axes of each array without absent optional axes and without the marks "?".

    Args:
      results: a tuple of axes for each array.
      sizes: the sizes of all axes that the call has, by name.
    """
    return tuple(tuple(axis.rstrip("?") for axis in axes if axis[-1] != "?" or axis[:-1] in sizes) for axes in results)


def parse_rule(text):
    """Parses a rule; raises a ValueError for a text that is not understood."""
    if match := re.fullmatch(r"(\w+'?)=(\w+'?)(?: (if|unless) (\w+(?: or \w+)*))?", text):
        return Equal(match[1], match[2], match[3] == "if", tuple(match[4].split(" or ") if match[4] else ()))
    if match := re.fullmatch(r"not (\w+) with (\w+)", text):
        return Excludes(*match.groups())
    if match := re.fullmatch(r"(\w+) needs (\w+)(?:=(\w+))?", text):
        return Needs(match[1], match[2], match[3] or "")
    if match := re.fullmatch(r"(\w+)(\[[^\[\]]*\]) (if|unless) (\w+)(?:=(\w+))?", text):
        return Shaped(match[1], _axes(match[2]), match[3] == "if", match[4], match[5])
    if match := re.fullmatch(r"(\w+'?) may be 0", text):
        return MayBeEmpty(match[1])
    if match := re.fullmatch(r"(\w+) is not 0 unless (\w+)", text):
        return NotZero(*match.groups())
    if match := re.fullmatch(r"(\w+'?) at most (\d+)", text):
        return AtMost(match[1], int(match[2]))
    if match := re.fullmatch(r"(\w+) without axis", text):
        return WithoutAxis(match[1])
    if match := re.fullmatch(r"(\w+) at (\d+(?: and \d+)*)", text):
        return At(match[1], tuple(map(int, match[2].split(" and "))))
    raise ValueError(f"the rule {text!r} is not understood")


def arguments_of(row, values):
    """Returns the row's arguments with the shapes that are possible in a call with these values, options included."""
    found = row.arguments
    for rule in row.relations:
        if isinstance(rule, Shaped):
            argument, holds = found[rule.argument], rule.holds(values)
            shapes = tuple(axes for axes in argument.shapes if (axes == rule.axes) == holds)
            shared = argument.batched and not any("..." in axes for axes in shapes)
            kind = "parameter" if shared else argument.kind
            found = found | {rule.argument: replace(argument, shapes=shapes, kind=kind)}
    return found


def check_names(rules, arguments, options):
    """Raises a ValueError if a rule names an axis, an argument or an option that the row does not have."""
    axes = {symbol for a in arguments.values() for own in a.shapes for axis in own for _, symbol in terms(axis)}
    for rule in rules:
        if isinstance(rule, Equal):
            unknown = {rule.first, rule.second} - axes | set(rule.names) - set(arguments)
        elif isinstance(rule, Excludes):
            unknown = {rule.first, rule.second} - set(arguments)
        elif isinstance(rule, Needs):
            unknown = {rule.argument} - set(arguments) | {rule.option} - set(options) - set(arguments)
        elif isinstance(rule, NotZero):
            unknown = {rule.argument} - set(arguments) | {rule.option} - set(options)
        elif isinstance(rule, At):
            unknown = {rule.argument} - set(arguments) - set(options)
        elif isinstance(rule, WithoutAxis):
            unknown = {rule.argument} - set(arguments) | {"axis"} - set(options)
        elif isinstance(rule, Shaped):
            unknown = {rule.argument, rule.name} - set(arguments) - set(options)
            if not unknown and rule.axes not in arguments[rule.argument].shapes:
                unknown = {f"[{', '.join(rule.axes)}]"}
            if rule.value is not None and rule.value not in options.get(rule.name, ()):
                unknown = unknown | {rule.value}
        else:
            unknown = {rule.axis} - axes
        if unknown:
            raise ValueError(f"{rule} names {', '.join(sorted(unknown))}, which the row does not have")


def _pieces(text):
    """Splits a text at blanks outside of brackets; raises a ValueError if brackets do not match."""
    pieces, depth, piece = [], 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            break
        if letter.isspace() and not depth:
            pieces.append(piece)
            piece = ""
        else:
            piece += letter
    if depth:
        raise ValueError(f"the brackets of {text.strip()!r} do not match")
    return [piece for piece in [*pieces, piece] if piece]


def _argument(piece):
    match = _ARGUMENT.fullmatch(piece)
    if not match or not _NAME.fullmatch(match[1]):
        raise ValueError(f"the argument {piece!r} is not understood")
    name, optional, stretch, kind, alternatives = match.groups()
    shapes = tuple(_axes(part) for part in alternatives.split("|"))
    lacked = [axis[:-1] for axes in shapes for axis in axes if axis[-1] == "?"]
    if lacked:
        if len(lacked) > 1 or len(shapes) > 1:
            raise ValueError(f"the argument {piece!r} has too many shapes")
        axes = next(iter(shapes))
        shapes = tuple(axis.rstrip("?") for axis in axes), tuple(axis for axis in axes if axis[-1] != "?")
    if kind is not None and (kind not in KINDS or stretch):
        raise ValueError(f"the argument {piece!r} is of no known kind")
    if kind is None:
        kind = _kind(name, stretch, shapes)
    return Argument(name, bool(optional), kind, shapes, *lacked)


def _kind(name, stretch, shapes):
    if name == "mask" or name.endswith("_mask"):
        return "mask"
    if stretch:
        return "stretch"
    if shapes == ((),):
        return "number"
    return "data" if any("..." in axes for axes in shapes) else "parameter"


def _axes(part):
    """Splits ``[..., L, d]`` into ("...", "L", "d"); raises a ValueError for an axis that is not understood."""
    axes = tuple(axis.strip() for axis in part[1:-1].split(",")) if part[1:-1].strip() else ()
    for index, axis in enumerate(axes):
        if not (
            _AXIS.fullmatch(axis)
            or _PRODUCT.fullmatch(axis)
            or _LACKED.fullmatch(axis)
            or (axis == "..." and index == 0)
        ):
            raise ValueError(f"the axis {axis!r} of {part} is not understood")
    return axes
