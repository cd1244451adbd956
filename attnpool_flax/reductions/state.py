"""Accumulator states of chunked pooling: pytrees with compensated sums. Twin of :mod:`attnpool_ref.streaming.states`.

Only kind and dtype are static. The leaves have the batch axes of the chunk, and are float32 or wider, or integers.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from attnpool_flax.reductions.softmax import exponential
from attnpool_flax.reductions.sums import compensated_add, divisor_of


def pytree(*leaves, static=()):
    """Makes a dataclass a pytree of these leaves.

    The name of its dtype is static (as a dtype, float64 would equal None), and so are the other fields that are named.
    ``register_dataclass`` will not do: to JAX the structures of two such classes with as many leaves are equal, and a
    program that was compiled for one may be taken for the other.
    """
    static = (*static, "decided")
    keys = [jax.tree_util.GetAttrKey(leaf) for leaf in leaves]

    def flatten(state):
        return [getattr(state, leaf) for leaf in leaves], tuple(getattr(state, name) for name in static)

    def flatten_with_keys(state):
        values, settings = flatten(state)
        return list(zip(keys, values, strict=True)), settings

    def registered(state):
        def unflatten(settings, values):
            return state(**dict(zip(leaves, values, strict=True)), **dict(zip(static, settings, strict=True)))

        jax.tree_util.register_pytree_with_keys(state, flatten_with_keys, unflatten, flatten)
        return state

    return registered


class State:
    """Base of all kinds of states: the dtype of the result, and the names of options."""

    decided: str

    options = ()
    """Names of the options with which it was made and which it holds: states that differ in one do not merge."""

    @property
    def dtype(self):
        """The result's dtype; None where integers alone decide none."""
        return jnp.dtype(self.decided) if self.decided else None


_KINDS = []


def kind(state):
    """Makes a class one of the kinds of states."""
    _KINDS.append(state)
    return state


def kinds():
    """Returns the kinds of states, a tuple."""
    return tuple(_KINDS)


@kind
@pytree("sum", "rest", "count")
@dataclass(frozen=True, eq=False)
class MeanState(State):
    """Of :func:`~attnpool_flax.streaming.mean_state`.

    Attributes:
      sum: [..., d], the sum of the real tokens over a power of two above their number, so that it does not overflow.
      rest: [..., d], what rounding took from it.
      count: [...], int32, their number.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    sum: Any
    rest: Any
    count: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        count = self.count + other.count
        part = divisor_of(_real(count, self))
        shares = [(divisor_of(_real(state.count, self)) / part)[..., None] for state in (self, other)]
        return type(self)(*compensated_add(*_scaled((self, other), shares)), count)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        count = _real(jnp.maximum(self.count, 1), self)
        return (self.sum + self.rest) / (count / divisor_of(count))[..., None]


@kind
@pytree("extreme", "count", "real")
@dataclass(frozen=True, eq=False)
class MaxState(State):
    """Of :func:`~attnpool_flax.streaming.max_state`.

    Attributes:
      extreme: [..., d], the largest values; -inf without any.
      count: [..., d], int32, how many real tokens reach it: they share its gradient.
      real: [...], whether any token was real.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    extreme: Any
    count: Any
    real: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.extreme.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        extreme = _larger(self.extreme, other.extreme, self.count, other.count)
        counts = (jnp.where(state.extreme == extreme, state.count, 0) for state in (self, other))
        return MaxState(extreme, sum(counts), self.real | other.real)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return jnp.where(self.real[..., None], self.extreme, 0)


@jax.custom_jvp
def _larger(a, b, a_count, b_count):
    """Returns the larger one; for ties the gradient is shared in proportion to the tokens that reach each."""
    del a_count, b_count
    return jnp.maximum(a, b)


@_larger.defjvp
def _larger_jvp(primals, tangents):
    a, b, a_count, b_count = primals
    both = jnp.maximum(a_count + b_count, 1).astype(a.dtype)
    a_share = jnp.where(a == b, a_count.astype(a.dtype) / both, (a > b).astype(a.dtype))
    b_share = jnp.where(a == b, b_count.astype(a.dtype) / both, (b > a).astype(a.dtype))
    return _larger(*primals), a_share * tangents[0] + b_share * tangents[1]


