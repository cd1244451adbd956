"""Mistakes in relations."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, after, in_reverse, left_out, over_queries

import attnpool_ref as ref
from attnpool_ref.decomposition import projection
from attnpool_ref.primitives import joined, pairs_of, sigmoid, softmax, tanh


def _squared(x, y):
    return np.sum((x - y) ** 2, -1)


def _distances(a):
    return _squared(a.anchor, a.positive), _squared(a.anchor, a.negative)


def _hinge(near, far, margin):
    return np.maximum(0, near + margin - far)


def _regions(a):
    """The three vectors with 0 in padding."""
    return tuple(np.where(a.mask, vector, 0) for vector in (a.attention, a.supporting, a.opposing))


def _context(difference_of):
    """The context whose difference is ``difference_of(attention, supporting, opposing)``."""

    def moved(a):
        regions = _regions(a)
        s, difference = regions[0], a.weight * difference_of(*regions)
        return np.where(a.mask, s + difference if a.mode == "add" else s * difference, 0)

    return moved


def _sums(x, y):
    return np.sum(x * y, -1, keepdims=True)


def _logistic(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def _relation(a, x, y):
    return ref.relation_vector(x, y, a.x_kernel, a.y_kernel, a.out_kernel, a.bias)


def _relations(a):
    """The relations of the case to itself, to the similar and to the dissimilar case."""
    return [_relation(a, a.x, other) for other in (a.x, a.similar, a.dissimilar)]


def _from_the_first(itself, near, far):
    return _squared(itself, near), _squared(itself, far)


MUTANTS = Mistakes(
    attention_triplet_loss={
        "triplet: the margin forgotten": lambda a: a.oracle(margin=0.0),
        "triplet: the margin after the hinge": lambda a: a.oracle(margin=0.0) + a.margin,
        "triplet: exemplars swapped": lambda a: a.oracle(positive=a.negative, negative=a.positive),
        "triplet: the mean over the batch": lambda a: np.mean(a.oracle()) if a.anchor.size else a.oracle(),
        "triplet: no hinge": lambda a: _distances(a)[0] + a.margin - _distances(a)[1],
        "triplet: distances not squared": lambda a: _hinge(*np.sqrt(_distances(a)), a.margin),
        "triplet: the mean over the components": lambda a: _hinge(
            *(np.divide(d, max(a.anchor.shape[-1], 1)) for d in _distances(a)), a.margin
        ),
    },
    differential_context={
        "context: the opposing exemplar subtracted": lambda a: a.oracle(opposing=-a.opposing),
        "context: padding takes part": lambda a: np.where(a.mask, a.oracle(mask=None), 0),
        "context: the weight ignored when multiplying": lambda a: a.oracle(weight=a.weight if a.mode == "add" else 1.0),
        "context: made a distribution again": lambda a: ref.masked_softmax(a.oracle(), a.mask),
        "context: what is shared with supporting exemplars alone": _context(
            lambda s, plus, minus: projection(plus, s) - (minus - projection(minus, s))
        ),
        "context: towards and away added": _context(lambda s, plus, minus: plus + minus),
        "context: divided by the norm, not its square": _context(
            lambda s, plus, minus: 2 * _sums(plus + minus, ref.l2_normalize(s)) * s - plus - minus
        ),
        "context: a zero attention vector is NaN": _context(
            lambda s, plus, minus: 2 * _sums(plus + minus, s) / _sums(s, s) * s - plus - minus
        ),
    },
    relation_vector={
        "relation: kernels swapped": lambda a: a.oracle(x_kernel=a.y_kernel, y_kernel=a.x_kernel),
        "relation: the bias on both sides": lambda a: a.oracle(bias=2 * a.bias),
        "relation: the logistic function last": lambda a: _logistic(
            (a.x @ a.x_kernel + a.y @ a.y_kernel + a.bias) @ a.out_kernel
        ),
        "relation: tanh, not the logistic function": lambda a: a.exchanged(sigmoid, lambda right, x: np.tanh(x)),
        "relation: the bias outside": lambda a: a.exchanged(sigmoid, after(a.bias)),
        "relation: a softmax over the hidden layer": lambda a: a.exchanged(
            sigmoid, lambda right, x: ref.masked_softmax(x)
        ),
    },
    relation_triplet_loss={
        "relation triplet: the margin forgotten": lambda a: a.oracle(margin=0.0),
        "relation triplet: cases swapped": lambda a: a.oracle(similar=a.dissimilar, dissimilar=a.similar),
        "relation triplet: no hinge": lambda a: np.subtract(*_from_the_first(*_relations(a))) + a.margin,
        "relation triplet: not measured from the case itself": lambda a: _hinge(
            *(_squared(relation, 0) for relation in _relations(a)[1:]), a.margin
        ),
        "relation triplet: each case related to itself": lambda a: _hinge(
            *_from_the_first(*(_relation(a, x, x) for x in (a.x, a.similar, a.dissimilar))), a.margin
        ),
        "relation triplet: the other case first": lambda a: _hinge(
            *_from_the_first(*(_relation(a, x, a.x) for x in (a.x, a.similar, a.dissimilar))), a.margin
        ),
    },
    field_attention_pooling={
        "fields: the first field's kernel for all": lambda a: a.oracle(
            kernel=a.kernel[0] if a.kernel.ndim == 2 and len(a.kernel) else a.kernel
        ),
        "fields: the candidate dropped from the values": lambda a: a.changed(
            lambda pooled: np.where(np.arange(pooled.shape[-1]) < a.target.shape[-1], 0, pooled)
        ),
        "fields: tanh forgotten": lambda a: a.exchanged(tanh, left_out),
        "fields: the bias outside the tanh": lambda a: a.exchanged(tanh, after(a.bias)),
        "fields: [field; candidate]": lambda a: a.exchanged(joined, in_reverse),
        "fields: padded fields take part": lambda a: a.exchanged(
            softmax, lambda right, scores, real: right(scores, np.ones_like(real))
        ),
    },
    label_attention={
        "labels: scaled by their own width": lambda a: a.oracle(
            query_kernel=a.query_kernel * (a.query_kernel.shape[1] / a.labels.shape[-1]) ** 0.5
        ),
        "labels: not scaled": lambda a: a.oracle(query_kernel=a.query_kernel * a.query_kernel.shape[1] ** 0.5),
        "labels: kernels swapped": lambda a: a.oracle(query_kernel=a.key_kernel, key_kernel=a.query_kernel),
        "labels: padded labels attend as well": lambda a: a.exchanged(
            pairs_of, lambda right, first, second: right(np.ones_like(first), second)
        ),
        "labels: normalised over the queries": lambda a: a.exchanged(softmax, over_queries),
    },
)


@MUTANTS.of("relation_vector", "relation: exp overflows")
def relation_exp_overflows(x, y, x_kernel, y_kernel, out_kernel, bias):
    hidden = x @ x_kernel + y @ y_kernel + bias
    return np.exp(hidden) / (1 + np.exp(hidden)) @ out_kernel


@MUTANTS.of("label_attention", "labels: padded labels are seen")
def labels_padding_is_seen(a):
    def real(found):
        return np.where(a.mask[..., None], found, 0)

    return a.changed(real, real, labels=real(a.labels), mask=None)


@MUTANTS.of("field_attention_pooling", "fields: the candidate where no field is real")
def fields_candidate_when_empty(a):
    width = a.fields.shape[-1]
    alone = np.pad(a.target, [(0, 0)] * (a.target.ndim - 1) + [(0, width)])
    return a.changed(lambda pooled: np.where(a.empty, alone, pooled))
