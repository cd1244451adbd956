"""Numbers that the pictures of ``docs/pictures/`` show: weights on padding, means by layout."""

import numpy as np
import pytest
from pictures import batch, heat, layouts, sentences


def test_weights_of_the_batch_leak_only_without_the_mask():
    x, mask = batch.batch()
    assert (np.where(mask, 0, batch.pooled(None)[1]).sum(-1) > 0.3).all()
    vectors, weights = batch.pooled(mask)
    assert not weights[~mask].any()
    np.testing.assert_allclose(vectors[0], weights[0, :4] @ x[0, :4])


def test_every_layout_has_the_same_means():
    means = layouts.results()
    assert len(means) == 4
    for found in means.values():
        np.testing.assert_array_equal(found, [2.5, 7, 0])


def test_most_of_the_weight_is_on_the_lesion_only_with_the_mask():
    _, without, weights, mask, lesion = heat.maps()
    assert not weights[~mask].any() and mask[lesion].all()
    assert weights[lesion].sum() > 0.5 > without[lesion].sum()
    assert without[~mask].sum() > 0.3


def test_attention_pooling_weighs_the_words_of_a_sentence_differently_from_the_mean():
    for tokens, weights in sentences.results():
        assert weights.sum() == pytest.approx(1, abs=1e-6)
        assert weights.max() > 1.4 / len(tokens)
