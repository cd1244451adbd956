"""Loops over packed tokens: segment sums of whole arrays, or one tile in the cache at a time.

Scores and unnormalized weights of tokens are small. Arrays of the size of x exist only for one tile at a time: no row of
x is copied for a head or gathered for a segment outside of it.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions import tiling
from attnpool_flax.reductions.max import signed
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.segment_sums import at
from attnpool_flax.reductions.softmax import SoftmaxState, exponential
from attnpool_flax.reductions.sums import computing

TOKENS, FEWEST = 2048, 64
"""Tokens of a tile at most, and at least."""

UNROLLED = 16
"""Heads that are summed one after another in the text of a program; more of them go by a loop."""


class Strip(NamedTuple):
    """Tiling of [N, d] by ``size`` tokens.

    Attributes:
      length: N.
      size: the number of tokens of a tile; the last tile is moved back to be whole, and overlaps.
    """

    length: int
    size: int

    @property
    def trips(self):
        """Tiles in all."""
        return -(-self.length // self.size)

    def first(self, trip):
        """Returns the start of a tile."""
        return jnp.minimum(trip * self.size, self.length - self.size)

    def cut(self, array, trip):
        """Slices the tile [size, ...] of an array [N, ...] in its own dtype."""
        array, trip = tiling.of_trip(array, trip)
        return lax.dynamic_slice_in_dim(array, self.first(trip), self.size)

    def clean(self, x, segments, trip):
        """Returns the tile [size, d] of tokens [N, d], padding as 0."""
        return jnp.where(self.cut(segments.real, trip)[:, None], self.cut(x, trip), 0)

    def new(self, trip):
        """Returns [size]: tokens that no tile before it held."""
        return self.first(trip) + jnp.arange(self.size) >= trip * self.size

    def joined(self, parts):
        """Tiles [trips, size, ...] of a small array as [N, ...]."""
        done = (self.trips - 1) * self.size
        start = jnp.reshape(parts[:-1], (done, *parts.shape[2:]))
        return jnp.concatenate([start, parts[-1, self.size - (self.length - done) :]])


def strip_for(x, heads=1):
    """Returns the tiling of tokens [N, d], or None if they are too few for a loop."""
    length, width = x.shape
    if not known(length, width) or length * width * x.dtype.itemsize <= tiling.WHOLE:
        return None
    size = tiling.TILE // (width * x.dtype.itemsize * heads)
    return Strip(length, min(length, TOKENS, max(size, FEWEST)))


def _zeros(shape, dtype, x):
    """Returns 0 with the varying manual axes of the tokens."""
    return jnp.zeros(shape, dtype) + jnp.zeros_like(x[0, 0], dtype)


# --------------------------------------------------------------------------------------------------------------
# Sums under weights


def plain_sums(x, segments, weights):
    """Returns [count, h, d]: the sums of tokens [N, d] under weights [N, h]; differentiable in every mode."""
    x = jnp.where(segments.real[:, None], x.astype(weights.dtype), 0)
    weights = jnp.where(segments.real[:, None], weights, 0)
    if weights.shape[1] <= UNROLLED:
        return jnp.stack([segments.sum(weights[:, i, None] * x) for i in range(weights.shape[1])], 1)
    by_head = lax.map(lambda weights: segments.sum(weights[:, None] * x), weights.T)
    return jnp.swapaxes(by_head, 0, 1)


def _sums_by_tiles(x, segments, weights, *, plan):
    def part(sums, trip):
        keep = plan.new(trip) & plan.cut(segments.real, trip)
        return _added(sums, segments, plan, trip, plan.cut(x, trip), plan.cut(weights, trip), keep), None

    shape = (segments.sizes[0], weights.shape[1], x.shape[1])
    sums, _ = lax.scan(part, _zeros(shape, weights.dtype, x), jnp.arange(plan.trips))
    return segments.joined(sums)


def _added(sums, segments, plan, trip, tokens, weights, keep):
    """Adds a tile's tokens under weights [size, h] to the sums [sizes[0], h, d]."""
    weights, tokens = (jnp.where(keep[:, None], array, 0) for array in (weights, tokens.astype(weights.dtype)))
    terms = weights[:, :, None] * tokens[:, None]
    index = plan.cut(segments.chain[0], trip)
    return sums.at[index].add(terms, indices_are_sorted=segments.ordered, mode="promise_in_bounds")


def _sums(x, segments, weights):
    return tiling.walk(_sums_by_tiles, plain_sums, strip_for(x, weights.shape[1]), x, segments, weights)


def _keep_sums(x, segments, weights, learned):
    del learned
    return _sums(x, segments, weights), (x, segments, weights)


