"""The numbers of a golden file: random, and such that what is wrong shows.

A norm gives its perceptron inputs of about 2, where the two kinds of gelu differ most, and vectors that a norm sees are
small, so that its epsilon counts.
"""

import zlib

import numpy as np

SMALL = 0.01
"""Of an output map before a norm; of tokens before one."""

LENGTH, BATCH = 5, 3

MASK = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 1, 0]], bool)
"""All real, holes, padding on both sides."""

FROM_LEFT = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]], bool)
"""For an original that takes lengths."""

QUERIES = ("probe", "latent", "query", "query_tokens", "cls_token", "positional_embedding", "pos_embed")


def generator(name):
    """The random numbers of the file of this name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def drawn(rng, key, shape, torch=True):
    """A tensor by its name and shape.

    Args:
      rng: a NumPy generator.
      key: its name.
      shape: its shape.
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
    """Inputs by their names; ``query`` has four tokens, others as many as the mask."""
    return {
        name: (size * rng.standard_normal((BATCH, 4 if name == "query" else LENGTH, width))).astype(np.float32)
        for name, width in widths.items()
    }
