"""Relations: losses and poolings that compare examples, fields of one example, or labels."""

import numpy as np

from attnpool_ref.attention import attend
from attnpool_ref.contract.definition import definition
from attnpool_ref.decomposition import projection
from attnpool_ref.primitives import fill_padding, joined, pairs_of, sigmoid, softmax, tanh, vecmat, weighted_sum
from attnpool_ref.scores import scaled_dot_score


@definition
def attention_triplet_loss(anchor, positive, negative, *, margin=0.2):
    r"""Computes a triplet loss that draws attention toward that of supporting exemplars, away from opposing ones.

    .. math:: T = \max\big(0,\ \lVert s - s^+ \rVert^2 + \alpha - \lVert s - s^- \rVert^2\big)

    An exemplar is another training example; supporting ones are similar to the anchor, opposing ones are not. Where the
    argument of the maximum is exactly 0, the gradient is half of that above 0. The losses are not averaged over the
    batch.

    Args:
      anchor: [..., m] attention over m regions, :math:`s`.
      positive: [..., m], :math:`s^+`, the attention of supporting exemplars.
      negative: [..., m], :math:`s^-`, the attention of opposing exemplars.
      margin: :math:`\alpha`, a number.

    Returns:
      [...] losses, at least 0.

    Source:
      Patro and Namboodiri 2018 (DAN), equation 2, whose function t is the identity here, its only documented choice.
      The paper does not print the margin: 0.2 is the default of the authors' later code. With several exemplars, add or
      average the losses.

    >>> float(attention_triplet_loss([0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]).round(6))
    0.74
    """
    return _triplet(anchor - positive, anchor - negative, margin)


def _triplet(to_positive, to_negative, margin):
    """Computes the hinge loss of two differences [..., m], from a positive and from a negative vector."""
    return np.maximum(0, np.sum(to_positive**2, -1) + margin - np.sum(to_negative**2, -1))


@definition
def differential_context(attention, supporting, opposing, mask=None, *, mode="add", weight=1.0):
    r"""Combines attention with two exemplars' projections on it, minus the residuals (differential attention).

    .. math:: r^+ = \frac{s \cdot s^+}{\lVert s \rVert^2} s + \frac{s \cdot s^-}{\lVert s \rVert^2} s, \qquad
              r^- = \Big(s^+ - \frac{s \cdot s^+}{\lVert s \rVert^2} s\Big)
                  + \Big(s^- - \frac{s \cdot s^-}{\lVert s \rVert^2} s\Big)

    .. math:: d = s + \lambda (r^+ - r^-) \text{ (add)}, \qquad d = s \circ \lambda (r^+ - r^-) \text{ (mul)}

    An exemplar is another training example, similar (supporting) or not (opposing); the formulas, which are those of
    the paper, treat both alike. The result is not a distribution, because it may have negative entries. Projections on
    a zero attention vector are 0.

    Args:
      attention: [..., m] attention over m regions, :math:`s`.
      supporting: [..., m], :math:`s^+`, the attention of a supporting exemplar.
      opposing: [..., m], :math:`s^-`, the attention of an opposing exemplar.
      mask: bool, broadcastable to [..., m]: True at real regions, False at padding; None if all are real.
      mode: "add" or "mul".
      weight: :math:`\lambda`, a number, fixed or learned.

    Returns:
      [..., m], :math:`d`; 0 at padding.

    Source:
      Patro and Namboodiri 2018 (DCN), equations 3 and 4. The value of the fixed weight is not in the paper; its
      figure 3 shows a linear layer before the projection, which the equations do not have.

    >>> differential_context([0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]).round(6)
    array([ 1.484211,  1.010526, -0.126316])
    """
    s, plus, minus = (np.where(mask, vector, 0) for vector in (attention, supporting, opposing))
    plus_along, minus_along = projection(plus, s), projection(minus, s)
    towards = plus_along + minus_along
    away = (plus - plus_along) + (minus - minus_along)
    moved = s + weight * (towards - away) if mode == "add" else s * (weight * (towards - away))
    return np.where(mask, moved, 0)


@definition
def relation_vector(x, y, x_kernel, y_kernel, out_kernel, bias):
    r"""Computes a vector that describes the relation of two cases, by an MLP with one hidden layer.

    .. math:: a(r, r') = \sigma(r W_1 + r' W_2 + b)\, W_3

    :math:`\sigma` is the sigmoid. The source calls this vector attention, but it is not a distribution.

    Args:
      x: [..., f] vectors of cases, of width f, :math:`r`.
      y: [..., f] vectors of other cases, :math:`r'`.
      x_kernel: [f, h], :math:`W_1`, for h hidden units.
      y_kernel: [f, h], :math:`W_2`.
      out_kernel: [h, o], :math:`W_3`; o = f in the source.
      bias: [h], :math:`b`.

    Returns:
      [..., o] relation vectors. The magnitude of a component is at most the sum of the magnitudes in its
      column of ``out_kernel``.

    Source:
      Liu et al. 2022 (CTM), from the authors' code; it was not compared with the paper's text.

    >>> relation_vector([1.0], [-1.0], [[2.0]], [[2.0]], [[3.0]], [0.0])
    array([1.5])
    """
    hidden = vecmat(x, x_kernel) + vecmat(y, y_kernel) + bias
    return vecmat(sigmoid(hidden), out_kernel)


