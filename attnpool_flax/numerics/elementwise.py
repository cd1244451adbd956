"""Elementwise functions: activations, masking, and the kernels of kernel regression.

Twin of :mod:`attnpool_ref.numerics.activations`.
"""

import itertools
import math

import jax
import jax.numpy as jnp


def relu(x):
    """Computes max(x, 0); the derivative at 0 is 1/2, because x and 0 are equal there and share the gradient."""
    return jnp.maximum(x, 0)


@jax.custom_jvp
def normal_cdf(x):
    """Computes the standard normal CDF, with its own derivative: that of JAX 0.12's ``erfc`` fails in ``shard_map``."""
    return jax.lax.erfc(x * -math.sqrt(0.5)) * 0.5


@normal_cdf.defjvp
def _normal_cdf_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return normal_cdf(x), jnp.exp(x * x * -0.5) * math.sqrt(0.5 / math.pi) * dx


def gelu(x):
    """Computes GELU by its definition: x times the standard normal CDF of x."""
    return x * normal_cdf(x)


def gelu_tanh(x):
    """Computes the tanh approximation of GELU."""
    return jax.nn.gelu(x, approximate=True)


def geglu(x):
    """Maps [..., 2f] to [..., f]: the first half times the :func:`gelu` of the second."""
    value, gate = jnp.split(x, 2, -1)
    return value * gelu(gate)


@jax.custom_jvp
def tanh(x):
    """Computes tanh, with the derivative 1 / cosh² x, because 1 - tanh² x cancels where tanh x is near 1 or -1."""
    return jnp.tanh(x)


@tanh.defjvp
def _tanh_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    decay = jnp.exp(-2 * jnp.abs(x))
    return tanh(x), 4 * decay / jnp.square(1 + decay) * dx


def power_series(x, coefficient, radius):
    """Evaluates a power series by Horner's rule, with as many terms as the dtype resolves for x below the radius."""
    terms = itertools.takewhile(
        lambda term: abs(term[1]) * radius ** term[0] > jnp.finfo(x.dtype).eps / 4,
        ((k, coefficient(k)) for k in itertools.count()),
    )
    result = jnp.zeros_like(x)
    for _, factor in reversed(list(terms)):
        result = result * x + factor
    return result


OF_SCORES = {"tanh": tanh, "relu": relu, "gelu": gelu, "identity": lambda x: x}
"""Activations of the hidden layer of learned scores, by name."""


def keep_real(x, mask):
    """Sets tokens x [..., L, d], and their gradient, to 0 where the mask [..., L] is False; None leaves x unchanged."""
    return x if mask is None else jnp.where(mask[..., None], x, 0)


def _boxcar(squared, bandwidth):
    inside = squared <= bandwidth * bandwidth
    return jnp.where(jnp.isnan(squared), jnp.nan, inside.astype(squared.dtype))


def _triangular(squared, bandwidth):
    # at distance 0 the slope of the root is infinite: the gradient is set to 0
    distance = jnp.where(squared == 0, 0, jnp.sqrt(jnp.where(squared == 0, 1, squared)))
    return jnp.maximum(1 - distance / bandwidth, 0)


def _epanechnikov(squared, bandwidth):
    return 0.75 * jnp.maximum(1 - squared / (bandwidth * bandwidth), 0)


def _constant(squared, bandwidth):
    return jnp.ones_like(squared)


KERNEL_FUNCTIONS = {"boxcar": _boxcar, "triangular": _triangular, "epanechnikov": _epanechnikov, "constant": _constant}
"""Values of a kernel from the squared distance and the bandwidth; the Gaussian kernel is a softmax instead."""
