"""Layers before and after a pooling: layer normalization, and a residual MLP."""

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.activations import geglu, gelu, gelu_tanh, relu
from attnpool_ref.primitives import standardized

ACTIVATIONS = {"gelu": gelu, "gelu_tanh": gelu_tanh, "relu": relu, "geglu": geglu}


@definition
def layer_norm(x, scale=None, bias=None, *, epsilon=1e-6):
    r"""Shifts and scales each vector to mean 0 and variance 1 (layer normalization).

    .. math:: y = \gamma \frac{x - \bar x}{\sqrt{\mathrm{var}(x) + \epsilon}} + \beta, \qquad
              \mathrm{var}(x) = \frac 1 d \sum_c (x_c - \bar x)^2

    :math:`\bar x` is the mean of a vector's d numbers :math:`x_c`. A vector of equal numbers becomes :math:`\beta`;
    with :math:`\epsilon = 0` its gradient is 0.

    Args:
      x: [..., d] vectors.
      scale: [d], :math:`\gamma`, 1 if None.
      bias: [d], :math:`\beta`, 0 if None.
      epsilon: :math:`\epsilon`, a number of at least 0.

    Returns:
      [..., d] vectors, :math:`y`.

    Source:
      Ba et al. 2016, equation 3, with :math:`\epsilon` as in common implementations.

    >>> layer_norm([1.0, 3.0], epsilon=0.0), layer_norm([2.0, 2.0], bias=[0.5, 1.0])
    (array([-1.,  1.]), array([0.5, 1. ]))
    """
    y = standardized(x, epsilon)
    return y * (1 if scale is None else scale) + (0 if bias is None else bias)


@definition
def residual_feed_forward(
    x,
    kernel,
    bias=None,
    out_kernel=None,
    out_bias=None,
    *,
    norm_scale=None,
    norm_bias=None,
    normalize=True,
    activation="gelu",
    epsilon=1e-6,
):
    r"""Adds to each vector an MLP of its layer normalization (pre-norm residual MLP).

    .. math:: y = x + \mathrm{act}(\mathrm{LN}(x) W + b) W_o + b_o

    LN is :func:`layer_norm`, or the identity without ``normalize``. Without ``out_kernel`` the result is
    :math:`x + \mathrm{act}(\mathrm{LN}(x) W + b)`. The activations are gelu :math:`h \Phi(h)`, with :math:`\Phi` the
    standard normal distribution function; gelu_tanh, its approximation by tanh; relu, whose derivative at 0 is 1/2; and
    geglu :math:`u \circ \mathrm{gelu}(g)`, where :math:`[u; g]` are the two halves of a hidden layer that is twice as
    wide.

    Args:
      x: [..., d] vectors.
      kernel: [d, f], :math:`W`, for f hidden units; [d, 2f] for geglu. Without ``out_kernel``, f must be d.
      bias: [f], :math:`b`, or None; [2f] for geglu.
      out_kernel: [f, d], :math:`W_o`, or None.
      out_bias: [d], :math:`b_o`, or None; only with ``out_kernel``.
      norm_scale: [d], the scale of :func:`layer_norm`, 1 if None.
      norm_bias: [d], the bias of :func:`layer_norm`, 0 if None; only with ``norm_scale``.
      normalize: apply :func:`layer_norm` before the kernel.
      activation: "gelu", "gelu_tanh", "relu" or "geglu".
      epsilon: the epsilon of the layer normalization, a number of at least 0.

    Returns:
      [..., d] vectors, :math:`y`.

    Raises:
      ValueError: if shapes disagree, if the activation is unknown, if ``out_bias`` is given without ``out_kernel``, if
        ``norm_bias`` is given without ``norm_scale``, or if either is given without ``normalize``.

    Source:
      Vaswani et al. 2017, section 3.3, with the layer normalization first; geglu: Shazeer 2020, equation 6.

    >>> residual_feed_forward([1.0, -2.0], np.eye(2), normalize=False, activation="relu")
    array([ 2., -2.])
    """
    row = x[..., None, :]  # each vector is a product of its own
    norm = (norm_scale, norm_bias, epsilon) if normalize else None
    return feed_forward(row, kernel, bias, out_kernel, out_bias, norm, activation)[..., 0, :]


def feed_forward(x, kernel, bias, out_kernel, out_bias, norm, activation):
    """Computes :func:`residual_feed_forward` of tokens [..., L, d].

    ``norm`` is None, or (norm_scale, norm_bias, epsilon). The other arguments are those of that function.
    """
    hidden = x
    if norm is not None:
        norm_scale, norm_bias, epsilon = norm
        hidden = layer_norm.body(x, norm_scale, norm_bias, epsilon=epsilon)
    hidden = ACTIVATIONS[activation](hidden @ kernel + (0 if bias is None else bias))
    if out_kernel is not None:
        hidden = hidden @ out_kernel + (0 if out_bias is None else out_bias)
    return x + hidden
