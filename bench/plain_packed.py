"""Usual formulas of packed tokens in JAX: sums and maxima of segments by scatters.

They are written as those of :mod:`bench.plain`. ``segments`` is a :class:`Segments`, made from the arguments of the call.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from bench import plain
from bench.plain import heads_of, plus, product, times, unit


@dataclass(frozen=True)
class Segments:
    """Segments of packed tokens: ids, mask and the options of ``jax.ops.segment_sum``."""

    ids: Any
    mask: Any
    options: dict

    def real(self, values):
        """Returns the mask with the rank of values [N, ...]."""
        return self.mask.reshape(self.mask.shape + (1,) * (values.ndim - 1))

    def sums(self, values):
        """Sums the real values [N, ...] of each segment in float32."""
        shown = values if self.mask is None else jnp.where(self.real(values), values, 0)
        return jax.ops.segment_sum(shown.astype(jnp.float32), self.ids, **self.options)

    def maxima(self, values):
        """Returns the maximum of the real values [N, ...] of each segment; -inf if it has none."""
        shown = values if self.mask is None else jnp.where(self.real(values), values, -jnp.inf)
        return jax.ops.segment_max(shown, self.ids, **self.options)

    def counts(self):
        """Returns the number of real tokens of each segment [S, 1], or 1."""
        return jnp.maximum(self.sums(self.mask), 1)[:, None]

    def softmax(self, scores):
        """Computes the softmax [N, ...] over the real tokens of each segment, in float32."""
        scores = scores.astype(jnp.float32)
        below = scores - jax.lax.stop_gradient(self.maxima(scores))[self.ids]
        if self.mask is None:
            exponentials = jnp.exp(below)
            return exponentials / self.sums(exponentials)[self.ids]
        real = self.real(scores)
        exponentials = jnp.where(real, jnp.exp(jnp.where(real, below, 0)), 0)
        return exponentials / jnp.where(real, self.sums(exponentials)[self.ids], 1)

    def averages(self, x, weights):
        """Sums the tokens [N, d] of each segment under weights [N]."""
        return self.sums(weights[:, None] * x).astype(x.dtype)


def sum_pooling(x, segments):
    return segments.sums(x).astype(x.dtype)


def mean_pooling(x, segments):
    return (segments.sums(x) / segments.counts()).astype(x.dtype)


def max_pooling(x, segments):
    return segments.maxima(x)


def min_pooling(x, segments):
    return -segments.maxima(-x)


def mean_max_pooling(x, segments):
    return jnp.concatenate([mean_pooling(x, segments), max_pooling(x, segments)], -1)


def first_pooling(x, segments):
    places = jnp.where(segments.mask, jnp.arange(len(x)), len(x) - 1)
    return x[jax.ops.segment_min(places, segments.ids, **segments.options)]


def last_pooling(x, segments):
    places = jnp.where(segments.mask, jnp.arange(len(x)), 0)
    return x[jax.ops.segment_max(places, segments.ids, **segments.options)]


def weighted_pooling(x, segments, weights):
    weights = weights.astype(jnp.float32)
    return (segments.sums(weights[:, None] * x) / segments.sums(weights)[:, None]).astype(x.dtype)


def noisy_or_pooling(x, segments):
    logs = jnp.log1p(-x.astype(jnp.float32))  # jax.ops.segment_prod has no gradient
    return -jnp.expm1(segments.sums(logs)).astype(x.dtype)


def logsumexp_pooling(x, segments, scale):
    scaled = x.astype(jnp.float32) * scale
    top = jax.lax.stop_gradient(segments.maxima(scaled))
    total = segments.sums(jnp.exp(scaled - top[segments.ids]))
    return ((jnp.log(total / segments.counts()) + top) / scale).astype(x.dtype)


def power_mean_pooling(x, segments, p, epsilon):
    powers = jnp.maximum(x.astype(jnp.float32), epsilon) ** p
    return ((segments.sums(powers) / segments.counts()) ** (1 / p)).astype(x.dtype)


def softmax_pooling(x, segments, scale):
    weights = segments.softmax(x.astype(jnp.float32) * scale)
    return segments.sums(weights * x).astype(x.dtype)


def moments(x, weights, epsilon, segments, ddof=0):
    """Computes mean and standard deviation of each segment under weights [N] or [N, d], with sum 1."""
    weights, wide = weights if weights.ndim == x.ndim else weights[:, None], x.astype(jnp.float32)
    mean = segments.sums(weights * wide)
    variance = segments.sums(weights * jnp.square(wide - mean[segments.ids]))
    variance = variance / (1 - ddof * segments.sums(jnp.square(weights)))
    return jnp.concatenate([mean, jnp.sqrt(jnp.maximum(variance, epsilon))], -1).astype(x.dtype)


def statistics_pooling(x, segments, ddof, epsilon, weights=None):
    weights = jnp.ones(len(x)) if weights is None else weights.astype(jnp.float32)
    return moments(x, weights / segments.sums(weights)[segments.ids], epsilon, segments, ddof)


def std_pooling(x, segments, ddof, epsilon, weights=None):
    return statistics_pooling(x, segments, ddof, epsilon, weights)[:, x.shape[1] :]


def attentive_statistics_pooling(x, segments, epsilon, **parts):
    return moments(x, segments.softmax(plain.channel_scores(x, parts)), epsilon, segments)


def attention_pooling(x, segments, query=None, bias=None, dropout_multiplier=None, **parts):
    keys, query = plain.keys_and_query(x, mean_pooling(x, segments) if query is None else query, parts)
    if query.ndim == 1:
        scores = product("nc,c->n", keys, query)
    else:
        scores = jnp.sum(keys * query[segments.ids], -1, dtype=jnp.float32)
    weights = segments.softmax(plus(scores, bias))
    return segments.averages(x, times(weights, dropout_multiplier))


def multi_head_attention_pooling(
    x, segments, query, out_kernel, out_bias=None, bias=None, dropout_multiplier=None, **parts
):
    queries, keys, values = heads_of(query, x, x, parts)
    bias, multiplier = (None if array is None else jnp.moveaxis(array, -1, 0) for array in (bias, dropout_multiplier))
    scores = plus(product("qhc,nhc->nhq", queries, keys) * keys.shape[-1] ** -0.5, bias)
    weights = times(segments.softmax(scores), multiplier)
    pooled = segments.sums(jnp.swapaxes(weights, 1, 2)[..., None] * values[:, None])
    return plus(product("sqhc,hco->sqo", pooled.astype(x.dtype), out_kernel).astype(x.dtype), out_bias)


def additive_attention_pooling(x, segments, value=None, dropout_multiplier=None, **parts):
    weights = times(segments.softmax(plain.token_scores(x, parts)), dropout_multiplier)
    return segments.averages(x if value is None else value, weights)


def latent_attention_pooling(x, segments, **parameters):
    return mean_pooling(plain.latent_tokens(x, **parameters), segments)


def set2set_pooling(x, segments, input_kernel, recurrent_kernel, bias, num_steps):
    def attended(query):
        scores = jnp.sum(x * query[segments.ids], -1, dtype=jnp.float32)
        return segments.averages(x, segments.softmax(scores))

    count = segments.options["num_segments"]
    return plain.set_steps(attended, count, x, input_kernel, recurrent_kernel, bias, num_steps)


def gated_sum_pooling(x, segments, gate_kernel, value_kernel, gate_bias=None, value_bias=None):
    gate = jax.nn.sigmoid(plus(x @ gate_kernel, gate_bias))
    return sum_pooling(gate * jnp.tanh(plus(x @ value_kernel, value_bias)), segments)


def vlad_pooling(x, segments, assign_kernel, centers, assign_bias=None):
    weights = jax.nn.softmax(plus(x @ assign_kernel, assign_bias).astype(jnp.float32), -1)
    total = [  # all products [N, K, d] at once would not fit into memory
        segments.sums(weights[:, k, None] * (x - center)) for k, center in enumerate(centers)
    ]
    found = unit(jnp.stack(total, 1))
    return unit(found.reshape(len(found), -1)).reshape(found.shape).astype(x.dtype)


def cross_attention_pooling(x, segments, y, y_segments, scale, **parts):
    sides = list(zip("xy", (x, y), plain.projected(x, y, parts), (segments, y_segments), strict=True))
    totals = [own.sums(side).astype(x.dtype) for _, _, side, own in sides]
    found = []
    for (name, tokens, side, own), other in zip(sides, reversed(totals), strict=True):
        weights = own.softmax(scale * jnp.sum(side * other[own.ids], -1, dtype=jnp.float32))
        found.append(own.averages(tokens, times(weights, parts.get(f"{name}_dropout_multiplier"))))
    return found


def softmax(scores, segments):
    return segments.softmax(scores).astype(scores.dtype)


def log_softmax(scores, segments):
    return jnp.log(segments.softmax(scores)).astype(scores.dtype)


def muvera_query_encoding(x, segments, planes, projection=None):
    blocks = [sums for sums, *_ in by_bucket(x, segments, planes)]
    return plain.encoding(jnp.stack(blocks, 1), projection).astype(x.dtype)


def muvera_document_encoding(x, segments, planes, projection=None):
    blocks, place = [], jnp.arange(len(x))
    for sums, number, buckets in by_bucket(x, segments, planes):
        apart = jax.lax.population_count(buckets[:, None] ^ jnp.arange(sums.shape[1])) * len(x) + place[:, None]
        nearest = -segments.maxima(-apart.astype(jnp.float32)).astype(jnp.int32) % len(x)
        blocks.append(jnp.where(number > 0, sums / jnp.maximum(number, 1), x[nearest]))
    return plain.encoding(jnp.stack(blocks, 1), projection).astype(x.dtype)


def by_bucket(x, segments, planes):
    """Yields for each repetition the sums [S, 2^b, d] and numbers [S, 2^b, 1] of tokens by bucket, and their buckets."""
    size, count = segments.options["num_segments"], 2 ** planes.shape[1]
    for buckets in plain.buckets_of(x, planes):
        own = Segments(segments.ids * count + buckets, segments.mask, {"num_segments": size * count})
        number = own.sums(jnp.ones(len(x)))
        yield own.sums(x).reshape(size, count, -1), number.reshape(size, count, 1), buckets
