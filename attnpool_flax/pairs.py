"""Attention and pooling between two sequences, called sides. Twin of :mod:`attnpool_ref.pairs`."""

import math

import jax.numpy as jnp
from jax import lax

from attnpool_flax.attention import Rows, average
from attnpool_flax.call.compiled import compiled
from attnpool_flax.normalizers import divide, exp_and_sum, softmax
from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import einsum, factor_precision, one_pass_of
from attnpool_flax.numerics.rounding import largest_product, norm
from attnpool_flax.numerics.sizes import as_number, at_least_1, known
from attnpool_flax.numerics.sums import summed, weighted
from attnpool_flax.scores import dot as products_of_pairs
from attnpool_flax.tokens import Dense, Packed
from attnpool_flax.tokens.mesh import all_reduce_states
from attnpool_flax.tokens.protocol import dot, dot_if_any
from attnpool_flax.tokens.queries import ForQueries, largest_of_both, largest_with, over_first, over_queries, size_of
from attnpool_flax.tokens.segments import at


@compiled(tokens=("x", "y"), as_they_come=("x", "y"))
def cross_attention_pooling(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_lengths=None,
    y_lengths=None,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    x_dropout_multiplier=None,
    y_dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.cross_attention_pooling`.

    With the reductions "sum" and "mean" it takes O((L + T) d) operations and no array [L, T], because the other side's
    tokens are summed first: the sum over t of x_l . y_t is x_l . (sum of y_t). "max" computes all products, in blocks
    unless "einsum" is requested; with ``axis_name`` it is an error.

    >>> x, y = jnp.array([[2.0, 0.0], [2.0, 4.0], [9.0, 9.0]]), jnp.array([[1.0, 0.0]])
    >>> cross_attention_pooling(x, y, jnp.array([True, True, False]))
    (Array([2., 2.], dtype=float32), Array([1., 0.], dtype=float32))

    Packed:
      Takes O((N + M) d) operations, without an array over pairs.

    >>> x, y = jnp.array([[2.0, 0.0], [2.0, 4.0]]), jnp.array([[1.0, 0.0]])
    >>> segment_cross_attention_pooling(x, jnp.array([0, 0]), y, jnp.array([0]), 1)
    (Array([[2., 2.]], dtype=float32), Array([[1., 0.]], dtype=float32))
    """
    scale = _factor(scale, x.x, y.x, x_kernel, y_kernel)
    if reduction == "max":  # packed tokens do not have it
        pooled, weights = _by_largest(x, y, x_kernel, y_kernel, scale)
        sides = zip((x, y), pooled, weights, (x_dropout_multiplier, y_dropout_multiplier), strict=True)
        pooled = tuple(own if m is None else _dropped(tokens, w, m) for tokens, own, w, m in sides)
    else:
        multipliers = (
            None if own is None else own[..., None, :] for own in (x_dropout_multiplier, y_dropout_multiplier)
        )
        pooled, weights = cross_attention(x, y, x_kernel, y_kernel, reduction, scale, *multipliers)
    return (pooled, weights) if return_weights else pooled


def _factor(scale, x, y, *kernels):
    """Returns the factor of the products: ``scale``, or 1 / sqrt(c) if it is None, where c is their width."""
    if scale is not None:
        return scale
    arrays = [x, y, *(kernel for kernel in kernels if kernel is not None)]
    width = arrays[2 if len(arrays) > 2 else 0].shape[-1]
    return jnp.asarray(width**-0.5, jnp.result_type(jnp.float32, *arrays))


def _dropped(tokens, weights, multiplier):
    """Sums the tokens under weights [..., L] times a dropout multiplier."""
    return tokens.weighted_sum_of(weights * tokens.fill_padding(multiplier))


def cross_attention(xs, ys, x_kernel, y_kernel, reduction, scale, x_multiplier, y_multiplier):
    """Returns ((x, y) pooled, (x, y) weights) of dense or packed sides, each scored by the other's sum or mean."""
    (x_sum, y_sum), (x_real, y_real) = _all_reduced_sums(reduction == "mean", xs, ys)
    x_query = scale * _seen_from(y_sum, y_kernel, x_kernel, xs.precision)
    y_query = scale * _seen_from(x_sum, x_kernel, y_kernel, xs.precision)
    sides = _all_reduced_softmax((xs, x_query, x_multiplier, y_real), (ys, y_query, y_multiplier, x_real))
    (x_pooled, x_weights), (y_pooled, y_weights) = (side[:2] for side in sides)
    return (x_pooled[..., 0, :], y_pooled[..., 0, :]), (x_weights[..., 0, :], y_weights[..., 0, :])


def _all_reduced_sums(mean, *tokens):
    """Returns (sums, or means if ``mean``; whether there are real tokens) of several tokens objects, in one collective.

    Both are lists with an array for each object: [..., d], and bool [...], or None without a mask if L > 0.
    """
    if tokens[0].axis_name is None:
        return [each.mean() if mean else each.sum() for each in tokens], [each.has_real_token() for each in tokens]
    states = all_reduce_states([each.sum_state(mean) for each in tokens], tokens[0].axis_name)
    sums = [each.finalize_mean(state) if mean else state.sum for each, state in zip(tokens, states, strict=True)]
    real = [
        each.has_real_token() if each.mask is None else state.weight > 0
        for each, state in zip(tokens, states, strict=True)
    ]
    return sums, real


def _all_reduced_softmax(*sides):
    """Returns what ``softmax_of`` returns for several tokens objects, in common collectives.

    Each side is (tokens, query [..., d], multiplier or None, bool [...] or None: where it is False, all scores are 0).
    """
    calls = []
    for tokens, query, multiplier, has_query in sides:
        examples = [(query[..., None, :], 2)] + ([] if has_query is None else [(has_query, 0)])
        score = dot if has_query is None else dot_if_any
        calls.append((tokens, {"score": score, "examples": examples, "multiplier": multiplier}))
    axis_name = sides[0][0].axis_name
    if axis_name is None:
        return [tokens.softmax_of(**call) for tokens, call in calls]
    local = [tokens.local_softmax(**call) for tokens, call in calls]
    states = all_reduce_states([state for _, state, _ in local], axis_name)
    merged = zip(calls, local, states, strict=True)
    return [tokens.softmax_averages(scores, state, batch) for (tokens, _), (scores, _, batch), state in merged]


def _seen_from(total, own_kernel, others_kernel, precision):
    """Projects the sum [..., e] of one side's tokens by both kernels: the other side's tokens need no projection."""
    precision = factor_precision(precision)
    if own_kernel is not None:
        total = jnp.einsum("...e,ec->...c", total, own_kernel, precision=precision)
    return total if others_kernel is None else jnp.einsum("...c,dc->...d", total, others_kernel, precision=precision)


def _by_largest(xs, ys, x_kernel, y_kernel, scale):
    """Returns the pooled vectors and the weights of both sides under their largest scores, [..., L] and [..., T].

    The scores are 0 if the other side is fully masked.
    """
    precision = one_pass_of(xs.precision, jnp.promote_types(xs.x.dtype, ys.x.dtype))

    def pooled(x, y, x_mask, y_mask):
        x, y = keep_real(x.astype(xs.dtype), x_mask), keep_real(y.astype(xs.dtype), y_mask)
        x_keys, y_keys = scale * _project(x, x_kernel, precision), _project(y, y_kernel, precision)
        x_scores, y_scores = largest_of_both(x_keys, y_keys, x_mask, y_mask, precision)
        x_weights = softmax(_over_real(x_scores, y, y_mask), x_mask)
        y_weights = softmax(_over_real(y_scores, x, x_mask), y_mask)
        return (_average(x_weights, x, precision), _average(y_weights, y, precision)), (x_weights, y_weights)

    (x, y, *masks), back = xs.examples_with(ys)
    held = x.shape[1] * y.shape[1] + x.shape[1] * x.shape[2] + y.shape[1] * y.shape[2]
    if platforms.may_be_split(x):
        return pooled(xs.x, ys.x, xs.mask, ys.mask)
    return back(over_first(pooled, (x, y, *masks), held))


def _average(weights, x, precision):
    """Averages values [..., L, d] under weights [..., L]: [..., d]."""
    return weighted(weights[..., None, :], x, precision)[..., 0, :]


def _over_real(scores, y, y_mask):
    """Returns the scores [..., L] of x, which are 0 if the other side y [..., T, e] has no real token."""
    if y_mask is not None:
        return jnp.where(jnp.any(y_mask, -1, keepdims=True), scores, 0)
    return scores if y.shape[-2] else jnp.zeros_like(scores)


def _project(x, kernel, precision):
    return x if kernel is None else einsum("...d,dc->...c", x, kernel, precision)


@compiled(as_they_come=("x", "y"))
def cross_attention_pooling_all_pairs(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_lengths=None,
    y_lengths=None,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.cross_attention_pooling_all_pairs`: all scores at once only if they fit one block.

    x [B, L, d] and y [C, T, e] give ([B, C, d], [B, C, e]). For "sum" and "mean" the tokens of y are summed first, and
    the scores of x are one product with these sums; likewise for y. "max" computes the scores [B, C, L, T] in blocks
    of pairs, of at least one pair each.

    >>> x, y = jnp.array([[[2.0, 0.0], [2.0, 4.0]]]), jnp.array([[[1.0, 0.0]], [[0.0, 90.0]]])
    >>> x_pooled, y_pooled = cross_attention_pooling_all_pairs(x, y)
    >>> x_pooled
    Array([[[2., 2.],
            [2., 4.]]], dtype=float32)
    """
    xs, ys = Dense(x, x_mask, precision), Dense(y, y_mask, precision)
    scale = _factor(scale, x, y, x_kernel, y_kernel)
    if reduction == "max":
        x_scores, y_scores = _largest_of_pairs(x, y, x_mask, y_mask, x_kernel, y_kernel, scale, precision)
        x_side = xs.softmax_of_scores(jnp.swapaxes(x_scores, 0, 1))
        y_side = ys.softmax_of_scores(y_scores)
    else:
        (x_sum, y_sum), real = _all_reduced_sums(reduction == "mean", xs, ys)
        x_query = scale * _seen_from(y_sum, y_kernel, x_kernel, precision)
        y_query = scale * _seen_from(x_sum, x_kernel, y_kernel, precision)
        x_side, y_side = _with_all(xs, x_query, real[1]), _with_all(ys, y_query, real[0])
    pooled, weights = zip(x_side[:2], (jnp.swapaxes(array, 0, 1) for array in y_side[:2]), strict=True)
    return (pooled, weights) if return_weights else pooled


def _with_all(tokens, queries, has_query):
    """Averages the tokens of each sequence under the softmax of their products with each of the queries [h, d].

    ``has_query`` [h] is False where all scores are 0; it may be None.
    """
    if has_query is None:
        return tokens.softmax_of(dot, [(queries[None], 2)])

    def score(piece, queries, has_query):
        return jnp.where(piece.each(has_query), piece.dot(queries), 0)

    return tokens.softmax_of(score, [(queries[None], 2), (has_query[None], 1)])


def _largest_of_pairs(x, y, x_mask, y_mask, x_kernel, y_kernel, scale, precision):
    """Computes each token's largest score over the other side's real tokens, [C, B, L] and [C, B, T]; 0 without any.

    A block has some of the sequences y with all x; if one y with all x exceeds a block, one y with at least one x.
    """
    x = scale * _project(keep_real(x.astype(scale.dtype), x_mask), x_kernel, precision)
    products = x.shape[1] * y.shape[1]

    def with_candidate(y, y_mask):
        y = _project(keep_real(y.astype(x.dtype), y_mask), y_kernel, precision)

        def with_example(x, x_mask):
            x_scores, y_scores = largest_of_both(x, y, x_mask, y_mask, precision)
            return _over_real(x_scores, y, y_mask), _over_real(y_scores, x, x_mask)

        return over_first(with_example, (x, x_mask), products)

    return over_first(with_candidate, (y, y_mask), x.shape[0] * products)


@compiled(one_pass=True)
def maxsim_score(
    x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, mean=False, result_dtype=None, precision=None
):
    """Twin of :func:`attnpool_ref.maxsim_score`: in blocks of x; products [L, T] exist at once only if they fit one.

    >>> maxsim_score(jnp.eye(2), jnp.array([[2.0, 1.0], [0.0, 3.0]]))
    Array(5., dtype=float32)
    """
    x, y = keep_real(x, x_mask), keep_real(y, y_mask)
    best = over_queries(largest_with(y, y_mask, precision), (x,), keys=_keys(y, x))[..., 0]
    return _summed_best(best, y, x_mask, y_mask, mean)


def _summed_best(best, y, x_mask, y_mask, mean):
    """Returns the sum or mean [...] of real tokens' largest products [..., L]; 0 if x or y is fully masked."""
    best = _over_real(best, y, y_mask)
    if x_mask is None:
        return summed(best, -1) / (at_least_1(best.shape[-1]) if mean else 1)
    total = summed(jnp.where(x_mask, best, 0), -1)
    return total / jnp.maximum(jnp.sum(x_mask, -1, dtype=total.dtype), 1) if mean else total


@compiled(as_they_come=("x", "y"), one_pass=True)
def maxsim_score_all_pairs(
    x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, mean=False, result_dtype=None, precision=None
):
    """Twin of :func:`attnpool_ref.maxsim_score_all_pairs`: in blocks of documents y.

    Products [B, C, L, T] exist at once only if they fit one block.

    >>> maxsim_score_all_pairs(jnp.eye(2)[None], jnp.array([[[2.0, 1.0]], [[0.0, 3.0]]]))
    Array([[3., 3.]], dtype=float32)
    """
    dtype = jnp.promote_types(jnp.promote_types(x.dtype, y.dtype), jnp.float32)
    x = keep_real(x.astype(dtype), x_mask)
    count, length, width = x.shape

    def of_document(y, y_mask):
        y, y_mask = keep_real(y.astype(dtype), y_mask)[None], None if y_mask is None else y_mask[None]
        rows = jnp.reshape(x, (1, count * length, width)) if known(count) else x  # blocks may end inside of examples
        best = over_queries(largest_with(y, y_mask, precision), (rows,), keys=rows.shape[0] * y.shape[1])
        return _summed_best(jnp.reshape(best, (count, length)), y, x_mask, y_mask, mean)

    return over_first(of_document, (y, y_mask), count * length * y.shape[1]).T


@compiled(tokens=("x",), as_they_come=("x",))
def muvera_query_encoding(x, mask=None, *, lengths=None, planes, projection=None, precision=None):
    """Twin of :func:`attnpool_ref.muvera_query_encoding`: one repetition after another, without an array [L, 2^b].

    ``precision`` can change a bit whose product is near 0.

    >>> x = jnp.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]])
    >>> muvera_query_encoding(x, planes=jnp.array([[[1.0, 0.0]]]))
    Array([-2.,  5.,  4.,  1.], dtype=float32)

    Packed:
      The buckets of all segments are summed at once.

    >>> x = jnp.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]])
    >>> segment_muvera_query_encoding(x, jnp.array([0, 1, 0]), 2, planes=jnp.array([[[1.0, 0.0]]]))
    Array([[-2.,  5.,  1.,  2.],
           [ 0.,  0.,  3., -1.]], dtype=float32)
    """
    return _encoding(x, planes, projection, lambda tokens, width: tokens.sum())


@compiled(tokens=("x",), as_they_come=("x",))
def muvera_document_encoding(x, mask=None, *, lengths=None, planes, projection=None, precision=None):
    """Twin of :func:`attnpool_ref.muvera_document_encoding`: empty buckets are filled in b steps, without an array [L, 2^b].

    ``precision`` can change a bit whose product is near 0.

    >>> muvera_document_encoding(jnp.array([[1.0, 2.0], [3.0, -1.0]]), planes=jnp.array([[[1.0, 0.0]]]))
    Array([1. , 2. , 2. , 0.5], dtype=float32)

    Packed:
      The buckets of all segments are averaged at once.

    >>> x = jnp.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]])
    >>> segment_muvera_document_encoding(x, jnp.array([0, 1, 0]), 2, planes=jnp.array([[[1.0, 0.0]]]))
    Array([[-2.,  5.,  1.,  2.],
           [ 3., -1.,  3., -1.]], dtype=float32)
    """
    return _encoding(x, planes, projection, _filled_means)


def _encoding(tokens, planes, projection, block_of):
    """Encodes tokens, dense or packed: [..., R 2^b p], or [S, R 2^b p].

    ``block_of`` maps :class:`Packed` tokens, whose segments are the buckets of one repetition, and b to [buckets, d].
    """
    if isinstance(tokens, Packed):
        x, batch, count = tokens.x, (tokens.number,), tokens.number
        owner, real = tokens.segments.ids, tokens.segments.real
    else:
        *batch, length, _ = tokens.x.shape
        count = math.prod(batch)
        x = jnp.reshape(tokens.x, (count * length, tokens.x.shape[-1]))
        owner = jnp.reshape(lax.broadcasted_iota(jnp.int32, (count, length), 0), (count * length,))
        real = None if tokens.mask is None else jnp.reshape(tokens.mask, (count * length,))
    precision, bits = factor_precision(tokens.precision), planes.shape[1]
    constant = keep_real(
        lax.stop_gradient(x.astype(tokens.dtype)), real
    )  # the bucket of padding has an effect on rounding
    powers = jnp.array([2**place for place in reversed(range(bits))], jnp.int32)

    def of_repetition(parts):
        planes, projection = parts
        products = jnp.einsum("ld,bd->lb", constant, planes, precision=precision)
        bucket = owner * 2**bits + jnp.sum(jnp.where(products > 0, powers, 0), -1, dtype=jnp.int32)
        blocks = block_of(Packed(x, bucket, count * 2**bits, real, False, tokens.precision), bits)
        if projection is not None:
            blocks = jnp.einsum("cd,dp->cp", blocks, projection, precision=precision)
        return jnp.reshape(blocks, (count, 2**bits * blocks.shape[-1]))

    encodings = lax.map(of_repetition, (planes, projection))
    return jnp.reshape(jnp.swapaxes(encodings, 0, 1), (*batch, encodings.shape[0] * encodings.shape[2]))


def _filled_means(tokens, bits):
    """Averages the tokens of each bucket; an empty one takes the first real token whose bits differ in the fewest places.

    For all buckets of a document, (number of differing bits) N + (index of the token) is minimized bit by bit: a step
    compares the buckets that differ in one bit.
    """
    means, (length, _) = tokens.mean(), tokens.x.shape
    if known(length) and not length:
        return means
    length, buckets = as_number(length, jnp.int32), tokens.number
    nowhere = length * (bits + 1)
    place = jnp.where(tokens.segments.real, lax.iota(jnp.int32, tokens.x.shape[0]), nowhere)
    empty = tokens.segments.counts()[:buckets] == 0
    nearest = jnp.where(empty, nowhere, -tokens.segments.max(-place)[:buckets])
    for bit in range(bits):
        pairs = jnp.reshape(nearest, (buckets // 2 ** (bit + 1), 2, 2**bit))
        nearest = jnp.reshape(jnp.minimum(pairs, pairs[:, ::-1] + length), (buckets,))
    token = at(tokens.x, nearest % length).astype(tokens.dtype)
    return jnp.where((empty & (nearest < nowhere))[:, None], token, means)


@compiled(one_pass=True, queries=ForQueries("context", "query"))
def code_wise_attention(
    query,
    context,
    query_mask=None,
    context_mask=None,
    *,
    query_lengths=None,
    context_lengths=None,
    scale=1.0,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.code_wise_attention`: in blocks of context tokens.

    >>> labels, context = jnp.eye(2), jnp.array([[3.0, 0.0], [0.0, 3.0]])
    >>> code_wise_attention(labels, context)
    Array([1.5, 1.5], dtype=float32)
    """
    query, context = keep_real(query, query_mask), keep_real(context, context_mask)
    best = largest_with(query, query_mask, precision, _factor(scale, query, context))
    scores = over_queries(best, (context,), keys=_keys(query, context))
    weights = softmax(scores[..., 0], context_mask)
    pooled = _average(weights, context, precision)
    return (pooled, weights) if return_weights else pooled


def _keys(query, context):
    """Returns the number of scores of one context token, over all examples."""
    return size_of(query, 2, context, 2) * query.shape[-2]


@compiled(one_pass=True, queries=ForQueries("context", "query"))
def mask_attention(
    query,
    context,
    query_mask=None,
    context_mask=None,
    *,
    query_lengths=None,
    context_lengths=None,
    scale=1.0,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.mask_attention`: in blocks of context, unless the weights are requested.

    >>> query, context = jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.array([[0.0, 0.0], [200.0, 0.0]])
    >>> mask_attention(query, context)
    Array([[0.5, 1. ],
           [1. , 0. ]], dtype=float32)
    """
    query, context = keep_real(query, query_mask), keep_real(context, context_mask)
    real = None if query_mask is None else query_mask[..., None, :]
    scale = _factor(scale, query, context)
    rows = Rows((context,), real, None, lambda rows: products_of_pairs(scale * rows, query, precision), exp_and_sum)
    pooled, weights = rows.average(query, return_weights, precision)
    pooled = keep_real(pooled, context_mask)
    return (pooled, keep_real(weights, context_mask)) if return_weights else pooled


@compiled(one_pass=True, queries=ForQueries("context", "query"))
def bidaf_attention(
    context,
    query,
    kernel,
    context_mask=None,
    query_mask=None,
    *,
    context_lengths=None,
    query_lengths=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.bidaf_attention`: in blocks of context, unless the weights are requested.

    For context H [T, d], query U [J, d] and kernel [w1; w2; w3], the scores are H w1 + U w2 + (H * w3) U^T, without an
    array [T, J, 3d]. The first term is the same for a whole row, so a softmax over the row does not need it: it is
    added only to the maxima of rows.

    >>> bidaf_attention(jnp.array([[1.0], [2.0]]), jnp.array([[1.0], [0.0]]), jnp.zeros(3))
    Array([[1. , 0.5, 0.5, 1.5],
           [2. , 0.5, 1. , 3. ]], dtype=float32)
    """
    context, query = keep_real(context, context_mask), keep_real(query, query_mask)
    of_context, of_query, of_both = jnp.split(kernel, 3)
    query_part = einsum("...jd,d->...j", query, of_query, precision)[..., None, :]
    longest = jnp.max(norm(query), -2, initial=0)
    real = None if query_mask is None else query_mask[..., None, :]

    def chosen_and_best(rows):
        rows = rows * jnp.broadcast_to(of_both, rows.shape)
        size = (norm(rows)[..., 0] + norm(of_query)[0]) * longest
        scores = products_of_pairs(rows, query, precision) + query_part
        (weights, total), best = exp_and_sum(scores, real), largest_product(scores, real, size, 2 * rows.shape[-1])
        return average(weights, total, query, precision), best[..., None], (weights, total)

    if return_weights:
        chosen, best, (weights, total) = chosen_and_best(context)
        to_query = divide(weights, total, real)
    else:
        chosen, best = over_queries(lambda rows: chosen_and_best(rows)[:2], (context,), keys=_keys(query, context))
    best = best[..., 0] + einsum("...td,d->...t", context, of_context, precision)
    if query_mask is not None:
        best = jnp.where(jnp.any(query_mask, -1, keepdims=True), best, -jnp.inf)  # whatever the context holds
    to_context = softmax(best, context_mask)
    summary = _average(to_context, context, precision)[..., None, :]
    chosen = keep_real(chosen, context_mask)
    context = jnp.broadcast_to(context, chosen.shape)
    result = keep_real(jnp.concatenate([context, chosen, context * chosen, context * summary], -1), context_mask)
    return (result, (keep_real(to_query, context_mask), to_context)) if return_weights else result
