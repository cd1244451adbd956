"""Mistakes in additive pooling."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

from attnpool_ref.additive import additive_scores

MUTANTS = Mistakes()
POOL = "additive_attention_pooling"


@MUTANTS.of(POOL, "additive pooling: the gate ignored")
def gate_ignored(a):
    return a.oracle(gate_kernel=None, gate_bias=None)


@MUTANTS.of(POOL, "additive pooling: the gate with the kernel of the layer")
def gate_has_the_layers_kernel(a):
    return a.oracle(gate_kernel=None if a.gate_kernel is None else a.kernel)


@MUTANTS.of(POOL, "additive pooling: dropout ignored")
def dropout_ignored(a):
    return a.oracle(dropout_multiplier=None)


@MUTANTS.of(POOL, "additive pooling: the mask ignored")
def mask_ignored(a):
    return a.oracle(mask=None)


@MUTANTS.of(POOL, "additive pooling: the softmax over the hops")
def softmax_over_the_hops(a):
    """The second text of HAN: an axis of length 1, of one hop."""
    parameters = a.kernel, a.out_kernel, a.bias, a.gate_kernel, a.gate_bias, a.out_bias, a.activation
    scores = additive_scores(np.where(a.mask[..., None], a.x, 0), *parameters)
    shares = np.exp(scores - np.max(scores, -2, keepdims=True, initial=-np.inf))
    weights = np.where(a.mask[..., None, :], shares / np.sum(shares, -2, keepdims=True), 0)
    pooled = weights @ np.where(a.mask[..., None], a.x if a.value is None else a.value, 0)
    if a.out_kernel.ndim == 1:
        pooled, weights = pooled[..., 0, :], weights[..., 0, :]
    return a.returns(pooled, weights)


@MUTANTS.of(POOL, "additive pooling: the tokens in place of the values")
def tokens_for_values(a):
    return a.oracle(value=None) if a.x.shape[-1] == (a.x if a.value is None else a.value).shape[-1] else a.oracle()


@MUTANTS.of("attention_penalty", "penalty: 1 from every entry")
def one_from_every_entry(a):
    return np.sum((a.weights @ np.swapaxes(a.weights, -1, -2) - 1) ** 2, (-1, -2))


@MUTANTS.of("attention_penalty", "penalty: the norm, not its square")
def norm_not_squared(a):
    return np.sqrt(a.oracle())


@MUTANTS.of("attention_penalty", "penalty: nothing costs n")
def nothing_costs(a):
    products = a.weights @ np.swapaxes(a.weights, -1, -2)
    return np.sum((products - np.eye(products.shape[-1])) ** 2, (-1, -2))


@MUTANTS.of("attention_penalty", "penalty: of the batch as a whole")
def penalty_of_the_batch(a):
    return np.broadcast_to(np.mean(a.oracle()), np.shape(a.oracle())) if np.size(a.oracle()) else a.oracle()
