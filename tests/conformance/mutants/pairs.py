"""Mistakes in what pools two sequences."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, over_queries, without_zeros

import attnpool_ref as ref
from attnpool_ref.primitives import joined, reduced, softmax


def _kept(x, mask):
    return np.where(mask[..., None], x, 0)


def _partner(a, of_y):
    """Which x each y is taken for, or the other way round: the one of the same number."""
    count, of = (len(a.x), len(a.y)) if of_y else (len(a.y), len(a.x))
    return np.arange(count) % max(of, 1)


def _over_padding(right, scores, real, reduction, axis):
    return np.max(scores, axis, initial=-np.inf)


def _mean(right, scores, real, reduction, axis):
    return right(scores, real, "mean", axis)


def _among(mask):
    """A softmax of vectors of scores among all that a mask calls real; one of matrices is right."""
    return lambda right, scores, real, axis=-1: right(scores, mask if scores.ndim == mask.ndim else real, axis)


def _of_matrices(wrong):
    """A wrong softmax of the scores of pairs, and a right one of vectors of scores."""
    return lambda a: (
        lambda right, scores, real, axis=-1: (
            wrong(right, scores, real) if scores.ndim > a.context_mask.ndim else right(scores, real, axis)
        )
    )


def _buckets_first(encoding, planes):
    repetitions, buckets = len(planes), 2 ** planes.shape[1]
    blocks = encoding.reshape(*encoding.shape[:-1], repetitions, buckets, -1)
    return np.swapaxes(blocks, -2, -3).reshape(encoding.shape)


def _of_muvera(what):
    """Mistakes of both encodings."""
    return {
        f"MUVERA {what}: the planes in another order": lambda a: a.oracle(planes=a.planes[:, ::-1]),
        f"MUVERA {what}: buckets before repetitions": lambda a: _buckets_first(a.oracle(), a.planes),
    }


MUTANTS = Mistakes(
    cross_attention_pooling={
        "cross: multiplies by the mask": lambda a: a.oracle(
            x=_kept(a.x, a.x_mask), y=_kept(a.y, a.y_mask), x_mask=None, y_mask=None
        ),
        "cross: the other side's mask forgotten": lambda a: a.oracle(y_mask=None),
        "cross: maximum of the magnitudes": lambda a: (
            a.oracle(x=np.abs(a.x), y=np.abs(a.y)) if a.reduction == "max" else a.oracle()
        ),
        "cross: dropout of y ignored": lambda a: a.oracle(y_dropout_multiplier=None),
        "cross: scale ignored": lambda a: a.oracle(scale=1.0),
        "cross: masks swapped, or forgotten where they do not fit": lambda a: (
            a.oracle(x_mask=a.y_mask, y_mask=a.x_mask) if a.x.shape[-2] == a.y.shape[-2] else a.oracle(x_mask=None)
        ),
        "cross: mean over the padded length": lambda a: (
            a.oracle(reduction="sum", scale=a.scale / max(a.y.shape[-2], 1)) if a.reduction == "mean" else a.oracle()
        ),
        "cross: one kernel mixed up": lambda a: a.mapped(y_kernel=lambda kernel: np.roll(kernel, 1, -1)),
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
        "maxsim: the maximum begins at 0": lambda a: a.exchanged(reduced, lambda right, *of: np.maximum(right(*of), 0)),
    },
    maxsim_score_all_pairs={
        "all pairs of maxsim: transposed": lambda a: (
            ref.maxsim_score_all_pairs(a.y, a.x, a.y_mask, a.x_mask, mean=a.mean).T
        ),
        "all pairs of maxsim: the documents' mask forgotten": lambda a: a.oracle(y_mask=None),
    },
    code_wise_attention={
        "code wise: padded context takes part": lambda a: a.oracle(
            context=_kept(a.context, a.context_mask), context_mask=None
        ),
        "code wise: query and context swapped": lambda a: a.oracle(
            query=a.context, context=a.query, query_mask=a.context_mask, context_mask=a.query_mask
        ),
        "code wise: scaled by sqrt(d)": lambda a: a.oracle(scale=a.scale / np.sqrt(a.query.shape[-1])),
        "code wise: the maximum over padded labels too": lambda a: a.exchanged(reduced, _over_padding),
        "code wise: the mean of the labels": lambda a: a.exchanged(reduced, _mean),
        "code wise: the mean of the context without labels": lambda a: a.exchanged(softmax, _among(a.context_mask)),
        "code wise: scaled after the maximum": lambda a: a.exchanged(
            reduced, lambda right, scores, *how: a.scale * right(scores / a.scale, *how)
        ),
    },
    mask_attention={
        "mask attention: padded context attends as well": lambda a: a.oracle(
            context=_kept(a.context, a.context_mask), context_mask=None
        ),
        "mask attention: scaled by sqrt(d)": lambda a: a.oracle(scale=a.scale / np.sqrt(a.query.shape[-1])),
        "mask attention: NaN patched away": lambda a: a.changed(np.nan_to_num, np.nan_to_num),
        "mask attention: a score of 0 is padding": lambda a: a.exchanged(softmax, without_zeros),
        "mask attention: normalises over the context": lambda a: a.exchanged(softmax, over_queries),
    },
    bidaf_attention={
        "bidaf: kernel blocks [query; context; product]": lambda a: a.exchanged(
            joined, lambda right, h, u, *more: right(h, u, *more) if len(more) == 2 else right(u, h, *more)
        ),
        "bidaf: the maximum over padded query too": lambda a: a.exchanged(reduced, _over_padding),
        "bidaf: the mean, not the maximum, of the query": lambda a: a.exchanged(reduced, _mean),
        "bidaf: the mean of the context without a query": lambda a: a.exchanged(softmax, _among(a.context_mask)),
        "bidaf: attends to the query over the context": lambda a: a.exchanged(softmax, _of_matrices(over_queries)(a)),
    },
    muvera_query_encoding=_of_muvera("query")
    | {"MUVERA query: means as in a document": lambda a: ref.muvera_document_encoding(**a.values)},
    muvera_document_encoding=_of_muvera("document")
    | {
        "MUVERA document: zero padding counts in its bucket": lambda a: a.oracle(x=a.zeroed, mask=~a.empty),
        "MUVERA document: empty buckets stay 0": lambda a: np.where(
            ref.muvera_query_encoding(**a.values) == 0, 0, a.oracle()
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


@MUTANTS.of("maxsim_score_all_pairs", "all pairs of maxsim: the tokens of all documents together")
def maxsim_all_documents_together(a):
    together = a.y.reshape(1, -1, a.y.shape[-1]), a.y_mask.reshape(1, -1)
    scores = ref.maxsim_score_all_pairs(a.x, together[0], a.x_mask, together[1], mean=a.mean)
    return np.broadcast_to(scores, (len(a.x), len(a.y)))


@MUTANTS.of("mask_attention", "mask attention: only scores of 0 are padding")
def mask_attention_guesses_the_mask(a):
    scores = a.scale * (a.context @ np.swapaxes(a.query, -1, -2))
    weights = ref.masked_softmax(scores, scores != 0)
    return a.returns(weights @ a.query, weights)


@MUTANTS.of("bidaf_attention", "bidaf: blocks of padded context not 0")
def bidaf_padded_blocks_not_zero(a):
    context = np.concatenate([np.where(np.isfinite(a.context), a.context, 0)] * 4, -1)
    return a.changed(lambda joined: np.where(a.context_mask[..., None], joined, context))


@MUTANTS.of("bidaf_attention", "bidaf: rows of padded context uniform")
def bidaf_padded_rows_uniform(a):
    uniform = ~a.context_mask[..., None] / max(a.query.shape[-2], 1)
    return a.exchanged(softmax, _of_matrices(lambda right, scores, real: right(scores, real) + uniform)(a))


@MUTANTS.of("bidaf_attention", "bidaf: the last block of the chosen query")
def bidaf_last_block_of_the_query(a):
    weights = a.oracle(return_weights=True)[1][1]
    summary = np.sum(weights[..., None] * _kept(a.context, a.context_mask), -2)[..., None, :]
    return a.exchanged(
        joined, lambda right, h, u, *more: right(h, u, more[0], u * summary) if len(more) == 2 else right(h, u, *more)
    )
