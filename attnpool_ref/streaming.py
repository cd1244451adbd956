"""Chunked pooling: each chunk of a sequence has a state; merged states finalize to the pooled vector.

Chunks are parts of a sequence that do not overlap; their states can be merged in any order. A state keeps its chunks,
and :func:`finalize_state` calls the definition for whole sequences on all of their tokens. Signatures and docstrings of
the functions that return states are derived from those definitions; ``TEXTS`` has the differences.
"""

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from attnpool_ref import contract, table
from attnpool_ref.contract import docstrings, rowless
from attnpool_ref.contract.definition import as_array, definition, with_warning
from attnpool_ref.numerics.blocks import cast
from attnpool_ref.table.language import present

OPTIONS = {
    "power_mean_state": ("p",),
    "logsumexp_state": ("scale", "mean"),
    "softmax_state": ("scale",),
    "vlad_state": ("normalize",),
    "std_state": ("ddof", "epsilon"),
    "statistics_state": ("ddof", "epsilon"),
    "attentive_statistics_state": ("epsilon",),
}
"""Options that must be equal in states that are merged."""


@dataclass(frozen=True, eq=False)
class State:
    """Arguments of the chunks of a sequence, which :func:`finalize_state` pools together. The fields are private.

    Attributes:
      dtype: the dtype of the result, or None if all data are integers.
      shape: the shape of the result without kernels.
      chunks: the arguments of each chunk by name. Chunks without a real token are left out, except a single one.
    """

    dtype: np.dtype | None
    shape: tuple[int, ...]
    chunks: tuple[dict[str, Any], ...]

    name = ""
    """Name of the function that returns the state of a chunk."""

    def __repr__(self):
        return f"<{type(self).__name__} of {len(self.chunks)} chunk(s), result {self.shape}>"

    @property
    def options(self):
        """The names of the options that must be equal in states that are merged."""
        return OPTIONS.get(self.name, ())

    @property
    def empty(self):
        """Whether no token is real."""
        return len(self.chunks) == 1 and not np.any(self.chunks[0]["mask"])

    def option(self, key):
        """Returns the value of an option."""
        value = self.chunks[0][key]
        return value if isinstance(value, bool) else np.asarray(value, np.float64)

    def pooled(self, **kernels):
        """Returns the pooled vector in float64; ``kernels``, and the sink among them, are those of :func:`finalize_state`."""
        arguments, dense = dict(self.chunks[0]), definition_of(table.get(self.name))
        for key in token_axes(self.name, arguments):
            arguments[key] = concatenated(self.name, self.chunks, key)
        if "start" in arguments:
            del arguments["start"]
            starts = (chunk["start"].astype(np.int64) + np.arange(chunk["mask"].shape[-1]) for chunk in self.chunks)
            order = np.argsort(np.concatenate(list(starts)), kind="stable")
            arguments |= {"x": arguments["x"][..., order, :], "mask": arguments["mask"][..., order]}
        if self.name != "multi_head_attention_state" or "value_kernel" in kernels:
            return dense(**arguments, **kernels)
        width, heads = arguments["key_kernel"].shape[:2]
        _, weights = dense(**arguments, **kernels, value_kernel=np.zeros((width, heads, 1)), return_weights=True)
        tokens = np.where(arguments["mask"][..., None], arguments["x"], 0)
        return np.einsum("...hnl,...ld->...nhd", weights, tokens)


def token_axes(name, arguments):
    """Returns the axis of tokens, counted from the end, of each argument of a chunk that has one."""
    own = {key: argument.own for key, argument in table.get(name).arguments.items() if "L" in argument.own}
    axes = {key: symbols.index("L") - len(symbols) for key, symbols in own.items()}
    weights = arguments.get("weights")
    by_feature = weights is not None and weights.ndim == arguments["x"].ndim
    return axes | ({"weights": -2} if by_feature else {})


def concatenated(name, chunks, key):
    """Returns the tokens' argument ``key`` of all chunks, in float64, or None if no chunk has it.

    A chunk without weights or biases has weights of 1 and biases of 0; its values are the tokens.
    """
    given = [chunk for chunk in chunks if chunk[key] is not None]
    if not given:
        return None
    widest = max(given, key=lambda chunk: chunk[key].ndim)
    axis, parts = token_axes(name, widest)[key], []
    for chunk in chunks:
        part = chunk[key]
        if part is None:
            part = chunk["x"] if key == "value" else np.array(float(key == "weights"))
        elif part.ndim < widest[key].ndim:
            part = part[..., None]
        shape = list(widest[key].shape)
        shape[axis] = chunk["mask"].shape[-1]
        parts.append(np.broadcast_to(part, shape).astype(bool if key == "mask" else np.float64))
    return np.concatenate(parts, axis)