@kind
@pytree("position", "token")
@dataclass(frozen=True, eq=False)
class FirstState(State):
    """Of :func:`~attnpool_flax.streaming.first_state`.

    Attributes:
      position: [...], JAX's default integers: the first real position; the largest integer without any.
      token: [..., d], what stands there.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    position: Any
    token: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.token.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        mine = (self.position <= other.position)[..., None]
        return FirstState(jnp.minimum(self.position, other.position), jnp.where(mine, self.token, other.token))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.token


@kind
@pytree("position", "token")
@dataclass(frozen=True, eq=False)
class LastState(State):
    """Of :func:`~attnpool_flax.streaming.last_state`.

    Attributes:
      position: [...], JAX's default integers: the last real position; the smallest integer without any.
      token: [..., d], what stands there.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    position: Any
    token: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.token.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        mine = (self.position >= other.position)[..., None]
        return LastState(jnp.maximum(self.position, other.position), jnp.where(mine, self.token, other.token))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.token


@kind
@pytree("size", "mass", "total", "total_rest", "sum", "rest")
@dataclass(frozen=True, eq=False)
class WeightedState(State):
    """Of :func:`~attnpool_flax.streaming.weighted_state`: sums in a unit that is a power of two.

    The unit is that of ``size`` and ``mass`` together: no sum in it exceeds the largest token, whatever the weights.

    Attributes:
      size: [...], the power of two under the largest weight; 0 where all are 0. A constant, as it cancels.
      mass: [...], the sum of the absolute weights over ``size``; a constant as well.
      total: [...], the sum of the weights in that unit. It may be 0 although there are tokens.
      total_rest: [...], what rounding took from it.
      sum: [..., d], the sum of the weighted tokens in that unit.
      rest: [..., d], what rounding took from it.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    size: Any
    mass: Any
    total: Any
    total_rest: Any
    sum: Any
    rest: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        both = self, other
        size = jnp.maximum(self.size, other.size)
        ratios = [state.size / jnp.where(size == 0, 1, size) for state in both]
        mass = self.mass * ratios[0] + other.mass * ratios[1]
        shares = [ratio * (divisor_of(s.mass) / divisor_of(mass)) for ratio, s in zip(ratios, both, strict=True)]
        sums = compensated_add(*_scaled(both, [self.expand_to_features(share) for share in shares]))
        return type(self)(size, mass, *compensated_add(*_totals(both, shares)), *sums)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row, or weights that cancel."""
        total, pooled = self.expand_to_features(self.total + self.total_rest), self.sum + self.rest
        return jnp.where(total == 0, 0 * pooled, pooled / jnp.where(total == 0, 1, total))

    def expand_to_features(self, values):
        """Expands values of the weights to broadcast against the tokens."""
        return values[..., None]


@kind
@pytree("size", "mass", "total", "total_rest", "sum", "rest")
@dataclass(frozen=True, eq=False)
class ChannelState(WeightedState):
    """Of :func:`~attnpool_flax.streaming.weighted_state` with weights for each channel: as :class:`WeightedState`, [..., d] all.

    Attributes:
      size: [..., d].
      mass: [..., d].
      total: [..., d].
      total_rest: [..., d].
      sum: [..., d].
      rest: [..., d].
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    def expand_to_features(self, values):
        """Expands values of the weights to broadcast against the tokens."""
        return values


@kind
@pytree("top", "total", "total_rest", "sum", "rest")
@dataclass(frozen=True, eq=False)
class AttentionState(State):
    """Of :func:`~attnpool_flax.streaming.attention_state`: an exponential average before its division.

    Attributes:
      top: [...], the largest score; -inf without any. A constant, as it cancels.
      total: [...], the sum of exp(score - top).
      total_rest: [...], what rounding took from it.
      sum: [..., d], the sum of exp(score - top) times the token.
      rest: [..., d], what rounding took from it.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    top: Any
    total: Any
    total_rest: Any
    sum: Any
    rest: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """Merges both chunks, rescaled to the larger maximum."""
        return type(self)(*_softmax_merged(self, other))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return _softmax_finalized(self)


