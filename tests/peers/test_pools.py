"""PyG's, entmax's, sentence-transformers', transformers' and PyTorch's poolings with our parameters: the same numbers."""

import pools_of_pyg
import pools_of_texts
import pools_of_torch
import pools_of_transformers
import pytest
from agreeing import assert_agree

CASES = [
    *pools_of_pyg.CASES,
    *pools_of_texts.CASES,
    *pools_of_torch.CASES,
    *pools_of_transformers.CASES,
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_parameters_give_the_same_numbers_and_gradients(case):
    assert_agree(case)
