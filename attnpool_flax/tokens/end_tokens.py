"""First and last real tokens of dense sequences. Only one token of each sequence is read."""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.reductions.accumulators import EndToken, all_reduce_states, axis_names


def end_token(tokens, last):
    """Returns the last real token of the whole sequence, or without ``last`` the first: [..., d]; 0 if fully masked.

    It has the dtype of x. Over a mesh the sequence is that of all devices.

    Args:
      tokens: :class:`~attnpool_flax.tokens.dense.Dense`; an x that the examples share is not copied.
      last: True for the last token, False for the first.
    """
    x, mask = tokens.x, tokens.mask
    if x.shape[-2] == 0:
        return jnp.zeros_like(x, shape=(*x.shape[:-2], x.shape[-1]))
    if mask is None and tokens.axis_name is None:
        return x[..., -1 if last else 0, :]
    if mask is None:
        position = jnp.full(x.shape[:-2], x.shape[-2] - 1 if last else 0)
    elif last:
        position = mask.shape[-1] - 1 - jnp.argmax(jnp.flip(mask, -1), -1)
    else:
        position = jnp.argmax(mask, -1)
    token = token_at(tokens, position)
    if tokens.axis_name is None:
        return token
    some, shard = tokens.has_real_token(), lax.axis_index(axis_names(tokens.axis_name))
    rank = jnp.broadcast_to(shard if last else tokens.shards - 1 - shard, position.shape)
    rank = rank if some is None else jnp.where(some, rank, -1)
    return all_reduce_states([EndToken(rank, token)], tokens.axis_name)[0].token


def token_at(tokens, position):
    """Returns this device's token [..., d] at an index [...] along L; 0 if fully masked. A shared x is not copied."""
    x = jnp.broadcast_to(tokens.x, position.shape + tokens.x.shape[-2:])
    token = jnp.take_along_axis(x, position[..., None, None], -2, mode="clip")[..., 0, :]
    some = tokens.has_real_token()
    return token if some is None else jnp.where(some[..., None], token, 0)
