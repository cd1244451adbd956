"""Random numbers of golden files, chosen so that mistakes have a visible effect.

A norm gives its perceptron inputs of about 2, for which the two kinds of gelu differ most. Vectors before a norm are
small, so that the norm's epsilon has an effect.
"""

import zlib

import numpy as np

SMALL = 0.01
"""Scales of an output map before a norm, and of tokens before a norm."""

LENGTH, BATCH = 5, 3

MASK = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 1, 0]], bool)
"""Masks: all real, with holes, with padding on both sides."""

FROM_LEFT = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]], bool)
"""Masks for an original that takes lengths."""

QUERIES = ("probe", "latent", "query", "query_tokens", "cls_token", "positional_embedding", "pos_embed")


def generator(name):
    """Returns the random generator of the file of this name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def drawn(rng, key, shape, torch=True):
    """Returns a random tensor by its name and shape.

    Args:
      rng: a NumPy generator.
      key: the tensor's name.
      shape: the tensor's shape.
      torch: whether a kernel is (out, in).
    """
    piece = key.replace("/", ".").rpartition(".")[2]
    if piece == "num_batches_tracked":
        return np.array(7)
    if piece == "running_var":
        return rng.uniform(0.5, 2, shape).astype(np.float32)
    x = rng.standard_normal(shape)
    if piece in QUERIES:
        return x.astype(np.float32)
    if piece in ("bias", "b", "in_proj_bias", "running_mean"):
        return (0.3 * x).astype(np.float32)
    if len(shape) == 1:  # the scale of a norm
        return (2 + 0.25 * x).astype(np.float32)
    inputs = shape[1] if torch else shape[0] * shape[1] if piece == "kernel" and "out" in key else shape[0]
    return (x * inputs**-0.5).astype(np.float32)


def inputs(rng, size=1.0, **widths):
    """Returns inputs by name; ``query`` has four tokens, others have as many as the mask."""
    return {
        name: (size * rng.standard_normal((BATCH, 4 if name == "query" else LENGTH, width))).astype(np.float32)
        for name, width in widths.items()
    }