@kind
@pytree("top", "total", "total_rest", "sum", "rest")
@dataclass(frozen=True, eq=False)
class MultiHeadAttentionState(AttentionState):
    """Of :func:`~attnpool_flax.streaming.multi_head_attention_state`: as :class:`AttentionState`, for each query and head.

    Attributes:
      top: [..., n, H].
      total: [..., n, H].
      total_rest: [..., n, H].
      sum: [..., n, H, d].
      rest: [..., n, H, d].
      decided: the name of the result's dtype; empty where integers alone decide none.
    """


@kind
@pytree("top", "total", "total_rest", "sum", "rest")
@dataclass(frozen=True, eq=False)
class AdditiveAttentionState(AttentionState):
    """Of :func:`~attnpool_flax.streaming.additive_attention_state`: as :class:`AttentionState`, of n hops for each of them.

    Attributes:
      top: [...] or [..., n].
      total: [...] or [..., n].
      total_rest: [...] or [..., n].
      sum: [..., v] or [..., n, v].
      rest: [..., v] or [..., n, v].
      decided: the name of the result's dtype; empty where integers alone decide none.
    """


def _softmax_merged(a, b):
    top = lax.stop_gradient(jnp.maximum(a.top, b.top))
    scales = [exponential(lax.stop_gradient(state.top), top) for state in (a, b)]
    sums = compensated_add(*_scaled((a, b), [scale[..., None] for scale in scales]))
    return top, *compensated_add(*_totals((a, b), scales)), *sums


def _softmax_finalized(state):
    total = state.total + state.total_rest
    return (state.sum + state.rest) / jnp.where(total == 0, 1, total)[..., None]


def _scaled(states, scales):
    return [(state.sum * scale, state.rest * scale) for state, scale in zip(states, scales, strict=True)]


def _totals(states, scales):
    return [(state.total * scale, state.total_rest * scale) for state, scale in zip(states, scales, strict=True)]


def _real(count, state):
    return count.astype(state.sum.dtype)


def with_host_options(state, values):
    """Stores in a state the options that are host numbers; values on a device are never read.

    Args:
      state: the state.
      values: the arguments of the call, numbers of Python, arrays of NumPy or of JAX.
    """
    if not hasattr(state, "known"):
        return state
    return replace(state, known=tuple((key, _on_host(values[key])) for key in state.options if _is_array(state, key)))


def option(state, key):
    """Returns an option of a state; None if its value is only on a device."""
    return dict(state.known).get(key) if _is_array(state, key) else getattr(state, key)


def without_host_options(state):
    """Removes the host options from a state: they are static, and compiled functions do not depend on them."""
    return replace(state, known=()) if hasattr(state, "known") else state


def common_host_options(a, b):
    """Merges the known options of two states of one kind; None for one in which they differ."""
    both = zip(a.known, b.known, strict=False)
    return tuple((key, own if own == other else None) for (key, own), (_, other) in both)


def _is_array(state, key):
    return isinstance(getattr(state, key), (jax.Array, np.ndarray))


def _on_host(value):
    """Returns the numbers of a host value, hashable; None for a device array, and for NaN (unequal to itself)."""
    if isinstance(value, jax.Array):
        return None
    numbers = tuple(np.ravel(np.asarray(value, float)).tolist())
    return numbers if all(number == number for number in numbers) else None


def broadcast_state(state, batch, dtype):
    """Broadcasts a state to all batch axes, and sets the dtype of its result."""
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[len(batch) :]), state)
    return replace(state, decided="" if dtype is None else dtype.name)


def promote(a, b):
    """Promotes the floating leaves of two states to the wider dtype."""
    wide = jnp.float64 if any(leaf.dtype == np.float64 for leaf in jax.tree.leaves((a, b))) else jnp.float32

    def widened(leaf):
        return leaf.astype(wide) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(widened, a), jax.tree.map(widened, b)
