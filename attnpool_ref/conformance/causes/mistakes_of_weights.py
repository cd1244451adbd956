"""Known mistakes of weights: numbers in place of -inf, epsilons, the mask beside the normalizer, wrong axes.

A mistake is a function from a :class:`~attnpool_ref.conformance.causes.call.Call` to its result, a list of arrays, or
to None if it is not possible in the call. ``softmax`` makes one of a change of the weights.
"""

import numpy as np

from attnpool_ref.conformance.causes.normalization import BY_FUNCTION, SCORES, Normalization


def softmax(change):
    """Returns the ``answer`` of a :class:`Mistake` about a softmax, with the weights ``change(normalization)``."""

    def answer(call):
        normalization = call.normalization()
        return None if normalization is None else normalization.answer(change(normalization))

    return answer


def filled(number, zeroed=False):
    """Returns the weights if the scores of padding are ``number``; None is the dtype's least number.

    With ``zeroed`` the weights of padding are then set to 0.
    """

    def weights(a):
        number_ = float(least(a)) if number is None else number
        found = a.softmax(np.where(a.real, a.scores, number_))
        return np.where(a.real, found, 0) if zeroed else found

    return weights


def added(number):
    """Returns the weights if ``number`` is added to the scores of padding."""

    def weights(a):
        wide = np.float64 if a.call.subject.dtype == "float64" else np.float32
        with np.errstate(all="ignore"):
            scores = a.scores.astype(wide) + np.where(a.real, wide(0), wide(number))
        return a.softmax(scores.astype(np.float64))

    return weights


def least(a):
    """Returns the most negative number of float64 if a :class:`Normalization` is judged in it, else of float32."""
    return np.finfo(np.float64 if a.call.subject.dtype == "float64" else np.float32).min


def epsilon(number, shifted=True):
    """Returns the weights if ``number`` is added to the denominator; ``shifted`` is that of ``softmax``."""

    def weights(a):
        found = a.softmax(np.where(a.real, a.scores, -np.inf), number, shifted)
        return np.where(a.real, found, 0)

    return weights


def again(number):
    """Returns the weights if the mask is applied to those of all tokens, whose sum plus ``number`` then divides them."""

    def weights(a):
        found = np.where(a.real, a.softmax(a.scores), 0)
        with np.errstate(all="ignore"):
            return found / (np.sum(found, a.axis, keepdims=True) + number)

    return weights


def not_normalized_again(call):
    """Returns the result if the mask is applied to the weights, which are not normalized again."""
    normalization = call.normalization(softmax=False)
    return (
        None if normalization is None else normalization.answer(np.where(normalization.real, normalization.weights, 0))
    )


def multiplied(only_real):
    """Returns the ``answer`` of a mistake that multiplies scores by the mask.

    With ``only_real`` the weights of padding are 0.
    """

    def answer(call):
        normalization = call.normalization(softmax=False)
        if normalization is None or call.row.name not in BY_FUNCTION | SCORES.keys():
            return None
        with np.errstate(invalid="ignore"):
            scores = normalization.scores * normalization.real
        if "scores" in call.values:
            weights = call.oracle(return_weights=bool(call.row.weights), scores=scores, **normalization.absent)[-1]
        else:
            weights = normalization.softmax(scores)
        return normalization.answer(np.where(normalization.real, weights, 0) if only_real else weights)

    return answer


def over_the_other_axis(call):
    """Returns the result if the weights are normalized over the other of the last two axes."""
    normalization = (
        Normalization(call) if call.masks and call.normalization() else None
    )  # not the cached one, because its axis is changed below
    if (
        normalization is None
        or normalization.scores.ndim < 2
        or len((call.row.weight_results or (("...", "n", "m"),))[0]) < 3
    ):
        return None
    normalization.axis = -1 if normalization.axis == -2 else -2
    found = normalization.softmax(np.where(normalization.real, normalization.scores, -np.inf))
    return normalization.answer(np.where(normalization.real, found, 0))


def over_all(axes):
    """Returns a function that normalizes over ``axes`` of the scores in place of the tokens; None if there is no batch."""

    def answer(call):
        a = call.normalization()
        if a is None or a.scores.ndim < 2 or a.axis % a.scores.ndim == 0 or not call.case.batch:
            return None
        scores = np.where(a.real, a.scores, -np.inf)
        with np.errstate(all="ignore"):
            powers = np.exp(scores - np.max(scores, initial=-np.inf))
            found = powers / np.sum(powers, axes, keepdims=True)
        return a.answer(np.where(a.real, found, 0))

    return answer


def below_another_row(call, shifted=True, padded=False):
    """Returns the wrong weights where the maximum of the whole array, in place of that of the row, explains them.

    Powers of a row far below that maximum underflow: its weights are 0, or NaN, or have lost digits. With ``padded``
    the maximum is that of the row and its padding. Without ``shifted`` no maximum is subtracted: powers of scores far
    from 0 underflow or overflow.
    """
    a = call.normalization()
    if a is None or call.got is None or not a.scores.size:
        return None
    with np.errstate(all="ignore"):
        top = np.max(np.where(a.real, a.scores, -np.inf), a.axis, keepdims=True, initial=-np.inf)
        most = np.max(a.scores, a.axis, keepdims=True, initial=-np.inf)  # a product with the mask keeps inf of padding
        largest = np.where(np.isnan(most), np.inf, most) if padded else np.max(top)
        below = largest - top if shifted else np.where(top == -np.inf, most, np.maximum(-top, most))
        info = np.finfo(np.float32 if call.subject.is_narrow else call.subject.dtype)
        far = below > -np.log(float(info.tiny)) - np.log(1 / float(info.eps))
        gone = below > -np.log(float(info.tiny)) + np.log(1 / float(info.eps)) + 1
        over = (top > -np.log(float(info.tiny)) + np.log(1 / float(info.eps)) + 1) & (not shifted)
    want = a.answer(np.where(a.real, a.softmax(np.where(a.real, a.scores, -np.inf)), 0))
    if call.row.results[0] != ("...",) and a.scores.ndim != call.got[0].ndim:
        far, gone, over = (np.squeeze(each, a.axis)[..., None] for each in (far, gone, over))
    found = []
    for got, right in zip(call.got, want, strict=True):
        if got.shape != right.shape or np.broadcast_shapes(far.shape, right.shape) != right.shape:
            return None
        lost = far & (~gone | (got == 0) | ~np.isfinite(got.astype(np.float64)))
        found.append(np.where(lost, got.astype(np.float64), np.where(over, np.nan, right)))
    return found


def where_nothing_is_real(weights_of):
    """Returns a function that computes the right weights, but ``weights_of`` in fully masked rows."""

    def weights(a):
        nothing = ~np.any(a.real, a.axis, keepdims=True)
        found = np.where(a.real, a.softmax(np.where(a.real, a.scores, -np.inf)), 0)
        return np.where(nothing, weights_of(a), found)

    return weights


uniform_where_empty = where_nothing_is_real(lambda a: 1 / max(a.scores.shape[a.axis], 1))
of_all_where_empty = where_nothing_is_real(lambda a: a.softmax(a.scores))
