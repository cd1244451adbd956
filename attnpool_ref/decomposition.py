"""Decomposition of vectors into a part similar to a reference and a dissimilar part."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.rounding import power_of_two, within_rounding
from attnpool_ref.primitives import cosines, fill_padding, unit_vector


@definition
def orthogonal_decomposition(x, reference):
    r"""Splits each vector into its projection on a reference vector and a rest that is perpendicular to the reference.

    .. math:: s^+ = \frac{s \cdot \hat s}{\hat s \cdot \hat s}\, \hat s, \qquad s^- = s - s^+

    Neither the length nor the sign of the reference matters. The projection on the zero vector and its gradient are 0.

    Args:
      x: [..., d] vectors, :math:`s`.
      reference: [..., d] vectors, :math:`\hat s`, such as those of :func:`semantic_match` or :func:`mask_attention`.

    Returns:
      (similar, dissimilar): :math:`s^+` and :math:`s^-`, both [..., d]. They add up to ``x``.

    Source:
      Wang et al. 2016, orthogonal decomposition; the fact separation of Yue et al. 2021, without the 1e-10 added to its
      denominator.

    >>> orthogonal_decomposition([1.0, 1.0], [1.0, 2.0])
    (array([0.6, 1.2]), array([ 0.4, -0.2]))
    """
    similar = projection(x, reference)
    return similar, x - similar


def projection(x, reference):
    """Returns (x . r / r . r) r with r the ``reference``.

    It uses the unit vector along r, because squares of numbers such as 1e-300 underflow.
    """
    unit = unit_vector(reference)
    return np.sum(x * unit, -1, keepdims=True) * unit


@definition
def linear_decomposition(x, reference):
    r"""Splits each vector in proportion to its cosine with a reference vector.

    .. math:: s^+ = \alpha s, \qquad s^- = (1 - \alpha) s, \qquad
              \alpha = \frac{s \cdot \hat s}{\lVert s \rVert \lVert \hat s \rVert}

    A zero vector has cosine 0. If the cosine is negative, the similar part points away from :math:`s`.

    Args:
      x: [..., d] vectors, :math:`s`.
      reference: [..., d] vectors, :math:`\hat s`.

    Returns:
      (similar, dissimilar): :math:`s^+` and :math:`s^-`, both [..., d]. They add up to ``x``.

    Source:
      Wang et al. 2016, linear decomposition.

    >>> linear_decomposition([2.0, 0.0], [3.0, 4.0])
    (array([1.2, 0. ]), array([0.8, 0. ]))
    """
    cosine = np.sum(unit_vector(x) * unit_vector(reference), -1, keepdims=True)
    similar = cosine * x
    return similar, x - similar


@definition
def rigid_decomposition(x, reference, *, atol=0.0):
    r"""Returns each vector as the similar part if it equals the reference, else as the dissimilar part.

    .. math:: (s^+, s^-) = (s, 0) \text{ if } |s_c - \hat s_c| \le \mathrm{atol} \text{ for all } c,
              \text{ else } (0, s)

    The components of :math:`s` are :math:`s_c`. The gradient for the reference is 0. If the vector or its reference
    holds NaN, both parts are NaN.

    Args:
      x: [..., d] vectors, :math:`s`.
      reference: [..., d] vectors, :math:`\hat s`.
      atol: the largest difference of a component that still counts as equal, a number; 0 is exact equality.

    Returns:
      (similar, dissimilar): :math:`s^+` and :math:`s^-`, both [..., d]. They add up to ``x``.

    Source:
      Wang et al. 2016, rigid decomposition.

    >>> rigid_decomposition([[1.0, 0.0], [1.0, 1.0]], [1.0, 0.0])[0]
    array([[1., 0.],
           [0., 0.]])
    """
    with np.errstate(invalid="ignore"):  # inf - inf: equal by the comparison
        distance = np.where(x == reference, 0, np.abs(x - reference))
    equal = np.all(distance <= atol, -1, keepdims=True)
    unknown = np.any(np.isnan(x) | np.isnan(reference), -1, keepdims=True)
    similar = np.where(unknown, np.nan, np.where(equal, x, 0))
    return similar, np.where(unknown, np.nan, np.where(equal, 0, x))


@definition
def semantic_match(
    x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, method="max", window=1, normalize=True
):
    r"""Finds for each token of x its best match among the tokens of y, by cosine.

    .. math:: a_{ij} = \cos(s_i, t_j), \qquad k = \arg\max_j a_{ij}

    .. math:: \hat s_i = t_k \text{ (max)}, \qquad
              \hat s_i = \frac{\sum_j a_{ij} t_j}{\sum_j a_{ij}}
              \text{ over all } j \text{ (global)}, \text{ or } |j - k| \le w \text{ (local)}

    :math:`s_i` are the tokens of x and :math:`t_j` those of y; :math:`t_k` is the best match of :math:`s_i`. Only real
    tokens count, also in the window, which has up to :math:`w` real tokens on each side of the best one. Removing a
    padded token is the same as masking it. A zero vector has cosine 0. Among cosines that are equal up to rounding,
    that of the first real token counts as the best. The weights :math:`a_{ij}` may be negative; if they sum to exactly
    0, the normalized match is 0.

    The gradient is that of the chosen token or window. The choice itself has no gradient, so with "max" the gradient
    for x is 0. If a cosine is NaN, the match is NaN, because the best token is unknown.

    Args:
      x: [..., L, d] tokens, :math:`s`.
      y: [..., T, d] tokens, :math:`t`.
      x_mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all are real.
      y_mask: bool, broadcastable to [..., T]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      x_lengths: number of real tokens of x, counted from the left: int [...] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [...] or (). Give this or ``y_mask``.
      method: "max", "global" or "local", as in the formulas.
      window: :math:`w` for "local", a Python integer of at least 0.
      normalize: divide by the sum of the weights; False leaves the weighted sum. It does not affect "max", whose only
        weight is 1.

    Returns:
      [..., L, d] matches :math:`\hat s`; 0 at padded tokens of x, and everywhere if no token of y is
      real.

    Raises:
      ValueError: if shapes disagree, if a mask has a float dtype, if the method is unknown, or if the window is
        negative.

    Source:
      Wang et al. 2016, semantic matching. The denominators were not compared with the paper; two public implementations
      leave them out, as ``normalize=False`` does.

    >>> x, y = [[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]
    >>> semantic_match(x, y)
    array([[1., 0.],
           [1., 2.]])
    >>> semantic_match(x, y, method="local").round(6)
    array([[1.      , 0.      ],
           [0.572949, 1.572949]])
    """
    x, y = fill_padding(x, x_mask), fill_padding(y, y_mask)
    cosine = cosines(x, y)
    real = np.broadcast_to(y_mask[..., None, :], cosine.shape)
    if method == "global" or y.shape[-2] == 0:
        weights = np.where(real, cosine, 0)
    else:
        ranked = np.where(real, cosine, -np.inf)
        top = np.max(ranked, -1, keepdims=True)
        best = np.argmax(ranked >= top - within_rounding(x.shape[-1]), -1)[..., None]
        if method == "max":
            weights = (np.arange(y.shape[-2]) == best) * 1.0
        else:
            rank = np.broadcast_to(np.cumsum(real, -1), cosine.shape)
            near = np.abs(rank - np.take_along_axis(rank, best, -1)) <= window
            weights = np.where(real & near, cosine, 0)
        weights = np.where(np.isnan(top), np.nan, weights)
    matched = weights @ y
    if normalize and method != "max":
        total = np.sum(weights, -1, keepdims=True)
        matched = np.where(total == 0, 0, matched / np.where(total == 0, 1, total))
    return fill_padding(matched, x_mask)


@definition
def graph_decomposition(labels, adjacency, *, num_layers=2):
    r"""Subtracts from each label vector the mean of its projections on its neighbors, in several layers.

    .. math:: \ell_i \leftarrow \ell_i - \frac{1}{|N(i)|} \sum_{j \in N(i)}
              \frac{\ell_i \cdot \ell_j}{\ell_j \cdot \ell_j}\, \ell_j

    One layer applies the formula to all labels :math:`\ell_i` at once, from the labels that the layer before returned.
    With one neighbor, the new label is perpendicular to it; with several, it need not be. A zero neighbor subtracts
    nothing, but counts in the mean; a label without neighbors does not change. A label of which only rounding errors
    remain becomes 0, because the next layer would project on the direction of the errors.

    Args:
      labels: [k, d] vectors of k labels, :math:`\ell`.
      adjacency: bool [k, k]: row i marks the neighbors :math:`N(i)`; if the diagonal is True, a label is its own
        neighbor.
      num_layers: the number of layers, a Python integer; 0 returns the labels.

    Returns:
      [k, d] labels after the last layer.

    Raises:
      ValueError: if shapes disagree, if the adjacency has a float dtype, or if the number of layers is negative.

    Source:
      Yue et al. 2021, the graph decomposition of the authors' code, without the 1e-10 that the code adds to the
      denominator.

    >>> labels = [[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]
    >>> graph_decomposition(labels, [[0, 1, 0], [1, 0, 1], [0, 0, 0]], num_layers=1)
    array([[ 0.5, -0.5],
           [ 0.5,  0.5],
           [ 0. ,  2. ]])
    """
    number = np.maximum(np.sum(adjacency, -1, keepdims=True), 1)
    for _ in range(num_layers):
        projections = projection(labels[:, None, :], labels[None, :, :])
        rest = labels - np.sum(np.where(adjacency[..., None], projections, 0), 1) / number
        noise = within_rounding(sum(labels.shape)) * norm(labels)
        labels = np.where(norm(rest) <= noise, 0, rest)
    return labels


def norm(x):
    """Returns Euclidean norms [..., 1] along the last axis, scaled first, because squares of 1e-300 underflow."""
    size = power_of_two(np.max(np.abs(x), -1, keepdims=True))
    return size * np.sqrt(np.sum((x / size) ** 2, -1, keepdims=True))
