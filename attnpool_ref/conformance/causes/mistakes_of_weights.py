"""Known mistakes of weights: numbers in place of -inf, epsilons, the mask beside the normalizer, wrong axes.

A mistake is a function from a :class:`~attnpool_ref.conformance.causes.wrong_answers.Call`, and from what it depends on,
to its result: a list of arrays, or None if the mistake is not possible in the call. Functions of a
:class:`Normalization`, a softmax in parts, return wrong weights, of which :func:`with_weights` makes a mistake.
"""

import numpy as np

import attnpool_ref as ref
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.pooling.attention import attention_scores

OF_SCORES = ("masked_softmax", "sparsemax", "entmax15", "entmax", "top_k_softmax", "masked_sigmoid", "hardmax")
VALUES = dict.fromkeys(OF_SCORES, "") | {"attention_pooling": "x", "code_wise_attention": "context"}
VALUES |= dict.fromkeys(
    ("attend", "dot_product_attention", "additive_attention", "tanh_sum_attention", "kernel_regression"), "value"
)
"""Functions whose normalization under one mask is known in parts, each with the argument that it averages, or ""."""

BY_FUNCTION = frozenset({"additive_attention_pooling", "multi_head_attention_pooling"})
"""Functions whose scores and weights are exchanged through ``normalizer=``, a function (scores, mask) -> weights."""

KEYS = {"code_wise_attention": "context_mask"}


def _dot(v):
    scores = ref.scaled_dot_score(v["query"], v["key"], scale=v["scale"])
    return scores if v["bias"] is None else scores + v["bias"]


def _of_pooling(v):
    """Returns the scores of attention pooling with the arguments ``v``; by default the query is the mean."""
    query = ref.mean_pooling(v["x"], v["mask"], lengths=v["lengths"]) if v["query"] is None else v["query"]
    normalization = v.get("normalize_query"), v["query_norm_scale"], v["query_norm_bias"], v["epsilon"]
    scores = attention_scores(v["x"], query, v["query_kernel"], v["key_kernel"], normalization, v["scale"])
    return scores if v["bias"] is None else scores + v["bias"]


SCORES = dict.fromkeys((*OF_SCORES, "attend"), lambda v: v["scores"]) | {
    "dot_product_attention": _dot,
    "additive_attention": lambda v: ref.additive_score(
        v["query"], v["key"], v["query_kernel"], v["key_kernel"], v["out_kernel"], bias=v["bias"]
    ),
    "tanh_sum_attention": lambda v: ref.tanh_sum_score(v["query"], v["key"], v["kernel"], bias=v["bias"]),
    "kernel_regression": lambda v: ref.gaussian_score(v["query"], v["key"], bandwidth=v["bandwidth"]),
    "attention_pooling": _of_pooling,
}
"""The scores of functions of :data:`VALUES`, from their arguments; for the others, logarithms of weights are used."""


class Normalization:
    """Normalization under a mask in one call, from which results with other weights are computed.

    Attributes:
      scores: the scores before the softmax, or the logarithms of ``weights`` for functions that are not in
        :data:`SCORES`.
      weights: the weights without the mask.
      real: the mask, broadcast to the shape of the scores.
      axis: the axis over which weights are normalized.
      key: the name of the mask.
      absent: the mask and the lengths, each as None.
    """

    def __init__(self, call):
        self.call, options = call, call.case.options
        self.axis = options.get("axis", -1)
        self.key = KEYS.get(call.row.name, "mask")
        self.absent = {self.key: None} | ({"lengths": None} if "lengths" in call.values else {})
        if call.row.name in BY_FUNCTION:
            name = options.get("normalizer", "softmax")
            self.scores = self._normalizer_gets(**self.absent)[0]
            self.weights = ref.attend(self.scores, np.eye(self.scores.shape[-1]), normalizer=name)
            self.real = self._normalizer_gets()[1]
            return
        self.weights = call.oracle(return_weights=bool(call.row.weights), **self.absent)[-1]
        with np.errstate(all="ignore"):
            scores = SCORES.get(call.row.name)
            self.scores = np.log(self.weights) if scores is None else scores(call.values | options)
        self.real = np.broadcast_to(self._real(), self.scores.shape)

    def _normalizer_gets(self, **changes):
        """Returns (scores, mask), with which the call and its ``changes`` call a normalizer function."""
        found = []

        def normalizer(scores, mask):
            found[:] = scores, mask
            return np.zeros(scores.shape)

        self.call.oracle(options={"normalizer": normalizer}, **changes)
        return found

    def _real(self):
        call = self.call
        if call.values.get("lengths") is not None:
            if call.row.arguments["lengths"].kind == "lengths":
                return drawing.full_mask(call.case, self.key)[0]
            return call.oracle(scores=np.zeros(self.scores.shape))[0] > 0  # tokens within the lengths have a weight
        return True if call.values.get(self.key) is None else call.real(self.key)

    @staticmethod
    def is_of(call, softmax=True):
        """Returns whether a call normalizes weights; with ``softmax``, whether by a softmax and without lengths."""
        options, name = call.case.options, call.row.name
        plain = options.get("normalizer", "softmax") == "softmax" and options.get("kernel", "gaussian") == "gaussian"
        known = name in VALUES or name in BY_FUNCTION
        plain = plain and known and VALUES.get(name, "x") + name.partition("masked_softmax")[1]
        return bool(known and ((plain and not call.case.given("lengths")) or not softmax))

    def softmax(self, scores, epsilon=0.0, shifted=True):
        """Returns the softmax of all scores, padding included; ``epsilon`` is added to the denominator.

        ``shifted`` subtracts the largest score before exp.
        """
        with np.errstate(all="ignore"):
            top = np.max(scores, self.axis, keepdims=True, initial=-np.inf) if shifted else 0.0
            powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
            return powers / (np.sum(powers, self.axis, keepdims=True) + epsilon)

    def of_real(self, epsilon=0.0, shifted=True):
        """Returns the softmax of the scores of real tokens, and 0 at padding; arguments as in :meth:`softmax`."""
        found = self.softmax(np.where(self.real, self.scores, -np.inf), epsilon, shifted)
        return np.where(self.real, found, 0)

    def answer(self, weights):
        """Returns the function's results with these weights."""
        call = self.call
        if call.row.name in BY_FUNCTION:
            return call.oracle(options={"normalizer": lambda scores, mask: weights}, **self.absent)
        if not VALUES[call.row.name]:
            return [weights]
        value, applied = call.values[VALUES[call.row.name]], weights
        if call.values.get("dropout_multiplier") is not None:
            applied = weights * call.values["dropout_multiplier"]
        if call.row.weight_results[0][-2:] == ("n", "m"):
            pooled = applied @ value
        else:
            pooled = np.sum(applied[..., None] * value, -2)
        return [pooled, weights] if call.return_weights else [pooled]


def with_weights(call, weights_of, **settings):
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
