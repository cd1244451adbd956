"""Hazards of ports: groups of cases, each with mistakes that published code makes and that its cases reject.

A case stays in a group if it rejects one of the group's mistakes. Most of these are mistakes of
:mod:`~attnpool_ref.conformance.causes`, which the judge names.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnpool_ref.conformance import cases as drawing

SIZES = {"L": 5, "m": 5, "n": 2, "d": 3, "e": 4, "q": 3, "c": 4, "v": 4, "h": 6, "H": 2, "o": 7, "c'": 3, "B": 3}
LONG, LIMIT = 600, 512  # tokens of a long row, and a common largest number of tokens
KINDS = ("data", "parameter", "number", "stretch")


@dataclass(frozen=True)
class Hazard:
    """A group of cases.

    Attributes:
      name: the name of the group.
      says: what goes wrong in published code, a sentence.
      cases: a function from the plain case, with masks of real tokens only, to cases.
      known: with what the descriptions of the judge's mistakes begin that the group rejects.
      others: further mistakes, pairs of a description and a function from a call to the wrong results.
    """

    name: str
    says: str
    cases: Callable[[Any], Any]
    known: tuple[str, ...] = ()
    others: tuple[tuple[str, Callable[[Any], Any]], ...] = ()


def plain_case(row, title="plain", batch=(3,), everything=False, **sizes):
    """Returns a case of numbers that every dtype holds, with masks of real tokens only.

    Of the optional arguments it has masks and data; with ``everything`` those of the call with the most arguments.
    """
    ways = {way: (names, options) for way, names, options in drawing.configurations(row)}
    names, options = ways["fullest" if everything and "fullest" in ways else "smallest"]
    if not everything:
        names = [*names, *(k for k, a in row.arguments.items() if a.optional and a.kind == "data" and k not in names)]
        names = drawing.legal(row, names, options)
    case = drawing.draw(row, title, names, options, batch, SIZES | sizes)
    values = {key: np.ones_like(case.values[key]) for key in case.given("mask")}
    values |= {key: np.clip(np.round(32 * case.values[key]), -255, 255) / 32 for key in _floats(case)}
    return case.with_values("", **values)


def _floats(case):
    return [key for key, value in case.values.items() if value is not None and value.dtype.kind == "f"]


def _tokens(case):
    """Yields (name of an argument, index of its axis of tokens) for each array of data that has one."""
    for key in case.given("data"):
        for axis in {"L", "m"} & {*case.axes[key]}:
            yield key, drawing.places_of(axis, case.axes[key], case.values[key].ndim)[0]


# Cases


def _masked(title, *patterns):
    """Returns a function of cases that makes the one in which the masks of three examples have these patterns."""
    rows = np.array([[letter == "x" for letter in pattern] for pattern in patterns])

    def make(main):
        shapes = {key: main.values[key].shape for key in main.given("mask")}
        if shapes:
            reshaped = {k: rows.reshape(3, *(1,) * (len(shape) - 2), shape[-1]) for k, shape in shapes.items()}
            yield main.with_values(title, **{k: np.broadcast_to(reshaped[k], shapes[k]).copy() for k in shapes})

    return make


_right = _masked("padding on the right", "xxxxx", "xxx..", "xx...")
_left = _masked("padding on the left", "xxxxx", "..xxx", "...xx")


def _without_masks(main):
    axes = {key: axes for key, axes in main.axes.items() if key not in main.given("mask")}
    values = main.values | dict.fromkeys(main.given("mask"))
    yield replace(main, title=f"{main.title}, without masks", values=values, axes=axes)


def _plain(main):
    yield from _without_masks(main)
    case = plain_case(main.row, "all arguments", everything=True)
    if case.given(*KINDS) != main.given(*KINDS):
        yield case


def _one_token(main):
    yield from _without_masks(plain_case(main.row, "one token", (1,), L=1, m=1))
    yield from _masked("one real token", "....x", "x....", "..x..")(main)


def _poisoned(**poisons):
    def make(main):
        for case in (*_right(main), *(_left(main) if main.row.ordered else ())):
            for poison, number in poisons.items():
                found = drawing.poisoned(case, number)
                if found is not None:
                    yield replace(found, title=f"{poison} for {case.title.removeprefix('plain, ')}")

    return make


def _huge_scores(main):
    given = main.given(*KINDS)
    key = next((k for k in ("scores", main.row.sharpened, "query", "scale") if k in given), "")
    for case in _right(main) if key else ():
        for power in (100, 12):
            yield case.with_values(f"`{key}` times 2^{power}", **{key: case.values[key] * 2.0**power})


def _ties(main):
    values = {key: main.values[key] for key, _ in _tokens(main)}
    whole = {key: np.where(np.abs(value) < 1, 1, np.round(value)) for key, value in values.items()}
    yield replace(main.with_values("integers", **whole), exact=frozenset(whole))


def _infinite(main):
    for key, place in list(_tokens(main))[:1] if {"scores"} & main.values.keys() or "copies" in main.row.facts else ():
        for case in _right(main):
            value = np.moveaxis(case.values[key].copy(), place, 0)
            value[:2, 0] = value[:, 1] = -np.inf
            yield case.with_values("-inf at real tokens", **{key: np.moveaxis(value, 0, place)})


def _long_row(main):
    if main.given("mask"):
        case, values = plain_case(main.row, f"{LONG} tokens", (1,), L=LONG, m=LONG, d=2, v=2, n=1, e=2), {}
        for key, place in _tokens(case):
            value = np.moveaxis(case.values[key].copy(), place, 0)
            signs = np.where(np.arange(value[-1].size).reshape(value[-1].shape) % 2, -1, 1)
            value[-1] = 1 if main.row.unit else 7 * signs  # a largest and a least token
            values[key] = np.moveaxis(value, 0, place)
        yield case.with_values("", **values)


def _mates(main):
    yield from _right(main) if main.given("mask") else (main,)


# Mistakes


def _of_masks(change):
    return lambda call: call.oracle(**{key: change(call.real(key)) for key in call.masks}) if call.masks else None


def _to_the_last(real):
    return np.maximum.accumulate(real, -1) & np.maximum.accumulate(real[..., ::-1], -1)[..., ::-1]


def _columns_first(call):
    matrices = {k: call.values[k] for k in call.case.given("data") if call.values[k].ndim > 1}
    return call.oracle(
        **{k: np.swapaxes(v.reshape(*v.shape[:-2], *v.shape[:-3:-1]), -1, -2) for k, v in matrices.items()}
    )


def _squeezed(call):
    return [np.squeeze(result) for result in call.exact]


def _changed_at_padding(change):
    """Returns a mistake that changes the data at padding, and then treats it as real."""

    def wrong(call):
        pads = {key: drawing.padding(call.case, key) for key in call.case.given("data")}
        with np.errstate(invalid="ignore"):
            data = {
                k: np.where(pad, change(call.values[k]), call.values[k]) for k, pad in pads.items() if pad is not None
            }
        return call.oracle(**data, **{key: np.ones_like(call.real(key)) for key in call.masks})

    return wrong


def _by_position(call):
    changed = {}
    for key, place in _tokens(call.case):
        value = np.moveaxis(call.values[key], place, -1)
        changed[key] = np.moveaxis(value + 2.0**-40 * np.arange(value.shape[-1]), -1, place)
    return call.oracle(**changed)


def _of_the_first_example(call):
    keys = [key for key in call.case.given("data") if "..." in call.case.axes[key]]
    return call.oracle(**{key: np.broadcast_to(call.values[key][:1], call.values[key].shape) for key in keys[-1:]})


_PRODUCT = ("multiplies padding by 0: 0 times NaN, and 0 times inf, is NaN", _changed_at_padding(lambda x: x * 0.0))

# fmt: off
HAZARDS = (
    Hazard("plain", "Axes are read in another order, or an argument or a factor is forgotten.", _plain,
           ("ignores `", "no 1/sqrt(d)", "does not divide by"), (("reads each matrix column by column", _columns_first),)),
    Hazard("lengths", "The mask is ignored, or sums are divided by the padded length: vectors depend on the batch.", _right,
           ("ignores the mask", "takes the mean over the padded length", "takes the last position, also if it is padding")),
    Hazard("padding on the left", "Real tokens are counted from the left; tokenizers of decoders put padding there.", _left,
           ("counts the real tokens from the left", "takes the token at index (number of real tokens - 1)")),
    Hazard("holes", "The mask is replaced by a first and a last position; prompts and special tokens leave holes in it.",
           _masked("holes", "x.xx.", ".x..x", "xx.x."),
           others=(("takes all tokens from the first real one to the last", _of_masks(_to_the_last)),)),
    Hazard("one token", "An axis of size 1 is removed, or a single token is divided by 0.", _one_token,
           ("leaves out the last real token",), (("removes all axes of size 1, as squeeze() does", _squeezed),)),
    Hazard("a fully masked row", "0 / 0 is NaN, and -1e9 in place of -inf gives padding equal weights; the result is 0.",
           _masked("a fully masked row", "xxxxx", ".....", "xxx.."),
           ("NaN for a fully masked row", "averages the padding of a fully masked row")),
    Hazard("NaN under the mask", "Padding is multiplied by 0; uninitialized memory may hold NaN, and 0 times NaN is NaN.",
           _poisoned(NaN=np.nan), others=(_PRODUCT,)),
    Hazard("large numbers under the mask", "Padding is multiplied by 0, or moved by a number such as -1e4, not replaced.",
           _poisoned(**{"inf": np.inf, "-inf": -np.inf, "2^100": 2.0**100, "2^15": 2.0**15}),
           others=(_PRODUCT, ("adds -1e4 to padding", _changed_at_padding(lambda x: x - 1e4)))),
    Hazard("large scores", "exp overflows, because the largest score is not subtracted first.", _huge_scores,
           ("exp overflows or underflows",)),
    Hazard("ties", "Of equal scores the last one is taken, or not all of them.", _ties,
           others=(("breaks ties by position, for the last token", _by_position),)),
    Hazard("-inf as data", "A finite number stands for -inf at padding, or -inf is subtracted from -inf.", _infinite,
           ("a finite number in place of -inf", "replaces padding by a finite number", "exp overflows or underflows")),
    Hazard("a long row", f"Tokens after position {LIMIT} are cut off, silently.", _long_row,
           others=((f"stops after {LIMIT} tokens", _of_masks(lambda m: m & (np.arange(m.shape[-1]) < LIMIT))),)),
    Hazard("batch mates", "A mask, a count or a vector of one example is used for all: right in a batch of one.", _mates,
           ("applies the mask of the first example to all", "divides by the number of real tokens of the whole batch"),
           (("uses the data of the first example for all", _of_the_first_example),)),
)
# fmt: on
"""All hazards, in the order of the groups of a file."""
