"""``Candidate``: an implementation under test and its calling convention, the options of the judge for its calls."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from attnpool_ref import table
from attnpool_ref.conformance.candidates.chunks import InChunks, named
from attnpool_ref.conformance.option import documented, option, options_of

SIDES = ("left", "right")
MASK_FORMS = ("boolean", "integer", "additive", "lengths", "segments")
ARRAYS = ("numpy", "jax", "torch", "keras", "tensorflow")


class Calls(TypedDict, total=False):
    """Calling convention of an implementation under test; see :class:`Candidate`."""

    arguments: Mapping[str, str]
    padding_true: bool
    padding: str | None
    mask_form: str | None
    mask_required: bool
    some_real: bool
    batched: bool
    same_batch: bool
    shared: tuple[str, ...]
    without: tuple[str, ...]
    sizes: Mapping[str, int | str]
    fixed: Mapping[str, Any]
    leave: tuple[str, ...]
    arrays: Any
    result: int | None
    parameters: Callable[[Any], Mapping[str, Any]] | Mapping[str, str] | None


@documented
@dataclass(frozen=True, eq=False)
class Candidate:
    """An implementation under test, and its calling convention.

    Attributes:
      target: a module, a mapping from names to functions, an object with functions, or one callable that implements one
        function: a function, a ``torch.nn.Module``, a Keras layer, a Flax NNX module, a bound Linen module.
      **options: the calling convention.

    Raises:
      ValueError: no form of masks is called ``mask_form``, or no side ``padding``; or ``padding_true`` is given with
        "additive", "lengths" or "segments", or ``padding`` with "lengths" or "segments".
    """

    target: Any
    arguments: Mapping[str, str] = option(
        dict,
        "your names for arguments, each with the name that it has in attnpool's function, such as attention_mask=mask.",
        flag="--arg",
        kind="pairs",
        metavar="THEIRS=OURS",
        example="attention_mask=mask",
    )
    padding_true: bool = option(False, "your masks are True (or 1) at padding.", flag="--padding-true")
    padding: str | None = option(
        None,
        "the side on which your tokenizer always pads; no other padding is judged. A function without a mask, such as "
        "hidden[:, -1], is judged with padded data.",
        flag="--padding",
        kind="choice",
        choices=SIDES,
    )
    mask_form: str | None = option(
        None,
        "the form of your masks: integer is 0 and 1, additive is 0 and -inf, lengths are numbers of real tokens, "
        "counted from the left, and segments are the tokens of all examples in one array [N, d] with ``segment_ids`` [N] "
        "and ``num_segments``; by default boolean or integer.",
        flag="--mask-form",
        kind="choice",
        choices=MASK_FORMS,
    )
    mask_required: bool = option(
        False, "never call your implementation without a mask, or lengths in its place.", flag="--mask-required"
    )
    some_real: bool = option(False, "never test fully masked rows, or weights that sum to 0.", flag="--some-real")
    batched: bool = option(
        False,
        "your implementation takes only data with one batch axis, [B, L, d] (examples, tokens, width).",
        flag="--batched",
    )
    same_batch: bool = option(
        False,
        "your implementation takes any rank, and all data have the same batch axes, except those in ``shared``.",
        flag="--same-batch",
    )
    shared: tuple[str, ...] = option(
        (),
        "data that all examples share, such as query: they have no batch axes in any call.",
        flag="--shared",
        kind="names",
        metavar="ARGUMENT",
    )
    without: tuple[str, ...] = option(
        (),
        "an optional axis of attnpool's function that your implementation does not have, such as n if out_kernel is [h].",
        flag="--without",
        kind="names",
        metavar="AXIS",
    )
    sizes: Mapping[str, int | str] = option(
        dict,
        "the only size of an axis of attnpool's function that your implementation takes, such as d=6, or another axis of "
        "the same size, such as v=d.",
        flag="--size",
        kind="sizes",
        metavar="AXIS=SIZE",
        example="d=6",
    )
    fixed: Mapping[str, Any] = option(
        dict,
        "your value of an argument of attnpool's function, in place of its default, such as scale=1.",
        flag="--fixed",
        kind="literals",
        metavar="ARGUMENT=VALUE",
        example="scale=1",
    )
    leave: tuple[str, ...] = option(
        (),
        "an argument that only your implementation has, to leave at its default, or a mask that it does not take by "
        "design.",
        flag="--leave",
        kind="names",
        metavar="NAME",
    )
    arrays: Any = option(
        None,
        "the library of your arrays, or in Python an adapter; detected by default.",
        flag="--arrays",
        kind="choice",
        choices=ARRAYS,
    )
    result: int | None = option(
        None,
        "the index of the result to judge if your implementation returns several: 0 is the first.",
        flag="--result",
        kind="count",
        metavar="INDEX",
    )
    parameters: Callable[[Any], Mapping[str, Any]] | Mapping[str, str] | None = option(
        None,
        "an argument that your implementation holds itself, by its attribute: query=q, key_kernel=key.kernel; of a "
        "torch.nn.Linear key_kernel=key.weight.T or, with one output, out_kernel=score.weight[0]. In Python also a "
        "function from the implementation to these arguments.",
        flag="--parameter",
        kind="pairs",
        metavar="ARGUMENT=ATTRIBUTE",
        example="query=q",
    )

    def __post_init__(self):
        if self.mask_form is not None and self.mask_form not in MASK_FORMS:
            raise ValueError(f"no form of masks is called {self.mask_form!r}, needs one of {', '.join(MASK_FORMS)}")
        if self.padding_true and self.mask_form in ("additive", "lengths", "segments"):
            raise ValueError(f"padding_true says nothing of a mask in the form {self.mask_form!r}")
        if self.padding is not None and self.padding not in SIDES:
            raise ValueError(f"no side of padding is called {self.padding!r}, needs one of {', '.join(SIDES)}")
        if self.padding is not None and self.mask_form in ("lengths", "segments"):
            raise ValueError(f"padding says nothing of a mask in the form {self.mask_form!r}")

    def for_row(self, row):
        """Returns the Candidate for one function, with the callable as its target; None if there is no callable.

        A function that returns states also needs ``merge_states`` and ``finalize_state``.
        """
        found = named(self.target, row.name)
        if isinstance(found, Candidate):
            return found
        if row.state and callable(found):
            found = InChunks(row.name, self.target, {ours: theirs for theirs, ours in self.arguments.items()})
            return replace(self, target=found) if found.complete() else None
        return replace(self, target=found) if callable(found) else None

    def found(self, names):
        """Returns the Candidate for each function name, None for a function that the implementation lacks.

        If there is one name, the target itself may be the function.

        Raises:
          ValueError: there is one name, and :func:`single` raises it.
        """
        if len(names) == 1:
            return {name: single(self, name) for name in names}
        return {name: self.for_row(table.get(name)) for name in names}

    def title(self):
        """Returns the name of the target, for reports."""
        return title_of(self.target)

    def rows(self):
        """Returns the names of the functions that the implementation has."""
        return tuple(row.name for row in table.BY_NAME.values() if self.for_row(row) is not None)

    def says(self):
        """Returns the calling convention, where it differs from the function's, as a dict of plain data.

        ``arrays`` and a function ``parameters`` are left out.
        """
        said = {name: getattr(self, name) for name in options_of(Candidate) if name != "arrays"}
        said |= {key: list(value) for key, value in said.items() if isinstance(value, tuple)}
        said |= {"arguments": dict(self.arguments), "sizes": dict(self.sizes)}
        said |= {"fixed": {key: repr(value) for key, value in self.fixed.items()}}
        said |= {"parameters": dict(self.parameters) if isinstance(self.parameters, Mapping) else {}}
        return {key: value for key, value in said.items() if value or (key == "result" and value == 0)}

    def called(self):
        """Returns the callable whose results are judged: the target, or its result with the index :attr:`result`."""
        if self.result is None:
            return self.target

        def judged(*args, **kwargs):
            return self.target(*args, **kwargs)[self.result]

        return judged


def as_candidate(target, calls):
    """Returns a :class:`Candidate` for a target; a target that is a Candidate is returned unchanged.

    Raises:
      TypeError: the target is a Candidate, which has a calling convention, and ``calls`` gives another.
    """
    if not isinstance(target, Candidate):
        return Candidate(target, **calls)
    if calls:
        raise TypeError(f"{', '.join(calls)} stands in the Candidate already, or belongs there")
    return target


def single(candidate, name):
    """Returns the Candidate for the function ``name``, or None if the target lacks it.

    The function is the target's attribute of that name, or else the target itself if it is a callable.

    Raises:
      ValueError: no attnpool function has this name; or the target has no attribute of this name, but is a class, or a
        single function that returns chunk states, which are judged only with ``merge_states`` and ``finalize_state``.
    """
    row = table.get(name)
    found = candidate.for_row(row)
    if found is not None or not callable(candidate.target):
        return found
    if isinstance(candidate.target, type):
        class_name = candidate.target.__name__
        raise ValueError(
            f"{class_name} is a class, and {name} needs what is called: an instance, such as `pool = {class_name}(...)`"
        )
    if row.state and not isinstance(candidate.target, InChunks):
        raise ValueError(f"{name} is judged with `merge_states` and `finalize_state`: give what has all three")
    return candidate


def title_of(target):
    """Returns the name of an implementation for reports."""
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    if name is None and hasattr(target, "func"):
        return title_of(target.func)
    return name or type(target).__name__


def signature_of(function):
    """Returns the signature of a callable, or None if it has none that can be read.

    For a module that passes all its arguments on, to ``forward`` (PyTorch) or ``call`` (Keras), it is that method's
    signature.
    """
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    anything = all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found.parameters.values())
    inner = getattr(function, "call", None) or getattr(function, "forward", None)
    return signature_of(inner) if anything and callable(inner) else found


def has_parameter(function, name):
    """Returns whether a callable's signature can be read and has a parameter of this name."""
    signature = signature_of(function)
    return signature is not None and name in signature.parameters
