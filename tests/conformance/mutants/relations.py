"""Mistakes in relations."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref
from attnpool_ref.decomposition import projection

MUTANTS = Mistakes()


def _squared(x, y):
    return np.sum((x - y) ** 2, -1)


def _distances(a):
    return _squared(a.anchor, a.positive), _squared(a.anchor, a.negative)


@MUTANTS.of("attention_triplet_loss", "triplet: the margin forgotten")
def triplet_without_margin(a):
    return a.oracle(margin=0.0)


@MUTANTS.of("attention_triplet_loss", "triplet: the margin after the hinge")
def triplet_margin_after_the_hinge(a):
    return a.oracle(margin=0.0) + a.margin


@MUTANTS.of("attention_triplet_loss", "triplet: no hinge")
def triplet_without_hinge(a):
    near, far = _distances(a)
    return near + a.margin - far


@MUTANTS.of("attention_triplet_loss", "triplet: distances not squared")
def triplet_distances_not_squared(a):
    near, far = _distances(a)
    return np.maximum(0, np.sqrt(near) + a.margin - np.sqrt(far))


@MUTANTS.of("attention_triplet_loss", "triplet: exemplars swapped")
def triplet_exemplars_swapped(a):
    return a.oracle(positive=a.negative, negative=a.positive)


@MUTANTS.of("attention_triplet_loss", "triplet: the mean over the components")
def triplet_mean_over_the_components(a):
    near, far = _distances(a)
    return np.maximum(0, (near - far) / max(a.anchor.shape[-1], 1) + a.margin)


@MUTANTS.of("attention_triplet_loss", "triplet: the mean over the batch")
def triplet_mean_over_the_batch(a):
    return np.mean(a.oracle()) if a.anchor.size else a.oracle()


def _regions(a):
    """The three vectors with 0 in padding."""
    return tuple(np.where(a.mask, vector, 0) for vector in (a.attention, a.supporting, a.opposing))


def _moved(a, difference):
    s = _regions(a)[0]
    moved = s + a.weight * difference if a.mode == "add" else s * (a.weight * difference)
    return np.where(a.mask, moved, 0)


@MUTANTS.of("differential_context", "context: what is shared with supporting exemplars alone")
def context_of_the_exemplars_apart(a):
    s, plus, minus = _regions(a)
    return _moved(a, projection(plus, s) - (minus - projection(minus, s)))


@MUTANTS.of("differential_context", "context: the opposing exemplar subtracted")
def context_opposing_subtracted(a):
    return a.oracle(opposing=-a.opposing)


@MUTANTS.of("differential_context", "context: towards and away added")
def context_away_added(a):
    _, plus, minus = _regions(a)
    return _moved(a, plus + minus)


@MUTANTS.of("differential_context", "context: divided by the norm, not its square")
def context_divided_by_the_norm(a):
    s, plus, minus = _regions(a)
    towards = np.sum((plus + minus) * ref.l2_normalize(s), -1, keepdims=True) * s
    return _moved(a, 2 * towards - plus - minus)


@MUTANTS.of("differential_context", "context: padding takes part")
def context_padding_takes_part(a):
    return np.where(a.mask, a.oracle(mask=None), 0)


@MUTANTS.of("differential_context", "context: a zero attention vector is NaN")
def context_zero_attention_is_nan(a):
    s, plus, minus = _regions(a)
    towards = np.sum((plus + minus) * s, -1, keepdims=True) / np.sum(s * s, -1, keepdims=True) * s
    return _moved(a, 2 * towards - plus - minus)


@MUTANTS.of("differential_context", "context: the weight ignored when multiplying")
def context_weight_ignored_when_multiplying(a):
    return a.oracle(weight=a.weight if a.mode == "add" else 1.0)


@MUTANTS.of("differential_context", "context: made a distribution again")
def context_made_a_distribution(a):
    return ref.masked_softmax(a.oracle(), a.mask)


def _logistic(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


@MUTANTS.of("relation_vector", "relation: kernels swapped")
def relation_kernels_swapped(a):
    return a.oracle(x_kernel=a.y_kernel, y_kernel=a.x_kernel)


@MUTANTS.of("relation_vector", "relation: tanh, not the logistic function")
def relation_with_tanh(a):
    return np.tanh(a.x @ a.x_kernel + a.y @ a.y_kernel + a.bias) @ a.out_kernel


@MUTANTS.of("relation_vector", "relation: the bias outside")
def relation_bias_outside(a):
    return (_logistic(a.x @ a.x_kernel + a.y @ a.y_kernel) + a.bias) @ a.out_kernel


@MUTANTS.of("relation_vector", "relation: the bias on both sides")
def relation_bias_twice(a):
    return a.oracle(bias=2 * a.bias)


@MUTANTS.of("relation_vector", "relation: a softmax over the hidden layer")
def relation_with_softmax(a):
    return ref.masked_softmax(a.x @ a.x_kernel + a.y @ a.y_kernel + a.bias) @ a.out_kernel


@MUTANTS.of("relation_vector", "relation: the logistic function last")
def relation_logistic_last(a):
    return _logistic((a.x @ a.x_kernel + a.y @ a.y_kernel + a.bias) @ a.out_kernel)


@MUTANTS.plain("relation_vector", "relation: exp overflows")
def relation_exp_overflows(x, y, x_kernel, y_kernel, out_kernel, bias):
    hidden = x @ x_kernel + y @ y_kernel + bias
    return np.exp(hidden) / (1 + np.exp(hidden)) @ out_kernel


def _relation(a, x, y):
    return ref.relation_vector(x, y, a.x_kernel, a.y_kernel, a.out_kernel, a.bias)


@MUTANTS.of("relation_triplet_loss", "relation triplet: the margin forgotten")
def relation_triplet_without_margin(a):
    return a.oracle(margin=0.0)


@MUTANTS.of("relation_triplet_loss", "relation triplet: no hinge")
def relation_triplet_without_hinge(a):
    itself = _relation(a, a.x, a.x)
    near, far = (_squared(itself, _relation(a, a.x, other)) for other in (a.similar, a.dissimilar))
    return near + a.margin - far


@MUTANTS.of("relation_triplet_loss", "relation triplet: cases swapped")
def relation_triplet_cases_swapped(a):
    return a.oracle(similar=a.dissimilar, dissimilar=a.similar)


@MUTANTS.of("relation_triplet_loss", "relation triplet: not measured from the case itself")
def relation_triplet_without_the_case_itself(a):
    near, far = (np.sum(_relation(a, a.x, other) ** 2, -1) for other in (a.similar, a.dissimilar))
    return np.maximum(0, near + a.margin - far)


@MUTANTS.of("relation_triplet_loss", "relation triplet: each case related to itself")
def relation_triplet_of_each_case_itself(a):
    itself, near, far = (_relation(a, case, case) for case in (a.x, a.similar, a.dissimilar))
    return np.maximum(0, _squared(itself, near) + a.margin - _squared(itself, far))


@MUTANTS.of("relation_triplet_loss", "relation triplet: the other case first")
def relation_triplet_other_case_first(a):
    itself = _relation(a, a.x, a.x)
    near, far = (_squared(itself, _relation(a, other, a.x)) for other in (a.similar, a.dissimilar))
    return np.maximum(0, near + a.margin - far)


def _joined(a, first="target"):
    """[target; field] of each field, 0 in padding."""
    target = np.where(np.any(a.mask, -1)[..., None], a.target, 0)[..., None, :]
    fields = np.where(a.mask[..., None], a.fields, 0)
    parts = [np.broadcast_to(target, fields.shape[:-1] + target.shape[-1:]), fields]
    return np.concatenate(parts if first == "target" else parts[::-1], -1)


def _fields_pooled(a, scores, joined, mask):
    weights = ref.masked_softmax(scores, mask)
    return a.returns(np.sum(weights[..., None] * joined, -2), weights)


@MUTANTS.of("field_attention_pooling", "fields: the candidate dropped from the values")
def fields_without_the_candidate(a):
    joined = _joined(a)
    scores = np.tanh(np.sum(joined * a.kernel, -1) + a.bias)
    return _fields_pooled(a, scores, np.where(np.arange(joined.shape[-1]) < a.target.shape[-1], 0, joined), a.mask)


@MUTANTS.of("field_attention_pooling", "fields: tanh forgotten")
def fields_without_tanh(a):
    joined = _joined(a)
    return _fields_pooled(a, np.sum(joined * a.kernel, -1) + a.bias, joined, a.mask)


@MUTANTS.of("field_attention_pooling", "fields: the bias outside the tanh")
def fields_bias_outside_the_tanh(a):
    joined = _joined(a)
    return _fields_pooled(a, np.tanh(np.sum(joined * a.kernel, -1)) + a.bias, joined, a.mask)


@MUTANTS.of("field_attention_pooling", "fields: [field; candidate]")
def fields_before_the_candidate(a):
    joined = _joined(a, "fields")
    return _fields_pooled(a, np.tanh(np.sum(joined * a.kernel, -1) + a.bias), joined, a.mask)


@MUTANTS.of("field_attention_pooling", "fields: padded fields take part")
def fields_padding_takes_part(a):
    joined = _joined(a)
    return _fields_pooled(a, np.tanh(np.sum(joined * a.kernel, -1) + a.bias), joined, None)


@MUTANTS.of("field_attention_pooling", "fields: the candidate where no field is real")
def fields_candidate_when_empty(a):
    pooled, weights = a.oracle(return_weights=True)
    empty, width = ~np.any(a.mask, -1, keepdims=True), pooled.shape[-1] - a.target.shape[-1]
    alone = np.pad(a.target, [(0, 0)] * (a.target.ndim - 1) + [(0, width)])
    return a.returns(np.where(empty, alone, pooled), weights)


@MUTANTS.of("field_attention_pooling", "fields: the first field's kernel for all")
def fields_share_the_first_kernel(a):
    return a.oracle(kernel=a.kernel[0] if a.kernel.ndim == 2 and len(a.kernel) else a.kernel)


@MUTANTS.of("label_attention", "labels: scaled by their own width")
def labels_scaled_by_their_width(a):
    return a.oracle(query_kernel=a.query_kernel * (a.query_kernel.shape[1] / a.labels.shape[-1]) ** 0.5)


@MUTANTS.of("label_attention", "labels: not scaled")
def labels_not_scaled(a):
    return a.oracle(query_kernel=a.query_kernel * a.query_kernel.shape[1] ** 0.5)


@MUTANTS.of("label_attention", "labels: kernels swapped")
def labels_kernels_swapped(a):
    return a.oracle(query_kernel=a.key_kernel, key_kernel=a.query_kernel)


@MUTANTS.of("label_attention", "labels: padded labels attend as well")
def labels_padding_attends(a):
    labels = np.where(a.mask[..., None], a.labels, 0)
    scores = ref.scaled_dot_score(labels @ a.query_kernel, labels @ a.key_kernel)
    seen = np.broadcast_to(a.mask[..., None, :], scores.shape)
    return ref.attend(scores, labels @ a.value_kernel, seen, return_weights=a.return_weights)


@MUTANTS.of("label_attention", "labels: padded labels are seen")
def labels_padding_is_seen(a):
    labels = np.where(a.mask[..., None], a.labels, 0)
    pooled, weights = a.oracle(labels=labels, mask=None, return_weights=True)
    return a.returns(np.where(a.mask[..., None], pooled, 0), np.where(a.mask[..., None], weights, 0))


@MUTANTS.of("label_attention", "labels: normalised over the queries")
def labels_normalized_over_the_queries(a):
    labels = np.where(a.mask[..., None], a.labels, 0)
    scores = ref.scaled_dot_score(labels @ a.query_kernel, labels @ a.key_kernel)
    weights = ref.masked_softmax(scores, a.mask[..., :, None] & a.mask[..., None, :], axis=-2)
    return a.returns(weights @ (labels @ a.value_kernel), weights)
