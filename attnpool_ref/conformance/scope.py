"""Scope of a judgment: which functions, dtypes and checks are judged. Each of these options is declared here, once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import SIMPLE
from attnpool_ref.conformance.checks.optional_checks import BROADCASTING, MIXED, OPTIONS
from attnpool_ref.conformance.option import option, validate
from attnpool_ref.conformance.report import check_waivers
from attnpool_ref.table import did_you_mean

DTYPES = ("float32", "bfloat16", "float16", "float64")

TIME_LIMIT = 60.0
"""Default limit in seconds for one call of an implementation, including its compilation."""

QUICK = {"dtypes": ("float32", "bfloat16"), "gradients": ("float32",), "shapes": (), "long": False} | dict.fromkeys(
    ("options", "partial", "laws"), False
)
"""The options of ``attnpool check --quick``; in Python, ``judge(pool, **QUICK)``."""

REMOVED = {
    "examples": "no known mistake needs its search; `seed` (--seed) draws other cases",
    "refusals": "only attnpool promises the errors of its contract; test those of your function with pytest.raises",
}
"""Former options of the judge, each with the reason for its removal and what to use instead."""


def refuse_removed(names):
    """Raises a TypeError if one of the names is that of a former option."""
    for name in REMOVED.keys() & names:
        raise TypeError(f"the judge no longer has `{name}`: {REMOVED[name]}")


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
        "names of the attnpool functions to judge; all of them if empty.",
        _functions,
        flag="--only",
        kind="functions",
        metavar="NAME",
        help="Judge only this function; may be repeated.",
    )
    dtypes: tuple[str, ...] = option(
        DTYPES,
        "names of the dtypes to judge; many checks run only in the first one.",
        _dtypes,
        flag="--dtype",
        kind="choices",
        choices=DTYPES,
        help="Judge only this dtype; may be repeated; by default all four, with --quick float32 and bfloat16.",
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
        "also judge sums over many tokens: 70,000 in float32 (with ``contract`` a million), 4,100 in narrower dtypes.",
    )
    integers: bool = option(
        False,
        "also judge data of integers only, if float64 is judged: the result must have the default floating dtype.",
        flag="--integers",
        help="Also test data of integers only, if float64 is judged: the result must have the default floating dtype.",
    )
    mixed: bool = option(
        False,
        "for arguments of several dtypes, which are judged only if float64 is, require the result dtype of attnpool's "
        "contract; otherwise an error, a result that is right up to the rounding of the narrowest dtype, or any result "
        "for integers together with floats, is a note in the report.",
        flag="--mixed",
        help="Require attnpool's dtype of the result if arguments have several dtypes; judged only if float64 is.",
    )
    broadcasting: bool = option(
        False,
        "require right results for masks of integers, and for masks, biases and multipliers of a lower rank or with "
        "axes of 1; otherwise an error or a wrong result for them is a note in the report, unless the argument is ignored or overwritten. They are judged only if "
        '``shapes`` has "broadcasting".',
        flag="--broadcasting",
        help="Require right results for masks of integers, and for masks, biases and multipliers of a lower rank or "
        "with axes of 1; --quick judges none of them.",
    )
    contract: bool = option(
        False,
        "require all guarantees of attnpool's contract (``docs/contract.md``), including ``mixed`` and "
        "``broadcasting``, but not ``integers``.",
        flag="--contract",
        help="Require all that attnpool guarantees, with --mixed and --broadcasting, but without "
        "--integers; always on for the default CANDIDATE.",
    )
    waive: Mapping[str, str] | None = option(
        None,
        'guarantees that need not hold, each with the reason: ``{"1e30 in padding": "inputs are finite"}``, or of one '
        'function: ``{"mean_pooling/1e30 in padding": ...}``. A waiver that waives nothing fails.',
        _waivers,
        flag="--waive",
        kind="pairs",
        metavar="NAME=REASON",
        example="1e30 in padding=inputs are finite",
        help="A guarantee, or FUNCTION/GUARANTEE, that need not hold, and the reason; may be repeated.",
    )
    time_limit: float = option(
        TIME_LIMIT,
        "seconds for one call in a child process, including its compilation; a call that takes longer is a failure, and "
        "ends the judging of its function. There is no limit for calls in this process, see ``jobs``.",
        flag="--time-limit",
        kind="number",
        help="Longest duration of one call in seconds, compilation included; a longer call ends the judging of its "
        "function.",
    )
    seed: str = option(
        "",
        "a text that changes the random numbers of all cases: they derive from it and from the cases' names, and are "
        "the same on every machine.",
        str,
        flag="--seed",
        kind="text",
        help="Draw other random cases; the same text draws the same cases on every machine.",
    )
    jobs: int = option(
        1,
        "the number of processes; the report is the same for 1 and more. 1 judges in this thread, without "
        "``time_limit``. With 2 or more, each child process judges one function at a time, and imports the "
        "implementation or receives a copy by ``pickle``; a single function, and an implementation that cannot be "
        "pickled, such as a function of a notebook or a script, are judged in this thread. 0 is like 1, but does not "
        "capture output, for debuggers.",
        flag="--jobs",
        kind="count",
        metavar="N",
        help="Judge in N child processes; by default one for each core, at most four, and one for each 2 functions, "
        "but only one with JAX on an accelerator. 0 judges in this process, for debuggers: without a time limit, and "
        "with its output on the screen.",
    )

    def __post_init__(self):
        validate(self)

    @property
    def demands(self) -> frozenset[str]:
        """The requested options of :data:`~attnpool_ref.conformance.checks.optional_checks.OPTIONS`."""
        if self.contract:
            return OPTIONS
        return frozenset(name for name in (MIXED, BROADCASTING) if getattr(self, name))

    def judges_whole(self, case):
        """Returns whether a case is judged in every dtype with gradients, or only in the first dtype without them."""
        return self.options or case.title.partition(", ")[0] in SIMPLE

    def differentiates(self, dtype):
        """Returns whether gradients are judged in a dtype."""
        return self.gradients if isinstance(self.gradients, bool) else dtype in self.gradients


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keyword arguments into those of a :class:`Scope` and the others, which are the calling convention.

    Raises:
      TypeError: the judge no longer has one of the options.
    """
    refuse_removed(given.keys())
    of_scope = {key: value for key, value in given.items() if key in Scope.__dataclass_fields__}
    return of_scope, {key: value for key, value in given.items() if key not in of_scope}