def definition_of(row):
    """Returns the definition for whole sequences of a row of states."""
    return getattr(import_module(f"attnpool_ref.{table.get(row.state).family}"), row.state)


def _kind(title, name):
    namespace = {"__doc__": f"State of :func:`~attnpool_ref.{name}`.", "__module__": __name__, "name": name}
    return type(title, (State,), namespace)


KINDS = {"channel_state": _kind("ChannelState", "weighted_state")} | {
    row.name: _kind(row.name.title().replace("_", ""), row.name) for row in table.STATES
}
"""Classes of states, by the function that returns them; ``ChannelState`` is that of weights for each feature."""

_OF_END = """
        Args:
          start: an integer, the same for all examples: how many positions of the sequence, padding included, come
            before this chunk.

        Raises:
          ValueError: if shapes disagree, if the mask has a float dtype, or if ``start`` is not an integer or is
            negative (``attnpool_flax`` does not check the value of a JAX array).
"""

TEXTS = {
    "mean_state": """
        >>> whole = merge_states(mean_state([[1.0], [3.0]]), mean_state([[8.0], [99.0]], [True, False]))
        >>> finalize_state(whole)
        array([4.])
        """,
    "max_state": """
        >>> whole = merge_states(max_state([[-1.0], [-3.0]]), max_state([[99.0]], [False]))
        >>> finalize_state(whole)
        array([-1.])
        """,
    "mean_max_state": """
        >>> finalize_state(merge_states(mean_max_state([[1.0], [3.0]]), mean_max_state([[8.0]])))
        array([4., 8.])
        """,
    "first_state": f"""{_OF_END}
        >>> later, earlier = first_state([[1.0], [2.0]], start=2), first_state([[8.0], [9.0]], [False, True], start=0)
        >>> finalize_state(merge_states(later, earlier))
        array([9.])
        """,
    "last_state": f"""{_OF_END}
        >>> later, earlier = last_state([[1.0], [2.0]], [True, False], start=2), last_state([[8.0], [9.0]], start=0)
        >>> finalize_state(merge_states(later, earlier))
        array([1.])
        """,
    "weighted_state": """
        Weights may be negative, and those of one chunk may sum to 0. If those of all chunks do, the result is 0; with
        weights for each feature, only that feature is 0. Weights at padding are never read.

        Args:
          weights: [L], shared by all examples; [..., L], for each example; or [..., L, d], for each feature. The number
            of axes, compared with that of x, decides which; it must be the same for all chunks. None gives each token
            weight 1.

        Returns:
          A ``WeightedState``, or with weights for each feature a ``ChannelState``, for :func:`merge_states` and then
          :func:`finalize_state`, which returns [..., d].

        >>> whole = merge_states(weighted_state([[1.0], [2.0]], [1.0, -1.0]), weighted_state([[5.0]], [2.0]))
        >>> finalize_state(whole)
        array([4.5])
        """,
    "attention_state": r"""
        :math:`\hat q` is the query, or with ``normalize_query`` its layer normalization (:func:`layer_norm`) with scale
        :math:`\gamma` and bias :math:`\beta`. A query is required: its default in :func:`attention_pooling` is the mean
        of all tokens, which is not known before the last chunk.

        Args:
          query: [d], shared by all sequences, or [..., d] for each; without ``query_kernel`` its width is c.
          bias: broadcastable to [..., L] of the chunk, :math:`b`, or None; never read at padding.

        Raises:
          ValueError: if shapes disagree, if the mask has a float dtype, or if norm parameters are given without
            ``normalize_query``.
          TypeError: if the query is missing.

        >>> query = [0.0, 1.0]
        >>> whole = merge_states(attention_state([[1.0, 0.0]], None, query), attention_state([[3.0, 0.0]], None, query))
        >>> finalize_state(whole)
        array([2., 0.])
        """,
    "multi_head_attention_state": r"""
        The sum runs over H heads, whose queries and keys have width c. The kernels :math:`W_v` and :math:`W_o`, and
        their biases, are arguments of :func:`finalize_state`; without them the result is the average of the raw tokens
        for each query and head. The key bias is ignored, because it cancels in the softmax.

        Args:
          bias: broadcastable to [..., H, n, L] of the chunk, :math:`B`, or None.

        Returns:
          A ``MultiHeadAttentionState``, for :func:`merge_states` and then :func:`finalize_state`, which returns
          [..., n, H, d], or [..., n, o] if it is given a ``value_kernel``.

        Raises:
          ValueError: if shapes disagree, if the mask has a float dtype, or if ``query_bias`` is given without
            ``query_kernel``.

        >>> kernel = np.eye(2).reshape(2, 2, 1)
        >>> parameters = {"query": [[0.0, 0.0]], "query_kernel": kernel, "key_kernel": kernel}
        >>> chunks = [[1.0, 2.0]], [[3.0, 4.0]]
        >>> whole = merge_states(*(multi_head_attention_state(chunk, **parameters) for chunk in chunks))
        >>> finalize_state(whole)
        array([[[2., 3.],
                [2., 3.]]])
        """,
    "additive_attention_state": r"""
        A hop :math:`i` is one set of weights :math:`w_i` over the tokens; :math:`K_i` is column :math:`i` of
        ``out_kernel``. :math:`\phi` is the activation and :math:`\sigma` the sigmoid; without ``gate_kernel`` the
        factor :math:`\sigma(\cdot)` is 1. :math:`v_l` is row :math:`l` of ``value``, or token :math:`l` without
        ``value``. The constant :math:`c_i` cancels.

        Returns:
          An ``AdditiveAttentionState``, for :func:`merge_states` and then :func:`finalize_state`, which returns
          [..., v], or [..., n, v] with n hops.

        Raises:
          ValueError: if shapes disagree, if the mask has a float dtype, if ``gate_bias`` is given without
            ``gate_kernel``, or if the activation is unknown.

        >>> parameters = {"kernel": np.zeros((2, 4)), "out_kernel": np.ones(4)}
        >>> one, other = (additive_attention_state([[first, 0.0]], **parameters) for first in (1.0, 3.0))
        >>> finalize_state(merge_states(one, other))
        array([2., 0.])
        """,
    "latent_attention_state": """
        >>> parameters = {
        ...     "latents": [[1.0, -1.0]],
        ...     "query_kernel": np.eye(2)[:, None],
        ...     "key_kernel": np.eye(2)[:, None],
        ...     "value_kernel": np.eye(2)[:, None],
        ...     "out_kernel": np.eye(2)[None],
        ...     "mlp_kernel": np.zeros((2, 2)),
        ...     "mlp_out_kernel": np.zeros((1, 2)),
        ...     "epsilon": 0.0,
        ... }
        >>> chunks = [[1.0, 2.0]], [[3.0, 4.0]]
        >>> finalize_state(merge_states(*(latent_attention_state(chunk, **parameters) for chunk in chunks)))
        array([3., 2.])
        """,
    "vlad_state": """
        >>> parameters = {"assign_kernel": [[0.0]], "centers": [[2.0]], "normalize": False}
        >>> finalize_state(merge_states(vlad_state([[1.0]], **parameters), vlad_state([[4.0]], **parameters)))
        array([[1.]])
        """,
    "gated_sum_state": """
        >>> kernels = {"gate_kernel": [[0.0]], "value_kernel": [[1.0]]}
        >>> finalize_state(merge_states(*(gated_sum_state([[token]], **kernels) for token in (1.0, 3.0)))).round(6)
        array([0.878324])
        """,
    "sum_state": """
        >>> whole = merge_states(sum_state([[1.0], [3.0]]), sum_state([[8.0], [99.0]], [True, False]))
        >>> finalize_state(whole)
        array([12.])
        """,
    "min_state": """
        >>> whole = merge_states(min_state([[1.0], [3.0]]), min_state([[-99.0]], [False]))
        >>> finalize_state(whole)
        array([1.])
        """,
    "noisy_or_state": """
        >>> finalize_state(merge_states(noisy_or_state([[0.5]]), noisy_or_state([[0.5]])))
        array([0.75])
        """,
    "power_mean_state": r"""
        Args:
          epsilon: :math:`\epsilon`, a number of at least 0; the same for all chunks, which is not checked.

        >>> whole = merge_states(power_mean_state([[3.0]], p=2.0), power_mean_state([[4.0]], p=2.0))
        >>> finalize_state(whole) ** 2
        array([12.5])
        """,
    "logsumexp_state": """
        >>> finalize_state(merge_states(logsumexp_state([[1.0]], scale=0.0), logsumexp_state([[3.0]], scale=0.0)))
        array([2.])
        """,
    "softmax_state": """
        >>> finalize_state(merge_states(softmax_state([[1.0]], scale=0.0), softmax_state([[3.0]], scale=0.0)))
        array([2.])
        """,
    "std_state": """
        >>> whole = merge_states(std_state([[1.0], [2.0]]), std_state([[3.0], [99.0]], [True, False], ddof=0))
        >>> finalize_state(whole)
        array([0.81649658])
        """,
    "statistics_state": """
        >>> finalize_state(merge_states(statistics_state([[1.0], [1.0]]), statistics_state([[3.0], [3.0]])))
        array([2., 1.])
        """,
    "attentive_statistics_state": r"""
        :math:`u_l` is the token :math:`x_l`, and :math:`a` the activation. With ``norm_scale`` the scores are
        :math:`\tanh(\gamma\, \mathrm{relu}(u_l W + b) + \beta) V`, where :math:`\gamma` and :math:`\beta` are a frozen
        batch normalization. ``global_context=True`` is an error, because the statistics of all tokens are not known
        before the last chunk.

        Args:
          kernel: [d, h], :math:`W`, for h hidden units.
          out_bias: a number or [d], or None; ignored, because it cancels.
          global_context: only False.
          epsilon: the minimum of the variance, a number.

        Raises:
          ValueError: if shapes disagree, if the mask has a float dtype, if the activation is unknown, if ``norm_scale``
            is given with another activation than "tanh", if ``norm_bias`` is given without ``norm_scale``, or if
            ``global_context`` is True.

        >>> kernels = {"kernel": [[0.0]], "out_kernel": [1.0]}
        >>> whole = merge_states(*(attentive_statistics_state([[token]], **kernels) for token in (1.0, 3.0)))
        >>> finalize_state(whole)
        array([2., 1.])
        """,
}
"""Differences between the docstring of a function that returns states and that of the definition for whole sequences.

Paragraphs replace the remarks after the equation and its symbols, sections and arguments those of the same name.
"""


