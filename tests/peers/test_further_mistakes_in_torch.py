"""Further mistakes in PyTorch have their cause named."""

import further_in_torch as further
import pytest
from conformance.ordinary import SAME_EVIDENCE, assert_causes

from attnpool_ref.conformance.causes import mistakes, of_tokens, of_weights

ONE_FREEDOM = {"fixed": {"ddof": 1.0}}
FURTHER = [
    ("gated_masked_after_the_softmax", "additive_attention_pooling", of_weights.NOT_AGAIN, {}),
    (
        "gated_scores_times_mask",
        "additive_attention_pooling",
        "multiplies scores by the mask: padding gets the score 0",
        {},
    ),
    ("gated_filled", "additive_attention_pooling", of_weights.AVERAGED, {}),
    ("nan_for_a_single_token", "std_pooling", of_tokens.LONE, ONE_FREEDOM),
    ("nan_for_a_single_token", "std_pooling", of_tokens.LONE, ONE_FREEDOM | {"some_real": True}),
    ("moments_with_a_clamp", "std_pooling", of_tokens.MOMENTS, {}),
    ("softmax_of_all_segments", "segment_attention_pooling", of_weights.ALL_SEGMENTS, {}),
    ("maximum_of_all_subtracted", "masked_softmax", of_weights.WHOLE_TOP, {}),
    ("maximum_by_reduce", "segment_max_pooling", of_tokens.NEXT, {}),
    ("as_many_as_the_largest_id", "segment_mean_pooling", mistakes.SIZE, {}),
]


@pytest.mark.parametrize(("name", "row", "right", "options"), FURTHER)
def test_a_further_mistake_in_torch_has_its_cause_named_and_no_wrong_one(name, row, right, options):
    function = getattr(further, name)
    parameters = {"parameters": further.PARAMETERS} if isinstance(function, further.Gated) else {}
    scope = SAME_EVIDENCE | {"dtypes": ("float32",), "arrays": "torch"}
    assert_causes(function, row, right, scope | parameters | options)
