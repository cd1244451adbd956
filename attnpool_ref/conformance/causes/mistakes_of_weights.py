"""Known mistakes of weights: numbers in place of -inf, epsilons, the mask beside the normalizer, wrong axes.

A mistake is a function from a :class:`~attnpool_ref.conformance.causes.call.Call`, and from what it depends on, to its
result: a list of arrays, or None if the mistake is not possible in the call. Functions of a :class:`Normalization`
return wrong weights, of which :func:`softmax` makes a mistake.
"""

import numpy as np

from attnpool_ref.conformance.causes.normalization import BY_FUNCTION, SCORES, Normalization


def softmax(call, weights_of, **settings):
    """Returns the result with the weights ``weights_of(normalization, **settings)`` in place of a softmax."""
    a = call.normalization()
    return None if a is None else a.answer(weights_of(a, **settings))


def filled(a, number, zeroed=False):
    """Returns the weights if the scores of padding are ``number``; None is the most negative number of the dtype.

    With ``zeroed`` the weights of padding are then set to 0.
    """
    found = a.softmax(np.where(a.real, a.scores, float(np.finfo(_wide(a)).min) if number is None else number))
    return np.where(a.real, found, 0) if zeroed else found


def added(a, number):
    """Returns the weights if ``number`` is added to the scores of padding."""
    wide = _wide(a)
    with np.errstate(all="ignore"):
        scores = a.scores.astype(wide) + np.where(a.real, wide(0), wide(number))
    return a.softmax(scores.astype(np.float64))


def _wide(a):
    """Returns the dtype in which scores are computed: float64 if that is judged, else float32."""
    return np.float64 if a.call.subject.dtype == "float64" else np.float32


def again(a, number):
    """Returns the weights if the mask is applied to those of all tokens, whose sum plus ``number`` then divides them."""
    found = np.where(a.real, a.softmax(a.scores), 0)
    with np.errstate(all="ignore"):
        return found / (np.sum(found, a.axis, keepdims=True) + number)


def not_normalized_again(call):
    """Returns the result if the mask is applied to the weights, which are not normalized again."""
    a = call.normalization(softmax=False)
    return None if a is None else a.answer(np.where(a.real, a.weights, 0))


def multiplied(call, only_real=False):
    """Returns the result if scores are multiplied by the mask; with ``only_real`` the weights of padding are 0."""
    a = call.normalization(softmax=False)
    if a is None or call.row.name not in BY_FUNCTION | SCORES.keys():
        return None
    with np.errstate(invalid="ignore"):
        scores = a.scores * a.real
    if "scores" in call.values:
        weights = call.oracle(return_weights=bool(call.row.weights), scores=scores, **a.absent)[-1]
    else:
        weights = a.softmax(scores)
    return a.answer(np.where(a.real, weights, 0) if only_real else weights)


def over_the_other_axis(call):
    """Returns the result if the weights are normalized over the other of the last two axes."""
    if not call.masks or not call.normalization() or len((call.row.weight_results or (("...", "n", "m"),))[0]) < 3:
        return None
    a = Normalization(call)  # not the cached one, because its axis is changed
    if a.scores.ndim < 2:
        return None
    a.axis = -1 if a.axis == -2 else -2
    return a.answer(a.of_real())


def over_all(call, axes):
    """Returns the result if weights are normalized over ``axes`` of the scores; None if there is no batch."""
    a = call.normalization()
    if a is None or a.scores.ndim < 2 or a.axis % a.scores.ndim == 0 or not call.case.batch:
        return None
    scores = np.where(a.real, a.scores, -np.inf)
    with np.errstate(all="ignore"):
        powers = np.exp(scores - np.max(scores, initial=-np.inf))
        found = powers / np.sum(powers, axes, keepdims=True)
    return a.answer(np.where(a.real, found, 0))


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
    want = a.answer(a.of_real())
    if call.row.results[0] != ("...",) and a.scores.ndim != call.got[0].ndim:
        far, gone, over = (np.squeeze(each, a.axis)[..., None] for each in (far, gone, over))
    found = []
    for got, right in zip(call.got, want, strict=True):
        if got.shape != right.shape or np.broadcast_shapes(far.shape, right.shape) != right.shape:
            return None
        lost = far & (~gone | (got == 0) | ~np.isfinite(got.astype(np.float64)))
        found.append(np.where(lost, got.astype(np.float64), np.where(over, np.nan, right)))
    return found


def averaged_where_empty(a, uniform):
    """Returns the right weights, but in fully masked rows equal ones (``uniform``), or those of all tokens."""
    nothing = ~np.any(a.real, a.axis, keepdims=True)
    return np.where(nothing, 1 / max(a.scores.shape[a.axis], 1) if uniform else a.softmax(a.scores), a.of_real())
