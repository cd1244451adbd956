"""What the pairs, decompositions and relations take and refuse beyond what every row does."""

import numpy as np
import pytest
from packages import every_package
from refusals import Call, every_refusal

TOKENS, TARGET, FIELDS, KERNEL = np.ones((2, 5, 3)), np.ones(4), np.ones((2, 5, 3)), np.ones((5, 7))
CASES = [np.ones(shape, np.float32) for shape in ((2, 3), (2, 3), (3, 6), (3, 6), (6, 4), (6,))]

REFUSED = [
    Call("cross_attention_pooling_all_pairs", TOKENS, TOKENS[None]).raises(
        ValueError, "`y` has shape (1, 2, 5, 3), needs [C, T, e]"
    ),
    Call("field_attention_pooling", TARGET, FIELDS, KERNEL[1:], 0.0).raises(
        ValueError, "`kernel` has shape (4, 7) but `fields` has (2, 5, 3): `kernel` needs [J, d+e] or [d+e] with J = 5"
    ),
    Call("field_attention_pooling", TARGET, FIELDS, KERNEL[:, :3], 0.0).raises(
        ValueError, "`kernel` has shape (5, 3), needs [J, d+e] or [d+e] with d+e = 7"
    ),
    Call("semantic_match", TOKENS, TOKENS, window=-1).raises(
        ValueError, "`window` is -1, needs an integer of at least 0"
    ),
    Call("semantic_match", TOKENS, TOKENS, method="nearest").raises(
        ValueError, "`method` is 'nearest', needs one of 'max', 'global', 'local'"
    ),
]


@every_refusal(REFUSED)
def test_bad_input_is_refused_in_the_same_words(package, refusal):
    refusal.check(package)


@every_package
def test_the_margin_of_a_relation_triplet_is_required(package):
    case = CASES[0]
    with pytest.raises(TypeError, match="relation_triplet_loss: missing a required"):
        package.relation_triplet_loss(case, case, *CASES[1:])


@every_package
@pytest.mark.parametrize("bias", [2, 2.0, np.float64(2), np.array(2.0)])
def test_a_bias_that_is_a_number_does_not_widen_the_result(package, bias):
    narrow = [np.float32(a) for a in (TARGET, FIELDS, KERNEL)]
    assert package.field_attention_pooling(*narrow, bias).dtype == np.float32


@every_package
def test_infinity_equals_itself_and_nan_is_not_patched_away(package):
    x = np.array([[np.inf, 1.0], [np.inf, 1], [np.nan, 1]])
    reference = np.array([[np.inf, 1.0], [-np.inf, 1], [0, 1]])
    similar, dissimilar = package.rigid_decomposition(x, reference)
    assert np.array_equal(similar, [[np.inf, 1], [0, 0], [np.nan, np.nan]], equal_nan=True)
    assert np.array_equal(dissimilar, [[0, 0], [np.inf, 1], [np.nan, np.nan]], equal_nan=True)


@every_package
@pytest.mark.parametrize("method", ["max", "global", "local"])
def test_a_real_nan_reaches_all_matches_of_its_example_and_no_other(package, method):
    x, y = np.arange(24.0).reshape(2, 4, 3) + 1, np.arange(30.0).reshape(2, 5, 3) - 7
    bad = y.copy()
    bad[1, 2, 0] = np.nan
    matched = np.asarray(package.semantic_match(x, bad, method=method))
    assert np.all(np.isnan(matched[1]).any(-1))
    assert np.array_equal(matched[0], np.asarray(package.semantic_match(x, y, method=method))[0])
