"""Mistakes in what pools two sequences."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


def _kept(x, mask):
    return np.where(mask[..., None], x, 0)


@MUTANTS.of("cross_attention_pooling", "cross: multiplies by the mask")
def cross_multiplies_by_the_mask(a):
    return a.oracle(x=_kept(a.x, a.x_mask), y=_kept(a.y, a.y_mask), x_mask=None, y_mask=None)


@MUTANTS.of("cross_attention_pooling", "cross: 0 when the other side is empty")
def cross_zero_when_the_other_side_is_empty(a):
    (x_pooled, y_pooled), weights = a.oracle(return_weights=True)
    any_x, any_y = (np.any(mask, -1)[..., None] for mask in (a.x_mask, a.y_mask))
    return a.returns((x_pooled * any_y, y_pooled * any_x), weights)


@MUTANTS.of("cross_attention_pooling", "cross: masks swapped, or forgotten where they do not fit")
def cross_masks_swapped(a):
    same = a.x.shape[-2] == a.y.shape[-2]
    return a.oracle(x_mask=a.y_mask, y_mask=a.x_mask) if same else a.oracle(x_mask=None)


@MUTANTS.of("cross_attention_pooling", "cross: the other side's mask forgotten")
def cross_one_mask_forgotten(a):
    return a.oracle(y_mask=None)


@MUTANTS.of("cross_attention_pooling", "cross: mean over the padded length")
def cross_mean_over_the_padded_length(a):
    if a.reduction != "mean":
        return a.oracle()
    return a.oracle(reduction="sum", scale=a.scale / max(a.y.shape[-2], 1))


@MUTANTS.of("cross_attention_pooling", "cross: maximum of the magnitudes")
def cross_maximum_of_the_magnitudes(a):
    return a.oracle(x=np.abs(a.x), y=np.abs(a.y)) if a.reduction == "max" else a.oracle()


@MUTANTS.of("cross_attention_pooling", "cross: one kernel mixed up")
def cross_one_kernel_mixed_up(a):
    return a.oracle(y_kernel=None if a.y_kernel is None else np.roll(a.y_kernel, 1, -1))


@MUTANTS.of("cross_attention_pooling", "cross: dropout of y ignored")
def cross_dropout_of_y_ignored(a):
    return a.oracle(y_dropout_multiplier=None)


@MUTANTS.of("cross_attention_pooling", "cross: scale ignored")
def cross_scale_ignored(a):
    return a.oracle(scale=1.0)


@MUTANTS.of("cross_attention_pooling_all_pairs", "all pairs: transposed")
def all_pairs_transposed(a):
    (x_pooled, y_pooled), weights = a.oracle(return_weights=True)
    turned = tuple(np.swapaxes(w, 0, 1) for w in weights)
    return a.returns((np.swapaxes(x_pooled, 0, 1), np.swapaxes(y_pooled, 0, 1)), turned)


def _partner(a, of_y):
    """Which x each y is taken for, or the other way round: the one of the same number."""
    count, of = (len(a.x), len(a.y)) if of_y else (len(a.y), len(a.x))
    return np.arange(count) % max(of, 1)


@MUTANTS.of("cross_attention_pooling_all_pairs", "all pairs: each x pooled with its own partner alone")
def all_pairs_with_the_own_partner(a):
    (x_pooled, y_pooled), (x_weights, y_weights) = a.oracle(return_weights=True)
    if not x_pooled.size:
        return a.oracle()
    own = np.arange(len(a.x)), _partner(a, of_y=True)
    x_pooled, x_weights = (np.broadcast_to(w[own][:, None], w.shape) for w in (x_pooled, x_weights))
    return a.returns((x_pooled, y_pooled), (x_weights, y_weights))


@MUTANTS.of("cross_attention_pooling_all_pairs", "all pairs: the tokens of all partners together")
def all_pairs_with_all_partners_together(a):
    together = a.y.reshape(1, -1, a.y.shape[-1]), a.y_mask.reshape(1, -1)
    options = {"x_kernel": a.x_kernel, "y_kernel": a.y_kernel, "reduction": a.reduction, "scale": a.scale}
    (x_pooled, _), (x_weights, _) = ref.cross_attention_pooling_all_pairs(
        a.x, together[0], a.x_mask, together[1], **options, return_weights=True
    )
    (x_right, y_pooled), (x_weights_right, y_weights) = a.oracle(return_weights=True)
    x_pooled, x_weights = np.broadcast_to(x_pooled, x_right.shape), np.broadcast_to(x_weights, x_weights_right.shape)
    return a.returns((x_pooled, y_pooled), (x_weights, y_weights))


@MUTANTS.of("cross_attention_pooling_all_pairs", "all pairs: the masks forgotten after the zeros")
def all_pairs_multiply_by_the_mask(a):
    return a.oracle(x=_kept(a.x, a.x_mask), y=_kept(a.y, a.y_mask), x_mask=None, y_mask=None)


@MUTANTS.of("cross_attention_pooling_all_pairs", "all pairs: the reduction of the magnitudes")
def all_pairs_scale_without_its_sign(a):
    return a.oracle(x=np.abs(a.x), y=np.abs(a.y)) if a.reduction == "max" else a.oracle()


@MUTANTS.of("maxsim_score", "maxsim: padding has the product 0")
def maxsim_padding_is_0(a):
    y = np.where(a.y_mask[..., None], a.y, 0)
    some = np.any(a.y_mask, -1)
    return np.where(some, a.oracle(y=y, y_mask=None), 0)


@MUTANTS.of("maxsim_score", "maxsim: the maximum begins at 0")
def maxsim_from_0(a):
    y = np.concatenate([a.y, 0 * a.y[..., :1, :]], -2) if a.y.shape[-2] else a.y
    real = np.concatenate([a.y_mask, np.any(a.y_mask, -1, keepdims=True)], -1) if a.y.shape[-2] else a.y_mask
    return a.oracle(y=np.nan_to_num(y) if not np.all(np.isfinite(y)) else y, y_mask=real)


@MUTANTS.of("maxsim_score", "maxsim: the sides swapped")
def maxsim_sides_swapped(a):
    return a.oracle(x=a.y, y=a.x, x_mask=a.y_mask, y_mask=a.x_mask)


@MUTANTS.of("maxsim_score", "maxsim: the mean over the padded length")
def maxsim_mean_over_the_padded_length(a):
    return a.oracle(mean=False) / max(a.x.shape[-2], 1) if a.mean else a.oracle()


@MUTANTS.of("maxsim_score", "maxsim: a document without tokens is the worst of all")
def maxsim_of_nothing_is_low(a):
    return np.where(np.any(a.y_mask, -1) | ~np.any(a.x_mask, -1), a.oracle(), -1e9)


@MUTANTS.of("maxsim_score_all_pairs", "all pairs of maxsim: transposed")
def maxsim_all_pairs_transposed(a):
    return ref.maxsim_score_all_pairs(a.y, a.x, a.y_mask, a.x_mask, mean=a.mean).T


@MUTANTS.of("maxsim_score_all_pairs", "all pairs of maxsim: the tokens of all documents together")
def maxsim_all_documents_together(a):
    together = a.y.reshape(1, -1, a.y.shape[-1]), a.y_mask.reshape(1, -1)
    scores = ref.maxsim_score_all_pairs(a.x, together[0], a.x_mask, together[1], mean=a.mean)
    return np.broadcast_to(scores, (len(a.x), len(a.y)))


@MUTANTS.of("maxsim_score_all_pairs", "all pairs of maxsim: the documents' mask forgotten")
def maxsim_all_pairs_without_the_mask(a):
    return a.oracle(y_mask=None)


def _context_scores(a):
    """Scores [..., n, k] of what is real; 0 elsewhere."""
    return a.scale * (_kept(a.context, a.context_mask) @ np.swapaxes(_kept(a.query, a.query_mask), -1, -2))


def _context_pooled(a, best, real):
    weights = ref.masked_softmax(best, real)
    return a.returns(np.sum(weights[..., None] * _kept(a.context, a.context_mask), -2), weights)


def _any_label(a):
    return a.context_mask & np.any(a.query_mask, -1, keepdims=True)


@MUTANTS.of("code_wise_attention", "code wise: the maximum over padded labels too")
def code_wise_maximum_over_padding(a):
    return _context_pooled(a, np.max(_context_scores(a), -1, initial=-np.inf), _any_label(a))


@MUTANTS.of("code_wise_attention", "code wise: padded context takes part")
def code_wise_padded_context_takes_part(a):
    return a.oracle(context=_kept(a.context, a.context_mask), context_mask=None)


@MUTANTS.of("code_wise_attention", "code wise: the mean of the labels")
def code_wise_mean_of_the_labels(a):
    count = np.maximum(np.sum(a.query_mask, -1)[..., None], 1)
    return _context_pooled(a, np.sum(_context_scores(a), -1) / count, _any_label(a))


@MUTANTS.of("code_wise_attention", "code wise: query and context swapped")
def code_wise_query_and_context_swapped(a):
    return a.oracle(query=a.context, context=a.query, query_mask=a.context_mask, context_mask=a.query_mask)


@MUTANTS.of("code_wise_attention", "code wise: the mean of the context without labels")
def code_wise_mean_without_labels(a):
    real = a.query_mask[..., None, :] & a.context_mask[..., :, None]
    best = np.max(np.where(real, _context_scores(a), -np.inf), -1, initial=-np.inf)
    return _context_pooled(a, np.where(_any_label(a), best, 0), a.context_mask)


@MUTANTS.of("code_wise_attention", "code wise: scaled by sqrt(d)")
def code_wise_scaled(a):
    return a.oracle(scale=a.scale / np.sqrt(a.query.shape[-1]))


@MUTANTS.of("code_wise_attention", "code wise: scaled after the maximum")
def code_wise_scaled_after_the_maximum(a):
    real = a.query_mask[..., None, :] & a.context_mask[..., :, None]
    scores = np.where(real, _context_scores(a) / a.scale, -np.inf)
    best = np.max(scores, -1, initial=-np.inf)
    return _context_pooled(a, a.scale * np.where(_any_label(a), best, 0), _any_label(a))


def _chosen(a, scores, real):
    weights = ref.masked_softmax(scores, real)
    return a.returns(weights @ _kept(a.query, a.query_mask), weights)


def _real_pairs(a):
    return a.context_mask[..., :, None] & a.query_mask[..., None, :]


@MUTANTS.of("mask_attention", "mask attention: a score of 0 is padding")
def mask_attention_zero_is_padding(a):
    scores = _context_scores(a)
    return _chosen(a, scores, _real_pairs(a) & (scores != 0))


@MUTANTS.of("mask_attention", "mask attention: only scores of 0 are padding")
def mask_attention_guesses_the_mask(a):
    scores = a.scale * (a.context @ np.swapaxes(a.query, -1, -2))
    weights = ref.masked_softmax(scores, scores != 0)
    return a.returns(weights @ a.query, weights)


@MUTANTS.of("mask_attention", "mask attention: NaN patched away")
def mask_attention_patches_nan(a):
    pooled, weights = a.oracle(return_weights=True)
    return a.returns(np.nan_to_num(pooled), np.nan_to_num(weights))


@MUTANTS.of("mask_attention", "mask attention: padded context attends as well")
def mask_attention_padded_context_attends(a):
    return a.oracle(context=_kept(a.context, a.context_mask), context_mask=None)


@MUTANTS.of("mask_attention", "mask attention: normalises over the context")
def mask_attention_over_the_context(a):
    weights = ref.masked_softmax(_context_scores(a), _real_pairs(a), axis=-2)
    return a.returns(weights @ _kept(a.query, a.query_mask), weights)


@MUTANTS.of("mask_attention", "mask attention: scaled by sqrt(d)")
def mask_attention_scaled(a):
    return a.oracle(scale=a.scale / np.sqrt(a.query.shape[-1]))


def _bidaf_scores(a, order=(0, 1, 2)):
    h, u = np.broadcast_arrays(
        _kept(a.context, a.context_mask)[..., :, None, :], _kept(a.query, a.query_mask)[..., None, :, :]
    )
    blocks = h, u, h * u
    return np.concatenate([blocks[i] for i in order], -1) @ a.kernel


def _bidaf(a, to_query, to_context, blocks=None):
    """The four blocks under given weights."""
    context, query = _kept(a.context, a.context_mask), _kept(a.query, a.query_mask)
    chosen = to_query @ query
    summary = np.sum(to_context[..., None] * context, -2)[..., None, :]
    blocks = blocks or (lambda h, u, s: [h, u, h * u, h * s])
    joined = np.concatenate(blocks(context, chosen, summary), -1)
    return a.returns(_kept(joined, a.context_mask), (to_query, to_context))


def _best(scores, real):
    best = np.max(np.where(real, scores, -np.inf), -1, initial=-np.inf)
    return np.where(np.any(real, -1), best, 0)


@MUTANTS.of("bidaf_attention", "bidaf: kernel blocks [query; context; product]")
def bidaf_kernel_blocks_swapped(a):
    scores, real = _bidaf_scores(a, (1, 0, 2)), _real_pairs(a)
    return _bidaf(a, ref.masked_softmax(scores, real), ref.masked_softmax(_best(scores, real), np.any(real, -1)))


@MUTANTS.of("bidaf_attention", "bidaf: rows of padded context uniform")
def bidaf_padded_rows_uniform(a):
    to_query, to_context = a.oracle(return_weights=True)[1]
    return _bidaf(a, to_query + ~a.context_mask[..., None] / max(a.query.shape[-2], 1), to_context)


@MUTANTS.of("bidaf_attention", "bidaf: blocks of padded context not 0")
def bidaf_padded_blocks_not_zero(a):
    joined, weights = a.oracle(return_weights=True)
    context = np.where(np.isfinite(a.context), a.context, 0)
    return a.returns(np.where(a.context_mask[..., None], joined, np.concatenate([context] * 4, -1)), weights)


@MUTANTS.of("bidaf_attention", "bidaf: the maximum over padded query too")
def bidaf_maximum_over_padding(a):
    scores, real = _bidaf_scores(a), _real_pairs(a)
    best = np.max(scores, -1, initial=-np.inf)
    return _bidaf(a, ref.masked_softmax(scores, real), ref.masked_softmax(best, np.any(real, -1)))


@MUTANTS.of("bidaf_attention", "bidaf: the mean, not the maximum, of the query")
def bidaf_mean_of_the_query(a):
    scores, real = _bidaf_scores(a), _real_pairs(a)
    mean = np.sum(np.where(real, scores, 0), -1) / np.maximum(np.sum(real, -1), 1)
    return _bidaf(a, ref.masked_softmax(scores, real), ref.masked_softmax(mean, np.any(real, -1)))


@MUTANTS.of("bidaf_attention", "bidaf: attends to the query over the context")
def bidaf_normalizes_over_the_context(a):
    to_context = a.oracle(return_weights=True)[1][1]
    return _bidaf(a, ref.masked_softmax(_bidaf_scores(a), _real_pairs(a), axis=-2), to_context)


@MUTANTS.of("bidaf_attention", "bidaf: the last block of the chosen query")
def bidaf_last_block_of_the_query(a):
    return _bidaf(a, *a.oracle(return_weights=True)[1], lambda h, u, s: [h, u, h * u, u * s])


@MUTANTS.of("bidaf_attention", "bidaf: the mean of the context without a query")
def bidaf_mean_without_a_query(a):
    scores, real = _bidaf_scores(a), _real_pairs(a)
    return _bidaf(a, ref.masked_softmax(scores, real), ref.masked_softmax(_best(scores, real), a.context_mask))


@MUTANTS.of("muvera_query_encoding", "MUVERA query: the planes in another order")
def muvera_query_planes_reversed(a):
    return a.oracle(planes=a.planes[:, ::-1])


@MUTANTS.of("muvera_query_encoding", "MUVERA query: zero padding counts in its bucket")
def muvera_query_of_padding(a):
    return a.oracle(x=np.where(a.mask[..., None], a.x, 0), mask=np.any(a.mask, -1, keepdims=True))


@MUTANTS.of("muvera_query_encoding", "MUVERA query: buckets before repetitions")
def muvera_query_buckets_first(a):
    return _buckets_first(a.oracle(), a.planes)


@MUTANTS.of("muvera_document_encoding", "MUVERA document: the planes in another order")
def muvera_document_planes_reversed(a):
    return a.oracle(planes=a.planes[:, ::-1])


@MUTANTS.of("muvera_document_encoding", "MUVERA document: zero padding counts in its bucket")
def muvera_document_of_padding(a):
    return a.oracle(x=np.where(a.mask[..., None], a.x, 0), mask=np.any(a.mask, -1, keepdims=True))


@MUTANTS.of("muvera_document_encoding", "MUVERA document: buckets before repetitions")
def muvera_document_buckets_first(a):
    return _buckets_first(a.oracle(), a.planes)


@MUTANTS.of("muvera_query_encoding", "MUVERA query: means as in a document")
def muvera_query_of_means(a):
    return ref.muvera_document_encoding(**a.values)


@MUTANTS.of("muvera_document_encoding", "MUVERA document: empty buckets stay 0")
def muvera_document_not_filled(a):
    return np.where(ref.muvera_query_encoding(**a.values) == 0, 0, a.oracle())


def _buckets_first(encoding, planes):
    repetitions, buckets = len(planes), 2 ** planes.shape[1]
    blocks = encoding.reshape(*encoding.shape[:-1], repetitions, buckets, -1)
    return np.swapaxes(blocks, -2, -3).reshape(encoding.shape)