MEMORY = (
    "In ``attnpool_ref`` a state keeps a copy of its chunk, so the memory grows with the sequence; in ``attnpool_flax`` "
    "the size of a state is constant."
)


def _docstring(row, signature):
    """Returns the docstring of a function that returns states; empty if Python strips docstrings."""
    if row.name not in TEXTS:
        raise ValueError(f"{row.name}: TEXTS in attnpool_ref/streaming.py has no example of it; add one")
    dense, own = docstrings.of(definition_of(row)), docstrings.parse(inspect.cleandoc(TEXTS[row.name]))
    if not dense.paragraphs:
        return ""
    math = max(i for i, text in enumerate(dense.paragraphs) if text.startswith(".. math::"))
    paragraphs = [f"Returns the state of one chunk of a sequence for :func:`{row.state}`."]
    paragraphs += dense.paragraphs[1 : math + 2] + (own.paragraphs or dense.paragraphs[math + 2 :])
    paragraphs += ["The formula is for the tokens of all chunks; :func:`finalize_state` computes it. " + MEMORY]
    if row.name in OPTIONS:
        options = " or ".join(f"``{key}``" for key in OPTIONS[row.name])
        paragraphs[-1] += f" :func:`merge_states` raises an error for states with different {options}."
    entries = dense.entries("Args") | own.entries("Args")
    entries |= {key: entries[key].replace("tokens", "tokens of the chunk", 1) for key in ("x", "lengths")}
    kind = KINDS[row.name].__name__
    article = "An" if kind[0] in "AEIO" else "A"
    result = f"{article} ``{kind}``, for :func:`merge_states` and then :func:`finalize_state`, which returns "
    returns = docstrings.filled(result + f"{row.shapes.rpartition(' -> ')[2]}.")
    sections = {**dense.sections, "Returns": returns, **own.sections, "Args": ""}
    paragraphs[-1] = docstrings.filled(paragraphs[-1])
    merged = docstrings.Docstring(tuple(paragraphs), sections, own.example)
    return str(merged.without_packed().with_entries("Args", {key: entries[key] for key in signature.parameters}))


