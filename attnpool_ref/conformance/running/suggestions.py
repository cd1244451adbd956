"""Suggestions after an error of an implementation: how the judge called it, and which option changes the call."""

import sys

import numpy as np

from attnpool_ref.conformance.candidates.capture import said


def suggestion(error, subject, case):
    """Returns the first suggestion that fits the error of a call, as a clause that begins with "; "; or "".

    Args:
      error: the exception.
      subject: the implementation under test, a :class:`~attnpool_ref.conformance.checks.subject.Subject`.
      case: the case of the call.
    """
    text, mistyped = said(error), isinstance(error, (AttributeError, TypeError))
    if mistyped and "torch" in sys.modules and subject.adapter.name == "numpy" and _names_an_array(text):
        return "; it was called with NumPy arrays: if it takes tensors, say so (arrays='torch', --arrays torch)"
    if "None" in text:
        absent = [key for key in subject.calling.declared if _is_absent(key, case)]
        if absent:
            named = " and ".join(f"`{subject.calling.names[key]}`" for key in sorted(absent))
            return f"; it was called without {named}, as its signature allows: without a default it is always given"
    if (mistyped or "bool" in text.lower()) and _has_a_mask_of_integers(subject, case):
        return (
            "; its mask was of integers: if it takes booleans only, say so (mask_form='boolean', --mask-form boolean)"
        )
    return ""


def _names_an_array(text):
    return "ndarray" in text or "Tensor" in text


def _is_absent(key, case):
    argument = case.row.arguments.get(key)
    return argument is not None and argument.optional and case.values.get(key) is None


def _has_a_mask_of_integers(subject, case):
    masks = [case.values[key] for key in case.given("mask")] if subject.candidate.mask_form is None else []
    return any(np.asarray(mask).dtype.kind in "iu" for mask in masks)
