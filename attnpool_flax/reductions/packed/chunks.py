"""Online softmax of packed tokens on TPUs: one read of the tokens forward, one read and one write backward.

N are the tokens, h queries, d features, count segments. A chunk is a block of consecutive tokens, sorted by segment. A
group is a range of consecutive segments. A step of the loop takes a pair: a chunk, and a group that may have tokens in
it. J chunks and G groups have at most J + G - 1 pairs, whatever the sizes of the segments are, or J + 2 G - 2 if the
last chunk overlaps the one before. The matrix unit multiplies all tokens of the chunk with the rows of all segments of
the group, one row for each segment and query, or with the queries that all segments share. Of a token's products only
those with its own segment are selected. Unsorted tokens are gathered by row, one chunk at a time, in the order of their
segments.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.platforms import cast_varying, varying_axes
from attnpool_flax.numerics.products import high_and_low, is_narrow, token_products
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.reductions.loops.blocks import even_rows
from attnpool_flax.reductions.packed.segments import at, enumerated
from attnpool_flax.reductions.softmax import OnlineSoftmax

ROWS = 256
"""Rows of a group: its segments times the queries are at most this, where one segment has not more."""

GROUP = 128
"""The largest number of segments of a group."""

FEWEST_TOKENS, MOST_BYTES = 512, 2**24
"""A chunk has at most MOST_BYTES bytes and, if there are enough tokens within them, more than FEWEST_TOKENS / 2 tokens."""

REPEATED = 8
"""The fewest chunks in an average group of many tokens.

