"""Random arrays for calls that tests write out, and the ways to call a function."""

import numpy as np

from attnpool_ref.conformance import cases


def draw(rng, *shape):
    """Draws normally distributed numbers in float32."""
    return rng.normal(size=shape).astype(np.float32)


def draw_heads(rng, width, heads, keys, values, results):
    """Draws all maps of multi-head attention of tokens of one width, by the names of the arguments."""
    of_inputs = {"query": (heads, keys), "key": (heads, keys), "value": (heads, values)}
    found = {f"{part}_kernel": draw(rng, width, *shape) for part, shape in of_inputs.items()}
    found |= {f"{part}_bias": draw(rng, *shape) for part, shape in of_inputs.items()}
    return found | {"out_kernel": draw(rng, heads, values, results), "out_bias": draw(rng, results)}


def way(row, title=None):
    """Returns (title, names of optional arguments, options) of a way to call a row: by default the one with most arguments."""
    title = title or cases.fullest_way(row)
    return next(found for found in cases.configurations(row) if found[0] == title)
