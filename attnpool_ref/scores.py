"""Scores: how well each key suits each query. Scores know neither masks nor weights."""

import numpy as np

from attnpool_ref.definition import definition


@definition
def dot_score(query, key):
    r"""Scores each pair by its dot product.

    .. math:: s_{ij} = q_i \cdot k_j

    Args:
      query: [..., n, d] queries.
      key: [..., m, d] keys.

    Returns:
      [..., n, m] scores.

    Raises:
      ValueError: widths or batch axes disagree.

    Source:
      Luong et al. 2015, equation 8, "dot".

    >>> dot_score([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]])
    array([[11., 17.]])
    """
    return query @ np.swapaxes(key, -1, -2)


@definition
def scaled_dot_score(query, key, *, scale=None):
    r"""Scores each pair by its dot product, scaled so that its variance does not grow with the width.

    .. math:: s_{ij} = \frac{q_i \cdot k_j}{\sqrt d}

    Args:
      query: [..., n, d] queries.
      key: [..., m, d] keys.
      scale: a number in place of :math:`1/\sqrt d`.

    Returns:
      [..., n, m] scores.

    Raises:
      ValueError: widths or batch axes disagree.

    Source:
      Vaswani et al. 2017, section 3.2.1.

    >>> scaled_dot_score([[1.0, 2.0, 2.0, 0.0]], [[2.0, 2.0, 2.0, 2.0]])
    array([[5.]])
    """
    if scale is None:
        scale = 1 / np.sqrt(query.shape[-1])
    return scale * dot_score(query, key)
