"""Normalization under a mask in its parts: scores, mask, weights, averaged values."""

import numpy as np

import attnpool_ref as ref
from attnpool_ref.conformance import cases as drawing

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
    query, key = v["query"], v["x"]
    if query is None:
        query = ref.mean_pooling(key, v["mask"], lengths=v["lengths"])
    if v.get("normalize_query"):
        query = ref.layer_norm(query, v["query_norm_scale"], v["query_norm_bias"], epsilon=v["epsilon"])
    query = query if v["query_kernel"] is None else query @ v["query_kernel"]
    key = key if v["key_kernel"] is None else key @ v["key_kernel"]
    scale = key.shape[-1] ** -0.5 if v["scale"] is None else v["scale"]
    scores = np.sum(key * query[..., None, :], -1) * scale
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
