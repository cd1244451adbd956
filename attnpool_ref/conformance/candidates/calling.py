"""Arguments of calls of an implementation: cases that fit, and arguments by name, position and form of masks.

:meth:`attnpool_ref.conformance.checks.subject.Subject.raw` makes the calls.
"""

import inspect
import itertools
from dataclasses import replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import held_parameters
from attnpool_ref.conformance.candidates.candidate import Candidate, signature_of
from attnpool_ref.conformance.candidates.chunks import oracle_of
from attnpool_ref.table import did_you_mean

NEUTRAL = frozenset(
    {"name", "implementation", "precision", "axis_name", "dtype", "param_dtype", "rngs", "rng", "key", "out", "train"}
) | {"training", "deterministic", "indices_are_sorted", "preferred_element_type", "return_weights", "dropout_rng"}
"""Names of parameters that select how a result is computed, or what else is returned.

They are never matched by position, and the report does not list them as arguments that were never judged.
"""

EMPTY = inspect.Parameter.empty


class NotApplicable(Exception):
    """Exception for a case that the implementation under test cannot be called with; the message gives the reason."""


class Calling:
    """Mapping of a function's arguments to the parameters of the implementation under test.

    Arguments are matched by name, then by position. The names that are tried are those in ``Candidate.arguments``
    first, then the function's own. A mask in the form of lengths may be called ``lengths`` (``x_lengths`` for
    ``x_mask``); in the form of segments it is called ``segment_ids``.

    Attributes:
      names: for each argument and option of the function that the implementation takes, the implementation's name for
        it; also for "num_segments" if masks have the form of segments.
      declared: the keys of ``names`` that are not merely taken by the implementation's ``**kwargs``; empty if its
        signature cannot be read.
      by_place: the entries of ``names`` that were matched by position only.
      unjudged: the implementation's parameters that match no argument of the function and may change a result.
      missing: the reason why the implementation cannot be called at all, or "".
    """

    def __init__(self, row, candidate, held=()):
        """``held`` has the names of the function's arguments that the implementation holds as parameters.

        Raises:
          ValueError: ``Candidate.fixed`` or ``Candidate.arguments`` has a name that does not exist.
        """
        self.row, self.candidate, self.held = row, candidate, frozenset(held)
        self.oracle = oracle_of(row.name)
        self.signature = signature_of(candidate.target)
        self.names, self.by_place, self.unjudged, self.missing = {}, {}, (), ""
        self._parameters = contract.signature_of(self.oracle).parameters
        self._spoken = {}
        for key in self._parameters:
            for word in self._words(key):
                self._spoken.setdefault(word, key)
        for key in candidate.fixed:
            if key not in self._parameters:
                raise ValueError(
                    f"{row.name} has no argument {key!r}, which `fixed` gives{did_you_mean(key, self._parameters)}"
                )
        self._needed, self._named, self.declared = set(), set(), frozenset()
        if self.signature is not None:
            self._bind(self.signature.parameters)
        else:
            self._bind_unseen()

    def _words(self, key):
        """Returns the names that are tried for an argument, in order."""
        words = [key]
        argument = self.row.arguments.get(key)
        if argument is not None and argument.kind == "lengths" and self.candidate.mask_form in ("lengths", "segments"):
            return []  # lengths are no argument of their own here: they stand for the mask
        if argument is not None and argument.kind == "mask":
            if self.candidate.mask_form == "lengths":
                words.append(key.replace("mask", "lengths"))
            if self.candidate.mask_form == "segments":
                words = ["segment_ids"]
        return words

    def _bind(self, parameters):
        theirs = {k: p for k, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        self._any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self._any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        said = {ours: name for name, ours in self.candidate.arguments.items()}
        known = {*self._spoken, "num_segments"}
        for ours, name in said.items():
            if ours not in known:
                raise ValueError(f"{self.row.name} has no argument {ours!r}{did_you_mean(ours, known)}")
            if name not in theirs and not self._any_name:
                raise ValueError(f"the implementation has no argument {name!r}{did_you_mean(name, theirs)}")
        if self.candidate.mask_form == "segments":
            self.names["num_segments"] = said.get("num_segments", "num_segments")
        keys = [k for k in self._parameters if k not in self.held]
        for key in keys:
            words = self._words(key)
            possible = [said[w] for w in words if w in said]
            possible += [w for w in words if w in theirs and w not in self.candidate.arguments]
            if possible:
                self.names[key] = possible[0]
        judged = {k for k in theirs if k not in NEUTRAL and k not in self.candidate.leave}
        left = [k for k in theirs if k in judged and k not in self.names.values()]
        left = [k for k in left if theirs[k].kind is not theirs[k].KEYWORD_ONLY]
        for key in [k for k in keys if k not in self.names]:
            if self._parameters[key].kind is inspect.Parameter.KEYWORD_ONLY:
                continue
            if left and _alike(self._parameters[key].default, theirs[left[0]].default):
                self.names[key] = self.by_place[key] = left.pop(0)
            elif self._any_number and not left:
                self.names[key] = key
            else:
                break
        self.declared = frozenset(self.names)
        if self._any_name:
            self.names |= {k: k for k in keys if k not in self.names}
        used = set(self.names.values())
        unknown = [k for k in theirs if k not in used]
        required = [k for k in unknown if theirs[k].default is EMPTY]
        for name in required[:1]:
            self.missing = (
                f"it needs `{name}`, which the function does not have; say what it is (arguments={{{name!r}: NAME}}, "
                f"--arg {name}=NAME)"
            )
        self.unjudged = tuple(k for k in unknown if theirs[k].default is not EMPTY and k in judged)
        self._needed = {key for key, name in self.names.items() if name in theirs and theirs[name].default is EMPTY}

    def _bind_unseen(self):
        """Matches arguments to an implementation without a readable signature.

        It takes the required arguments and those in ``Candidate.arguments``; :meth:`_arrange_unseen` says how.
        """
        said = {ours: given_name for given_name, ours in self.candidate.arguments.items()}
        for key, parameter in self._parameters.items():
            given_name = next((said[word] for word in self._words(key) if word in said), None)
            if given_name is not None or parameter.default is EMPTY:
                self.names[key] = given_name or key
            if given_name is not None:
                self._named.add(key)
        if self.candidate.mask_form == "segments":
            self.names["num_segments"] = said.get("num_segments", "num_segments")

    # Arguments of a call

    def default(self, key):
        """Returns the default of an argument: the value in ``Candidate.fixed``, or else the function's own default."""
        return self.candidate.fixed.get(key, self._parameters[key].default)

    def takes(self, key):
        """Returns whether the implementation takes this argument or option of the function."""
        return key in self.names

    def why_not(self):
        """Returns the reason why the function cannot be judged at all, or ""."""
        if self.missing:
            return self.missing
        for key, argument in self.row.arguments.items():
            if not argument.optional and key not in self.held and not self.takes(key) and self.default(key) is EMPTY:
                return f"it takes no `{key}`"
        for key in self.row.options:
            if not self.takes(key) and self.default(key) is EMPTY:
                return f"it takes no `{key}`"
        masks = [a for a in self.row.arguments.values() if a.kind == "mask"]
        one_sequence = len(masks) == 1 and len(masks[0].own) == 1
        if self.candidate.mask_form == "segments" and not one_sequence:
            return "segment numbers are asked for rows with one masked sequence alone"
        return ""

    def restrict(self, names, options):
        """Returns (names of optional arguments, options) of a call, reduced to what the implementation takes.

        Optional arguments that the implementation requires or holds are added. Options that it does not take get their
        defaults. Options that are omitted get their values in ``Candidate.fixed``.
        """
        arguments = self.row.arguments
        names = [n for n in names if n.split("#")[0] in self.held or self.is_drawn(n.split("#")[0])]
        must = {k for k, a in arguments.items() if a.optional and (k in self.held or self.is_needed(k))}
        names += sorted(must - {n.split("#")[0] for n in names})
        fixed = {k: v for k, v in self.candidate.fixed.items() if k in self.row.options}
        return names, fixed | {k: v if self.takes(k) else self.default(k) for k, v in options.items()}

    def is_drawn(self, key):
        """Returns whether cases may have the argument: it is taken, or is a mask for the padding of the data only."""
        argument = self.row.arguments.get(key)
        of_data = self.candidate.padding is not None and argument is not None and argument.kind == "mask"
        return of_data or self.takes(key)

    def is_needed(self, key):
        """Returns whether the implementation has no default for the argument."""
        return key in self._needed

    def not_taken(self):
        """Returns the arguments and options that the implementation does not take, including ``return_weights``."""
        return [k for k in self._parameters if k not in self.held and not self.takes(k)]

    def arrange(self, values):
        """Returns (args, kwargs) of a call of the implementation.

        The keys of ``values`` are the function's names, and ``num_segments`` if masks have the form of segments.
        """
        if self.signature is None:
            return self._arrange_unseen(values)
        if not self.names or (all(self.names.get(k) == k for k in values) and self._any_number):
            return arrange(self.oracle, values)
        named = {self.names[k]: v for k, v in values.items()}
        known = self.signature.parameters
        order = {k: named[k] for k in known if k in named}
        extra = {k: v for k, v in named.items() if k not in known}
        bound = inspect.BoundArguments(self.signature, order)
        return list(bound.args), {**bound.kwargs, **extra}

    def _arrange_unseen(self, values):
        """Returns (args, kwargs) of a call of an implementation without a readable signature.

        Arguments are passed by the function's positions up to the first that has a name in ``Candidate.arguments``.
        This one and all after it are passed by name.
        """
        before = set(itertools.takewhile(lambda key: key not in self._named, self._parameters))
        args, kwargs = arrange(self.oracle, {k: v for k, v in values.items() if k in before})
        return args, kwargs | {self.names.get(k, k): v for k, v in values.items() if k not in before}


def _alike(ours, theirs):
    """Returns whether an argument may be matched by position to a parameter, from the defaults of the two."""
    if theirs is EMPTY or ours is theirs:
        return True
    if ours is EMPTY or ours is None or theirs is None or isinstance(ours, bool) or isinstance(theirs, bool):
        return theirs is None and (ours is EMPTY or ours is None)
    return isinstance(theirs, type(ours)) or (isinstance(ours, (int, float)) and isinstance(theirs, (int, float)))


def arrange(oracle, values):
    """Returns (args, kwargs) of a call of the oracle.

    ``args`` ends with the last positional argument that ``values`` has; those before it that ``values`` lacks are None.
    """
    parameters = contract.signature_of(oracle).parameters
    positional = [k for k, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    given = [i for i, k in enumerate(positional) if k in values]
    count = given[-1] + 1 if given else 0
    args = [values.get(k) for k in positional[:count]]
    return args, {k: v for k, v in values.items() if k not in positional}


def formed(candidate, mask):
    """Returns a mask in the form that the implementation takes.

    Raises:
      NotApplicable: lengths cannot express the mask.
    """
    form = candidate.mask_form
    if form is None:
        if not candidate.padding_true:
            return mask
        return ~mask if mask.dtype == bool else 1 - mask
    real = np.asarray(mask).astype(bool)
    if form == "lengths":
        count = np.sum(real, -1)
        if np.any(real != (np.arange(real.shape[-1]) < count[..., None])):
            raise NotApplicable("lengths say where tokens end, not where padding begins elsewhere")
        return count.astype(np.int32)
    if form == "additive":
        return np.where(real, 0.0, -np.inf)
    real = ~real if candidate.padding_true else real
    return real if form == "boolean" else real.astype(np.int32)


def fit(case, calling, parameters):
    """Returns the case with the implementation's own parameters and defaults, and with masks that it takes.

    Numbers that the implementation does not take get their defaults: the values in ``Candidate.fixed``, or else the
    function's own. So do omitted numbers that ``fixed`` names, and omitted numbers and options that the implementation
    requires. Masks become prefixes if they are passed as lengths, lose their fully masked rows with
    ``Candidate.some_real``, and are made, without padding, if one is required.

    Args:
      case: the case.
      calling: the :class:`~attnpool_ref.conformance.candidates.calling.Calling` of the implementation.
      parameters: the arguments of the function that the implementation holds as parameters, by name.

    Raises:
      NotApplicable: the implementation cannot be called with the case; the message gives the reason.
    """
    candidate, row, values, axes = calling.candidate, case.row, dict(case.values), dict(case.axes)
    options = dict(case.options)
    own_form = candidate.mask_form is not None or candidate.padding_true
    if own_form and any(key in case.spread for key in case.given("mask")):
        raise NotApplicable(f"it takes masks only as {_form_of_masks(candidate)}")
    for key, value in parameters.items():
        shapes = [shape for shape in held_parameters.shapes_of(row, key) if len(shape) == value.ndim]
        shape = next((shape for shape in shapes if shape == axes.get(key)), shapes[0])
        needed = None if values[key] is None else values[key].shape[-value.ndim or None :]
        if needed != value.shape:
            turned = f"; {held_parameters.transposed(key)}" if value.ndim > 1 else ""
            raise NotApplicable(f"its own `{key}` has shape {value.shape}{turned}")
        values[key], axes[key] = value.astype(np.float64), shape
    for key in row.options:
        if key not in options and calling.is_needed(key):
            options[key] = calling.default(key)
    for key, argument in row.arguments.items():
        if is_number(argument) and key not in parameters and _has_another(case, calling, key):
            default = calling.default(key)
            values[key] = None if default is None else np.float64(default)
            axes |= {key: ()} if values[key] is not None else {}
        if argument.kind == "mask" and calling.is_drawn(key):
            if values[key] is None and needs_mask(calling, key) and values.get(argument.lengths) is None:
                values[key], axes[key] = _everything_real(case, argument)
            if values[key] is not None and candidate.mask_form == "lengths":
                values[key] = -np.sort(-np.asarray(values[key]).astype(np.int8), -1) > 0
            some_real = (candidate.some_real or not calling.takes(key)) and values[key] is not None and values[key].ndim
            if some_real and values[key].shape[_reduced(case)]:
                values[key] = _with_something_real(values[key], _reduced(case))
            if values[key] is not None and candidate.padding is not None:
                values[key] = on_side(values[key], candidate.padding, len(argument.own))
    fitted = replace(case, values=values, options=options, axes=axes)
    check_rank(fitted, candidate, parameters)
    return fitted


def _has_another(case, calling, key):
    """Returns whether a numeric argument gets the default of :meth:`Calling.default` in place of the case's value."""
    if case.values[key] is None:
        return calling.is_needed(key) or key in calling.candidate.fixed
    return not calling.takes(key)


def is_number(argument):
    """Returns whether an argument is a number, or can be one that has a default: it may then be left out."""
    return argument.kind == "number" or (argument.numeric and not argument.optional)


def needs_mask(calling, key):
    """Returns whether the implementation is never called without this mask, or lengths in its place."""
    candidate: Candidate = calling.candidate
    return candidate.mask_required or candidate.mask_form == "segments" or calling.is_needed(key)


def _form_of_masks(candidate):
    """Returns the form of the implementation's masks, in words."""
    if candidate.mask_form in (None, "boolean", "integer", "additive"):
        said = {None: "arrays", "boolean": "booleans", "integer": "integers 0 and 1", "additive": "numbers 0 and -inf"}
        one = "1" if candidate.mask_form == "integer" else "True"
        side = f", {one} at padding" if candidate.padding_true else ""
        return f"{said[candidate.mask_form]} with all axes{side}"
    return {"lengths": "lengths", "segments": "segment ids"}[candidate.mask_form]


def _everything_real(case, argument):
    axes = argument.shapes[0] if argument.shapes[0] != ("...",) else next(iter(case.axes.values()))
    shape = tuple(s for a in axes for s in (case.batch if a == "..." else (contract.size_of(a, case.sizes),)))
    return np.ones(shape, bool), axes


def _reduced(case):
    """Returns the axis of a mask that runs over tokens: the option ``axis`` if the case has it, else the last one."""
    return case.options.get("axis", -1)


def _with_something_real(mask, axis):
    """Returns a mask without fully masked rows: in each of them the first position becomes real."""
    mended = np.moveaxis(mask.copy(), axis, -1)
    mended[..., 0] |= ~np.any(mended, -1)
    return np.moveaxis(mended, -1, axis)


def on_side(mask, side, rank):
    """Returns a mask with as many real tokens, and with all padding on one side, the same for all queries of a pair."""
    if rank > 1 and mask.ndim > 1:
        mask = np.broadcast_to(np.any(mask, -2, keepdims=True), mask.shape).astype(mask.dtype)
    padded_left = np.sort(mask, -1) if mask.ndim else mask
    return padded_left if side == "left" or not mask.ndim else padded_left[..., ::-1]


def check_side(case, mask, side):
    """Raises :class:`NotApplicable` if a mask has padding elsewhere than on one side."""
    if not np.array_equal(on_side(mask, side, 1), mask):
        raise NotApplicable(f"its padding is always on the {side}")


def check_some_real(case, calling):
    """Raises :class:`NotApplicable` if ``Candidate.some_real`` excludes the case.

    It has a fully masked row, or weights that sum to 0 over the real tokens of a row.
    """
    if not calling.candidate.some_real:
        return
    weights = case.values.get("weights")
    if weights is not None and case.row.arguments["weights"].optional and not case.given("segments"):
        pad, axis = drawing.padding(case, "weights"), -1 if case.axes["weights"][-1] in drawing.SEQUENCES else -2
        if np.any(np.sum(weights if pad is None else np.where(pad, 0, weights), axis) == 0):
            raise NotApplicable("it is never called with weights that sum to 0")
    for key, argument in case.row.arguments.items():
        if argument.kind != "mask" or not calling.takes(key):
            continue
        mask, axes = case.values[key], argument.own or drawing.ANY_RANK
        if case.sizes.get(axes[_reduced(case)]) == 0 or (
            mask is not None and not np.all(np.any(mask, _reduced(case) if mask.ndim else None))
        ):
            raise NotApplicable("it is never called with a fully masked row")


def check_rank(case, candidate, held=()):
    """Raises :class:`NotApplicable` for a case whose batch axes the implementation does not take.

    ``Candidate.batched`` excludes cases without a batch axis, with several, and with arrays that broadcast. It and
    ``same_batch`` exclude data that examples share, except the arguments named in ``held``, which the implementation
    holds as parameters. The mask form "segments" excludes cases without a batch axis.
    """
    if case.row.batched and (candidate.batched or candidate.same_batch):
        arguments = case.row.arguments
        data = [k for k, axes in case.axes.items() if arguments[k].kind == "data" and "..." not in axes]
        shared = case.batch and any(arguments[k].batched for k in data if k not in held)
        if candidate.batched and (len(case.batch) != 1 or case.spread or shared):
            raise NotApplicable("it is called only with exactly one batch axis, and nothing broadcasts")
        if shared:
            raise NotApplicable("all its data must have the same batch axes")
    if candidate.mask_form == "segments" and not case.batch:
        raise NotApplicable("segment ids need a batch axis")


class Packed:
    """Packed layout of a case: packs tokens of all examples into one array, and unpacks results."""

    def __init__(self, case, mask):
        """``mask`` is the name of the case's mask; only tokens that it marks as real are packed."""
        argument = case.row.arguments[mask]
        self.axis, self.case, self.batch = argument.own[0], case, case.batch
        real = np.broadcast_to(np.asarray(case.values[mask]).astype(bool), (*case.batch, case.sizes[self.axis]))
        self.places = np.nonzero(real.reshape(-1))[0]
        self.examples = int(np.prod(case.batch))
        self.numbers = (self.places // max(case.sizes[self.axis], 1)).astype(np.int64)

    def pack(self, key, value):
        """Returns an argument in the packed layout, in which N is the number of real tokens of all examples.

        The argument becomes [N, ...] if it has the token axis, and [num_segments, ...] if it has batch axes but no
        token axis. Any other argument is unchanged.

        Raises:
          NotApplicable: the token axis does not follow the batch axes.
        """
        axes = self.case.axes[key]
        if self.axis in axes and (axes[0] != "..." or axes.index(self.axis) != 1):
            raise NotApplicable(f"`{key}` cannot be packed")
        if self.axis in axes:
            return self._flat(value)[self.places]
        return value.reshape(self.examples, *value.shape[len(self.batch) :]) if "..." in axes else value

    def _flat(self, value):
        rank = len(self.batch) + 1
        return value.reshape(int(np.prod(value.shape[:rank])), *value.shape[rank:])

    def unpack(self, key, gradient):
        """Returns the gradient of a packed argument in the dense layout, with 0 at padding."""
        axes, shape = self.case.axes[key], self.case.values[key].shape
        if self.axis not in axes:
            return gradient.reshape(shape)
        whole = np.zeros(self._flat(np.empty(shape, np.bool_)).shape, gradient.dtype)
        whole[self.places] = gradient
        return whole.reshape(shape)

    def result(self, output):
        """Returns a result [num_segments, ...] with the batch axes of the case; other results unchanged."""
        if output.shape[:1] != (self.examples,):
            return output
        return output.reshape(*self.batch, *output.shape[1:])
