"""Softmax of sorted packed tokens on NVIDIA GPUs: the Pallas kernels for dense tokens, with segments in place of examples.

The grid is (segments, parts), and the parts of a segment have equally many blocks. All segments have as many parts,
whatever their lengths: a segment that is many times longer than the average is summed by as few programs as the others,
which takes longer, and its rounding errors grow with the number of blocks.

N are the tokens, S segments, h queries, d features.
"""

import jax
import jax.numpy as jnp

from attnpool_flax.reductions import pallas_triton
from attnpool_flax.reductions.narrow_products import token_products
from attnpool_flax.reductions.pallas_tpu import PADDING, REAL
from attnpool_flax.reductions.segment_sums import at


def forward(x, ids, real, queries, multiplier, bias, *, count, precision=None, interpret=False):
    """Computes what :func:`attnpool_flax.reductions.pallas_packed.forward` computes."""
    del precision
    tokens, offsets = _example(x, real), _offsets(ids, real, count)
    numbers = _of_example(multiplier), _of_example(bias)
    return pallas_triton.forward(*tokens, queries, *numbers, offsets=offsets, interpret=interpret)


def scores(x, ids, real, queries, bias, *, count, precision=None, interpret=False):
    """Computes the scores [h, N], arbitrary at padding, by XLA; ``precision`` is ignored."""
    del real, count, interpret, precision
    if queries.shape[0] == 1:
        found = token_products(x[None], queries, jax.lax.Precision.HIGHEST, multiply=True)[0].T
    else:
        rows = (at(queries[:, index], ids) for index in range(queries.shape[1]))
        found = jnp.stack([jnp.sum(x.astype(jnp.float32) * own, 1) for own in rows])
    return found if bias is None else found + bias


def backward(
    x,
    ids,
    real,
    queries,
    multiplier,
    bias,
    max_score,
    dscores,
    ddenominator,
    dnumerator,
    *,
    count,
    precision=None,
    interpret=False,
):
    """Computes what :func:`attnpool_flax.reductions.pallas_packed.backward` computes."""
    del precision
    numbers = _of_example(multiplier), _of_example(bias)
    cotangents = _of_example(dscores), ddenominator, dnumerator
    arrays = *_example(x, real), queries, *numbers, max_score, *cotangents
    dx, dqueries, *rest = pallas_triton.backward(*arrays, offsets=_offsets(ids, real, count), interpret=interpret)
    return dx[0], dqueries, *(None if array is None else jnp.where(real, array[0], 0) for array in rest)


def _example(x, real):
    """Returns (tokens [1, N, d], their codes [1, 1, N])."""
    return x[None], jnp.where(real, REAL, PADDING).astype(jnp.int32)[None, None]


def _of_example(numbers):
    return None if numbers is None else numbers[None]


def _offsets(ids, real, count):
    """Returns int32 [S + 1]: the place of each segment's first token, and behind the last one's last token.

    Padding before the first real token and after the last one is in no segment.
    """
    tokens = jax.ops.segment_sum(jnp.ones_like(ids), ids, count, indices_are_sorted=True)
    offsets = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(tokens, dtype=jnp.int32)])
    place = jax.lax.iota(jnp.int32, len(ids))
    end = jnp.max(jnp.where(real, place + 1, 0))
    return jnp.clip(offsets, jnp.min(jnp.where(real, place, end)), end)
