"""Ordinary mistakes in PyTorch have their cause named, whatever else is wrong with the function."""

import ordinary_in_torch
import pytest
from conformance.ordinary import ORDINARY, SAME_EVIDENCE, assert_named

from attnpool_ref.conformance import QUICK


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_mistake_in_torch_has_its_cause_named(name):
    assert_named(name, getattr(ordinary_in_torch, name), "torch", (SAME_EVIDENCE, QUICK))