def _slopes_of_sums(learned, kept, of_sums):
    x, segments, weights = kept
    of_x = _outer(x, segments, ((jnp.where(segments.real[:, None], weights, 0), of_sums),))
    if not learned:
        return of_x, None, jnp.zeros_like(weights)
    reached = tiling.walk(_reached_by_tiles, _reached_plain, strip_for(x), x, segments, of_sums)
    return of_x, None, reached


@reverse_rule(_keep_sums, _slopes_of_sums, nondiff_argnums=(3,))
def tiled_sums(x, segments, weights, learned):
    """Computes :func:`plain_sums` of weights [N, 1]; with ``learned`` the weights have a gradient."""
    del learned
    return _sums(x, segments, weights)


def _reached_plain(x, segments, rows):
    """Returns [N, h]: the product of each token with the rows [count, h, d] of its segment; 0 at padding."""
    x = jnp.where(segments.real[:, None], x.astype(rows.dtype), 0)
    return jnp.stack([jnp.sum(x * segments.expand_to_tokens(rows[:, i]), 1) for i in range(rows.shape[1])], 1)


def _reached_by_tiles(x, segments, rows, *, plan):
    def part(trip):
        return _reached(plan.clean(x, segments, trip), at(rows, plan.cut(segments.ids, trip)))

    return plan.joined(lax.map(part, jnp.arange(plan.trips)))


def _reached(tokens, rows):
    """Computes products [size, h] of tokens [size, d] with rows [size, h, d]; XLA's sums of a gathered row are slow."""
    terms = tokens[:, None].astype(rows.dtype) * rows
    return jnp.dot(terms, jnp.ones(terms.shape[2], terms.dtype), precision=lax.Precision.HIGHEST)


def _outer(x, segments, terms):
    """Computes ``dx`` [N, d], written once: the sum of weights [N, h] times rows [count, h, d], or [1, h, d]."""
    heads = terms[0][0].shape[1]

    def of(cut, ids):
        found: Any = 0
        for heights, rows in terms:
            heights = cut(heights)
            for i in range(heads):
                row = rows[:, i] if rows.shape[0] == 1 else at(rows[:, i], ids)
                found = found + heights[:, i, None] * row
        return found.astype(x.dtype)

    if heads <= UNROLLED or (plan := strip_for(x, heads)) is None:
        return of(lambda heights: heights, segments.ids)

    def part(of_x, trip):
        tile = of(lambda heights: plan.cut(heights, trip), plan.cut(segments.ids, trip))
        return lax.dynamic_update_slice_in_dim(of_x, tile, plan.first(trip), 0), None

    return lax.scan(part, _zeros(x.shape, x.dtype, x), jnp.arange(plan.trips))[0]


# --------------------------------------------------------------------------------------------------------------
# Softmax


def plain_softmax(x, segments, scored, queries, multiplier, bias, precision):
    """Returns scores and state of each segment, whole; differentiable in every mode.

    Args:
      x: [N, d] tokens, in any floating dtype.
      segments: their :class:`~attnpool_flax.reductions.segment_sums.Segments`.
      scored: bool [count], or None: segments whose scores are not all 0, whatever the tokens hold.
      queries: [1, h, d] or [count, h, d] in the computing dtype.
      multiplier: [N, h] of the weights that the sum takes, or None.
      bias: [N, h], added to the scores, or None.
      precision: of the products.

    Returns:
      (scores [N, h], :class:`~attnpool_flax.reductions.softmax.SoftmaxState` of the segments).
    """
    scores = plain_scores(x, segments, queries, precision)
    if bias is not None:
        scores = scores + jnp.where(segments.real[:, None], bias, 0)
    scores, top, heights, taken = heights_of(scores, segments, scored, multiplier)
    return scores, SoftmaxState(top, segments.sum(heights), plain_sums(x, segments, taken))


def plain_scores(x, segments, queries, precision):
    """Computes products [N, h] of tokens [N, d] with queries [1, h, d], or [count, h, d] of segments; 0 at padding."""
    if queries.shape[0] != 1:
        return _reached_plain(x, segments, queries)
    clean = jnp.where(segments.real[:, None], x.astype(queries.dtype), 0)
    return jnp.dot(clean, queries[0].T, precision=precision)


def heights_of(scores, segments, scored, multiplier):
    """Returns (scores, largest of each segment, exp(score - largest), the same times the multiplier)."""
    if scored is not None:
        scores = jnp.where(segments.expand_to_tokens(scored)[:, None], scores, 0)
    scores = jnp.where(segments.real[:, None], scores, -jnp.inf)
    top = segments.max(lax.stop_gradient(scores))
    heights = exponential(scores, segments.expand_to_tokens(top))
    return scores, top, heights, _taken(heights, segments, multiplier)


def _taken(heights, segments, multiplier):
    return heights if multiplier is None else heights * jnp.where(segments.real[:, None], multiplier, 0)


