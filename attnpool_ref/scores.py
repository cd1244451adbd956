"""Scores of each pair of a query and a key or slot. They take no mask; normalizers and attention functions do."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.primitives import cosines, inverse_root, joined, tanh


@definition
def dot_score(query, key, *, result_dtype=None):
    r"""Scores each pair by its dot product.

    .. math:: s_{ij} = q_i \cdot k_j

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d.
      key: [..., m, d] m keys :math:`k_j` of width d.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs.

    Returns:
      [..., n, m] scores.

    Source:
      Luong et al. 2015, section 3.1, "dot".

    >>> dot_score([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]])
    array([[11., 17.]])
    """
    return query @ np.swapaxes(key, -1, -2)


@definition
def scaled_dot_score(query, key, *, scale=None, result_dtype=None):
    r"""Scores each pair by its dot product over the root of the width (scaled dot product).

    .. math:: s_{ij} = \frac{q_i \cdot k_j}{\sqrt d}

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d.
      key: [..., m, d] m keys :math:`k_j` of width d.
      scale: a number that multiplies the products; None is :math:`1/\sqrt d`.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs.

    Returns:
      [..., n, m] scores.

    Source:
      Vaswani et al. 2017, section 3.2.1.

    >>> scaled_dot_score([[1.0, 2.0, 2.0, 0.0]], [[2.0, 2.0, 2.0, 2.0]])
    array([[5.]])
    """
    if scale is None:
        scale = inverse_root(query.shape[-1])
    return scale * dot_score.body(query, key)


@definition
def bilinear_score(query, key, kernel, *, result_dtype=None):
    r"""Scores each pair by a learned bilinear form (Luong's general score); widths may differ.

    .. math:: s_{ij} = q_i^\top W k_j

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d, the paper's :math:`h_t`.
      key: [..., m, e] m keys :math:`k_j` of width e, the paper's :math:`\bar h_s`.
      kernel: [d, e], :math:`W`; the paper's :math:`W_a`.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs.

    Returns:
      [..., n, m] scores.

    Source:
      Luong et al. 2015, section 3.1, "general".

    >>> bilinear_score([[1.0, 2.0]], [[3.0]], [[1.0], [10.0]])
    array([[63.]])
    """
    return query @ kernel @ np.swapaxes(key, -1, -2)


@definition
def cosine_score(query, key, *, result_dtype=None):
    r"""Scores each pair by its cosine similarity; a zero vector has cosine 0.

    .. math:: s_{ij} = \frac{q_i \cdot k_j}{\lVert q_i \rVert \lVert k_j \rVert}

    The gradient at a zero vector is 0.

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d.
      key: [..., m, d] m keys :math:`k_j` of width d.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs.

    Returns:
      [..., n, m] scores from -1 to 1.

    Source:
      Wang et al. 2016, section 3.1, the similarity matrix.

    >>> cosine_score([[3.0, 4.0]], [[0.0, 2.0], [0.0, 0.0]])
    array([[0.8, 0. ]])
    """
    return cosines(query, key)


@definition
def additive_score(query, key, query_kernel, key_kernel, out_kernel, *, bias=None):
    r"""Scores each pair by an MLP with one hidden layer (Bahdanau's additive score); widths may differ.

    .. math:: s_{ij} = w^\top \tanh(W_q q_i + W_k k_j + b)

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d, the paper's :math:`s_{i-1}`.
      key: [..., m, e] m keys :math:`k_j` of width e, the paper's :math:`h_j`.
      query_kernel: [d, h], :math:`W_q` transposed, for h hidden units; the paper's :math:`W_a`.
      key_kernel: [e, h], :math:`W_k` transposed; the paper's :math:`U_a`.
      out_kernel: [h], :math:`w`; the paper's :math:`v_a`.
      bias: [h], :math:`b`, or None.

    Returns:
      [..., n, m] scores.

    Source:
      Bahdanau et al. 2015, section A.1.2. Its formula has no bias, and neither has the layer of Zhang et al. (d2l).

    >>> additive_score([[0.0, 0.0]], [[1.0, 1.0]], np.eye(2), np.eye(2), [1.0, 1.0]).round(6)
    array([[1.523188]])
    """
    hidden = (query @ query_kernel)[..., :, None, :] + (key @ key_kernel)[..., None, :, :]
    if bias is not None:
        hidden = hidden + bias
    return tanh(hidden) @ out_kernel


@definition
def concat_score(query, key, kernel, out_kernel, *, bias=None):
    r"""Scores each pair by an MLP over the concatenated query and key (Luong's concat score).

    .. math:: s_{ij} = w^\top \tanh(W [q_i; k_j] + b)

    :math:`[q_i; k_j]` is query :math:`i` concatenated with key :math:`j`.

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d, the paper's :math:`h_t`.
      key: [..., m, e] m keys :math:`k_j` of width e, the paper's :math:`\bar h_s`.
      kernel: [d+e, h], :math:`W` transposed, the query's rows first, for h hidden units; the paper's :math:`W_a`.
      out_kernel: [h], :math:`w`; the paper's :math:`v_a`.
      bias: [h], :math:`b`, or None.

    Returns:
      [..., n, m] scores.

    Source:
      Luong et al. 2015, section 3.1, "concat".

    >>> concat_score([[1.0]], [[2.0], [-1.0]], [[1.0], [1.0]], [2.0]).round(6)
    array([[1.99011, 0.     ]])
    """
    hidden = _side_by_side(query, key) @ kernel
    if bias is not None:
        hidden = hidden + bias
    return tanh(hidden) @ out_kernel


@definition
def tanh_sum_score(query, key, kernel, *, bias=None):
    r"""Scores each pair by the sum of a hidden layer over the concatenated query and key.

    .. math:: s_{ij} = \sum_h \tanh(W [q_i; k_j] + b)_h

    :math:`[q_i; k_j]` is query :math:`i` concatenated with key :math:`j`. No score has a magnitude above the number h
    of hidden units, over which the sum runs.

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d.
      key: [..., m, e] m keys :math:`k_j` of width e.
      kernel: [d+e, h], :math:`W` transposed, the query's rows first, for h hidden units.
      bias: [h], :math:`b`, or None.

    Returns:
      [..., n, m] scores.

    Source:
      Bahdanau, Cho, Bengio 2015, appendix A.1.2, with ones for :math:`v_a`; this is the second rule of notebook 002
      (docs/notebooks).

    >>> tanh_sum_score([[1.0]], [[2.0], [-1.0]], [[1.0, 1.0], [1.0, 1.0]]).round(6)
    array([[1.99011, 0.     ]])
    """
    hidden = _side_by_side(query, key) @ kernel
    if bias is not None:
        hidden = hidden + bias
    return np.sum(tanh(hidden), -1)


@definition
def location_score(query, state, kernel, *, bias=None):
    r"""Scores m slots by a linear layer of a query and its state, without the slots' contents (Luong's location score).

    .. math:: s_{ij} = (W [q_i; k_i] + b)_j

    :math:`[q_i; k_i]` is query :math:`i` concatenated with its state; slot :math:`j` has component :math:`j`.

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d.
      state: [..., n, e] one state :math:`k_i` for each query.
      kernel: [d+e, m], :math:`W` transposed, the query's rows first; a column for each slot.
      bias: [m], :math:`b`, or None.

    Returns:
      [..., n, m] scores.

    Source:
      Luong, Pham, Manning 2015, equation 8, applied to query and state: the first rule of notebook 002
      (docs/notebooks), and PyTorch's tutorial on sequence-to-sequence translation.

    >>> location_score([[1.0]], [[2.0]], [[1.0, 0.0, 3.0], [0.0, 1.0, 5.0]])
    array([[ 1.,  2., 13.]])
    """
    scores = joined(query, state) @ kernel
    return scores if bias is None else scores + bias


@definition
def trilinear_score(query, key, kernel, *, result_dtype=None):
    r"""Scores each pair by a linear form of query, key and their product (BiDAF's similarity).

    .. math:: s_{ij} = w^\top [q_i; k_j; q_i \circ k_j]

    [;] concatenates vectors, and :math:`\circ` is the elementwise product.

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d, the paper's context :math:`H`.
      key: [..., m, d] m keys :math:`k_j` of width d, the paper's query :math:`U`.
      kernel: [3d], :math:`w`; the paper's :math:`w_{(S)}`.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs.

    Returns:
      [..., n, m] scores.

    Source:
      Seo et al. 2017 (BiDAF), equation 1 with :math:`\alpha(h, u)`.

    >>> trilinear_score([[2.0]], [[3.0], [5.0]], [1.0, 10.0, 100.0])
    array([[ 632., 1052.]])
    """
    product = query[..., :, None, :] * key[..., None, :, :]
    return np.concatenate([_side_by_side(query, key), product], -1) @ kernel


@definition
def gaussian_score(query, key, *, bandwidth=1.0):
    r"""Scores each pair by the logarithm of a Gaussian kernel of its distance.

    .. math:: s_{ij} = -\frac{\lVert q_i - k_j \rVert^2}{2 \sigma^2}

    Args:
      query: [..., n, d] n queries :math:`q_i` of width d.
      key: [..., m, d] m keys :math:`k_j` of width d.
      bandwidth: :math:`\sigma`, a positive number, which is not checked.

    Returns:
      [..., n, m] scores, at most 0.

    Source:
      Zhang et al. (d2l), chapter Attention Pooling by Similarity, the Gaussian kernel, in log space.

    >>> gaussian_score([[0.0, 0.0]], [[3.0, 4.0], [1.0, 0.0]], bandwidth=0.5)
    array([[-50.,  -2.]])
    """
    difference = query[..., :, None, :] - key[..., None, :, :]
    return np.sum((difference / bandwidth) ** 2, -1) / -2  # the square of a small bandwidth would underflow


def _side_by_side(query, key):
    """Concatenates each query with each key: [..., n, m, d+e]."""
    *batch, n, d = query.shape
    m, e = key.shape[-2:]
    queries = np.broadcast_to(query[..., :, None, :], (*batch, n, m, d))
    keys = np.broadcast_to(key[..., None, :, :], (*batch, n, m, e))
    return joined(queries, keys)