@definition
def relation_triplet_loss(x, similar, dissimilar, x_kernel, y_kernel, out_kernel, bias, *, margin):
    r"""Computes a triplet loss: a case should relate to a similar case as to itself, to a dissimilar one differently.

    .. math:: L = \max\big(0,\ \delta + \lVert a(r, r) - a(r, r^+) \rVert^2 - \lVert a(r, r) - a(r, r^-) \rVert^2\big)

    :math:`a` is :func:`relation_vector`. Where the argument of the maximum is exactly 0, the gradient is half of that
    above 0. The authors' code sums the losses of a batch in one of its directories and averages them in the other; here
    each case has its own loss.

    Args:
      x: [..., f] vectors of cases, of width f, :math:`r`.
      similar: [..., f] vectors of similar cases, :math:`r^+`.
      dissimilar: [..., f] vectors of dissimilar cases, :math:`r^-`.
      x_kernel: [f, h], :math:`W_1` of :func:`relation_vector`, for h hidden units.
      y_kernel: [f, h], :math:`W_2`.
      out_kernel: [h, o], :math:`W_3`.
      bias: [h], :math:`b`.
      margin: :math:`\delta`, a number; the source has 0.5 for law articles and 0.3 for accusations.

    Returns:
      [...] losses, at least 0.

    Source:
      Liu et al. 2022 (CTM), from the authors' code; it was not compared with the paper's text.

    >>> relation_triplet_loss([1.0], [1.0], [1.0], [[2.0]], [[2.0]], [[3.0]], [0.0], margin=0.5)
    array(0.5)
    """
    parameters = x_kernel, y_kernel, out_kernel, bias
    itself = relation_vector.body(x, x, *parameters)
    to_similar = itself - relation_vector.body(x, similar, *parameters)
    to_dissimilar = itself - relation_vector.body(x, dissimilar, *parameters)
    return _triplet(to_similar, to_dissimilar, margin)


@definition
def field_attention_pooling(target, fields, kernel, bias, mask=None, *, return_weights=False):
    r"""Averages the fields of an example, each concatenated with a target, weighted by scores of the pairs.

    .. math:: V_j = [e ; f_j], \qquad \alpha = \mathrm{softmax}_j\big(\tanh(V_j \cdot W_j + b_j)\big), \qquad
              R = \sum_j \alpha_j V_j

    :math:`V_j` is the target :math:`e` concatenated with field :math:`f_j`; in shapes, e is the width of a field. The
    average is over :math:`V_j`, so the first d numbers of the result are the target itself. Scores are between -1 and
    1, so no weight of a real field is more than :math:`\exp(2)` times that of another.

    Args:
      target: [..., d] candidate items of width d, :math:`e`; with d = 0 only the fields are scored.
      fields: [..., J, e] J fields of width e: behaviors, or fields of the user or the context, :math:`f`.
      kernel: [J, d+e], :math:`W`, one for each field; or [d+e], shared.
      bias: [J] or (), :math:`b`.
      mask: bool, broadcastable to [..., J]: True at real fields, False at padding; None if all are real.
      return_weights: also return the weights.

    Returns:
      [..., d+e] pooled vectors; with ``return_weights`` a tuple of these and the weights [..., J]. If no
      field is real, both are 0, the part of the target too.

    Source:
      Zhang et al. 2021 (MIAN), equations 7 to 13, and 14 and 15 with a target of width 0. The paper leaves open whether
      the kernel of behaviors is shared over time, and whether the vectors that equation 15
      sums have the same width, as they must (here they are the rows of ``fields``).

    >>> field_attention_pooling([1.0], [[0.0], [2.0]], [1.0, 0.0], 0.0)
    array([1., 1.])
    """
    target, fields = fill_padding(target, np.any(mask, -1)), fill_padding(fields, mask)
    pairs = joined(np.broadcast_to(target[..., None, :], fields.shape[:-1] + target.shape[-1:]), fields)
    weights = softmax(tanh(np.sum(pairs * kernel, -1) + bias), mask)
    pooled = weighted_sum(weights, pairs)
    return (pooled, weights) if return_weights else pooled


@definition
def label_attention(labels, mask=None, *, query_kernel, key_kernel, value_kernel, return_weights=False):
    r"""Computes self-attention of label vectors.

    .. math:: O = \mathrm{softmax}\Big(\frac{(R W_q)(R W_k)^\top}{\sqrt c}\Big) R W_v

    The softmax runs over the real labels. A padded label is neither query nor key, and its row is 0.

    Args:
      labels: [..., M, d] vectors of width d of M labels, :math:`R`.
      mask: bool, broadcastable to [..., M]: True at real labels, False at padding; None if all are real.
      query_kernel: [d, c], :math:`W_q`.
      key_kernel: [d, c], :math:`W_k`.
      value_kernel: [d, v], :math:`W_v`.
      return_weights: also return the weights.

    Returns:
      [..., M, v]; with ``return_weights`` a tuple of this and the weights [..., M, M].

    Source:
      Vaswani et al. 2017, equation 1, with one head over label vectors. Zhong et al. 2020 (LEMM) describes such a
      mechanism in its abstract; its formulas were not available, so this does not claim to reproduce it.

    >>> label_attention([[0.0], [2.0]], query_kernel=[[0.0]], key_kernel=[[1.0]], value_kernel=[[3.0]])
    array([[3.],
           [3.]])
    """
    labels = fill_padding(labels, mask)
    scores = scaled_dot_score.body(labels @ query_kernel, labels @ key_kernel)
    return attend.body(scores, labels @ value_kernel, pairs_of(mask, mask), return_weights=return_weights)