def _function(row):
    """Returns the function that returns the state of one chunk."""

    def state(arguments, call):
        kept = {key: np.array(value) if isinstance(value, np.ndarray) else value for key, value in arguments.items()}
        weights, name = kept.get("weights"), row.name
        if name == "weighted_state" and weights is not None and weights.ndim == kept["x"].ndim:
            name = "channel_state"
        axes = present(row.results, call.sizes)[0][1:]
        shape = (*call.batch, *(contract.size_of(axis, call.sizes) for axis in axes))
        return KINDS[name](call.dtype, shape, (kept,))

    parameters = inspect.signature(definition_of(row)).parameters.values()
    parameters = [parameter for parameter in parameters if parameter.name in {*row.arguments, *row.options}]
    if "start" in row.arguments:
        parameters.append(inspect.Parameter("start", inspect.Parameter.KEYWORD_ONLY))
    signature = inspect.Signature(parameters)
    state.__name__ = state.__qualname__ = row.name
    state.__dict__["__signature__"], state.__doc__ = signature, _docstring(row, signature)
    return definition(state)


for _row in table.STATES:
    globals()[_row.name] = _function(_row)
for _class in KINDS.values():  # where pickle looks for them
    globals()[_class.__name__] = _class


@contract.with_short_traceback
def merge_states(a, b):
    r"""Merges two states into the state of both chunks; merging is associative and commutative.

    .. math:: a \circ b = b \circ a, \qquad (a \circ b) \circ c = a \circ (b \circ c), \qquad a \circ 1 = a

    :math:`\circ` merges, and 1 is the state of a chunk without real tokens. In any order of merging, maxima, minima,
    first and last tokens are equal bit for bit, and sums are equal up to rounding. Of two first (or last) tokens with
    equal positions, either may be returned. In ``attnpool_ref`` the result keeps the chunks of both states, so the memory
    grows with the sequence; in ``attnpool_flax`` the size of a state is constant.

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

    >>> finalize_state(merge_states(mean_state([[1.0]]), mean_state([[3.0]])))
    array([2.])
    """
    rowless.check_mergeable(a, b, State, State.option)
    dtype = contract.common_dtype(state.dtype for state in (a, b) if state.dtype is not None)
    chunks = b.chunks if a.empty else a.chunks if b.empty else a.chunks + b.chunks
    return type(a)(dtype, a.shape, chunks)


