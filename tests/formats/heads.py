"""Heads of random numbers for the tests of formats."""

import zlib

import numpy as np

from attnpool_ref import formats

SIZES = {"d": 6, "e": 4, "v": 10, "w": 8, "o": 7, "f": 9, "n": 3, "s": 5, "h": 5, "K": 4, "H": 2, "c": 3, "k": 2}


def tensors_of(name, form=0, prefix="", dtype=np.float32, without=(), **sizes):
    """Random tensors of a format's form, some sizes otherwise than usual."""
    random = np.random.default_rng(zlib.crc32(f"{name}{form}".encode()))
    made = {}
    for tensor in formats.get(name).forms[form].tensors:
        if tensor.key not in without:
            shape = tensor.filled(SIZES | sizes)
            value = random.uniform(0.5, 1.5, shape) if tensor.shape else np.array(3)
            made[prefix + tensor.key] = value.astype(dtype if tensor.shape else np.int64)
    return made


def given(name):
    """What must be given to read such a head."""
    row = formats.get(name)
    options = {"num_heads": 2, "epsilon": 1e-6, "activation": "gelu"}
    asked = {"num_heads": row.num_heads, "epsilon": row.epsilon, "activation": row.activation}
    return {key: options[key] for key, default in asked.items() if default == "given" or isinstance(default, int)}


EVERY_FORM = [(row.name, form) for row in formats.FORMATS.values() for form in range(len(row.forms))]
