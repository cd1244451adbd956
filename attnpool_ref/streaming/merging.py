"""Merging of states, and their finalization to pooled vectors."""

from typing import Any

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract.blocks import cast
from attnpool_ref.contract.definition import as_array
from attnpool_ref.streaming import checks, states
from attnpool_ref.streaming.states import MultiHeadAttentionState


@contract.with_short_traceback
def merge_states(a, b):
    r"""Merges two states into the state of both chunks; merging is associative and commutative.

    .. math:: a \circ b = b \circ a, \qquad (a \circ b) \circ c = a \circ (b \circ c), \qquad a \circ 1 = a

    :math:`\circ` merges, and 1 is the state of a chunk without real tokens. In any order of merging, maxima, minima,
    first and last tokens are equal bit for bit, and sums are equal up to rounding. Of two first (or last) tokens with
    equal positions, either may be returned.

    Args:
      a: a state, as functions such as :func:`attention_state` return it.
      b: a state of another chunk of the same sequences: of the same class, widths and batch axes, made with the same
        options. Kernels, queries and the like must be equal too, which is not checked.

    Returns:
      The state of both chunks; its field ``dtype`` is promoted as for two arguments of one call.

    Raises:
      TypeError: if an argument is not a state.
      ValueError: if the states differ in class, width, batch axes or options (such as ``p``, ``scale`` or ``ddof``).
        ``attnpool_flax`` does not compare options whose values are on a device or traced, and takes those of ``a``.

    Source:
      Milakov and Gimelshein 2018, for the states of attention.

    >>> merge_states(mean_state([[1.0]]), mean_state([[3.0]])).mean
    array([2.])
    """
    checks.check_mergeable(a, b, states.kinds())
    dtype = contract.common_dtype(state.dtype for state in (a, b) if state.dtype is not None)
    return a.merged(b)._replace(dtype=dtype)


@contract.with_short_traceback
def finalize_state(state, *, value_kernel=None, out_kernel=None, value_bias=None, out_bias=None):
    r"""Returns the pooled vector of all chunks that were merged into a state.

    .. math:: O_i = \sum_h (z_{ih} W_v^h + b_v^h) W_o^h + b_o

    The formula is for a multi-head state with kernels: :math:`z_{ih}` are its pooled tokens for query :math:`i` and
    head :math:`h`, and the result is that of :func:`multi_head_attention_pooling`. Without ``out_kernel`` the heads
    :math:`z_{ih} W_v^h + b_v^h` are concatenated.

    Args:
      state: a state, as :func:`merge_states` or a function such as :func:`mean_state` returns it.
      value_kernel: [d, H, c'], :math:`W_v`, for values of width c', or None; only for multi-head states, of H heads.
      out_kernel: [H, c', o], :math:`W_o`, for o features of the result, or None; only with ``value_kernel``.
      value_bias: [H, c'], :math:`b_v`, or None; only with ``value_kernel``.
      out_bias: [o], :math:`b_o`, or None; only with ``out_kernel``.

    Returns:
      The result, in shape and dtype, of the function for whole sequences, such as :func:`mean_pooling` for a state of
      :func:`mean_state`. For a multi-head state it is [..., n, H, d], and with kernels [..., n, o], where o = Hc'
      without ``out_kernel``. It is 0 (or :math:`b_o`) if no token was real.

    Raises:
      TypeError: if ``state`` is not a state, or a kernel is not an array of numbers.
      ValueError: if kernels are given for another kind of state, if ``out_kernel`` or a bias is given without its
        kernel, or if shapes disagree.

    Source:
      Vaswani et al. 2017, section 3.2.2, for the kernels.

    >>> finalize_state(merge_states(max_state([[1.0, 5.0]]), max_state([[3.0, 2.0]])))
    array([3., 5.])
    """
    given = {"value_kernel": value_kernel, "out_kernel": out_kernel, "value_bias": value_bias, "out_bias": out_bias}
    parameters: dict[str, Any] = {key: as_array("finalize_state", key, value) for key, value in given.items()}
    call = checks.resolve_finalize(state, states.kinds(), MultiHeadAttentionState, **parameters)
    result = state.finalized()
    if value_kernel is not None:
        wide = {k: None if v is None else v.astype(np.float64) for k, v in parameters.items()}
        result = np.einsum("...nhd,dhc->...nhc", result, wide["value_kernel"])
        if value_bias is not None:
            result = result + np.where(state.total == 0, 0, 1)[..., None] * wide["value_bias"]
        if out_kernel is None:
            result = result.reshape(*result.shape[:-2], result.shape[-2] * result.shape[-1])
        else:
            result = np.einsum("...nhc,hco->...no", result, wide["out_kernel"])
            result = result + (0 if out_bias is None else wide["out_bias"])
    return cast(result, call.dtype or np.dtype(np.float64))