@contract.with_short_traceback
def finalize_state(state, *, sink=None, value_kernel=None, out_kernel=None, value_bias=None, out_bias=None):
    r"""Returns the pooled vector of all chunks that were merged into a state.

    .. math:: O_i = \sum_h (z_{ih} W_v^h + b_v^h) W_o^h + b_o

    The formula is for a multi-head state with kernels: :math:`z_{ih}` are its pooled tokens for query :math:`i` and
    head :math:`h`, and the result is that of :func:`multi_head_attention_pooling`. Without ``out_kernel`` the heads
    :math:`z_{ih} W_v^h + b_v^h` are concatenated.

    Args:
      state: a state, as :func:`merge_states` or a function such as :func:`mean_state` returns it.
      sink: the score of a sink, as for the function of whole sequences, or None; only for states of
        :func:`attention_state` and :func:`additive_attention_state`, broadcastable to [...] or [..., n], and of
        :func:`multi_head_attention_state`, a number or [H].
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
      ValueError: if kernels or a sink are given for another kind of state, if ``out_kernel`` or a bias is given without its
        kernel, or if shapes disagree.

    Source:
      Vaswani et al. 2017, section 3.2.2, for the kernels.

    >>> finalize_state(merge_states(max_state([[1.0, 5.0]]), max_state([[3.0, 2.0]])))
    array([3., 5.])
    """
    given = {
        "sink": sink,
        "value_kernel": value_kernel,
        "out_kernel": out_kernel,
        "value_bias": value_bias,
        "out_bias": out_bias,
    }
    parameters: dict[str, Any] = {key: as_array("finalize_state", key, value) for key, value in given.items()}
    with_sink = tuple(KINDS[row.name] for row in table.STATES if "sink" in table.get(row.state).arguments)
    call = rowless.resolve_finalize(state, State, KINDS["multi_head_attention_state"], with_sink, **parameters)
    kernels = {key: value for key, value in parameters.items() if value is not None}
    dtype = call.dtype or np.dtype(np.float64)
    return with_warning("finalize_state", dtype, lambda: cast(state.pooled(**kernels), dtype), level=4)
