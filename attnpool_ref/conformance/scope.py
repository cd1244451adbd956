"""Scope of a judgment: which functions, dtypes and checks are judged. Each of these options is declared here, once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import SIMPLE
from attnpool_ref.conformance.option import option, validate
from attnpool_ref.conformance.report import check_waivers
from attnpool_ref.table import did_you_mean

DTYPES = ("float32", "bfloat16", "float16", "float64")

QUICK = {"dtypes": ("float32", "bfloat16"), "gradients": ("float32",), "shapes": (), "long": False} | dict.fromkeys(
    ("options", "partial", "laws"), False
)
"""The options of ``attnpool check --quick``; in Python, ``judge(pool, **QUICK)``."""


def _functions(names):
    return tuple(table.get(name).name for name in names)


def _known_dtypes(names):
    names = tuple(names)
    for name in names:
        if name not in DTYPES:
            raise ValueError(f"no dtype is called {name!r}, needs one of {', '.join(DTYPES)}")
    return names


def _dtypes(names):
    names = _known_dtypes(names)
    if not names:
        raise ValueError(f"`dtypes` is empty, needs at least one of {', '.join(DTYPES)}")
    return names


def _gradients(names):
    return names if isinstance(names, bool) else _known_dtypes(names)


def _shapes(names):
    names, known = tuple(names), [repr(name) for name in cases.SHAPES]  # quoted, because some have commas
    for name in names:
        if name not in cases.SHAPES:
            raise ValueError(
                f"no shape is called {name!r}, needs one of {', '.join(known)}{did_you_mean(repr(name), known)}"
            )
    return names


def _waivers(waive):
    waive = dict(waive or {})
    check_waivers(waive)
    return waive


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Scope of a judgment: options of :func:`judge`; most are options of :func:`check` and ``attnpool check``, too.

    ``help(attnpool_ref.conformance.judge)`` explains each option.

    Raises:
      ValueError: no function, dtype, shape or guarantee has a given name, ``dtypes`` is empty, or a waiver has no
        reason.
    """

    only: tuple[str, ...] = option(
        (),
        "names of the attnpool functions to judge; by default all.",
        _functions,
        flag="--only",
        kind="functions",
        metavar="NAME",
    )
    dtypes: tuple[str, ...] = option(
        DTYPES,
        "dtypes to judge; many checks run only in the first one. By default the command judges all four, with --quick "
        "float32 and bfloat16.",
        _dtypes,
        flag="--dtype",
        kind="choices",
        choices=DTYPES,
    )
    strict: bool = option(
        False,
        "if True, a function that the implementation lacks fails; if False, it is only reported as missing, unless "
        "``only`` names it.",
    )
    shapes: tuple[str, ...] = option(
        cases.SHAPES,
        "names of further shapes (``cases.SHAPES``) to judge in the first dtype, besides a batch of five examples with "
        "different masks.",
        _shapes,
    )
    gradients: bool | tuple[str, ...] = option(
        True, "judge gradients, if the array library has them: in all dtypes, or in those that are named.", _gradients
    )
    laws: bool = option(
        True,
        "compare the implementation with itself, in the first dtype: permuted tokens, deleted padding, other examples "
        "in the batch, and so on.",
    )
    options: bool = option(
        True,
        "judge other values of the function's options, and calls without masks, in all dtypes and with gradients; if "
        "False, only in the first dtype, without gradients.",
    )
    partial: bool = option(True, "in the first dtype, also judge calls that omit some arguments, and ties and edges.")
    long: bool = option(
        True,
        "also judge sums over many tokens: 70,000 in float32, 4,100 in narrower dtypes.",
    )
    waive: Mapping[str, str] | None = option(
        None,
        "guarantees that need not hold, each with the reason, also of one function: mean_pooling/1e30 in padding=why. A "
        "waiver that waives nothing fails.",
        _waivers,
        flag="--waive",
        kind="pairs",
        metavar="GUARANTEE=REASON",
        example="1e30 in padding=inputs are finite",
    )
    seed: str = option(
        "",
        "a text that changes the random numbers of all cases: they derive from it and from the cases' names, and are "
        "the same on every machine.",
        str,
        flag="--seed",
        kind="text",
    )
    whole_contract: bool = False
    """Whether everything in ``docs/contract.md`` is judged, as only this project's own functions are; no option."""

    def __post_init__(self):
        validate(self)

    def judges_whole(self, case):
        """Returns whether a case is judged in every dtype with gradients, or only in the first dtype without them."""
        return self.options or case.way in SIMPLE

    def differentiates(self, dtype):
        """Returns whether gradients are judged in a dtype."""
        return self.gradients if isinstance(self.gradients, bool) else dtype in self.gradients


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keyword arguments into those of a :class:`Scope` and the others, which are the calling convention."""
    of_scope = {key: value for key, value in given.items() if key in Scope.__dataclass_fields__}
    return of_scope, {key: value for key, value in given.items() if key not in of_scope}
