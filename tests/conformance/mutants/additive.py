"""Mistakes in additive pooling."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

from attnpool_ref.additive import additive_scores

MUTANTS = Mistakes(
    additive_attention_pooling={
        "additive pooling: the gate ignored": lambda a: a.oracle(gate_kernel=None, gate_bias=None),
        "additive pooling: the gate with the kernel of the layer": lambda a: a.oracle(
            gate_kernel=None if a.gate_kernel is None else a.kernel
        ),
        "additive pooling: dropout ignored": lambda a: a.oracle(dropout_multiplier=None),
        "additive pooling: the mask ignored": lambda a: a.oracle(mask=None),
        "additive pooling: the tokens in place of the values": lambda a: (
            a.oracle(value=None) if a.x.shape[-1] == (a.x if a.value is None else a.value).shape[-1] else a.oracle()
        ),
    },
    attention_penalty={
        "penalty: 1 from every entry": lambda a: np.sum(
            (a.weights @ np.swapaxes(a.weights, -1, -2) - 1) ** 2, (-1, -2)
        ),
        "penalty: the norm, not its square": lambda a: np.sqrt(a.oracle()),
        "penalty: of the batch as a whole": lambda a: (
            np.broadcast_to(np.mean(a.oracle()), np.shape(a.oracle())) if np.size(a.oracle()) else a.oracle()
        ),
    },
)


@MUTANTS.of("attention_penalty", "penalty: nothing costs n")
def nothing_costs(a):
    products = a.weights @ np.swapaxes(a.weights, -1, -2)
    return np.sum((products - np.eye(products.shape[-1])) ** 2, (-1, -2))


@MUTANTS.of("additive_attention_pooling", "additive pooling: the softmax over the hops")
def softmax_over_the_hops(a):
    """The second text of HAN: an axis of length 1, of one hop."""
    parameters = a.kernel, a.out_kernel, a.bias, a.gate_kernel, a.gate_bias, a.out_bias, a.activation
    scores = additive_scores(a.zeroed, *parameters)
    shares = np.exp(scores - np.max(scores, -2, keepdims=True, initial=-np.inf))
    weights = np.where(a.mask[..., None, :], shares / np.sum(shares, -2, keepdims=True), 0)
    pooled = weights @ np.where(a.mask[..., None], a.x if a.value is None else a.value, 0)
    if a.out_kernel.ndim == 1:
        pooled, weights = pooled[..., 0, :], weights[..., 0, :]
    return a.returns(pooled, weights)
