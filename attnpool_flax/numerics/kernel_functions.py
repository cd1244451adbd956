"""Kernels of kernel regression as functions of the squared distance and the bandwidth."""

import jax.numpy as jnp


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


KERNELS = {"boxcar": _boxcar, "triangular": _triangular, "epanechnikov": _epanechnikov, "constant": _constant}
"""Values of a kernel from the squared distance and the bandwidth; the Gaussian kernel is a softmax instead."""
