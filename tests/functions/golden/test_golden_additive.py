"""Numbers for additive pooling that come from outside: worked by hand in float64 from the formulas of the papers.

Three real tokens and a pad; a layer of two units. The gate, two hops and other normalisers share it.
"""

import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_printed

X = np.array([(1, 2), (3, -1), (0.5, 4), (9, 9)])
MASK = np.array([True, True, True, False])
LAYER = {"kernel": np.array([(0.1, 0.2), (0.3, -0.4)]), "bias": np.array([0.1, -0.1])}
GATE = {"gate_kernel": np.array([(0.5, 0), (0, -0.5)]), "gate_bias": np.array([0, 0.2])}
OUT, HOPS = np.array([1.0, 2]), np.array([(1, -1), (2, 0.5)])

GOLDEN = {
    "ABMIL": (LAYER | {"out_kernel": OUT}, (0.103797, 0.828316, 0.067887), (2.622689, -0.349174)),
    "gated ABMIL": (LAYER | GATE | {"out_kernel": OUT}, (0.202862, 0.551509, 0.245629), (1.980204, 0.836731)),
    "two hops": (
        LAYER | {"out_kernel": HOPS},
        ((0.103797, 0.828316, 0.067887), (0.196278, 0.667965, 0.135757)),
        ((2.622689, -0.349174), (2.268051, 0.267620)),
    ),
    "sigmoid": (
        LAYER | {"out_kernel": OUT, "normalizer": "sigmoid"},
        (0.367095, 0.822337, 0.275023),
        (2.971619, 1.011946),
    ),
}

PENALTIES = [
    (((0.103797, 0.828316, 0.067887), (0.196278, 0.667965, 0.135757)), 1.015473),
    (((0.5, 0.5, 0), (0, 0, 1)), 0.25),
    (((1, 0, 0), (0, 0, 1)), 0),  # each looks at one token of its own
    (((1, 0, 0), (1, 0, 0)), 2),  # and both at the same
    (((0, 0, 0), (0, 0, 0)), 0),  # nothing is real
]


@with_golden_numbers
@pytest.mark.parametrize("title", GOLDEN)
def test_additive_pooling_by_hand(package, title):
    given, weights, pooled = GOLDEN[title]
    found = package.additive_attention_pooling(X, MASK, **given, return_weights=True)
    assert_printed(found[1][..., :3], weights)
    assert_printed(found[0], pooled)
    assert not np.any(found[1][..., 3])


@with_golden_numbers
def test_sigmoids_over_their_sum_by_hand(package):
    """A function in the normaliser's place."""

    def shares(scores, mask):
        return package.masked_sigmoid(scores, mask, normalize=True)

    pooled, weights = package.additive_attention_pooling(
        X, MASK, **LAYER, out_kernel=OUT, normalizer=shares, return_weights=True
    )
    assert_printed(weights, (0.250670, 0.561531, 0.187799, 0))
    assert_printed(pooled, (2.029162, 0.691005))


@with_golden_numbers
def test_penalties_by_hand(package):
    """Lin et al.: ports that subtract 1 from every entry give 2.25 and 0 for the second and fourth."""
    weights, penalties = zip(*PENALTIES, strict=True)
    assert_printed(package.attention_penalty(np.array(weights, float)), penalties)
