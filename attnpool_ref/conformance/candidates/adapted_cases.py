"""Adaptation of cases to an implementation: its own parameters and defaults, and masks that it can be called with."""

from dataclasses import replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import own_parameters
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.candidate import Candidate


def fit(case, calling, parameters):
    """Returns the case with the implementation's own parameters and defaults, and with masks that it takes.

    Numbers that the implementation does not take get their defaults: the values in ``Candidate.fixed``, or else the
    function's own. So do omitted numbers that ``fixed`` names, and omitted numbers and options that the implementation
    requires. Masks become prefixes if they are passed as lengths, lose their fully masked rows with ``Candidate.some_real``, and are made,
    without padding, if one is required.

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
        own = next(own for own in own_parameters.shapes_of(row, key) if len(own) == value.ndim)
        needed = None if values[key] is None else values[key].shape[-value.ndim or None :]
        if needed != value.shape:
            turned = f"; {own_parameters.transposed(key)}" if value.ndim > 1 else ""
            raise NotApplicable(f"its own `{key}` has shape {value.shape}{turned}")
        values[key], axes[key] = value.astype(np.float64), own
    for key in row.options:
        if key not in options and calling.is_needed(key):
            options[key] = calling.default(key)
    for key, argument in row.arguments.items():
        if argument.kind == "number" and key not in parameters and _has_another(case, calling, key):
            default = calling.default(key)
            values[key] = None if default is None else np.float64(default)
            axes |= {key: ()} if values[key] is not None else {}
        if argument.kind == "mask" and calling.takes(key):
            if values[key] is None and needs_mask(calling, key) and values.get(argument.lengths) is None:
                values[key], axes[key] = _everything_real(case, argument)
            if values[key] is not None and candidate.mask_form == "lengths":
                values[key] = -np.sort(-np.asarray(values[key]).astype(np.int8), -1) > 0
            if values[key] is not None and candidate.some_real and values[key].shape[_reduced(case)]:
                values[key] = _with_something_real(values[key], _reduced(case))
    fitted = replace(case, values=values, options=options, axes=axes)
    check_rank(fitted, candidate, parameters)
    return fitted


def _has_another(case, calling, key):
    """Returns whether a numeric argument gets the default of :meth:`Calling.default` in place of the case's value."""
    if case.values[key] is None:
        return calling.is_needed(key) or key in calling.candidate.fixed
    return not calling.takes(key)


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
    own = argument.shapes[0] if argument.shapes[0] != ("...",) else next(iter(case.axes.values()))
    shape = tuple(s for a in own for s in (case.batch if a == "..." else (contract.size_of(a, case.sizes),)))
    return np.ones(shape, bool), own


def _reduced(case):
    """Returns the axis of a mask that runs over tokens: the option ``axis`` if the case has it, else the last one."""
    return case.options.get("axis", -1)


def _with_something_real(mask, axis):
    """Returns a mask without fully masked rows: in each of them the first position becomes real."""
    mended = np.moveaxis(mask.copy(), axis, -1)
    mended[..., 0] |= ~np.any(mended, -1)
    return np.moveaxis(mended, -1, axis)


def check_some_real(case, calling):
    """Raises :class:`NotApplicable` if the case has a fully masked row and ``Candidate.some_real`` excludes it."""
    if not calling.candidate.some_real:
        return
    for key, argument in case.row.arguments.items():
        if argument.kind != "mask" or not calling.takes(key):
            continue
        mask, axes = case.values[key], argument.own or drawing.ANY_RANK
        if case.sizes.get(axes[_reduced(case)]) == 0 or (mask is not None and not np.all(np.any(mask, _reduced(case)))):
            raise NotApplicable("it is never called with a fully masked row")


def check_rank(case, candidate, own=()):
    """Raises :class:`NotApplicable` for a case whose batch axes the implementation does not take.

    ``Candidate.batched`` excludes cases without a batch axis, with several, and with arrays that broadcast. It and
    ``same_batch`` exclude data that examples share, except the arguments named in ``own``, which the implementation
    holds as parameters. The mask form "segments" excludes cases without a batch axis.
    """
    if case.row.batched and (candidate.batched or candidate.same_batch):
        arguments = case.row.arguments
        data = [k for k, axes in case.axes.items() if arguments[k].kind == "data" and "..." not in axes]
        shared = case.batch and any(arguments[k].batched for k in data if k not in own)
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
        self.numbers = (self.places // max(case.sizes[self.axis], 1)).astype(np.int32)

    def pack(self, key, value):
        """Returns an argument in the packed layout, in which N is the number of real tokens of all examples.

        The argument becomes [N, ...] if it has the token axis, and [num_segments, ...] if it has batch axes but no
        token axis. Any other argument is unchanged.

        Raises:
          NotApplicable: the token axis does not follow the batch axes.
        """
        own = self.case.axes[key]
        if self.axis in own and (own[0] != "..." or own.index(self.axis) != 1):
            raise NotApplicable(f"`{key}` cannot be packed")
        if self.axis in own:
            return self._flat(value)[self.places]
        return value.reshape(self.examples, *value.shape[len(self.batch) :]) if "..." in own else value

    def _flat(self, value):
        rank = len(self.batch) + 1
        return value.reshape(int(np.prod(value.shape[:rank])), *value.shape[rank:])

    def unpack(self, key, gradient):
        """Returns the gradient of a packed argument in the dense layout, with 0 at padding."""
        own, shape = self.case.axes[key], self.case.values[key].shape
        if self.axis not in own:
            return gradient.reshape(shape)
        whole = np.zeros(self._flat(np.empty(shape, np.bool_)).shape, gradient.dtype)
        whole[self.places] = gradient
        return whole.reshape(shape)

    def result(self, output):
        """Returns a result [num_segments, ...] with the batch axes of the case; other results unchanged."""
        if output.shape[:1] != (self.examples,):
            return output
        return output.reshape(*self.batch, *output.shape[1:])
