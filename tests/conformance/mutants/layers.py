"""Mistakes in layers before and after a pooling."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, halves_swapped

import attnpool_ref as ref
from attnpool_ref.primitives import standardized


def _epsilon_outside(right, x, epsilon):
    centered = x - np.mean(x, -1, keepdims=True)
    return centered / (np.sqrt(np.mean(centered**2, -1, keepdims=True)) + epsilon)


MUTANTS = Mistakes(
    residual_feed_forward={
        "feed forward: gelu by tanh and by erf are one": lambda a: a.oracle(
            activation="gelu_tanh" if a.activation == "gelu" else a.activation
        ),
        "feed forward: the residual forgotten": lambda a: a.oracle() - a.x,
        "feed forward: the halves of geglu swapped": lambda a: (
            a.mapped(kernel=halves_swapped, bias=halves_swapped) if a.activation == "geglu" else a.oracle()
        ),
    },
    layer_norm={
        "layer norm: the epsilon outside of the root": lambda a: a.exchanged(standardized, _epsilon_outside),
        "layer norm: the scale after the bias": lambda a: a.multiplied(bias=1 if a.scale is None else a.scale),
    },
)


@MUTANTS.of("layer_norm", "layer norm: the unbiased variance")
def unbiased_variance(a):
    factor = np.sqrt((a.x.shape[-1] - 1) / a.x.shape[-1])
    return ref.layer_norm(a.x, a.scale, epsilon=a.epsilon) * factor + (0 if a.bias is None else a.bias)


@MUTANTS.of("layer_norm", "layer norm: E[x^2] - E[x]^2")
def difference_of_squares(x, scale=None, bias=None, *, epsilon=1e-6):
    mean, square = (np.mean(part, -1, keepdims=True, dtype=np.float32) for part in (x, x * x))
    y = (x - mean) / np.sqrt(np.maximum(square - mean * mean, 0) + np.float32(epsilon))
    return (y * (1 if scale is None else scale) + (0 if bias is None else bias)).astype(x.dtype)


@MUTANTS.of("residual_feed_forward", "feed forward: the norm is what is added to")
def norm_is_the_residual(a):
    if not a.normalize:
        return a.oracle()
    return a.oracle() - a.x + ref.layer_norm(a.x, a.norm_scale, a.norm_bias, epsilon=a.epsilon)