At most about 1 / REPEATED of the tokens are read twice then, where groups meet.
"""


class Chunks(NamedTuple):
    """Tokens in the order of their segments, and the pairs of a chunk and a group that the loop visits.

    A row stands for a segment and a query; the rows of a segment follow each other.

    Attributes:
      x: [N, d], in any floating dtype, in the caller's order.
      ids: [N], the segment of each token, ascending.
      real: bool [1, N], in the order of the segments.
      order: [N], for each place in the order of the segments, the index of its token; None if the tokens are sorted.
      pairs: int32 [steps, 3]; for each pair the first token that no earlier chunk has, the group's first segment, and
        whether the pair is the first of its chunk.
      size: the number of tokens of a chunk.
      group: the number of segments of a group.
      count: the number of segments.
      heads: the number of queries.
    """

    x: Any
    ids: Any
    real: Any
    order: Any
    pairs: Any
    size: int
    group: int
    count: int
    heads: int

    def sort(self, values):
        """Puts values [N, h] of tokens into the order of the segments: [h, N]."""
        return (values if self.order is None else at(values, self.order)).T

    def unsort(self, values):
        """Puts values [h, N] back into the caller's order: [N, h]."""
        return values.T if self.order is None else jnp.zeros_like(values.T).at[self.order].set(values.T)

    def rows(self, values):
        """Flattens values [count, h, d] of segments to rows [rows, d]; rows of missing segments are 0."""
        width = values.shape[2]
        missing = self.number_of_rows - self.count * self.heads
        return jnp.pad(jnp.reshape(values, (-1, width)), ((0, missing), (0, 0)))

    @property
    def number_of_rows(self):
        """The number of rows of all groups, and of one more, which steps without a pair read."""
        return (-(-self.count // self.group) + 1) * self.group * self.heads

    def segments(self, rows):
        """Takes values [count, h, d] of segments from the rows [rows, d] of all groups."""
        return jnp.reshape(rows, (-1, self.heads, rows.shape[1]))[: self.count]

    def zeros(self, *shape):
        """Returns an array of 0 in float32, or float64 for float64 tokens, with the tokens' varying manual axes."""
        return cast_varying(jnp.zeros(shape, computing_dtype(self.x.dtype)), varying_axes(self.x))

    def empty(self, shape, dtype):
        """Returns an uninitialized array, to be written in full, with the varying manual axes of the tokens."""
        return cast_varying(lax.empty(shape, dtype), varying_axes(self.x))

    def loop(self, step, start):
        """Calls ``step(carry, pair)`` for each :class:`Pair`, and returns the last carry."""

        def pair_step(carry, pair):
            return step(carry, Pair(self, jnp.minimum(pair[0], self.x.shape[0] - self.size), *pair)), None

        return lax.scan(pair_step, start, self.pairs)[0]


class Pair(NamedTuple):
    """A chunk and a group.

    Attributes:
      chunks: the :class:`Chunks`.
      start: the first token of the chunk; the last chunk starts early to have the full size.
      first: the first token of the chunk that no earlier chunk has.
      segment: the group's first segment.
      new: whether the pair is the first of its chunk.
    """

    chunks: Chunks
    start: Any
    first: Any
    segment: Any
    new: Any

    def tokens(self):
        """Takes the tokens [1, size, d] of the chunk; padding is 0."""
        chunks = self.chunks
        if chunks.order is None:
            tokens = lax.dynamic_slice_in_dim(chunks.x, self.start, chunks.size)
        else:
            tokens = at(chunks.x, lax.dynamic_slice_in_dim(chunks.order, self.start, chunks.size))
        tokens = jnp.where(self.of_chunk(chunks.real)[0, :, None], tokens, 0)[None]
        # float16 has few exponents, and would need a scale for each segment
        return tokens.astype(jnp.float32) if tokens.dtype == jnp.float16 else tokens

    def of_chunk(self, values):
        """Takes the chunk's part [h, size] of values [h, N]."""
        return lax.dynamic_slice_in_dim(values, self.start, self.chunks.size, 1)

    def of_group(self, rows):
        """Takes the group's rows from those of all groups, [number_of_rows, ...]."""
        place = self.segment * self.chunks.heads
        return lax.dynamic_slice_in_dim(rows, place, self.chunks.group * self.chunks.heads)

    def update(self, rows, own):
        """Returns the rows of all groups, with those of this group replaced by ``own``."""
        return lax.dynamic_update_slice_in_dim(rows, own, self.segment * self.chunks.heads, 0)

    def write(self, carry, part):
        """Returns ``carry`` with ``part`` [h, size] added to the values of the chunk; it is 0 outside of the group.

        ``carry`` is (values [h, N] of all tokens, values [h, size] of the chunk so far).
        """
        values, tile = carry
        tile = jnp.where(self.new, part, tile + part)
        return lax.dynamic_update_slice_in_dim(values, tile, self.start, 1), tile

    def write_tokens(self, carry, part):
        """Adds ``part`` [size, d] to an array [N, d] as :meth:`write` does, in the caller's order of tokens."""
        tokens, tile = carry
        tile = jnp.where(self.new, part, tile + part)
        if self.chunks.order is None:
            return lax.dynamic_update_slice_in_dim(tokens, tile, self.start, 0), tile
        places = lax.dynamic_slice_in_dim(self.chunks.order, self.start, self.chunks.size)
        return tokens.at[places].set(tile, mode="promise_in_bounds", unique_indices=True), tile

    def is_own(self, heads):
        """Returns bool [group * heads, size]: whether a row of the group belongs to the segment of a token."""
        rows = lax.iota(jnp.int32, self.chunks.group * heads) // heads + self.segment
        return rows[:, None] == lax.dynamic_slice_in_dim(self.chunks.ids, self.start, self.chunks.size)[None]

    def not_before(self):
        """Returns bool [1, size]: tokens that no earlier chunk has."""
        return (self.start + lax.iota(jnp.int32, self.chunks.size) >= self.first)[None]

    def repeated(self, values):
        """Repeats values [h, size] of tokens for each segment of the group: [rows, size]."""
        repeated = jnp.broadcast_to(values[None], (self.chunks.group, *values.shape))
        return jnp.reshape(repeated, (-1, values.shape[1]))

    def summed(self, values):
        """Sums values [rows, size] over the segments of the group, of which each token has one: [h, size]."""
        return jnp.sum(jnp.reshape(values, (self.chunks.group, self.chunks.heads, -1)), 0)

    def sums(self, tokens, finite, weights):
        """Sums the group's tokens by segment under weights [h, size]: [rows, d].

        ``tokens`` are [1, size, d]. Where ``finite`` [1, size] is False they count as 0.
        """
        rows = _exact_rows(weights, tokens.dtype)
        applied = jnp.where(self.is_own(rows.shape[0]), self.repeated(rows), 0)
        found = _products_of_rows(applied, tokens, finite, weights.dtype)
        found = jnp.sum(jnp.reshape(found, (self.chunks.group, -1, *weights.shape[:1], found.shape[1])), 1)
        return jnp.reshape(found, (-1, found.shape[2]))


def _exact_rows(weights, dtype):
    """Returns weights [h, size] as factors of tokens: for narrow tokens as two rows in their dtype, high and low."""
    return weights if dtype.itemsize >= 4 else high_and_low(weights, dtype, 0)


def _products_of_rows(rows, tokens, finite, dtype):
    """Sums tokens [1, size, d] under rows [rows, size]: [rows, d].

    Tokens that are not ``finite`` [1, size] are replaced by 0, because they would reach other segments.
    """
    tokens = jnp.where(finite[0, :, None], tokens[0], 0)
    options = {"precision": None if is_narrow(tokens) else lax.Precision.HIGHEST, "preferred_element_type": dtype}
    return jnp.einsum("rc,cd->rd", rows, tokens, **options)


def softmax(x, segments, has_query, queries, multiplier, bias, *, precision):
    """Computes :func:`attnpool_flax.reductions.packed.softmax.plain`, which describes the arguments.

    A real token that is not finite makes the result of its own segment NaN.
    """
    chunks = chunks_of(x, segments, queries.shape[1])
    heads, width = queries.shape[1:]
    shared = queries.shape[0] == 1
    rows = queries[0] if shared else chunks.rows(queries)
    nothing = jnp.zeros((1, width), queries.dtype)
    multiplier, bias = (None if array is None else chunks.sort(array) for array in (multiplier, bias))
    has_query = None if has_query is None else _by_row(chunks, has_query[:, None], heads)

    def step(carry, pair):
        max_score, denominator, numerator, scores = carry
        tokens, own = pair.tokens(), pair.is_own(heads)
        factors = jnp.concatenate([rows if shared else pair.of_group(rows), nothing])
        products = token_products(tokens, factors[None], precision if shared else lax.Precision.HIGHEST)[0].T
        finite = products[-1:] == 0  # 0 times a number that is not finite is NaN
        products = pair.repeated(products[:-1]) if shared else products[:-1]
        if bias is not None:
            products = products + pair.repeated(jnp.where(pair.of_chunk(chunks.real), pair.of_chunk(bias), 0))
        if has_query is not None:
            products = jnp.where(pair.of_group(has_query), products, 0)
        products = jnp.where(finite, products, jnp.nan)
        scores = pair.write(scores, pair.summed(jnp.where(own, products, 0)))
        keep = pair.of_chunk(chunks.real)
        keep = keep & pair.not_before() if x.shape[0] % chunks.size else keep
        products = jnp.where(own & keep, products, -jnp.inf)
        before = pair.of_group(max_score)
        after = jnp.maximum(before, lax.stop_gradient(jnp.max(products, 1, keepdims=True)))
        scale = exponential(before, after)
        exp_scores = exponential(products, after)
        applied = pair.summed(jnp.where(own, exp_scores, 0))
        if multiplier is not None:
            applied = applied * jnp.where(keep, pair.of_chunk(multiplier), 0)
        sums = pair.sums(tokens, finite, applied)
        return (
            pair.update(max_score, after),
            pair.update(denominator, pair.of_group(denominator) * scale + jnp.sum(exp_scores, 1, keepdims=True)),
            pair.update(numerator, pair.of_group(numerator) * scale + sums),
            scores,
        )

    number = chunks.number_of_rows
    scores = chunks.empty((heads, x.shape[0]), queries.dtype), chunks.zeros(heads, chunks.size)
    start = chunks.zeros(number, 1) - jnp.inf, chunks.zeros(number, 1), chunks.zeros(number, width), scores
    *sums, (scores, _) = chunks.loop(step, start)
    max_score, denominator, numerator = map(chunks.segments, sums)
    scores = jnp.where(segments.real[:, None], chunks.unsort(scores), -jnp.inf)
    return scores, OnlineSoftmax(max_score[..., 0], denominator[..., 0], numerator)


def gradients(x, segments, has_query, queries, multiplier, scores, max_score, cotangents, *, precision):
    """Returns (dx [N, d], dscores [N, h], dqueries in the queries' shape, dmultiplier [N, h] or None).

    ``scores`` [N, h] and ``max_score`` [count, h] are results of :func:`softmax`. ``cotangents`` are those of its
    scores, denominator and numerator; other arguments are as there.
    """
    chunks = chunks_of(x, segments, queries.shape[1])
    heads, width = queries.shape[1:]
    shared = queries.shape[0] == 1
    dscores_out, ddenominator, dnumerator = cotangents
    of_tokens = chunks.sort(jnp.concatenate((scores, dscores_out, *(() if multiplier is None else (multiplier,))), 1))
    has_query = None if has_query is None else _by_row(chunks, has_query[:, None], heads)
    max_score, ddenominator = (_by_row(chunks, array, heads) for array in (max_score, ddenominator))
    dnumerator, queries = chunks.rows(dnumerator), queries[0] if shared else chunks.rows(queries)
    exact = lax.Precision.HIGH if is_narrow(x) else lax.Precision.HIGHEST  # HIGH has at least 16 bits

    def of_scores(pair, tokens, own, drows):
        """Returns the gradients through the scores and the weights of a pair.

        They are dscores [h, size]; the same, 0 for tokens that an earlier chunk has; dmultiplier [h, size], or None;
        whether the scores of a token are finite [1, size]; the applied weights [rows, size] of the group.
        """
        dapplied = token_products(tokens, drows[None], lax.Precision.HIGHEST)[0].T
        own_scores, own_dscores, own_multiplier = jnp.split(pair.of_chunk(of_tokens), (heads, 2 * heads))
        own_scores = jnp.where(own, pair.repeated(own_scores), -jnp.inf)  # others' may exceed the maximum
        exp_scores = jnp.where(own, exponential(own_scores, pair.of_group(max_score)), 0)
        applied, dexp = exp_scores, dapplied
        if multiplier is not None:
            own_multiplier = pair.repeated(jnp.where(pair.of_chunk(chunks.real), own_multiplier, 0))
            applied, dexp = exp_scores * own_multiplier, dapplied * own_multiplier
        dscores = exp_scores * (dexp + pair.of_group(ddenominator)) + pair.repeated(own_dscores)
        keep = own & pair.of_chunk(chunks.real)
        dscores = jnp.where(keep if has_query is None else keep & pair.of_group(has_query), dscores, 0)
        dscores = pair.summed(dscores)
        dmultiplier = None if multiplier is None else pair.summed(jnp.where(own, exp_scores * dapplied, 0))
        once = jnp.where(pair.not_before(), dscores, 0) if x.shape[0] % chunks.size else dscores
        finite = ~jnp.isnan(own_scores).any(0, keepdims=True)
        return dscores, once, dmultiplier, finite, jnp.where(keep, applied, 0)

    def step(carry, pair):
        dx, small, dqueries = carry
        tokens, own, drows = pair.tokens(), pair.is_own(heads), pair.of_group(dnumerator)
        dscores, once, dmultiplier, finite, applied = of_scores(pair, tokens, own, drows)
        factors = jnp.where(jnp.isfinite(drows), drows, 0)  # NaN would reach the tokens of other segments
        if shared:
            sums = _products_of_rows(_exact_rows(once, tokens.dtype), tokens, finite, once.dtype)
            dqueries = dqueries + jnp.sum(jnp.reshape(sums, (-1, heads, width)), 0)
            applied, factors = jnp.concatenate([applied, dscores]), jnp.concatenate([factors, queries])
        else:
            dqueries = pair.update(dqueries, pair.of_group(dqueries) + pair.sums(tokens, finite, once))
            own_queries = pair.of_group(queries)
            own_queries = jnp.where(jnp.isfinite(own_queries), own_queries, 0)
            applied = jnp.concatenate([applied, jnp.where(own, pair.repeated(dscores), 0)])
            factors = jnp.concatenate([factors, own_queries])
        part = jnp.einsum("rc,rd->cd", applied, factors, precision=exact).astype(x.dtype)
        dx = pair.write_tokens(dx, part)
        parts = [dscores] if dmultiplier is None else [dscores, dmultiplier]
        return dx, pair.write(small, jnp.concatenate(parts)), dqueries

    rows = heads if multiplier is None else 2 * heads
    start = (
        (chunks.empty(x.shape, x.dtype), chunks.zeros(chunks.size, width).astype(x.dtype)),
        (chunks.empty((rows, x.shape[0]), scores.dtype), chunks.zeros(rows, chunks.size)),
        chunks.zeros(heads if shared else chunks.number_of_rows, width),
    )
    (dx, _), (small, _), dqueries = chunks.loop(step, start)
    small = chunks.unsort(small)
    dqueries = dqueries[None] if shared else chunks.segments(dqueries)
    return dx, small[:, :heads], dqueries, None if multiplier is None else small[:, heads:]


def _by_row(chunks, values, heads):
    """Returns values [count, h or 1] by row: [rows, 1]."""
    return chunks.rows(jnp.broadcast_to(values, (values.shape[0], heads))[..., None])


def chunks_of(x, segments, heads):
    """Returns the :class:`Chunks` of at least one token [N, d], for products with ``heads`` rows of each segment."""
    length, width = x.shape
    group = max(1, min(GROUP, ROWS // heads, segments.count))
    groups = -(-segments.count // group)
    size = max(FEWEST_TOKENS, 2 ** max(0, (length // groups // REPEATED).bit_length() - 1))
    size = even_rows(max(1, min(length, size, MOST_BYTES // (width * x.dtype.itemsize))), length)
    ids, real, order = segments.ids, segments.real, None
    if not segments.ordered:
        ids, real, order = lax.sort((ids, real, lax.iota(jnp.int32, length)), num_keys=1)
    count = -(-length // size)
    first = lax.iota(jnp.int32, count) * size
    start = jnp.minimum(first, length - size)
    least, most = at(ids, start) // group, at(ids, start + size - 1) // group
    steps = count + (groups - 1) * (2 if length % size else 1)  # the last chunk may repeat the groups of the one before
    _, chunk, index = enumerated(most - least + 1, steps)
    own = at(least, chunk) + index
    own = jnp.where(own > at(most, chunk), groups, own)
    pairs = jnp.stack([at(first, chunk), own * group, (index == 0).astype(jnp.int32)], 1)
    return Chunks(x, ids, real[None], order, pairs, size, group, segments.count, heads)
