"""Mistakes in what pools two sequences."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref


def _kept(x, mask):
    return np.where(mask[..., None], x, 0)


def _partner(a, of_y):
    """Which x each y is taken for, or the other way round: the one of the same number."""
    count, of = (len(a.x), len(a.y)) if of_y else (len(a.y), len(a.x))
    return np.arange(count) % max(of, 1)


def _context_scores(a):
    """Scores [..., n, k] of what is real; 0 elsewhere."""
    return a.scale * (_kept(a.context, a.context_mask) @ np.swapaxes(_kept(a.query, a.query_mask), -1, -2))


def _context_pooled(a, best, real):
    weights = ref.masked_softmax(best, real)
    return a.returns(np.sum(weights[..., None] * _kept(a.context, a.context_mask), -2), weights)


def _any_label(a):
    return a.context_mask & np.any(a.query_mask, -1, keepdims=True)


def _chosen(a, weights):
    return a.returns(weights @ _kept(a.query, a.query_mask), weights)


def _real_pairs(a):
    return a.context_mask[..., :, None] & a.query_mask[..., None, :]


def _bidaf_scores(a, order=(0, 1, 2)):
    h, u = np.broadcast_arrays(
        _kept(a.context, a.context_mask)[..., :, None, :], _kept(a.query, a.query_mask)[..., None, :, :]
    )
    blocks = h, u, h * u
    return np.concatenate([blocks[i] for i in order], -1) @ a.kernel


def _mean(scores, real):
    return np.sum(np.where(real, scores, 0), -1) / np.maximum(np.sum(real, -1), 1)


def _bidaf_by(best_of, order=(0, 1, 2), real_of=lambda a: np.any(_real_pairs(a), -1)):
    """Attention to the query, and to the context by ``best_of(scores, real)``, among those that are real."""

    def attend(a):
        scores, real = _bidaf_scores(a, order), _real_pairs(a)
        return _bidaf(a, ref.masked_softmax(scores, real), ref.masked_softmax(best_of(scores, real), real_of(a)))

    return attend


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


MUTANTS = Mistakes(
    cross_attention_pooling={
        "cross: multiplies by the mask": lambda a: a.oracle(
            x=_kept(a.x, a.x_mask), y=_kept(a.y, a.y_mask), x_mask=None, y_mask=None
        ),
        "cross: the other side's mask forgotten": lambda a: a.oracle(y_mask=None),
        "cross: maximum of the magnitudes": lambda a: (
            a.oracle(x=np.abs(a.x), y=np.abs(a.y)) if a.reduction == "max" else a.oracle()
        ),
        "cross: one kernel mixed up": lambda a: a.oracle(
            y_kernel=None if a.y_kernel is None else np.roll(a.y_kernel, 1, -1)
        ),
        "cross: dropout of y ignored": lambda a: a.oracle(y_dropout_multiplier=None),
        "cross: scale ignored": lambda a: a.oracle(scale=1.0),
        "cross: masks swapped, or forgotten where they do not fit": lambda a: (
            a.oracle(x_mask=a.y_mask, y_mask=a.x_mask) if a.x.shape[-2] == a.y.shape[-2] else a.oracle(x_mask=None)
        ),
        "cross: mean over the padded length": lambda a: (
            a.oracle(reduction="sum", scale=a.scale / max(a.y.shape[-2], 1)) if a.reduction == "mean" else a.oracle()
        ),
    },
    cross_attention_pooling_all_pairs={
        "all pairs: the masks forgotten after the zeros": lambda a: a.oracle(
            x=_kept(a.x, a.x_mask), y=_kept(a.y, a.y_mask), x_mask=None, y_mask=None
        ),
        "all pairs: the reduction of the magnitudes": lambda a: (
            a.oracle(x=np.abs(a.x), y=np.abs(a.y)) if a.reduction == "max" else a.oracle()
        ),
    },
    maxsim_score={
        "maxsim: the sides swapped": lambda a: a.oracle(x=a.y, y=a.x, x_mask=a.y_mask, y_mask=a.x_mask),
        "maxsim: the mean over the padded length": lambda a: (
            a.oracle(mean=False) / max(a.x.shape[-2], 1) if a.mean else a.oracle()
        ),
        "maxsim: a document without tokens is the worst of all": lambda a: np.where(
            np.any(a.y_mask, -1) | ~np.any(a.x_mask, -1), a.oracle(), -1e9
        ),
        "maxsim: padding has the product 0": lambda a: np.where(
            np.any(a.y_mask, -1), a.oracle(y=np.where(a.y_mask[..., None], a.y, 0), y_mask=None), 0
        ),
    },
    maxsim_score_all_pairs={
        "all pairs of maxsim: transposed": lambda a: (
            ref.maxsim_score_all_pairs(a.y, a.x, a.y_mask, a.x_mask, mean=a.mean).T
        ),
        "all pairs of maxsim: the documents' mask forgotten": lambda a: a.oracle(y_mask=None),
    },
    code_wise_attention={
        "code wise: the maximum over padded labels too": lambda a: _context_pooled(
            a, np.max(_context_scores(a), -1, initial=-np.inf), _any_label(a)
        ),
        "code wise: padded context takes part": lambda a: a.oracle(
            context=_kept(a.context, a.context_mask), context_mask=None
        ),
        "code wise: query and context swapped": lambda a: a.oracle(
            query=a.context, context=a.query, query_mask=a.context_mask, context_mask=a.query_mask
        ),
        "code wise: scaled by sqrt(d)": lambda a: a.oracle(scale=a.scale / np.sqrt(a.query.shape[-1])),
        "code wise: the mean of the labels": lambda a: _context_pooled(
            a, np.sum(_context_scores(a), -1) / np.maximum(np.sum(a.query_mask, -1)[..., None], 1), _any_label(a)
        ),
    },
    mask_attention={
        "mask attention: padded context attends as well": lambda a: a.oracle(
            context=_kept(a.context, a.context_mask), context_mask=None
        ),
        "mask attention: scaled by sqrt(d)": lambda a: a.oracle(scale=a.scale / np.sqrt(a.query.shape[-1])),
        "mask attention: a score of 0 is padding": lambda a: _chosen(
            a, ref.masked_softmax(_context_scores(a), _real_pairs(a) & (_context_scores(a) != 0))
        ),
        "mask attention: NaN patched away": lambda a: a.changed(np.nan_to_num, np.nan_to_num),
        "mask attention: normalises over the context": lambda a: _chosen(
            a, ref.masked_softmax(_context_scores(a), _real_pairs(a), axis=-2)
        ),
    },
    bidaf_attention={
        "bidaf: the last block of the chosen query": lambda a: _bidaf(
            a, *a.oracle(return_weights=True)[1], lambda h, u, s: [h, u, h * u, u * s]
        ),
        "bidaf: kernel blocks [query; context; product]": _bidaf_by(_best, (1, 0, 2)),
        "bidaf: the maximum over padded query too": _bidaf_by(lambda scores, _: np.max(scores, -1, initial=-np.inf)),
        "bidaf: the mean, not the maximum, of the query": _bidaf_by(_mean),
        "bidaf: the mean of the context without a query": _bidaf_by(_best, real_of=lambda a: a.context_mask),
        "bidaf: attends to the query over the context": lambda a: _bidaf(
            a, ref.masked_softmax(_bidaf_scores(a), _real_pairs(a), axis=-2), a.oracle(return_weights=True)[1][1]
        ),
    },
)


@MUTANTS.of("cross_attention_pooling", "cross: 0 when the other side is empty")
def cross_zero_when_the_other_side_is_empty(a):
    (x_pooled, y_pooled), weights = a.oracle(return_weights=True)
    any_x, any_y = (np.any(mask, -1)[..., None] for mask in (a.x_mask, a.y_mask))
    return a.returns((x_pooled * any_y, y_pooled * any_x), weights)


@MUTANTS.of("cross_attention_pooling_all_pairs", "all pairs: transposed")
def all_pairs_transposed(a):
    (x_pooled, y_pooled), weights = a.oracle(return_weights=True)
    turned = tuple(np.swapaxes(w, 0, 1) for w in weights)
    return a.returns((np.swapaxes(x_pooled, 0, 1), np.swapaxes(y_pooled, 0, 1)), turned)


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


@MUTANTS.of("maxsim_score", "maxsim: the maximum begins at 0")
def maxsim_from_0(a):
    y = np.concatenate([a.y, 0 * a.y[..., :1, :]], -2) if a.y.shape[-2] else a.y
    real = np.concatenate([a.y_mask, np.any(a.y_mask, -1, keepdims=True)], -1) if a.y.shape[-2] else a.y_mask
    return a.oracle(y=np.nan_to_num(y) if not np.all(np.isfinite(y)) else y, y_mask=real)


@MUTANTS.of("maxsim_score_all_pairs", "all pairs of maxsim: the tokens of all documents together")
def maxsim_all_documents_together(a):
    together = a.y.reshape(1, -1, a.y.shape[-1]), a.y_mask.reshape(1, -1)
    scores = ref.maxsim_score_all_pairs(a.x, together[0], a.x_mask, together[1], mean=a.mean)
    return np.broadcast_to(scores, (len(a.x), len(a.y)))


@MUTANTS.of("code_wise_attention", "code wise: the mean of the context without labels")
def code_wise_mean_without_labels(a):
    real = a.query_mask[..., None, :] & a.context_mask[..., :, None]
    best = np.max(np.where(real, _context_scores(a), -np.inf), -1, initial=-np.inf)
    return _context_pooled(a, np.where(_any_label(a), best, 0), a.context_mask)


@MUTANTS.of("code_wise_attention", "code wise: scaled after the maximum")
def code_wise_scaled_after_the_maximum(a):
    real = a.query_mask[..., None, :] & a.context_mask[..., :, None]
    scores = np.where(real, _context_scores(a) / a.scale, -np.inf)
    best = np.max(scores, -1, initial=-np.inf)
    return _context_pooled(a, a.scale * np.where(_any_label(a), best, 0), _any_label(a))


@MUTANTS.of("mask_attention", "mask attention: only scores of 0 are padding")
def mask_attention_guesses_the_mask(a):
    scores = a.scale * (a.context @ np.swapaxes(a.query, -1, -2))
    weights = ref.masked_softmax(scores, scores != 0)
    return a.returns(weights @ a.query, weights)


@MUTANTS.of("bidaf_attention", "bidaf: rows of padded context uniform")
def bidaf_padded_rows_uniform(a):
    to_query, to_context = a.oracle(return_weights=True)[1]
    return _bidaf(a, to_query + ~a.context_mask[..., None] / max(a.query.shape[-2], 1), to_context)


@MUTANTS.of("bidaf_attention", "bidaf: blocks of padded context not 0")
def bidaf_padded_blocks_not_zero(a):
    context = np.concatenate([np.where(np.isfinite(a.context), a.context, 0)] * 4, -1)
    return a.changed(lambda joined: np.where(a.context_mask[..., None], joined, context))
