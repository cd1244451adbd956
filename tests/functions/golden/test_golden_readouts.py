"""Numbers for readouts and MaxSim from outside: those of the authors' classes and of PyTorch Geometric, and short sums.

S(k, shape) is sin(k + 0, 1, 2, ...). The numbers of Set2Set are those of PyTorch Geometric 2.8.1, those of latent attention of
the authors' ``modeling_nvembed.py``, run with these parameters; VLAD and MaxSim were worked out by their formulas.
"""

from fractions import Fraction

import numpy as np
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed

X = np.array([(1, 2), (3, -1), (0.5, 4), (9, 9)])
MASK = np.array([True, True, True, False])


def wave(first, *shape):
    return np.sin(first + np.arange(np.prod(shape))).reshape(shape)


LATENT = {
    "latents": wave(19, 2, 4),
    "query_kernel": wave(2, 4, 1, 4) / 2,
    "key_kernel": wave(3, 4, 1, 4) / 2,
    "value_kernel": wave(4, 4, 1, 4) / 2,
    "out_kernel": wave(5, 1, 4, 4) / 2,
    "mlp_kernel": wave(20, 4, 8) / 2,
    "mlp_out_kernel": wave(21, 4, 4) / 2,
}


@with_golden_numbers
def test_tokens_are_queries_and_latents_keys_and_values(package):
    """With the roles swapped, as many copies have it, the first number is -0.129911."""
    assert_printed(
        package.latent_attention_pooling(2 * wave(0, 3, 4), **LATENT), [0.281683, 0.224868, -0.038689, -0.266676]
    )


SET2SET = {
    "input_kernel": wave(1, 4, 8) / 2,
    "recurrent_kernel": wave(2, 2, 8) / 2,
    "bias": wave(3, 8) / 4,
}


@with_golden_numbers
def test_set2set_of_one_step_and_of_three(package):
    assert_printed(package.set2set_pooling(X, MASK, **SET2SET, num_steps=1), [0.043446, 0.050957, 1.440634, 1.787567])
    read, weights = package.set2set_pooling(X, MASK, **SET2SET, num_steps=3, return_weights=True)
    assert_printed(read, [0.053717, -0.112653, 1.818895, 1.062649])
    assert_printed(weights, [0.299561, 0.467646, 0.232793, 0])


@with_golden_numbers
def test_set2set_of_nothing_is_0_in_both_halves(package):
    """PyTorch Geometric keeps the half that is the query."""
    assert not np.any(package.set2set_pooling(X, MASK & False, **SET2SET, num_steps=3))


VLAD = {"assign_kernel": np.array([(1, -1), (0.5, 0.5)]), "centers": np.array([(1.0, 0), (0, 2)])}


@with_golden_numbers
def test_vlad_with_and_without_its_norms_and_with_a_ghost(package):
    bias = np.array([0, 0.1])
    raw = package.vlad_pooling(X, MASK, **VLAD, assign_bias=bias, normalize=False)
    assert_printed(raw, [[1.639061, 3.586313], [0.282830, 0.569905]])
    assert_printed(
        package.vlad_pooling(X, MASK, **VLAD, assign_bias=bias), [[0.293928, 0.643122], [0.314339, 0.633397]]
    )
    haunted = VLAD | {"assign_kernel": np.concatenate([VLAD["assign_kernel"], [[0.2], [-0.3]]], -1)}
    assert_printed(
        package.vlad_pooling(X, MASK, **haunted, normalize=False), [[1.302241, 3.667911], [0.248394, 0.521175]]
    )


@with_golden_numbers
def test_a_token_of_zeros_is_no_padding_for_vlad(package):
    """What an unmasked pad of zeros gives in ports of NetVLAD: it counts -a c."""
    x = np.where(MASK[:, None], X, 0)
    raw = package.vlad_pooling(x, **VLAD, assign_bias=np.array([0, 0.1]), normalize=False)
    assert_printed(raw, [[1.164041, 3.586313], [0.282830, -0.480053]])