def _softmax(x, segments, scored, queries, multiplier, bias, precision):
    by_tiles, whole = (functools.partial(f, precision=precision) for f in (_softmax_by_tiles, plain_softmax))
    plan = strip_for(x, queries.shape[1])
    return tiling.walk(by_tiles, whole, plan, x, segments, scored, queries, multiplier, bias)


def _softmax_by_tiles(x, segments, scored, queries, multiplier, bias, *, plan, precision):
    scores = _scores(x, segments, queries, plan, precision)
    if bias is not None:
        scores = scores + bias
    scores, top, heights, taken = heights_of(scores, segments, scored, multiplier)
    sums = _sums_by_tiles(x, segments, taken, plan=plan)
    return scores, SoftmaxState(top, segments.sum(heights), sums)


def _scores(x, segments, queries, plan, precision):
    """Returns [N, h], whatever padding gives: products are of each token by itself."""
    if queries.shape[0] != 1:
        return _reached_by_tiles(x, segments, queries, plan=plan)
    if x.dtype == queries.dtype:
        return _products_of_all(x, segments.real, queries[0], precision)

    def part(trip):
        return _products(plan.clean(x, segments, trip).astype(queries.dtype), queries[0], precision)

    return plan.joined(lax.map(part, jnp.arange(plan.trips)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def _products_of_all(x, real, queries, precision):
    """Computes products [N, h] without zeroing padding, which copies x, unless the product itself is differentiated."""
    del real
    return _products(x, queries, precision)


@_products_of_all.defjvp
def _products_of_all_jvp(precision, primals, tangents):
    x, real, queries = primals
    of_x, _, of_queries = tangents
    x, of_x = (jnp.where(real[:, None], tokens, 0) for tokens in (x, of_x))
    slope = _products(of_x, queries, precision) + _products(x, of_queries, precision)
    return _products_of_all(*primals, precision), slope


def _products(tokens, queries, precision):
    """Returns [size, h]; of one query a product with a vector."""
    if queries.shape[0] == 1:
        return jnp.dot(tokens, queries[0], precision=precision)[:, None]
    return jnp.dot(tokens, queries.T, precision=precision)


def _keep_softmax(x, segments, scored, queries, multiplier, bias, precision):
    scores, state = _softmax(x, segments, scored, queries, multiplier, bias, precision)
    return (scores, state), (x, segments, scored, queries, multiplier, bias, scores, state.top)


def _slopes_of_softmax(precision, kept, cotangents):
    x, segments, scored, queries, multiplier, bias, scores, top = kept
    in_scores, (_, in_total, in_sum) = cotangents  # the top is a constant
    heights = exponential(scores, segments.expand_to_tokens(top))
    arrays = x, segments, scored, queries, multiplier, heights, in_scores, in_total, in_sum
    by_tiles, whole = (functools.partial(f, precision=precision) for f in (_slopes_by_tiles, _slopes_plain))
    slope, of_queries, of_multiplier = tiling.walk(by_tiles, whole, strip_for(x, queries.shape[1]), *arrays)
    of_x = _outer(x, segments, ((_taken(heights, segments, multiplier), in_sum), (slope, queries)))
    return of_x, None, None, of_queries, of_multiplier, None if bias is None else slope


def _slope(reached, segments, scored, multiplier, heights, in_scores, in_total):
    """Returns (gradient of the scores, that of the multiplier or None), both [N, h]."""
    taken = _taken(reached, segments, multiplier)
    keep = segments.real if scored is None else segments.real & segments.expand_to_tokens(scored)
    slope = jnp.where(keep[:, None], heights * (taken + segments.expand_to_tokens(in_total)) + in_scores, 0)
    return slope, None if multiplier is None else heights * reached


def _slopes_plain(x, segments, scored, queries, multiplier, heights, in_scores, in_total, in_sum, *, precision):
    reached = _reached_plain(x, segments, in_sum)
    slope, of_multiplier = _slope(reached, segments, scored, multiplier, heights, in_scores, in_total)
    if queries.shape[0] != 1:
        return slope, plain_sums(x, segments, slope), of_multiplier
    clean = jnp.where(segments.real[:, None], x.astype(slope.dtype), 0)
    return slope, jnp.dot(slope.T, clean, precision=precision)[None], of_multiplier


def _slopes_by_tiles(
    x, segments, scored, queries, multiplier, heights, in_scores, in_total, in_sum, *, plan, precision
):
    """Returns gradients of the scores, the queries and the multiplier; x is read once."""
    own = queries.shape[0] != 1
    in_total = segments.expand_to_tokens(in_total)

    def part(of_queries, trip):
        tokens, ids = plan.clean(x, segments, trip).astype(queries.dtype), plan.cut(segments.ids, trip)
        real = plan.cut(segments.real, trip)
        keep = real if scored is None else real & at(scored, ids)
        reached, height = _reached(tokens, at(in_sum, ids)), plan.cut(heights, trip)
        taken = reached if multiplier is None else reached * plan.clean(multiplier, segments, trip)
        slope = height * (taken + plan.cut(in_total, trip)) + plan.cut(in_scores, trip)
        slope = jnp.where(keep[:, None], slope, 0)
        counted = plan.new(trip) & real
        if own:
            of_queries = _added(of_queries, segments, plan, trip, tokens, slope, counted)
        else:
            once = jnp.where(counted[:, None], slope, 0)
            of_queries = of_queries + jnp.dot(once.T, tokens, precision=precision)
        kept = () if multiplier is None else (height * reached,)
        return of_queries, (slope, *kept)

    shape = (segments.sizes[0], *queries.shape[1:]) if own else queries.shape[1:]
    of_queries, found = lax.scan(part, _zeros(shape, queries.dtype, x), jnp.arange(plan.trips))
    slope, *of_multiplier = map(plan.joined, found)
    return slope, segments.joined(of_queries) if own else of_queries[None], *(of_multiplier or [None])


# --------------------------------------------------------------------------------------------------------------
# The largest


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def plain_largest(x, segments, least):
    """Returns [count, d]: the largest values of each segment, -inf where nothing is real; ties share the gradient.

    With ``least`` they are those of -x.
    """
    return segments.max(jnp.where(segments.real[:, None], signed(x, least), -jnp.inf))


@plain_largest.defjvp
def _plain_largest_jvp(least, primals, tangents):
    x, segments = primals
    top = plain_largest(x, segments, least)
    reaches = (signed(x, least) == segments.expand_to_tokens(top)) & segments.real[:, None]
    count = jnp.maximum(segments.sum(reaches.astype(jnp.int32)), 1).astype(computing(x.dtype))
    moved = jnp.where(reaches, signed(tangents[0].astype(count.dtype), least), 0)
    return top, (segments.sum(moved) / count).astype(top.dtype)


def _largest(x, segments, least):
    by_tiles, whole = functools.partial(_largest_by_tiles, least=least), functools.partial(plain_largest, least=least)
    return tiling.walk(by_tiles, whole, strip_for(x), x, segments)


def _largest_by_tiles(x, segments, *, plan, least):
    def part(top, trip):
        tokens = jnp.where(plan.cut(segments.real, trip)[:, None], signed(plan.cut(x, trip), least), -jnp.inf)
        index = plan.cut(segments.ids, trip)
        return top.at[index].max(tokens, indices_are_sorted=segments.ordered, mode="promise_in_bounds"), None

    lowest = _zeros((segments.count, x.shape[1]), x.dtype, x) - jnp.inf
    return lax.scan(part, lowest, jnp.arange(plan.trips))[0]


def _keep_largest(x, segments, least):
    top = _largest(x, segments, least)
    return top, (x, segments, top)


def _slopes_of_largest(least, kept, of_top):
    x, segments, top = kept
    top = signed(top, least)  # what stands in x
    count = tiling.walk(_count_by_tiles, _count_plain, strip_for(x), x, segments, top)
    share = of_top.astype(computing(x.dtype)) / jnp.maximum(count, 1).astype(computing(x.dtype))
    reaches = (x == segments.expand_to_tokens(top)) & segments.real[:, None]
    return jnp.where(reaches, segments.expand_to_tokens(signed(share, least)), 0).astype(x.dtype), None


def _count_plain(x, segments, top):
    """Counts the real tokens that reach the largest value: [count, d]."""
    return segments.sum(((x == segments.expand_to_tokens(top)) & segments.real[:, None]).astype(jnp.int32))


def _count_by_tiles(x, segments, top, *, plan):
    def part(count, trip):
        index = plan.cut(segments.ids, trip)
        keep = plan.cut(segments.real, trip) & plan.new(trip)
        reaches = ((plan.cut(x, trip) == at(top, index)) & keep[:, None]).astype(jnp.int32)
        return count.at[index].add(reaches, indices_are_sorted=segments.ordered, mode="promise_in_bounds"), None

    return lax.scan(part, _zeros(top.shape, jnp.int32, x[:1, :1].astype(bool)), jnp.arange(plan.trips))[0]


@reverse_rule(_keep_softmax, _slopes_of_softmax, nondiff_argnums=(6,))
def tiled_softmax(x, segments, scored, queries, multiplier, bias, precision):
    """Computes :func:`plain_softmax`, with a gradient that reads x once more and writes ``dx`` once."""
    return _softmax(x, segments, scored, queries, multiplier, bias, precision)


@reverse_rule(_keep_largest, _slopes_of_largest, nondiff_argnums=(2,))
def tiled_largest(x, segments, least):
    """Computes :func:`plain_largest` by tiles."""
    return _largest(x, segments, least)