@with_golden_numbers
def test_residuals_are_taken_before_they_are_summed(package):
    """Tokens as near to a centre as float32 can tell, far from 0: a difference of two sums keeps no digit of theirs."""
    x = np.float32(4096) + np.array([[[2.0**-11], [2.0**-10]]] * 300, np.float32).reshape(600, 1)
    centers, kernel = np.array([[4096.0]], np.float32), np.zeros((1, 1), np.float32)
    raw = package.vlad_pooling(x, assign_kernel=kernel, centers=centers, normalize=False)
    assert np.asarray(raw).item() == 300 * (2.0**-11 + 2.0**-10)


@with_golden_numbers
def test_a_cluster_that_no_token_belongs_to_has_a_direction(package):
    """Its weights are e^-200 and e^-201, which float32 has not: their quotient is what the norm leaves."""
    x, centers = np.array([[100.0], [100.5]], np.float32), np.array([[0.0], [1.0]], np.float32)
    parameters = {"assign_kernel": np.array([[1.0, -1.0]], np.float32), "centers": centers}
    assert_printed(package.vlad_pooling(x, **parameters), [[np.sqrt(0.5)], [np.sqrt(0.5)]])


Y = np.array([(0.8, 0.6), (0, 1), (5, 5)])
Y_MASK = np.array([True, True, False])


@with_golden_numbers
def test_maxsim_is_the_sum_of_the_best_products(package):
    """Its mean is sentence-transformers' ``mean_maxsim``; without the mask it would be 12."""
    x = np.array([(1, 0), (0.6, 0.8)])
    assert_printed(package.maxsim_score(x, Y, None, Y_MASK), 1.76)
    assert_printed(package.maxsim_score(x, Y, None, Y_MASK, mean=True), 0.88)
    assert_printed(package.maxsim_score_all_pairs(x[None], Y[None], None, Y_MASK, mean=True), [[0.88]])


@with_golden_numbers
def test_padding_is_no_product_of_0(package):
    """ColBERT's CPU code begins at 0, and PyLate multiplies padding by 0: both would give 0 and -0.6."""
    x, y = np.array([(1, 0), (0.6, -0.8)]), np.array([(-0.6, 0.8), (-0.8, 0.6), (0, 0)])
    assert_printed(package.maxsim_score(x, y, None, Y_MASK), -1.56)
    assert_printed(package.maxsim_score(x[:1], y[[0, 2]], None, Y_MASK[[0, 2]]), -0.6)


@with_golden_numbers
def test_maxsim_with_an_empty_side_is_0(package):
    x = np.array([(1, 0), (0.6, 0.8)])
    scores = package.maxsim_score_all_pairs(x[None], np.stack([Y, -Y]), None, np.stack([Y_MASK & False, Y_MASK]))
    assert np.asarray(scores)[0, 0] == 0 and np.asarray(scores)[0, 1] < 0
    assert np.asarray(package.maxsim_score(x[:0], Y)) == 0


LOGARITHMS = np.log(np.array([[2.0], [3.0], [99.0]]))
"""The sigmoid of ln n is n/(n + 1), its hyperbolic tangent (n² - 1)/(n² + 1)."""


@with_golden_numbers
def test_a_gated_sum_of_logarithms(package):
    """2/3 · 3/5 + 3/4 · 4/5 = 1; with ln 2 as the gate's bias 4/5 · 3/5 + 6/7 · 4/5; with it as the value's 2/3 · 15/17 + 3/4 · 35/37."""
    mask, kernels = np.array([True, True, False]), {"gate_kernel": np.ones((1, 1)), "value_kernel": np.ones((1, 1))}
    two = np.log(np.array([2.0]))
    assert_exact(package, package.gated_sum_pooling(LOGARITHMS, mask, **kernels), [1])
    assert_exact(
        package,
        package.gated_sum_pooling(LOGARITHMS, mask, **kernels, gate_bias=two),
        [Fraction(12, 25) + Fraction(24, 35)],
    )
    assert_exact(
        package,
        package.gated_sum_pooling(LOGARITHMS, mask, **kernels, value_bias=two),
        [Fraction(10, 17) + Fraction(105, 148)],
    )
    packed = package.segment_gated_sum_pooling(LOGARITHMS, np.array([1, 0, 1]), 2, mask, **kernels)
    assert_exact(package, packed, [[Fraction(3, 5)], [Fraction(2, 5)]])
